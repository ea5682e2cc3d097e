"""The pictures of a run's fields: views of bodies, planes, lines and single cells."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from heatsim.errors import InputError
from heatsim.grid import AXES, Grid
from heatsim.render import curves, pictures
from heatsim.render.choice import ISOSURFACE, MATERIAL, SECTIONS, SLICES, SURFACE, TEMPERATURE, PictureChoice
from heatsim.render.figure import title_of
from heatsim.render.layout import arrange
from heatsim.render.picture import Picture
from heatsim.render.pictures import Caption
from heatsim.render.quantities import scale_of
from heatsim.render.scales import TIMES, Scale, choose_unit, colour_map, format_time, ticks
from heatsim.render.scene import Scene
from heatsim.render.sections import choose_times, read_samples, read_sections, wide_axes
from heatsim.render.view import View, drawn_size
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.run_settings import RunSettings
from heatsim.storage.vtkhdf import VOID

_MOST_PICTURES = 4

# A field whose range is a smaller part of the range of all times has a scale for itself.
_OWN_SCALE = 0.2
# Isosurfaces are drawn at the last time whose range is at least this part of the largest.
_INTERESTING = 0.2


def field_pictures(
    reader: FieldReader, run: RunSettings, choice: PictureChoice, stack: ExitStack
) -> tuple[Sequence[Picture], Sequence[Picture]]:
    """The 3-D views of a run, which need OpenGL, and its flat pictures; ``stack`` closes what they open.

    Raises:
        InputError: the run cannot have a view that was chosen.
    """
    fields = Fields(reader, run, choice)
    axes = wide_axes(reader.grid)
    if len(axes) == 3:
        found = _Body(fields, stack).pictures()
        flat_views = [picture for picture in found if picture.draw_flat is picture.draw]
        return [picture for picture in found if picture not in flat_views], flat_views
    _refuse_views(choice, len(axes))
    if len(axes) == 2:
        return [], [
            Picture(fields.name("plane", index), partial(_draw_plane, fields, index)) for index in fields.chosen
        ]
    return [], [Picture("profile", partial(_draw_line, fields, None) if axes else partial(_draw_cell, fields))]


def frames_of(fields: "Fields", times: Sequence[int], stack: ExitStack) -> tuple[str, Sequence[Picture], bool]:
    """The pictures of one view at some times: the name of the view, the pictures, and whether they need OpenGL.

    Raises:
        InputError: the run cannot have the view that was chosen.
    """
    choice, axes = fields.choice, wide_axes(fields.grid)
    if len(axes) == 3:
        view = choice.views[0] if choice.views else SLICES
        body = _Body(fields, stack)
        return view, [body.at(view, index) for index in times], view != SECTIONS
    _refuse_views(choice, len(axes))
    if len(axes) == 2:
        return "plane", [Picture("", partial(_draw_plane, fields, index)) for index in times], False
    if not axes:
        raise InputError("--animate: this run has one cell; its curve is in profile.png")
    return "profile", [Picture("", partial(_draw_line, fields, [index])) for index in times], False


def _refuse_views(choice: PictureChoice, axes: int) -> None:
    if wrong := [view for view in choice.views if view != SECTIONS]:
        raise InputError(f"--view {wrong[0]}: this run has no 3-D views, only cells along {axes} axes; leave it out")
    if axes < 2 and choice.quantity != TEMPERATURE:
        raise InputError(f"--quantity {choice.quantity}: this run has a line of cells; its profile is of temperatures")


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
        """The fields to draw: those nearest to the chosen times, or a few at equal distances.

        A uniform field at the start is left out, if others show more.
        """
        times = self.choice.times
        if not times:
            low, high = self.reader.range(0)
            first = int(self.scale_of(low, high).uniform and len(self.reader) > _MOST_PICTURES)
            return [first + index for index in choose_times(len(self.reader) - first, _MOST_PICTURES)]
        return sorted({int(np.abs(self.reader.times - time).argmin()) for time in times})

    def name(self, name: str, index: int) -> str:
        """The name of a picture of a field."""
        before = "" if self.choice.quantity == TEMPERATURE else f"{self.choice.quantity}_"
        return f"{before}{name}_t{index:0{max(4, len(str(len(self.reader) - 1)))}d}"

    def moment(self, index: int) -> str:
        """The text for the time of a field."""
        if self.run.steady:
            return "steady state"
        unit = choose_unit(TIMES, float(self.reader.times[-1]))
        return f"t = {format_time(float(self.reader.times[index]), unit)}"

    def caption(self, index: int, *remarks: str) -> Caption:
        """The texts around a picture of a field."""
        over = title_of(self.run.title, self.moment(index))
        return Caption(over, self.reader.materials, pictures.remarks_of(self.grid, *remarks))

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
            return self.scale_of(*self.choice.span)
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
        """The last field with a large range of values."""
        spans = [high - low for low, high in self.ranges]
        return max(index for index, span in enumerate(spans) if span >= _INTERESTING * max(spans))


class _Body:
    """The views of a 3-D grid, which share scenes."""

    def __init__(self, fields: Fields, stack: ExitStack) -> None:
        self._fields, self._stack = fields, stack
        self._reader, self._choice, self._grid = fields.reader, fields.choice, fields.grid
        self._scenes: dict[View, Scene] = {}

    def pictures(self) -> list[Picture]:
        """The chosen views; by default sections, and the surface if there is void, else isosurfaces at one time.

        Raises:
            InputError: isosurfaces of materials are asked for.
        """
        views = self._choice.views or (SLICES, SURFACE if VOID in self._reader.materials else ISOSURFACE)
        if ISOSURFACE in self._choice.views and self._choice.quantity == MATERIAL:
            raise InputError("--view isosurface: materials have no isosurfaces; choose another --quantity")
        once = ISOSURFACE in views and not self._choice.times
        repeated = [view for view in views if not (once and view == ISOSURFACE)]
        found = [self.at(view, index) for index in self._fields.chosen for view in repeated]
        if once and self._choice.quantity != MATERIAL:
            name = self._fields.name(ISOSURFACE, 0).rpartition("_t")[0]
            found.append(Picture(name, partial(self._draw_isosurfaces, lambda: self._fields.interesting)))
        return found

    def at(self, view: str, index: int) -> Picture:
        """A view at a time."""
        name = self._fields.name(view, index)
        flat: Callable[[Path], None] = partial(self._draw_slices, index, with_view=False)
        if view == SLICES:
            return Picture(name, partial(self._draw_slices, index), flat)
        if view == SECTIONS:
            return Picture(name, flat, flat)
        if view == SURFACE:
            return Picture(name, partial(self._draw_surface, index))
        return Picture(name, partial(self._draw_isosurfaces, lambda: index))

    def _scene(self, view: View) -> Scene:
        """The scene of a view, which its pictures share."""
        if view not in self._scenes:
            self._scenes[view] = self._stack.enter_context(Scene(self._grid, view))
        return self._scenes[view]

    @cached_property
    def _view_beside(self) -> View:
        return pictures.view_beside(self._grid)

    def _draw_slices(self, index: int, path: Path, with_view: bool = True) -> None:
        sections = read_sections(self._reader, index, self._choice.planes)
        scale, remark = self._fields.scale_at(index)
        caption = self._fields.caption(index, remark)
        page = arrange(drawn_size(self._grid), with_view, caption.height())
        image = None
        if page.view is not None:
            image = self._scene(page.view).slices(sections, scale, self._reader.materials)
        pictures.draw_slices(path, caption, self._grid, scale, sections, page, image)

    def _draw_surface(self, index: int, path: Path) -> None:
        scale, remark = self._fields.scale_at(index)
        samples = read_samples(self._reader, index)
        image = self._scene(self._view_beside).surface(samples, scale, self._reader.materials)
        pictures.draw_surface(path, self._fields.caption(index, remark), self._grid, scale, self._view_beside, image)

    def _draw_isosurfaces(self, when: Callable[[], int], path: Path) -> None:
        """Draw a field with a scale for its range alone, which may be a small part of the common one."""
        reader, index = self._reader, when()
        low, high = self._choice.span or self._fields.ranges[index]
        scale = self._fields.scale_of(low, high)
        bottom, top = scale.limits
        inside = {} if scale.uniform else ticks(bottom, top, 7)
        levels = {level: text for level, text in inside.items() if bottom < level < top}
        colours = [_hexadecimal(fraction) for fraction in np.linspace(0.2, 0.9, len(levels))] or [_hexadecimal(0.5)]
        sections = read_sections(reader, index, self._choice.planes)
        samples, materials = read_samples(reader, index), reader.materials
        image = self._scene(self._view_beside).isosurfaces(samples, scale, list(levels), colours, sections, materials)
        caption = self._fields.caption(index, _describe_range(scale))
        pictures.draw_isosurfaces(path, caption, self._grid, scale, levels, colours, self._view_beside, image)


def _describe_range(scale: Scale) -> str:
    """The range of a scale as a sentence, with as many digits as tell its ends apart."""
    if scale.uniform:
        return ""
    low, high = scale.limits
    decimals = max(0, 2 - int(np.floor(np.log10(high - low))))
    return f"{scale.label}: from {low:.{decimals}f} to {high:.{decimals}f}.".replace("-", "−")


def _hexadecimal(fraction: float) -> str:
    from matplotlib.colors import to_hex

    return str(to_hex(colour_map()(fraction)))


def _draw_plane(fields: Fields, index: int, path: Path) -> None:
    reader = fields.reader
    scale, remark = fields.scale_at(index)
    plane = np.where(reader.conducting(slice(None)), reader.read(index), np.nan).squeeze()
    caption = fields.caption(index, remark)
    pictures.draw_plane(path, caption, fields.grid, scale, plane, reader.read_materials().squeeze())


def _draw_line(fields: Fields, times: Sequence[int] | None, path: Path) -> None:
    """Draw the profiles at some times; without times at those that show most."""
    reader, grid = fields.reader, fields.grid
    (axis,) = wide_axes(grid)
    everything = np.stack([reader.read(index).reshape(-1).astype(np.float64) for index in range(len(reader))])
    chosen = times
    if chosen is None:
        chosen = fields.chosen if fields.choice.times else curves.profile_times(everything)
    profiles = [(fields.moment(index).removeprefix("t = "), everything[index]) for index in chosen]
    unit = pictures.length_unit(grid)
    over = title_of(fields.run.title, "temperature along the line")
    ends = pictures.ends_of(grid, axis, unit)
    places = grid.centres(axis) / unit.size
    curves.draw_profile(path, over, AXES[axis], ends, unit, fields.common, places, profiles, times is not None)


def _draw_cell(fields: Fields, path: Path) -> None:
    reader, run = fields.reader, fields.run
    values = np.array([reader.read(index).item() for index in range(len(reader))])
    over = title_of(run.title, "the one cell")
    curves.draw_temperatures(path, over, reader.times, {"cell": values}, run.temperature_unit)
