"""Choose which fields of a run to draw, and their scale, materials and texts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import inf
from textwrap import shorten

import numpy as np
from numpy.typing import NDArray

from heatsim.amounts import TIMES, choose_unit, format_time
from heatsim.errors import InputError
from heatsim.grid import Grid
from heatsim.render.choice import ISOSURFACE, MATERIAL, PLANE, SECTIONS, SLICES, SURFACE, TEMPERATURE, PictureChoice
from heatsim.render.page.axes import describe_box
from heatsim.render.page.caption import Caption, remarks_of
from heatsim.render.page.dates import moment
from heatsim.render.page.figure import title_of
from heatsim.render.page.legend import LINE, Entry
from heatsim.render.page.levels import MeltFront, melt_fronts
from heatsim.render.page.material_colours import material_colour
from heatsim.render.page.samples import read_samples
from heatsim.render.page.scales import Scale
from heatsim.render.page.view import DEFAULT_CAMERA, Camera, drawn_size
from heatsim.render.spatial.hottest_parts import PartOwners, hottest_parts, hottest_places
from heatsim.render.spatial.layers import ShownLayer, layers_on
from heatsim.render.spatial.moments import candidates, telling
from heatsim.render.spatial.outlines import material_entries
from heatsim.render.spatial.quantities import scale_of
from heatsim.render.spatial.section_pictures import LayerLines
from heatsim.render.spatial.sections import Section
from heatsim.render.spatial.warm_side import warm_side
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.run_settings import RunSettings

# The views in descriptions of pictures.
_VIEWS = {
    SLICES: "Sections",
    SECTIONS: "Sections",
    SURFACE: "Surface",
    ISOSURFACE: "Isosurfaces",
    PLANE: "Plane",
}
_BEYOND = 0.01  # part of the last time by which a chosen time may be after it
_MOST_PICTURES = 4
_LONGEST_NAME, _MOST_NAMES = 24, 3  # characters; names in a picture
_SAMPLES = 24  # along an axis, of fields that are compared

# A field whose range is a smaller fraction of the range of all times gets a separate scale.
_OWN_SCALE = 0.2
# Isosurfaces are drawn at the last time whose range is at least this part of the largest.
_INTERESTING = 0.2
_PLANES_AT_ONCE = 16


class Fields:
    """The fields of a run, which of them to draw, and with which scale."""

    def __init__(self, reader: FieldReader, run: RunSettings, choice: PictureChoice) -> None:
        self.reader, self.run, self.choice = reader, run, choice

    def __len__(self) -> int:
        return len(self.reader)

    @property
    def grid(self) -> Grid:
        """The cells."""
        return self.reader.grid

    @cached_property
    def chosen(self) -> Sequence[int]:
        """The fields to draw: those nearest to the chosen times, or a few at which something happens.

        A uniform field at the start is left out if others show more. The materials are those of all times.

        Raises:
            InputError: a chosen time is negative or after the last field.
        """
        times = self.choice.times
        if self.choice.quantity == MATERIAL or (len(self.reader) == 1 and not times):
            return [0]
        if not times:
            low, high = self.reader.range(0)
            first = int(self.scale_of(low, high).uniform and len(self.reader) > _MOST_PICTURES)
            found = [first + index for index in candidates(len(self.reader) - first)]
            shown = np.stack([self._shown(index) for index in found])
            return [
                found[index] for index in telling(shown, [self.ranges[index][1] for index in found], _MOST_PICTURES)
            ]
        if min(times) < 0.0:
            raise InputError(f"--times: {min(times):.10g} s is before the start; choose later times")
        last = float(self.reader.times[-1])
        if max(times) > last * (1.0 + _BEYOND):
            raise InputError(
                f"--times: {max(times):.10g} s is after the last field, which is at "
                f"{format_time(last, choose_unit(TIMES, last))}; choose earlier times"
            )
        return sorted({int(np.abs(self.reader.times - time).argmin()) for time in times})

    def _shown(self, index: int) -> NDArray[np.float64]:
        """The places in the scale of a picture, 0 to 1, of some cells of a field."""
        scale, _ = self.scale_at(index)
        low, high = scale.limits
        values = read_samples(self.reader, index, _SAMPLES).values.reshape(-1)
        return np.clip((scale.drawn(values) - low) / (high - low), 0.0, 1.0)

    def name(self, name: str, index: int) -> str:
        """The name of a picture of a field."""
        return f"{self.choice.prefix}{name}_t{index:0{max(4, len(str(len(self.reader) - 1)))}d}"

    @cached_property
    def camera(self) -> Camera:
        """The chosen camera, or one that sees the warmest surface of the body at the time when it varies most."""
        if self.choice.camera is not None or self.choice.quantity != TEMPERATURE:
            return self.choice.camera or DEFAULT_CAMERA
        spans = [high - low for low, high in self.ranges]
        samples = read_samples(self.reader, spans.index(max(spans)), _SAMPLES)
        return warm_side(samples.values, drawn_size(self.grid))

    def moment(self, index: int) -> str:
        """The text for the time of a field."""
        if self.run.steady:
            return "steady state"
        if self.choice.quantity == MATERIAL:
            return "materials"
        text = moment(float(self.reader.times[index]), float(self.reader.times[-1]), self.run.start)
        return f"t = {text}" if self.run.start is None else text

    def caption(self, view: str, index: int, *remarks: str, fronts: Sequence[MeltFront] = ()) -> Caption:
        """The texts around a view of a field with some melt fronts."""
        over = title_of(self.run.title, self.moment(index))
        part = "" if self.choice.cells is None else f"Part of the body: {describe_box(self.grid)}."
        lines = [Entry(front.text, front.colour, LINE) for front in fronts]
        return Caption(over, remarks_of(self.grid, part, *remarks), [*self.legend, *lines], self._describe(view, index))

    def _describe(self, view: str, index: int) -> str:
        """What a picture of a field shows, such as "Sections: temperature, t = 10 s"."""
        shown = self.moment(index)
        if self.choice.quantity != MATERIAL:
            shown = f"{self.choice.quantity.replace('_', ' ')}, {shown}"
        return f"{_VIEWS[view]}: {shown}" + ("" if self.choice.cells is None else ", part of the body")

    def fronts(self, scale: Scale, index: int | None = None) -> Sequence[MeltFront]:
        """The melt fronts within a scale, of those that the field ``index`` has; None for all fields."""
        low, high = self.ranges[index] if index is not None else (-inf, inf)
        found = melt_fronts(scale, self.run.melting, self.materials)
        return [front for front in found if low < front.temperature < high]

    @cached_property
    def layers(self) -> Sequence[ShownLayer]:
        """The thin layers of the body."""
        found = (ShownLayer.of(place, self.grid) for place in self.run.layers)
        return [layer for layer in found if layer is not None]

    @cached_property
    def materials(self) -> Sequence[str]:
        """The names of the materials of cells and of layers, in the order of their colours."""
        of_layers = [layer.material for layer in self.layers]
        of_cells = self.reader.materials or ((self.run.material,) if of_layers else ())
        return tuple(dict.fromkeys((*of_cells, *of_layers)))

    @cached_property
    def legend(self) -> Sequence[Entry]:
        """The legend of the materials of cells and layers."""
        with_cells = set()
        for first in range(0, self.grid.cells[2], _PLANES_AT_ONCE):
            with_cells |= set(np.unique(self.reader.read_materials(slice(first, first + _PLANES_AT_ONCE))).tolist())
        return material_entries(self.materials, with_cells, {layer.material for layer in self.layers})

    def _colour_of(self, layer: ShownLayer) -> str:
        return material_colour(self.materials.index(layer.material), self.materials)

    @cached_property
    def _owners(self) -> PartOwners | None:
        found = None if self.choice.owners is None else self.choice.owners(self.reader.path.parent)
        if found is None:
            return None
        names, numbers = found
        if self.choice.cells is not None:
            x, y, z = (slice(*ends) for ends in self.choice.cells)
            numbers = numbers[z, y, x]
        return PartOwners(names, numbers) if numbers.shape == self.grid.shape else None

    def names_on(self, sections: Mapping[int, Section], index: int) -> list[tuple[int, str, Sequence[float]]]:
        """The names of the hottest regions with their highest temperatures, where sections show most of them.

        Args:
            sections: by the axis normal to them.
            index: the number of the field.

        Returns:
            The axis normal to the section, the text, and the place (x, y, z) in m of the hottest cell there.
        """
        if self.choice.quantity != TEMPERATURE or (owners := self._owners) is None:
            return []
        field = np.where(self.reader.conducting(slice(None)), self.reader.read(index), np.nan)
        unit, places = self.run.temperature_unit, {}
        for axis, section in sections.items():
            u, v = (other for other in range(3) if other != axis)
            numbers = np.take(owners.numbers, section.cells[0], axis=2 - axis)
            areas = np.outer(self.grid.axes[v].widths, self.grid.axes[u].widths)
            places[axis] = hottest_places(section.values, numbers, areas)
        found: list[tuple[int, str, Sequence[float]]] = []
        for number, highest in hottest_parts(field, owners):
            axis = max(sections, key=lambda axis: places[axis].get(number, (0.0, 0, 0))[0])
            if number in places[axis]:
                _, row, column = places[axis][number]
                u, v = (other for other in range(3) if other != axis)
                place = np.zeros(3)
                place[u], place[v] = self.grid.centres(u)[column], self.grid.centres(v)[row]
                name = shorten(owners.names[number - 1], _LONGEST_NAME, placeholder=" …")
                found.append((axis, f"{name}: {unit.text(highest, 4)}", place.tolist()))
        return found[:_MOST_NAMES]

    @cached_property
    def layer_edges(self) -> Sequence[LayerLines]:
        """The edges of the layers in space."""
        return [LayerLines(self._colour_of(layer), layer.edges()) for layer in self.layers]

    def layer_lines(self, axis: int, section: Section) -> Sequence[LayerLines]:
        """The layers that a section normal to an axis shows."""
        place = self.grid.origin[axis] + section.place * self.grid.size[axis]
        return [
            LayerLines(self._colour_of(layer), lines, layer.axis == axis)
            for layer, lines in layers_on(self.layers, self.reader, axis, section.cells, place)
        ]

    @cached_property
    def ranges(self) -> Sequence[tuple[float, float]]:
        """The lowest and highest value of each field."""
        return [self.reader.range(index) for index in range(len(self.reader))]

    def scale_of(self, low: float, high: float) -> Scale:
        """The scale of a range in SI."""
        return scale_of(low, high, self.choice.quantity, self.reader, self.run)

    @cached_property
    def common(self) -> Scale:
        """The scale of all times, so that pictures can be compared."""
        if self.choice.span is not None:
            low, high = self.choice.span
            beyond = any(one < low for one, _ in self.ranges), any(other > high for _, other in self.ranges)
            return replace(self.scale_of(low, high), beyond=beyond)
        return self.scale_of(min(low for low, _ in self.ranges), max(high for _, high in self.ranges))

    def scale_at(self, index: int) -> tuple[Scale, str]:
        """The scale of a field, and a remark if it is not the common one."""
        if self.choice.span is not None or self.choice.quantity == MATERIAL:
            return self.common, ""
        low, high = self.ranges[index]
        own = self.scale_of(low, high)
        if own.uniform or self.common.uniform or high - low >= _OWN_SCALE * (self.common.high - self.common.low):
            return self.common, ""
        return own, "Colours: a scale for this time alone."

    @cached_property
    def interesting(self) -> int:
        """The last field with a melt front; without any, the last one with a large range of values."""
        with_fronts = [index for index in range(len(self)) if self.fronts(self.common, index)]
        if with_fronts:
            return with_fronts[-1]
        spans = [high - low for low, high in self.ranges]
        return max(index for index, span in enumerate(spans) if span >= _INTERESTING * max(spans))
