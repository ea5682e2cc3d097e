"""The facts of a report about a run, as names and texts, for the terminal and for report.html."""

from collections.abc import Iterator, Mapping
from math import isfinite, nan
from pathlib import Path
from textwrap import shorten
from typing import Any

from heatsim.amounts import LENGTHS, SPEEDS, TIMES, choose_unit, format_amount, format_time
from heatsim.counts import counted, plain
from heatsim.report.certainty import error_of
from heatsim.report.numbers import decimals_of_temperatures, fixed
from heatsim.storage import folder as run_folder
from heatsim.storage.run_settings import RunSettings
from heatsim.storage.run_tables import RunTable
from heatsim.storage.traces import latest_time
from heatsim.temperature_units import KELVIN, TemperatureUnit

_PARTS_OF_WALL_TIME = (
    ("preparing", "preparing_time"),
    ("stepping", "stepping_time"),
    ("solving", "solving_time"),
    ("rows and copies", "observing_time"),
    ("waiting for files", "waiting_time"),
)
_NEGLIGIBLE_TIME = 0.005  # of the whole
_EXTREMES = {"hottest cell": "highest_temperature", "coldest cell": "lowest_temperature"}
_MOST_PROBES, _LONGEST_NAME = 12, 24  # probes with a place; characters of their names
_SAME = 0.01  # K; temperatures that differ less are reported as one
_NBSP = "\N{NO-BREAK SPACE}"  # keeps a number and its unit on one line

_STEADY_CONTENTS = run_folder.CONTENTS | {
    run_folder.FIELDS: "temperature, for ParaView",
    run_folder.PROBES: "probes",
    run_folder.ENERGY: "heat flows in W",
}


def answers(
    summary: Mapping[str, Any], unit: TemperatureUnit, probes: RunTable | None = None
) -> Iterator[tuple[str, str]]:
    """The extreme temperatures in summary.json, with their errors, as names and texts.

    Args:
        summary: its content.
        unit: in which temperatures are shown.
        probes: from probes.csv; a probe on a surface may be hotter or colder than all cells.
    """
    yield from _temperatures(summary, unit, _beyond_cells(summary, probes))
    if "end_state" in summary:
        yield "end state", str(summary["end_state"])


def work(summary: Mapping[str, Any], unit: TemperatureUnit) -> Iterator[tuple[str, str]]:
    """How the run in summary.json was computed, as names and texts."""
    if summary.get("cells"):
        yield "cells", " × ".join(f"{n:,}" for n in summary["cells"])
    how = [str(summary[key]) for key in ("device", "kernel", "precision") if key in summary]
    if how:
        yield "computed on", ", ".join(how)
    if "steps" in summary:
        yield "steps", _describe_steps(summary, unit)
    if summary.get("method") == "steady":
        yield "steady state", _describe_search(summary, unit)
    if "stepping_time" in summary or "solving_time" in summary:
        yield "wall time", _describe_wall_time(summary)
    if summary.get("cells_per_second"):
        yield "speed", f"{format_amount(summary['cells_per_second'], SPEEDS).replace(' ', _NBSP)} while stepping"


def unfinished_facts(folder: Path, settings: RunSettings) -> Iterator[tuple[str, str]]:
    """How far a run has got whose summary is missing, as names and texts."""
    yield "scenario", settings.title
    if not settings.steady:
        reached = latest_time(folder)
        unit = choose_unit(TIMES, settings.end if isfinite(settings.end) else reached)
        end = f" of {format_time(settings.end, unit)}" if isfinite(settings.end) else ""
        yield "reached", f"{format_time(reached, unit)}{end}".replace(" ", _NBSP)


def details(summary: Mapping[str, Any], unit: TemperatureUnit) -> Iterator[tuple[str, str]]:
    """Facts about the numerics as names and texts."""
    if summary.get("dt_limit"):
        yield "stability", f"limit of explicit steps: {plain(summary['dt_limit'], 6)}{_NBSP}s"
    if summary.get("coefficients_of"):
        yield "c0…c6", f"of cells inside {summary['coefficients_of']}, away from faces and other materials"
    if summary.get("coefficients_cell"):
        unit_of_cell = choose_unit(LENGTHS, max(summary["coefficients_cell"]))
        widths = " × ".join(plain(width / unit_of_cell.size, 4) for width in summary["coefficients_cell"])
        yield "cells", f"c0…c6 are those of a cell of the mean widths, {widths}{_NBSP}{unit_of_cell.symbol}"
    if summary.get("reference_temperature") is not None:
        yield "stored", f"T − {unit.text(summary['reference_temperature']).replace(' ', _NBSP)} of each cell"
    if summary.get("equivalent_applications"):
        yield "work", f"that of {summary['equivalent_applications']:.0f} applications of the operator"


def _temperatures(
    summary: Mapping[str, Any], unit: TemperatureUnit, of_probes: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """The highest and lowest temperature of the whole run with time and place, and the temperatures at its end."""
    extremes = {**{name: summary.get(key) for name, key in _EXTREMES.items()}, **of_probes}
    names = sorted(extremes, reverse=True)  # hottest probe, hottest cell, coldest probe, coldest cell
    twins: dict[str, str] = {}  # probes that tell what the extreme of all cells tells
    for probe, found in list((summary.get("probe_extremes") or {}).items())[:_MOST_PROBES]:
        name = shorten(probe, _LONGEST_NAME, placeholder="…")
        twin = next((name for name in _EXTREMES if _same(extremes[name], found)), None)
        if twin is not None:
            twins[twin] = twins.get(twin, "") + f', probe "{name}"'
            continue
        extremes[name] = found
        names.append(name)
    end = summary.get("temperature") or {}
    known = [float(found["temperature"]) for found in extremes.values() if found] + [
        float(end[key]) for key in ("min", "max", "mean") if end.get(key) is not None
    ]
    if not known:
        return
    shown = [unit.of(value) for value in known]
    texts = dict(zip(known, fixed(shown, decimals_of_temperatures(shown)), strict=True))
    for name in names:
        found = extremes[name]
        if found:
            error = error_of(summary, str(found.get("probe", name)), float(found["time"]))
            about = "" if error is None else f"{_NBSP}±{_NBSP}{unit.difference_text(error, 2)}".replace(" ", _NBSP)
            value = f"{texts[float(found['temperature'])]}{_NBSP}{unit.symbol}"
            yield name, f"{value}{about}{_when_and_where(found, summary)}{twins.get(name, '')}"
    if end:
        low, high, mean = (texts.get(end.get(key, nan), "?") for key in ("min", "max", "mean"))
        name = "temperature" if summary.get("method") == "steady" else "at the end"
        yield name, f"{low} to {high}{_NBSP}{unit.symbol}, mean {mean}{_NBSP}{unit.symbol}"


def _same(one: Mapping[str, Any] | None, other: Mapping[str, Any]) -> bool:
    """Whether two extremes are that of the same cell at the same time."""
    return one is not None and all(one.get(key) == other.get(key) for key in ("temperature", "time", "point"))


def _beyond_cells(summary: Mapping[str, Any], probes: RunTable | None) -> dict[str, dict[str, Any]]:
    """The hottest and the coldest probe by their names in the report, if hotter or colder than all cells.

    Cells have the temperatures of their centres; probes on faces have the temperature of the surface.
    """
    columns = {} if probes is None else probes.in_unit(KELVIN.name)
    found: dict[str, dict[str, Any]] = {}
    for name, kind, sign in (("hottest cell", "hottest probe", 1.0), ("coldest cell", "coldest probe", -1.0)):
        of_cells = summary.get(_EXTREMES[name])
        if not columns or probes is None or not len(probes.times) or not of_cells:
            continue
        probe, values = max(columns.items(), key=lambda column: float((sign * column[1]).max()))
        row = int((sign * values).argmax())
        if sign * (float(values[row]) - float(of_cells["temperature"])) > _SAME:
            found[kind] = {"temperature": float(values[row]), "time": float(probes.times[row]), "probe": probe}
    return found


def _when_and_where(found: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """When and where a temperature was reached; the start needs no place, because the user chose it."""
    if summary.get("method") == "steady":
        return _where(found)
    if found["time"] == 0.0:
        return " at the start"
    unit = choose_unit(TIMES, float(summary.get("time") or found["time"]))
    return f" after {format_time(found['time'], unit).replace(' ', _NBSP)}" + _where(found)


def _where(found: Mapping[str, Any]) -> str:
    """A place with its region and material, or a probe."""
    if "probe" in found:
        return f", {found['probe']}"
    unit = choose_unit(LENGTHS, max(abs(float(coordinate)) for coordinate in found["point"]))
    x, y, z = (plain(float(coordinate) / unit.size, 4) for coordinate in found["point"])
    part = f', region "{found["region"]}"' if found.get("region") else ""
    material = f", {found['material']}" if found.get("material") not in (None, found.get("region")) else ""
    return f" at ({x}, {y}, {z}){_NBSP}{unit.symbol}{part}{material}"


def _describe_steps(summary: Mapping[str, Any], unit: TemperatureUnit) -> str:
    until = ""
    if summary.get("time"):
        until = f" to {format_time(summary['time'], choose_unit(TIMES, summary['time'])).replace(' ', _NBSP)}"
    if summary.get("stages") is None:
        return f"{summary['steps']:,}{until}"
    return (
        f"{counted(summary['steps'], summary['method'] + ' step')}{until}, {counted(summary['stages'], 'stage')}; "
        f"{counted(summary['rejected'], 'step')} rejected at a tolerance of "
        f"{unit.difference_text(summary['tolerance'], 3).replace(' ', _NBSP)}"
    )


def _describe_search(summary: Mapping[str, Any], unit: TemperatureUnit) -> str:
    newton = summary["newton_steps"]
    return (
        f"to {unit.difference_text(summary['tolerance'], 2).replace(' ', _NBSP)}, "
        f"in {counted(summary['cycles'], 'cycle')}" + (f" and {newton} Newton steps" if newton > 1 else "")
    )


def _describe_wall_time(summary: Mapping[str, Any]) -> str:
    parts = {name: float(summary[key]) for name, key in _PARTS_OF_WALL_TIME if key in summary}
    total = float(summary.get("wall_time", sum(parts.values())))
    shown = [f"{name} {plain(part, 2)}{_NBSP}s" for name, part in parts.items() if part > _NEGLIGIBLE_TIME * total]
    return f"{plain(total, 3)}{_NBSP}s" + (f": {', '.join(shown)}" if shown else "")


def written_files(folder: Path, steady: bool) -> list[tuple[str, str]]:
    """The files in a run's folder that a report lists, and their contents."""
    contents = _STEADY_CONTENTS if steady else run_folder.CONTENTS
    found = [(name, content) for name, content in contents.items() if (folder / name).exists()]
    pictures = sum(path.suffix in run_folder.PICTURES for path in (folder / run_folder.FIGURES).glob("*"))
    return [*found, (f"{run_folder.FIGURES}/", counted(pictures, "picture"))] if pictures else found
