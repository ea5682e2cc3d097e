"""The pictures that the files of a run allow: what there is to draw, before anything is drawn."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from heatsim.errors import FolderError
from heatsim.grid import AXES, Grid
from heatsim.render import curves, energy_picture, pictures
from heatsim.render.energy_balance import read_balance, read_flows
from heatsim.render.figure import title_of
from heatsim.render.layout import Page, arrange
from heatsim.render.pictures import Caption
from heatsim.render.scales import TIMES, TemperatureScale, choose_unit, colour_map, format_time, ticks
from heatsim.render.scene import Scene
from heatsim.render.sections import choose_times, read_samples, read_sections, wide_axes
from heatsim.render.view import View, drawn_size
from heatsim.storage import folder as run_folder
from heatsim.storage.disk import resume_command
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.run_settings import RunSettings, read_settings
from heatsim.storage.run_tables import read_probes
from heatsim.storage.vtkhdf import VOID
from heatsim.temperature_units import KELVIN

_MOST_PICTURES = 4
_MOST_PROFILES = 8

# A field whose range is a smaller part of the range of all times has a scale for itself.
_OWN_SCALE = 0.2
# Isosurfaces are drawn at the last time whose range is at least this part of the largest.
_INTERESTING = 0.5


@dataclass(frozen=True)
class Picture:
    """A picture to draw.

    Attributes:
        name: of its file, without suffix.
        draw: draws it into a file.
        draw_flat: draws what needs no OpenGL of a view in space; None if there is nothing.
    """

    name: str
    draw: Callable[[Path], None]
    draw_flat: Callable[[Path], None] | None = None


@dataclass(frozen=True)
class Pictures:
    """All pictures of a run: 3-D views, which need OpenGL, pictures of flat grids, and curves."""

    views: Sequence[Picture]
    flat: Sequence[Picture]
    curves: Sequence[Picture]

    @property
    def all(self) -> Sequence[Picture]:
        """The pictures, the views first."""
        return (*self.views, *self.flat, *self.curves)


def find_pictures(folder: Path, stack: ExitStack) -> Pictures:
    """The pictures that the files of a run allow; ``stack`` closes the files.

    Raises:
        FolderError: there are none, or scenario.toml cannot be read.
        StorageError: a file cannot be read.
    """
    run = read_settings(folder)
    fields = folder / run_folder.FIELDS
    reader = stack.enter_context(FieldReader(fields)) if fields.exists() else None
    views: Sequence[Picture] = []
    flat: Sequence[Picture] = []
    if reader is not None and len(reader) > 0:
        if len(wide_axes(reader.grid)) == 3:
            views = _Body(reader, run, stack).pictures()
        else:
            flat = _flat_pictures(reader, run)
    found = Pictures(views, flat, _curves(folder, run))
    if not found.all:
        raise FolderError(
            f"{folder}: there are no fields, probes or energy rows to draw; continue with `{resume_command(folder)}`"
        )
    return found


def _name(name: str, index: int, count: int) -> str:
    return f"{name}_t{index:0{max(4, len(str(count - 1)))}d}"


def _moment(reader: FieldReader, run: RunSettings, index: int) -> str:
    """The text for the time of a field."""
    if run.steady:
        return "steady state"
    return f"t = {format_time(float(reader.times[index]), choose_unit(TIMES, float(reader.times[-1])))}"


class _Scales:
    """The scales of a run's fields: the same for all times, so that pictures can be compared, where that shows much."""

    def __init__(self, reader: FieldReader, run: RunSettings) -> None:
        self._reader, self._unit = reader, run.temperature_unit

    @cached_property
    def ranges(self) -> Sequence[tuple[float, float]]:
        """The lowest and highest temperature in K of each field."""
        return [self._reader.range(index) for index in range(len(self._reader))]

    def of(self, low: float, high: float) -> TemperatureScale:
        """The scale of a range in K."""
        return TemperatureScale.spanning(low, high, self._reader.dtype, self._unit)

    @cached_property
    def common(self) -> TemperatureScale:
        """The scale of all times."""
        return self.of(min(low for low, _ in self.ranges), max(high for _, high in self.ranges))

    def at(self, index: int) -> tuple[TemperatureScale, str]:
        """The scale of a field, and a remark if it is not the common one."""
        low, high = self.ranges[index]
        own = self.of(low, high)
        if own.uniform or self.common.uniform or high - low >= _OWN_SCALE * (self.common.high - self.common.low):
            return self.common, ""
        return own, "Colours: a scale for this time alone."

    @cached_property
    def interesting(self) -> int:
        """The last field with a large range of temperatures."""
        spans = [high - low for low, high in self.ranges]
        return max(index for index, span in enumerate(spans) if span >= _INTERESTING * max(spans))


class _Body:
    """The 3-D views of a run, which share a scale and a scene."""

    def __init__(self, reader: FieldReader, run: RunSettings, stack: ExitStack) -> None:
        self._reader, self._run, self._stack = reader, run, stack
        self._scales = _Scales(reader, run)
        self._scenes: dict[View, Scene] = {}

    def pictures(self) -> list[Picture]:
        """Sections at up to four times; the surface then if there is void, else isosurfaces at one time."""
        in_void, count = VOID in self._reader.materials, len(self._reader)
        found = []
        for index in choose_times(count, _MOST_PICTURES):
            flat = partial(self._draw_slices, index, with_view=False)
            found.append(Picture(_name("slices", index, count), partial(self._draw_slices, index), flat))
            if in_void:
                found.append(Picture(_name("surface", index, count), partial(self._draw_surface, index)))
        return found if in_void else [*found, Picture("isosurface", self._draw_isosurfaces)]

    @property
    def _grid(self) -> Grid:
        return self._reader.grid

    def _caption(self, index: int, *remarks: str) -> Caption:
        over = title_of(self._run.title, _moment(self._reader, self._run, index))
        return Caption(over, self._reader.materials, pictures.remarks_of(self._grid, *remarks))

    def _scene(self, view: View) -> Scene:
        """The scene of a view, which its pictures share."""
        if view not in self._scenes:
            self._scenes[view] = self._stack.enter_context(Scene(self._grid, view))
        return self._scenes[view]

    @cached_property
    def _view_beside(self) -> View:
        return pictures.view_beside(self._grid)

    def _draw_slices(self, index: int, path: Path, with_view: bool = True) -> None:
        sections = read_sections(self._reader, index)
        scale, remark = self._scales.at(index)
        caption = self._caption(index, remark)
        page = self._page(caption, with_view)
        image = None
        if page.view is not None:
            image = self._scene(page.view).slices(sections, scale, self._reader.materials)
        pictures.draw_slices(path, caption, self._grid, scale, sections, page, image)

    def _page(self, caption: Caption, with_view: bool) -> Page:
        return arrange(drawn_size(self._grid), with_view, caption.height())

    def _draw_surface(self, index: int, path: Path) -> None:
        scale, remark = self._scales.at(index)
        image = self._scene(self._view_beside).surface(read_samples(self._reader, index), scale, self._reader.materials)
        pictures.draw_surface(path, self._caption(index, remark), self._grid, scale, self._view_beside, image)

    def _draw_isosurfaces(self, path: Path) -> None:
        """Draw the field with a scale for its range alone, which may be a small part of the common one."""
        reader, index = self._reader, self._scales.interesting
        low, high = self._scales.ranges[index]
        scale = self._scales.of(low, high)
        bottom, top = scale.limits
        inside = {} if scale.uniform else ticks(bottom, top, 7)
        levels = {level: text for level, text in inside.items() if bottom < level < top}
        colours = [_hexadecimal(fraction) for fraction in np.linspace(0.2, 0.9, len(levels))] or [_hexadecimal(0.5)]
        image = self._scene(self._view_beside).isosurfaces(
            read_samples(reader, index),
            scale,
            list(levels),
            colours,
            read_sections(reader, index),
            reader.materials,
        )
        caption = self._caption(index, _describe_range(scale))
        pictures.draw_isosurfaces(path, caption, self._grid, scale, levels, colours, self._view_beside, image)


def _describe_range(scale: TemperatureScale) -> str:
    """The range of a scale as a sentence, with as many digits as tell its ends apart."""
    if scale.uniform:
        return ""
    low, high = scale.unit.of(scale.low), scale.unit.of(scale.high)
    decimals = max(0, 2 - int(np.floor(np.log10(high - low))))
    text = f"Temperatures from {low:.{decimals}f} to {high:.{decimals}f} {scale.unit.symbol}."
    return text.replace("-", "−")


def _hexadecimal(fraction: float) -> str:
    from matplotlib.colors import to_hex

    return str(to_hex(colour_map()(fraction)))


def _flat_pictures(reader: FieldReader, run: RunSettings) -> list[Picture]:
    """Pictures of a plane at up to four times, of a line, or of one cell."""
    grid, axes = reader.grid, wide_axes(reader.grid)
    scales = _Scales(reader, run)

    def draw_plane(index: int, path: Path) -> None:
        scale, remark = scales.at(index)
        caption = Caption(
            title_of(run.title, _moment(reader, run, index)), reader.materials, pictures.remarks_of(grid, remark)
        )
        plane = np.where(reader.conducting(slice(None)), reader.read(index), np.nan).squeeze()
        pictures.draw_plane(path, caption, grid, scale, plane, reader.read_materials().squeeze())

    def draw_line(path: Path) -> None:
        everything = np.stack([reader.read(index).reshape(-1).astype(np.float64) for index in range(len(reader))])
        chosen = curves.profile_times(everything)[-_MOST_PROFILES:]
        profiles = [(_moment(reader, run, index).removeprefix("t = "), everything[index]) for index in chosen]
        unit = pictures.length_unit(grid)
        over = title_of(run.title, "temperature along the line")
        places = grid.centres(axes[0]) / unit.size
        ends = pictures.ends_of(grid, axes[0], unit)
        curves.draw_profile(path, over, AXES[axes[0]], ends, unit, scales.common, places, profiles)

    def draw_cell(path: Path) -> None:
        values = np.array([reader.read(index).item() for index in range(len(reader))])
        curves.draw_temperatures(
            path, title_of(run.title, "the one cell"), reader.times, {"cell": values}, run.temperature_unit
        )

    if len(axes) == 2:
        return [
            Picture(_name("plane", index, len(reader)), partial(draw_plane, index))
            for index in choose_times(len(reader), _MOST_PICTURES)
        ]
    return [Picture("profile", draw_line if axes else draw_cell)]


def _curves(folder: Path, run: RunSettings) -> list[Picture]:
    """Pictures of the tables of a run: the probes and the energy balance over time, or the steady heat flows."""
    found = _probe_pictures(folder, run)
    if run.steady:
        flows = read_flows(folder, run.patches)
        if flows is not None:
            over = title_of(run.title, "heat flows")
            found.append(
                Picture("energy", partial(energy_picture.draw_flows, title=over, flows=flows[0], imbalance=flows[1]))
            )
        return found
    balance = read_balance(folder, run.patches)
    if balance is not None:
        over = title_of(run.title, "energy balance")
        found.append(Picture("energy", partial(energy_picture.draw_energy, title=over, balance=balance)))
    return found


def _probe_pictures(folder: Path, run: RunSettings) -> list[Picture]:
    """Pictures of the probes: one of all points and regions, and one for each line."""
    table = read_probes(folder)
    if table is None or not len(table.times):
        return []
    columns = table.in_unit(KELVIN.name)
    found = []
    alone = {name: values for name, values in columns.items() if run.line_of(name) is None}
    if alone and not run.steady:
        over = title_of(run.title, "probes")
        draw = partial(
            curves.draw_temperatures, title=over, times=table.times, curves=alone, shown_in=run.temperature_unit
        )
        found.append(Picture("probes", draw))
    for number, (name, (length, count)) in enumerate(run.lines.items(), 1):
        values = [columns[column] for index in range(count) if (column := f"{name}[{index}]") in columns]
        if len(values) == count:
            over = title_of(run.title, f'probe "{name}"')
            draw = partial(
                curves.draw_line_probe,
                title=over,
                times=table.times,
                length=length,
                temperatures=np.stack(values, axis=1),
                shown_in=run.temperature_unit,
            )
            found.append(Picture(f"line_{number}", draw))
    return found
