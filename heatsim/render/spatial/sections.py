"""Flat sections of a field, read slab by slab, so that large grids need not fit in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.render.spatial.cuts import Cut, choose_cuts
from heatsim.render.spatial.layers import ShownLayer
from heatsim.storage.field_reader import FieldReader

# Sections that differ by less than this part of the range of a field look equal.
_LOOKS_EQUAL = 2e-3


@dataclass(frozen=True)
class Section:
    """A plane of cells normal to one axis.

    Attributes:
        values: in K, NaN in void; shape (nz, ny) normal to x, (nz, nx) to y, (ny, nx) to z.
        materials: the number of each cell's material, of the same shape.
        place: position along the axis, as a fraction of the box.
        cells: the planes of cells that it shows.
    """

    values: NDArray[np.float64]
    materials: NDArray[np.uint8]
    place: float
    cells: Sequence[int] = ()


def read_sections(
    reader: FieldReader,
    index: int,
    places: Mapping[int, float] = MappingProxyType({}),
    layers: Sequence[ShownLayer] = (),
) -> tuple[Section, Section, Section]:
    """The planes normal to x, y and z that show most of field ``index``; one slab is in memory at a time.

    A plane between two cells shows their mean if both have the same material, else the first of them that conducts.

    Args:
        reader: of the fields.
        index: the number of the field.
        places: by axis (0 = x), the coordinate in m of the plane normal to it; heatsim chooses the others.
        layers: thin layers. A plane at a layer shows the cells that hold the layer.
    """
    cuts = choose_cuts(reader, index, places, layers)
    grid = reader.grid
    values = [np.empty((len(cut.cells), *grid.face_shape(2 * axis))) for axis, cut in enumerate(cuts)]
    labels = [np.empty(found.shape, dtype=np.uint8) for found in values]
    for planes, slab in reader.slabs(index):
        materials = reader.read_materials(planes)
        field = np.where(reader.conducting(planes), slab.astype(np.float64), np.nan)
        for source, target in ((field, values), (materials, labels)):
            target[0][:, planes] = np.moveaxis(source[:, :, list(cuts[0].cells)], 2, 0)
            target[1][:, planes] = np.moveaxis(source[:, list(cuts[1].cells)], 1, 0)
            for number, cell in enumerate(cuts[2].cells):
                if planes.start <= cell < planes.stop:
                    target[2][number] = source[cell - planes.start]
    first, second, third = map(_section, cuts, values, labels)
    return first, second, third


def through_hottest(
    reader: FieldReader, index: int, sections: Sequence[Section], hot: float, layers: Sequence[ShownLayer] = ()
) -> Sequence[Section]:
    """The sections, or if one of them shows nothing as hot as ``hot`` (K), those through the hottest cell."""
    if all(np.nanmax(section.values, initial=-np.inf) >= hot for section in sections):
        return sections
    highest, cell = -np.inf, (0, 0, 0)
    for planes, slab in reader.slabs(index):
        values = np.where(reader.conducting(planes), slab, -np.inf)
        z, y, x = np.unravel_index(np.argmax(values), values.shape)
        if values[z, y, x] > highest:
            highest, cell = float(values[z, y, x]), (int(x), int(y), planes.start + int(z))
    places = {axis: float(reader.grid.centres(axis)[cell[axis]]) for axis in range(3)}
    return read_sections(reader, index, places, layers)


def _section(cut: Cut, values: NDArray[np.float64], labels: NDArray[np.uint8]) -> Section:
    """One section from the planes of cells at a cut, with the preferred one first."""
    shown, materials = values[0], labels[0]
    if len(values) > 1:
        same = (labels[0] == labels[1]) & cut.joined
        void = np.isnan(shown)
        mean = np.tensordot(cut.weights, values, 1)
        shown = np.where(same, mean, np.where(void, values[1], shown))
        materials = np.where(void, labels[1], materials)
    return Section(shown, materials, cut.place, cut.cells)


def find_equal(sections: Sequence[Section], grid: Grid) -> dict[int, int]:
    """Find sections that look equal, as in a symmetric body: maps the axis of one to the axis of the one to keep.

    They are compared as drawn, with the higher axis upwards. The later of x, y, z is kept, because it is drawn first.
    """
    everything = np.concatenate([section.values[np.isfinite(section.values)] for section in sections])
    difference = _LOOKS_EQUAL * float(np.ptp(everything)) if everything.size else 0.0
    equal: dict[int, int] = {}
    for one in range(3):
        for other in range(2, one, -1):
            if other not in equal and _look_equal(sections, one, other, grid, difference):
                equal[one] = other
                break
    return equal


def _look_equal(sections: Sequence[Section], one: int, other: int, grid: Grid, difference: float) -> bool:
    a, b = sections[one], sections[other]
    size_a, size_b = ([grid.size[axis] for axis in range(3) if axis != normal] for normal in (one, other))
    if a.values.shape != b.values.shape or not np.allclose(size_a, size_b, rtol=1e-6, atol=0.0):
        return False
    widths_a, widths_b = ([grid.axes[axis].widths for axis in range(3) if axis != normal] for normal in (one, other))
    if not all(np.allclose(*pair, rtol=1e-6, atol=0.0) for pair in zip(widths_a, widths_b, strict=True)):
        return False
    if not np.array_equal(a.materials, b.materials):
        return False
    return bool(np.allclose(a.values, b.values, rtol=0.0, atol=difference, equal_nan=True))


def oriented(plane: NDArray[Any], across: int, up: int) -> NDArray[Any]:
    """A section as a panel shows it, indexed [up, across]; sections are indexed with the higher axis first."""
    return plane if up > across else plane.T
