"""Pictures of a run's output, drawn from its folder, without a display."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import takewhile
from pathlib import Path

import numpy as np

from heatsim.errors import FolderError, InputError, StorageError
from heatsim.grid import FACES
from heatsim.render import curves, pictures
from heatsim.render.figure import title_of
from heatsim.render.opengl import finish_trial, start_trial
from heatsim.render.scales import TIMES, TemperatureScale, choose_unit, colour_map, format_time, ticks
from heatsim.render.scene import Scene
from heatsim.render.sections import choose_times, read_samples, read_sections, wide_axes
from heatsim.render.view import View, drawn_size
from heatsim.storage import folder as run_folder
from heatsim.storage import run_tables
from heatsim.storage.disk import clear_pictures, resume_command
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.run_settings import read_settings
from heatsim.storage.vtkhdf import VOID
from heatsim.temperature_units import KELVIN

_MOST_PICTURES = 4
_MOST_PROFILES = 8
_OWN_PICTURES = (
    "slices_t*.png",
    "surface_t*.png",
    "plane_t*.png",
    "isosurface.png",
    "profile.png",
    "probes.png",
    "energy.png",
)


@dataclass(frozen=True)
class _Picture:
    """A picture to draw: the name of its file, and a function that draws it into a file."""

    name: str
    draw: Callable[[Path], None]


@dataclass(frozen=True)
class _Pictures:
    """All pictures of a run: 3-D views, which need OpenGL, pictures of flat grids, and curves."""

    views: Sequence[_Picture]
    flat: Sequence[_Picture]
    curves: Sequence[_Picture]


def render(folder: Path) -> list[Path]:
    """Draw a run's fields, probes and energy into ``folder/figures``, replacing its earlier pictures.

    A 3-D grid gives ``slices_t….png`` at up to four times, and ``isosurface.png`` or, with void in the box,
    ``surface_t….png``. A grid of one plane gives ``plane_t….png``, a grid of one line ``profile.png``. Unfinished runs
    can be drawn too.

    Args:
        folder: the output folder of a run.

    Returns:
        The paths of the pictures.

    Raises:
        FolderError: the folder is not that of a run, or contains nothing to draw.
        InputError: 3-D views cannot be drawn on this machine; all other pictures are drawn.
        StorageError: a file cannot be read, or a picture cannot be written.
    """
    clear(folder)
    with ExitStack() as stack:
        found = _find_pictures(folder, stack)
        trial = stack.enter_context(start_trial()) if found.views else None
        drawn = [_draw(picture, folder) for picture in (*found.flat, *found.curves)]
        try:
            if trial is not None:
                finish_trial(trial)
        except InputError as error:
            names = " and ".join(path.name for path in drawn) or "nothing"
            raise InputError(f"{folder}: {names} drawn, but no 3-D views: {error}") from error
        return [*(_draw(picture, folder) for picture in found.views), *drawn]


def clear(folder: Path) -> None:
    """Remove the pictures of a run.

    Raises:
        FolderError: the folder is not that of a run.
        StorageError: a picture cannot be removed.
    """
    run_folder.require_run(folder)
    clear_pictures(folder / run_folder.FIGURES, _OWN_PICTURES)


def draw_some(folder: Path, numbers: Iterable[int]) -> None:
    """Draw some of a run's pictures, as one of several processes that draw them together.

    Args:
        folder: the output folder of a run, without pictures (:func:`clear`).
        numbers: of the pictures, which count from 0; a number for which there is no picture ends the work.

    Raises:
        FolderError, StorageError: as for :func:`render`.
    """
    with ExitStack() as stack:
        found = _find_pictures(folder, stack)
        # Isosurfaces, the last view, take longest.
        pictures = [*reversed(found.views), *found.flat, *found.curves]
        for number in takewhile(lambda number: number < len(pictures), numbers):
            _draw(pictures[number], folder)


def _draw(picture: _Picture, folder: Path) -> Path:
    path = folder / run_folder.FIGURES / picture.name
    picture.draw(path)
    return path


def _find_pictures(folder: Path, stack: ExitStack) -> _Pictures:
    """The pictures that the files of a run allow; ``stack`` closes the files.

    Raises:
        FolderError: there are none, or scenario.toml cannot be read.
        StorageError: a file cannot be read.
    """
    settings = read_settings(folder)
    title, steady = settings.title, settings.steady
    fields = folder / run_folder.FIELDS
    reader = stack.enter_context(FieldReader(fields)) if fields.exists() else None
    views: list[_Picture] = []
    flat: list[_Picture] = []
    if reader is not None and len(reader) > 0:
        moments = _moments(reader, steady)
        if len(wide_axes(reader.grid)) == 3:
            views = _Body(reader, title, moments, stack).pictures()
        else:
            flat = _flat_pictures(reader, title, moments)
    found = _Pictures(views, flat, _curves(folder, title, steady))
    if not (found.views or found.flat or found.curves):
        raise FolderError(
            f"{folder}: there are no fields, probes or energy rows to draw; continue with `{resume_command(folder)}`"
        )
    return found


def _scale_of_all(reader: FieldReader) -> TemperatureScale:
    """The common scale of all times, so that pictures can be compared."""
    ranges = np.array([reader.range(index) for index in range(len(reader))])
    return TemperatureScale.spanning(float(ranges[:, 0].min()), float(ranges[:, 1].max()), reader.dtype)


def _name(name: str, index: int, count: int) -> str:
    return f"{name}_t{index:0{max(4, len(str(count - 1)))}d}.png"


def _moments(reader: FieldReader, steady: bool) -> list[str]:
    """The text for the time of each field."""
    if steady:
        return ["steady state"] * len(reader)
    unit = choose_unit(TIMES, float(reader.times[-1]))
    return [f"t = {format_time(float(time), unit)}" for time in reader.times]


class _Body:
    """The 3-D views of a run, which share a scale and a scene."""

    def __init__(self, reader: FieldReader, title: str, moments: Sequence[str], stack: ExitStack) -> None:
        self._reader, self._title, self._moments, self._stack = reader, title, moments, stack

    def pictures(self) -> list[_Picture]:
        """Sections at up to four times; the surface then if there is void, else isosurfaces at the end."""
        in_void = VOID in self._reader.materials
        found = []
        for index in choose_times(len(self._reader), _MOST_PICTURES):
            found.append(_Picture(_name("slices", index, len(self._reader)), partial(self._draw_slices, index)))
            if in_void:
                found.append(_Picture(_name("surface", index, len(self._reader)), partial(self._draw_surface, index)))
        return found if in_void else [*found, _Picture("isosurface.png", self._draw_isosurfaces)]

    @cached_property
    def _scale(self) -> TemperatureScale:
        return _scale_of_all(self._reader)

    @cached_property
    def _view(self) -> View:
        *_, width, height = pictures.VIEW
        return View.fitting(width, height, pictures.VIEW_MARGIN, drawn_size(self._reader.grid))

    @cached_property
    def _scene(self) -> Scene:
        return self._stack.enter_context(Scene(self._reader.grid, self._view))

    def _draw_slices(self, index: int, path: Path) -> None:
        sections = read_sections(self._reader, index)
        image = self._scene.slices(sections, self._scale)
        over = title_of(self._title, self._moments[index])
        pictures.draw_slices(path, over, self._reader.grid, self._scale, sections, self._view, image)

    def _draw_surface(self, index: int, path: Path) -> None:
        image = self._scene.surface(read_samples(self._reader, index), self._scale)
        over = title_of(self._title, self._moments[index])
        pictures.draw_surface(path, over, self._reader.grid, self._scale, self._view, image)

    def _draw_isosurfaces(self, path: Path) -> None:
        """Draw the last field with a scale for its range alone, which may be a small part of the common one."""
        reader, last = self._reader, len(self._reader) - 1
        low, high = reader.range(last)
        scale = TemperatureScale.spanning(low, high, reader.dtype)
        bottom, top = scale.limits
        inside = {} if scale.uniform else ticks(bottom, top, 7)
        levels = {level: text for level, text in inside.items() if bottom < level < top}
        colours = [_hexadecimal(fraction) for fraction in np.linspace(0.2, 0.9, len(levels))] or [_hexadecimal(0.5)]
        image = self._scene.isosurfaces(read_samples(reader, last), scale, list(levels), colours)
        over, remark = title_of(self._title, self._moments[-1]), f"Temperatures from {low:.9g} K to {high:.9g} K."
        pictures.draw_isosurfaces(path, over, reader.grid, scale, levels, colours, self._view, image, remark)


def _hexadecimal(fraction: float) -> str:
    from matplotlib.colors import to_hex

    return str(to_hex(colour_map()(fraction)))


def _flat_pictures(reader: FieldReader, title: str, moments: Sequence[str]) -> list[_Picture]:
    """Pictures of a plane at up to four times, of a line, or of one cell."""
    grid, axes = reader.grid, wide_axes(reader.grid)
    scale = _scale_of_all(reader)

    def draw_plane(index: int, path: Path) -> None:
        over = title_of(title, moments[index])
        pictures.draw_plane(path, over, grid, scale, reader.read(index).squeeze())

    def draw_line(path: Path) -> None:
        chosen = choose_times(len(reader), _MOST_PROFILES)
        profiles = [(moments[index].removeprefix("t = "), reader.read(index).reshape(-1)) for index in chosen]
        pictures.draw_profile(path, title_of(title, "temperature along the line"), grid, axes[0], scale, profiles)

    def draw_cell(path: Path) -> None:
        values = np.array([reader.read(index).item() for index in range(len(reader))])
        curves.draw_temperatures(path, title_of(title, "the one cell"), reader.times, {"cell": values})

    if len(axes) == 2:
        return [
            _Picture(_name("plane", index, len(reader)), partial(draw_plane, index))
            for index in choose_times(len(reader), _MOST_PICTURES)
        ]
    return [_Picture("profile.png", draw_line if axes else draw_cell)]


def _curves(folder: Path, title: str, steady: bool) -> list[_Picture]:
    """Pictures of the tables of a run: the probes and the energy balance over time, or the steady heat flows."""
    if steady:
        return _flows(folder, title)
    found = []
    probes = run_tables.read_probes(folder)
    if probes is not None and len(probes.times) and probes.columns:
        draw: Callable[[Path], None] = partial(
            curves.draw_temperatures,
            title=title_of(title, "probes"),
            times=probes.times,
            curves=probes.in_unit(KELVIN.name),
        )
        found.append(_Picture("probes.png", draw))
    energy = run_tables.read_energy(folder)
    if energy is not None and len(energy.times):
        bound = run_folder.read_summary(folder).get("energy_bound") if (folder / run_folder.SUMMARY).exists() else None
        bound = bound if isinstance(bound, float) else None
        heats = energy.in_unit(run_tables.JOULE)
        missing = [name for name in ("stored", "sources", *FACES, "residual") if name not in heats]
        if missing:
            path = folder / run_folder.ENERGY
            raise StorageError(f"{path}: has no column {', '.join(missing)} in J; it was not written by heatsim")
        over = title_of(title, "energy balance")
        draw = partial(curves.draw_energy, title=over, times=energy.times, columns=heats, bound=bound)
        found.append(_Picture("energy.png", draw))
    return found


def _flows(folder: Path, title: str) -> list[_Picture]:
    energy = run_tables.read_energy(folder)
    if energy is None or not len(energy.times):
        return []
    watts = {name: float(heat[-1]) for name, heat in energy.in_unit(run_tables.WATT).items()}
    imbalance = watts.pop("imbalance")
    over = title_of(title, "heat flows")
    return [_Picture("energy.png", partial(curves.draw_flows, title=over, flows=watts, imbalance=imbalance))]
