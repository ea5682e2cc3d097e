"""Choose where the sections of a body lie: in the middle, unless another plane shows more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Axis, Grid
from heatsim.render.page.samples import Samples, read_samples, sample_borders, spread
from heatsim.render.spatial.layers import ShownLayer, side_of_layers
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.vtkhdf import VOID

# Another plane replaces the central one if it shows more by at least this factor.
_WORTH_LEAVING_THE_CENTRE = 1.15
# Cells: a plane this near to a border between cells lies on it.
_ON_BORDER = 1e-6
_MOST_SAMPLES = 64

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cut:
    """A plane across an axis.

    Attributes:
        cells: the planes of cells at the cut: one, or two if it lies between them, with the preferred one first.
        place: position along the axis, as a fraction of the box.
        joined: whether to show the mean of two planes in cells of the same material.
        weights: of both planes in this mean, which is the value at the border between them.
    """

    cells: tuple[int, ...]
    place: float
    joined: bool = True
    weights: tuple[float, float] = (0.5, 0.5)

    @classmethod
    def at_cell(cls, axis: Axis, cell: int) -> "Cut":
        """The cut through the middle of a plane of cells."""
        return cls((cell,), float(axis.fractions(cell + 0.5)))

    @classmethod
    def between(cls, axis: Axis, border: int, above_first: bool = False, joined: bool = True) -> "Cut":
        """The cut between two planes of cells; ``border``: the number of planes below it."""
        cells = (border, border - 1) if above_first else (border - 1, border)
        first, second = axis.widths[list(cells)]
        other = float(first / (first + second))
        return cls(cells, float(axis.fractions(border)), joined, (1.0 - other, other))


def choose_cuts(
    reader: FieldReader, index: int, places: Mapping[int, float], layers: Sequence[ShownLayer] = ()
) -> list[Cut]:
    """The planes normal to x, y and z to show of field ``index``.

    Args:
        reader: of the fields.
        index: the number of the field.
        places: by axis (0 = x), the coordinate in m of the plane normal to it. For other axes heatsim chooses the
            central plane, unless another shows more, such as the hot top of a plate or the path of a beam.
        layers: thin layers. A plane at a layer shows the cells that hold the layer.
    """
    chosen = [_best(axis, *scores) for axis, scores in zip(reader.grid.axes, _scores(reader, index), strict=True)]
    for axis, place in places.items():
        chosen[axis] = _cut_at(reader, axis, place, layers)
    return chosen


def _cut_at(reader: FieldReader, axis: int, place: float, layers: Sequence[ShownLayer]) -> Cut:
    """The cut at a coordinate. Between two cells it has both, unless one of them holds a layer."""
    cells = reader.grid.axes[axis]
    at = float(cells.places(place))
    border = _border_at(cells, at)
    if border is None:
        return Cut.at_cell(cells, min(max(int(at), 0), len(cells) - 1))
    side = side_of_layers(reader, layers, axis, border)
    return Cut.between(cells, border, above_first=side < 0, joined=side == 0)


def _border_at(axis: Axis, at: float) -> int | None:
    """The number of planes below a place that is counted in cells, if it lies between two planes."""
    border = round(at)
    return border if abs(at - border) <= _ON_BORDER and 0 < border < len(axis) else None


def _middle(axis: Axis) -> Cut:
    """The cut in the middle: through a cell, or between two cells."""
    at = axis.at_fraction(0.5)
    border = _border_at(axis, at)
    return Cut.at_cell(axis, int(at)) if border is None else Cut.between(axis, border)


def _scores(reader: FieldReader, index: int) -> list[tuple[_Floats, _Floats]]:
    """Scores of the planes normal to x, y and z, and the number of materials on them.

    Scores add the range and the variation of temperatures, the number of materials, and the area of a body in void.
    """
    samples = read_samples(reader, index, _MOST_SAMPLES)
    scores = []
    for axis, ranges in enumerate(_ranges(reader, index)):
        n = reader.grid.cells[axis]
        variation = _variation(samples, axis, reader.grid)
        at, places = np.arange(n), spread(n, _MOST_SAMPLES)
        score = _relative(ranges) + _relative(np.interp(at, places, variation))
        if VOID in reader.materials:
            others = tuple(other for other in range(3) if other != 2 - axis)
            score += _relative(np.interp(at, places, np.isfinite(samples.values).mean(axis=others)))
        seen = [(samples.materials == number).any(axis=tuple({0, 1, 2} - {2 - axis})) for number in _solid(reader)]
        materials = np.interp(at, places, np.sum(seen, axis=0)) if seen else np.ones(n)
        scores.append((score + _relative(materials), materials))
    return scores


def _solid(reader: FieldReader) -> list[int]:
    """The numbers of the materials that conduct."""
    return [number for number, name in enumerate(reader.materials) if name != VOID]


def _relative(values: _Floats) -> _Floats:
    largest = float(values.max())
    return values / largest if largest > 0.0 else np.zeros(len(values))


def _variation(samples: Samples, axis: int, grid: Grid) -> _Floats:
    """The total variation ∫ |∂T/∂u| + |∂T/∂v| over each plane normal to an axis, without void; in K·m.

    Args:
        samples: of the field, with u and v along the two other axes.
        axis: the normal of the planes.
        grid: all cells.
    """
    total = np.zeros(samples.values.shape[2 - axis])
    for along in range(3):
        if along == axis:
            continue
        (third,) = {0, 1, 2} - {axis, along}
        steps = np.abs(np.diff(samples.values, axis=2 - along))
        lengths = np.diff(sample_borders(grid.axes[third], samples.indices[third])) * grid.size[third]
        shape = [1, 1, 1]
        shape[2 - third] = len(lengths)
        total += np.nansum(steps * lengths.reshape(shape), axis=tuple(2 - other for other in (along, third)))
    return total


def _ranges(reader: FieldReader, index: int) -> list[_Floats]:
    """The temperature range on each plane normal to x, to y and to z, without void."""
    lows = [np.full(n, np.inf) for n in reader.grid.cells]
    highs = [np.full(n, -np.inf) for n in reader.grid.cells]
    for planes, slab in reader.slabs(index):
        conducts = reader.conducting(planes)
        low, high = np.where(conducts, slab, np.inf), np.where(conducts, slab, -np.inf)
        for axis, others in enumerate(((0, 1), (0, 2))):
            np.minimum(lows[axis], low.min(axis=others), out=lows[axis])
            np.maximum(highs[axis], high.max(axis=others), out=highs[axis])
        lows[2][planes], highs[2][planes] = low.min(axis=(1, 2)), high.max(axis=(1, 2))
    return [np.maximum(high - low, 0.0) for low, high in zip(lows, highs, strict=True)]


def _best(axis: Axis, score: _Floats, materials: _Floats) -> Cut:
    """The central plane (between two cells if it lies there), or the one that shows most.

    A plane that shows more materials than the central one need not show more of the field.
    """
    central = _middle(axis)
    best = int(np.argmax(score))
    there = list(central.cells)
    worth = 1.0 if materials[best] > materials[there].max() else _WORTH_LEAVING_THE_CENTRE
    return central if score[best] <= worth * score[there].max() else Cut.at_cell(axis, best)
