"""Pictures of a run's output, drawn from its folder, without a display."""

import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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
from heatsim.storage import tables
from heatsim.storage.disk import clear_pictures, resume_command
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.vtkhdf import VOID

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


def render(folder: Path, *, tried: bool = False) -> list[Path]:
    """Draw a run's fields, probes and energy into ``folder/figures``, replacing its earlier pictures.

    A 3-D grid gives ``slices_t….png`` at up to four times, and ``isosurface.png`` or, with void in the box,
    ``surface_t….png``. A grid of one plane gives ``plane_t….png``, a grid of one line ``profile.png``. Unfinished runs
    can be drawn too.

    Args:
        folder: the output folder of a run.
        tried: 3-D views have been drawn in this process before; otherwise another process tries first.

    Returns:
        The paths of the pictures.

    Raises:
        FolderError: the folder is not that of a run, or contains nothing to draw.
        InputError: 3-D views cannot be drawn on this machine; all other pictures are drawn.
        StorageError: a file cannot be read, or a picture cannot be written.
    """
    run_folder.require_run(folder)
    title, steady = _read_title(folder)
    figures = folder / run_folder.FIGURES
    clear_pictures(figures, _OWN_PICTURES)
    with ExitStack() as stack:
        fields = folder / run_folder.FIELDS
        reader = stack.enter_context(FieldReader(fields)) if fields.exists() else None
        if reader is None or len(reader) == 0:
            drawn = list(_draw_tables(folder, figures, title, steady))
        elif len(wide_axes(reader.grid)) < 3:
            drawn = [
                *_draw_flat(reader, figures, title, _moments(reader, steady)),
                *_draw_tables(folder, figures, title, steady),
            ]
        else:
            trial = None if tried else stack.enter_context(start_trial())
            drawn = list(_draw_tables(folder, figures, title, steady))
            try:
                if trial is not None:
                    finish_trial(trial)
            except InputError as error:
                names = " and ".join(path.name for path in drawn) or "nothing"
                raise InputError(f"{folder}: {names} drawn, but no 3-D views: {error}") from error
            drawn = [*_draw_body(reader, figures, title, _moments(reader, steady)), *drawn]
    if not drawn:
        raise FolderError(
            f"{folder}: there are no fields, probes or energy rows to draw; continue with `{resume_command(folder)}`"
        )
    return drawn


def _read_title(folder: Path) -> tuple[str, bool]:
    """The scenario's title, and whether it is a steady state."""
    path = folder / run_folder.SCENARIO
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        return str(document.get("title", "")), document.get("time", {}).get("method") == "steady"
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FolderError(f"{path}: cannot be read as a scenario ({error})") from error


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


def _draw_body(reader: FieldReader, figures: Path, title: str, moments: Sequence[str]) -> Iterator[Path]:
    scale = _scale_of_all(reader)
    in_void = VOID in reader.materials
    *_, width, height = pictures.VIEW
    view = View.fitting(width, height, pictures.VIEW_MARGIN, drawn_size(reader.grid))
    with Scene(reader.grid, view) as scene:
        for index in choose_times(len(reader), _MOST_PICTURES):
            path = figures / _name("slices", index, len(reader))
            sections = read_sections(reader, index)
            over = title_of(title, moments[index])
            image = scene.slices(sections, scale)
            pictures.draw_slices(path, over, reader.grid, scale, sections, view, image)
            yield path
            if in_void:
                path = figures / _name("surface", index, len(reader))
                image = scene.surface(read_samples(reader, index), scale)
                pictures.draw_surface(path, over, reader.grid, scale, view, image)
                yield path
        if not in_void:
            path = figures / "isosurface.png"
            _draw_isosurfaces(reader, scene, view, path, title_of(title, moments[-1]))
            yield path


def _draw_isosurfaces(reader: FieldReader, scene: Scene, view: View, path: Path, over: str) -> None:
    """Draw the last field with a scale for its range alone, which may be a small part of the common one."""
    last = len(reader) - 1
    low, high = reader.range(last)
    scale = TemperatureScale.spanning(low, high, reader.dtype)
    bottom, top = scale.limits
    inside = {} if scale.uniform else ticks(bottom, top, 7)
    levels = {level: text for level, text in inside.items() if bottom < level < top}
    colours = [_hexadecimal(fraction) for fraction in np.linspace(0.2, 0.9, len(levels))] or [_hexadecimal(0.5)]
    image = scene.isosurfaces(read_samples(reader, last), scale, list(levels), colours)
    remark = f"Temperatures from {low:.9g} K to {high:.9g} K."
    pictures.draw_isosurfaces(path, over, reader.grid, scale, levels, colours, view, image, remark)


def _hexadecimal(fraction: float) -> str:
    from matplotlib.colors import to_hex

    return str(to_hex(colour_map()(fraction)))


def _draw_flat(reader: FieldReader, figures: Path, title: str, moments: Sequence[str]) -> Iterator[Path]:
    scale = _scale_of_all(reader)
    axes = wide_axes(reader.grid)
    if len(axes) == 2:
        for index in choose_times(len(reader), _MOST_PICTURES):
            path = figures / _name("plane", index, len(reader))
            over = title_of(title, moments[index])
            pictures.draw_plane(path, over, reader.grid, scale, reader.read(index).squeeze())
            yield path
        return
    path = figures / "profile.png"
    if len(axes) == 1:
        chosen = choose_times(len(reader), _MOST_PROFILES)
        profiles = [(moments[index].removeprefix("t = "), reader.read(index).reshape(-1)) for index in chosen]
        pictures.draw_profile(
            path, title_of(title, "temperature along the line"), reader.grid, axes[0], scale, profiles
        )
    else:
        values = np.array([reader.read(index).item() for index in range(len(reader))])
        curves.draw_temperatures(path, title_of(title, "the one cell"), reader.times, {"cell": values})
    yield path


def _draw_tables(folder: Path, figures: Path, title: str, steady: bool) -> Iterator[Path]:
    if steady:
        yield from _draw_flows(folder, figures, title)
        return
    probes = _read_columns(folder / run_folder.PROBES)
    if len(probes) > 1 and len(probes["time"]):
        times = probes.pop("time")
        curves.draw_temperatures(figures / "probes.png", title_of(title, "probes"), times, probes)
        yield figures / "probes.png"
    energy = _read_columns(folder / run_folder.ENERGY, ("time", "stored", "sources", *FACES, "residual"))
    if energy and len(energy["time"]):
        bound = run_folder.read_summary(folder).get("energy_bound") if (folder / run_folder.SUMMARY).exists() else None
        bound = bound if isinstance(bound, float) else None
        curves.draw_energy(figures / "energy.png", title_of(title, "energy balance"), energy, bound)
        yield figures / "energy.png"


def _draw_flows(folder: Path, figures: Path, title: str) -> Iterator[Path]:
    flows = _read_columns(folder / run_folder.ENERGY)
    if flows and len(flows["time"]):
        watts = {name.removesuffix(" (W)"): float(heat[-1]) for name, heat in flows.items() if name.endswith(" (W)")}
        imbalance = watts.pop("imbalance")
        curves.draw_flows(figures / "energy.png", title_of(title, "heat flows"), watts, imbalance)
        yield figures / "energy.png"


def _read_columns(path: Path, wanted: Sequence[str] = ("time",)) -> dict[str, NDArray[np.float64]]:
    """The columns of a table by name; empty if the run has no such table.

    Raises:
        StorageError: the table cannot be read, or a column of ``wanted`` is missing.
    """
    if not path.exists():
        return {}
    names, rows = tables.read(path)
    missing = [name for name in wanted if name not in names]
    if missing:
        raise StorageError(f"{path}: has no column {', '.join(missing)}; it was not written by heatsim")
    return dict(zip(names, rows.T, strict=True))
