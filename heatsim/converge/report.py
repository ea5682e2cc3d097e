"""What `heatsim converge` shows: tables for the terminal, converge.json, a picture and report.html."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np

from heatsim.amounts import LENGTHS, choose_unit
from heatsim.converge.estimate import ROUGH, SAME, SMOOTH
from heatsim.converge.result import EstimatedValue, FoundErrors
from heatsim.counts import counted, plain
from heatsim.physics.estimates.other_grids import Cells
from heatsim.render.page.figure import new_figure, title_of
from heatsim.render.picture import Picture
from heatsim.report import document
from heatsim.report.document import Badge, Part
from heatsim.report.number_tables import NumberTable
from heatsim.report.numbers import with_error
from heatsim.report.terminal import TerminalTable
from heatsim.run.error.values import EXTREME_CELLS, OF_BODY
from heatsim.storage.manifest import write_own
from heatsim.storage.run_tables import header
from heatsim.storage.single_file import marked_json
from heatsim.study import folder as study_folder
from heatsim.study.figures import draw_pictures, path_of
from heatsim.study.report import title_of as title_of_study
from heatsim.temperature_units import KELVIN, TemperatureUnit

if TYPE_CHECKING:
    from rich.console import Group

JSON = "converge.json"
_MOST_ROWS = 24  # in a terminal
_MOST_PANELS = 6
_DIGITS = 2  # of an error
_COLOURS = "#0072b2", "#d55e00"


def write(found: FoundErrors) -> None:
    """Write converge.json, the picture and report.html into the folder of the study.

    Raises:
        FolderError: the user changed a file.
        StorageError: a file could not be written.
    """
    write_own(found.folder, JSON, marked_json(to_dict(found)).encode(), study_folder.AGAIN)
    if not found.factors.draws:
        return
    pictures = [Picture("convergence", partial(draw, found=found))] if _drawn(found) else []
    draw_pictures(found.folder, pictures)
    drawn = [path_of(found.folder, picture) for picture in pictures]
    write_own(found.folder, study_folder.REPORT, build(found, drawn).encode(), study_folder.AGAIN)


def to_dict(found: FoundErrors) -> dict[str, Any]:
    """The content of converge.json: temperatures and their errors in K, other numbers in SI units."""
    return {
        "title": title_of_study(found.definition),
        "method": found.factors.method,
        "tolerance": found.tolerance,
        "grids": [list(cells) for cells in found.grids],
        "answer": list(found.grids[found.answer]),
        "temperature_range": found.range,
        "failed": dict(found.failed),
        "values": [
            {
                "name": value.name,
                "unit": value.unit,
                "value": value.value,
                "error": value.total,
                "errors": value.parts,
                "on_grids": list(value.on_grids),
                "order": value.space.order,
                "extrapolated": value.space.extrapolated,
                "in_space": value.space.verdict,
            }
            for value in found.values
        ],
    }


def summarise(found: FoundErrors) -> "Group":
    """Tables for rich's console."""
    from rich.console import Group
    from rich.text import Text

    parts: list[Any] = [Text(f"{title_of_study(found.definition)}: {verdict(found)}"), ""]
    parts += map(TerminalTable, tables(found, _MOST_ROWS))
    parts += [Text(remark) for remark in remarks(found)]
    names = [*[study_folder.REPORT] * found.factors.draws, JSON, f"the runs in {study_folder.RUNS}/"]
    parts += ["", Text(f"Written to {found.folder}: {', '.join(names)}")]
    return Group(*parts)


def verdict(found: FoundErrors) -> str:
    """The largest error of a temperature, and its main cause, in a sentence."""
    worst = found.worst
    if worst is None:
        return "the errors are not known"
    of = "temperatures" if worst.name in OF_BODY else "temperatures of probes and responses"
    error = _unit(found).difference_text(worst.total or 0.0, _DIGITS)
    return f'{of} are within ±{error} ("{worst.name}"; most of it is the error {_IN[worst.largest]})'


_IN = {"space": "in space", "time": "in time", "rounding": "of rounding"}


def tables(found: FoundErrors, most: int) -> Iterator[NumberTable]:
    """The values with their errors, then the values on each grid."""
    shown = [_shown(value, _unit(found)) for value in found.values[:most]]
    more = f"The other {len(found.values) - most} values are in {JSON}." if len(found.values) > most else ""
    rows = list(map(_errors, shown))
    yield NumberTable("Values and their errors", ("", "value", "±", "in space", "in time", "rounding"), rows, more)
    labels = [" × ".join(map(str, cells)) for cells in found.grids]
    yield NumberTable("Values on each grid", ("", *labels, "order", "extrapolated"), list(map(_on_grids, shown)))


def remarks(found: FoundErrors) -> Iterator[str]:
    """Sentences on how to read the tables, and on what they do not show."""
    given = found.factors.choice.given
    if len(found.grids) == 3:
        yield "In space: Richardson's extrapolation, with the safety factors of Celik et al. (1.25, or 3)."
    elif len(found.grids) == 2:
        yield "In space: two grids have no observed order; ± assumes that the error falls at least with the cell size."
    else:
        yield "In space: not known, because no other grid could be computed."
    if any(value.name in EXTREME_CELLS for value in found.values):
        yield (
            "Extremes of cells are those of their centres, so they miss up to half a cell at surfaces; a probe with "
            "surface and statistic has those of the surface."
        )
    if found.grids[found.answer] != given:
        yield "The values are those of the finest grid."
    rough = [value for value in found.values if value.space.verdict == ROUGH]
    for value in rough[:_MOST_PANELS]:
        yield f'"{value.name}" {ROUGH}: spread {_difference(np.ptp(value.on_grids), value, found)} between the grids.'
    if names := ", ".join(found.factors.choice.off_faces[:_MOST_PANELS]):
        yield f"Cells follow these parts as steps, so values may jump from grid to grid: {names}."
    yield from (f"{run} failed: {reason}" for run, reason in found.failed.items())


def build(found: FoundErrors, pictures: Sequence[Path]) -> str:
    """The HTML of the report."""
    import tomli_w

    both = "".join(map(document.table, tables(found, len(found.values))))
    sections = [
        Part("How sure it is", both + document.sentences(remarks(found))),
        Part("Pictures", document.pictures(pictures)),
        Part("Runs", document.table(_runs(found))),
        Part("Scenario", document.listing(tomli_w.dumps(dict(found.factors.document)), found.factors.path.name)),
    ]
    badges = [Badge(verdict(found), not found.failed), Badge(f"method {found.factors.method}")]
    return document.page(title_of_study(found.definition), f"heatsim converge · {found.folder.name}", badges, sections)


def _runs(found: FoundErrors) -> NumberTable:
    rows = []
    for number, point in enumerate(found.definition.points, 1):
        cells: Any = point["domain.cells"]
        time: Any = point["time"]
        how = ", ".join(f"{key} = {time[key]}" for key in ("method", "tolerance", "dt", "safety") if key in time)
        name = f"{study_folder.RUNS}/{number:04d}" + (" (as given)" if point == found.factors.given else "")
        rows.append((name, " × ".join(map(str, cells)), str(point["solver.precision"]), how or "–"))
    return NumberTable(counted(len(rows), "run"), ("folder", "cells", "precision", "time"), rows)


def draw(path: Path, found: FoundErrors) -> None:
    """Draw the values with the largest errors over the size of cells, with a band for the error of the answer."""
    values = _drawn(found)
    columns = min(len(values), 3)
    lines = -(-len(values) // columns)
    sizes = np.array([_spacing(found, cells) for cells in found.grids])
    length = choose_unit(LENGTHS, sizes.max())
    sizes /= length.size
    title = title_of(title_of_study(found.definition), "values over the size of cells")
    with new_figure(path, title, 1600, 800 if lines == 1 else 1200) as figure:
        panels = figure.subplots(lines, columns, squeeze=False)
        figure.subplots_adjust(left=0.1, right=0.97, top=0.85, bottom=0.12, wspace=0.42, hspace=0.55)
        for panel in panels.flat[len(values) :]:
            panel.set_visible(False)
        for panel, value in zip(panels.flat, values, strict=False):
            shown = _shown(value, _unit(found))
            ends, space = (shown.value - (shown.total or 0.0), shown.value + (shown.total or 0.0)), shown.space
            panel.axhspan(*ends, color=_COLOURS[0], alpha=0.15, linewidth=0.0, label="± of the answer")
            panel.plot(sizes, shown.on_grids, "o", color=_COLOURS[0], label="computed")
            if space.extrapolated is not None and space.order is not None:
                h = np.linspace(0.0, float(sizes.max()), 60)
                rise = (shown.on_grids[0] - space.extrapolated) * (h / sizes[0]) ** min(space.order, 2.0)
                panel.plot(h, space.extrapolated + rise, color=_COLOURS[0], linewidth=0.8)
                panel.plot([0.0], [space.extrapolated], "s", color=_COLOURS[1], label="extrapolated")
            panel.set_xlim(left=-0.03 * float(sizes.max()))
            error = _difference(value.total or 0.0, value, found)
            panel.set_title(f"{shorten(value.name, 30, placeholder='…')}\n±{error}")
            panel.set_xlabel(f"size of cells ({length.symbol})")
            panel.set_ylabel(shown.unit)
            panel.grid(alpha=0.25)
        panels.flat[0].legend(loc="best")


def _drawn(found: FoundErrors) -> list[EstimatedValue]:
    """The values of the picture: temperatures first, then those with the largest errors."""
    known = [value for value in found.values if value.total and len(value.on_grids) > 1 and value.space.verdict != SAME]
    return sorted(known, key=lambda value: (value.unit != KELVIN.name, -(value.total or 0.0)))[:_MOST_PANELS]


def _spacing(found: FoundErrors, cells: Cells) -> float:
    """The mean size of cells in m along the axes along which the grids differ."""
    choice, grid = found.factors.choice, found.factors.problem.grid
    edges = [grid.size[axis] / choice.given[axis] for axis in range(3) if not choice.fixed[axis]]
    mean = float(np.prod(edges or [max(grid.mean_spacing)])) ** (1.0 / max(len(edges), 1))
    return float(mean * choice.ratio(cells))


def _errors(shown: EstimatedValue) -> tuple[str, ...]:
    """The row of a value with its errors."""
    errors = ["?" if error is None else plain(error, _DIGITS) for error in (shown.total, *shown.parts.values())]
    return (header(shown.name, shown.unit), with_error(shown.value, shown.total), *errors)


def _on_grids(shown: EstimatedValue) -> tuple[str, ...]:
    """The row of a value on the grids."""
    spread, space = float(np.ptp(shown.on_grids)) / 1e2, shown.space
    error = min(spread, shown.total or spread)
    order = f"{space.order:.1f}" if space.verdict == SMOOTH and space.order is not None else "–"
    limit = "–" if space.extrapolated is None else with_error(space.extrapolated, error)
    numbers = [with_error(each, error) for each in shown.on_grids]
    return (header(shown.name, shown.unit), *numbers, order, limit)


def _unit(found: FoundErrors) -> TemperatureUnit:
    return found.factors.problem.scenario.output.temperature_unit


def _shown(value: EstimatedValue, unit: TemperatureUnit) -> EstimatedValue:
    """A value as it is shown: temperatures in ``unit``, with the symbol of the unit."""
    if value.unit != KELVIN.name:
        return replace(value, unit="" if value.unit == "1" else value.unit)
    time, rounding = (None if each is None else unit.of_difference(each) for each in (value.time, value.rounding))
    limit, error = value.space.extrapolated, unit.of_difference(value.space.error)
    space = replace(value.space, extrapolated=None if limit is None else unit.of(limit), error=error)
    on_grids, answer = tuple(map(unit.of, value.on_grids)), unit.of(value.value)
    return EstimatedValue(value.name, unit.symbol, on_grids, answer, space, time, rounding)


def _difference(error: float, value: EstimatedValue, found: FoundErrors) -> str:
    """An error of a value, or a difference of two values, as text."""
    if value.unit == KELVIN.name:
        return _unit(found).difference_text(error, _DIGITS)
    return f"{plain(error, _DIGITS)} {_shown(value, _unit(found)).unit}".strip()
