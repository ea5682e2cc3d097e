"""What a report says of a run, as names, texts and numbers: for the terminal and for report.html."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.render.energy_balance import EnergyBalance
from heatsim.storage import folder as run_folder
from heatsim.storage.run_settings import RunSettings
from heatsim.storage.run_tables import RunTable, header
from heatsim.temperature_units import KELVIN, TemperatureUnit

_PARTS_OF_WALL_TIME = (
    ("preparing", "preparing_time"),
    ("stepping", "stepping_time"),
    ("solving", "solving_time"),
    ("rows and copies", "observing_time"),
    ("waiting for files", "waiting_time"),
)
_MOST_ROWS = 12
_DIGITS = 7  # of temperatures
_COEFFICIENTS = ("c0", "c1", "c2", "c3", "c4", "c5", "c6")
_NBSP = "\N{NO-BREAK SPACE}"  # keeps a number and its unit on one line

_STEADY_CONTENTS = run_folder.CONTENTS | {
    run_folder.FIELDS: "temperature, for ParaView",
    run_folder.PROBES: "probes",
    run_folder.ENERGY: "heat flows in W",
}


@dataclass(frozen=True)
class NumberTable:
    """A table with names in the first column and numbers, as texts, in the others.

    Attributes:
        title: above it.
        headers: of all columns.
        rows: of as many texts; the first is a name, which may be from the user.
        remark: a sentence below it.
    """

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    remark: str = ""


def run_facts(summary: Mapping[str, Any], unit: TemperatureUnit) -> Iterator[tuple[str, str]]:
    """Names and texts of what summary.json says of a run."""
    if summary.get("title"):
        yield "scenario", str(summary["title"])
    if summary.get("cells"):
        yield "cells", " × ".join(f"{n:,}" for n in summary["cells"])
    how = [str(summary[key]) for key in ("device", "kernel", "precision") if key in summary]
    if "rounding" in summary:
        how.append(f"{summary['rounding']} rounding")
    if how:
        yield "computed on", ", ".join(how)
    if "steps" in summary:
        yield "steps", _describe_steps(summary, unit)
    if "end_state" in summary:
        yield "end state", str(summary["end_state"])
    if summary.get("method") == "steady":
        yield "steady state", _describe_search(summary, unit)
    if "stepping_time" in summary or "solving_time" in summary:
        yield "wall time", _describe_wall_time(summary)
    if summary.get("cells_per_second"):
        yield "speed", f"{summary['cells_per_second'] / 1e9:.4g}{_NBSP}GCells/s while stepping"
    lowest = summary.get("lowest_temperature")
    if lowest:
        moment = "" if summary.get("method") == "steady" else f" at {lowest['time']:g}{_NBSP}s"
        yield "lowest", f"{_text(lowest['temperature'], unit)}{moment} in cell {lowest['cell']}"
    temperature = summary.get("temperature")
    if temperature:
        low, high, mean = (_number(temperature.get(key), unit) for key in ("min", "max", "mean"))
        reference = summary.get("reference_temperature")
        yield (
            "temperature",
            f"min {low}, max {high}, mean {mean}{_NBSP}{unit.symbol}"
            + (f" (stored as the difference from {_text(reference, unit)})" if reference is not None else ""),
        )


def _describe_steps(summary: Mapping[str, Any], unit: TemperatureUnit) -> str:
    until = f" to {summary['time']:g}{_NBSP}s" if "time" in summary else ""
    if summary.get("stages") is None:
        return f"{summary['steps']:,}{until}"
    return (
        f"{summary['steps']:,} {summary['method']} steps{until}, {summary['stages']:,} stages; "
        f"{summary['rejected']:,} steps rejected at a tolerance of "
        f"{unit.difference_text(summary['tolerance'], 3).replace(' ', _NBSP)}"
    )


def _describe_search(summary: Mapping[str, Any], unit: TemperatureUnit) -> str:
    newton = summary["newton_steps"]
    return (
        f"to {unit.difference_text(summary['tolerance'], 2).replace(' ', _NBSP)}, in {summary['cycles']:,} cycles"
        + (f" and {newton} Newton steps" if newton > 1 else "")
        + f", {summary['equivalent_applications']:.0f} equivalent applications"
    )


def _describe_wall_time(summary: Mapping[str, Any]) -> str:
    parts = [f"{name} {summary[key]:.3g}{_NBSP}s" for name, key in _PARTS_OF_WALL_TIME if key in summary]
    return f"{summary['wall_time']:.3g}{_NBSP}s: {', '.join(parts)}" if "wall_time" in summary else ", ".join(parts)


def describe_error(summary: Mapping[str, Any], unit: TemperatureUnit) -> Iterator[str]:
    """Sentences on how sure the temperatures are, from how they were computed."""
    method = summary.get("method")
    tolerance = summary.get("tolerance")
    if method == "steady" and tolerance is not None:
        yield f"The solver stopped when its correction was below {unit.difference_text(tolerance, 2)}."
    elif tolerance is not None:
        yield (
            f"The steps keep their local error in time below {unit.difference_text(tolerance, 3)}. Run again with a "
            "smaller time.tolerance to see how much the result depends on it."
        )
    elif summary.get("dt"):
        steps = summary["dt"]
        longest = f"{max(steps):.6g} s"
        limit = summary.get("dt_limit")
        yield (
            f"Euler steps of {longest}"
            + (f", {100.0 * max(steps) / limit:.0f} % of the stability limit {limit:.6g} s" if limit else "")
            + "; their error in time is of first order in the step."
        )
    yield (
        "The error in space is of second order in the spacing of the cells. Run again with other domain.cells to see "
        "how large it is."
    )


def coefficient_table(coefficients: Sequence[Mapping[str, Any]]) -> NumberTable:
    """The coefficients of Euler's method, one row for each length of a step."""
    rows = []
    for row in coefficients[:_MOST_ROWS]:
        values = (row[name] for name in _COEFFICIENTS)
        texts = (f"{value:.4f}" if value == 0.0 or value >= 1e-2 else f"{value:.1e}" for value in values)
        rows.append((f"{row['dt']:.6g}", f"{row['steps']:,}", *texts))
    return NumberTable(
        "T' = c0·T + c1·T(x−) + c2·T(x+) + c3·T(y−) + c4·T(y+) + c5·T(z−) + c6·T(z+)",
        ("dt (s)", "steps", *_COEFFICIENTS),
        rows,
        _mention_rest(len(coefficients), run_folder.SUMMARY),
    )


def balance_table(balance: EnergyBalance) -> NumberTable:
    """The terms of an energy balance at its last row: the parts and the residual, which add up to the stored heat."""
    rows = [(_through(name), f"{heat[-1]:.9g}") for name, heat in balance.real().items()]
    verdict = ""
    if balance.bound is not None:
        verdict = f" (bound {balance.bound:.2g} J: {'closed' if balance.closed else 'NOT CLOSED'})"
    rows += [(f"residual{verdict}", f"{balance.residual[-1]:.3g}"), ("stored, the sum", f"{balance.stored[-1]:.9g}")]
    remark = ""
    if balance.only_noise:
        remark = f"All heats are within rounding, ±{balance.noise:.2g} J: no heat flows."
    elif balance.negligible():
        remark = f"Zero, or rounding only: {', '.join(balance.negligible())}."
    return NumberTable(f"Energy balance at {balance.times[-1]:g} s", ("heat into the body", "J"), rows, remark)


def _through(name: str) -> str:
    return name if name == "sources" else f"through {name}"


def flow_table(flows: Mapping[str, float], imbalance: float) -> NumberTable:
    """The heat flows of a steady state, each once; together they are the imbalance."""
    turnover = 0.5 * sum(map(abs, flows.values()))
    part = f" ({100.0 * imbalance / turnover:.2g} %)" if turnover > 0.0 else ""
    rows = [(name, f"{heat:.9g}") for name, heat in flows.items() if heat]
    return NumberTable("Heat flows", ("into the body", "W"), [*rows, (f"imbalance, the sum{part}", f"{imbalance:.3g}")])


def probe_table(probes: RunTable, settings: RunSettings, most: int = _MOST_ROWS) -> NumberTable:
    """First, last, lowest and highest value of each probe; those along a line have one row together.

    Numbers that are no temperatures have their unit beside their name.
    """
    unit = settings.temperature_unit
    groups: dict[str, list[NDArray[np.float64]]] = {}
    for (column, its_unit), values in probes.columns.items():
        line = settings.line_of(column)
        name = column if line is None else f"{line} ({settings.lines[line][1]} points)"
        is_temperature = its_unit == KELVIN.name
        name = name if is_temperature else header(name, its_unit)
        groups.setdefault(name, []).append(unit.of(values) if is_temperature else values)
    once = len(probes.times) == 1
    rows = []
    for name, curves in groups.items():
        together = np.stack(curves)
        moments = (together[:, :1],) if once else (together[:, :1], together[:, -1:])
        cells = ["…".join(_ends(moment)) for moment in moments]
        rows.append((name, *cells, *(() if once else (_short(together.min()), _short(together.max())))))
    headers = ("name", "temperature") if once else ("name", "first", "last", "min", "max")
    return NumberTable(
        f"Probes ({unit.symbol})", headers, rows[:most], _mention_rest(len(rows), run_folder.PROBES, most)
    )


def _ends(values: NDArray[np.float64]) -> list[str]:
    """The lowest and the highest of some numbers, as one text if they are equal."""
    return list(dict.fromkeys((_short(values.min()), _short(values.max()))))


def _short(value: float) -> str:
    return f"{float(value):.{_DIGITS}g}"


def _of(kelvins: float, unit: TemperatureUnit) -> str:
    return f"{unit.of(float(kelvins)):.{_DIGITS}g}"


def written_files(folder: Path, steady: bool) -> list[tuple[str, str]]:
    """The files in a run's folder that a report lists, and their contents."""
    contents = _STEADY_CONTENTS if steady else run_folder.CONTENTS
    found = [(name, content) for name, content in contents.items() if (folder / name).exists()]
    pictures = sum(
        path.suffix in run_folder.SUFFIXES[run_folder.FIGURES] for path in (folder / run_folder.FIGURES).glob("*")
    )
    return [*found, (f"{run_folder.FIGURES}/", f"{pictures} pictures")] if pictures else found


def _mention_rest(count: int, file: str, most: int = _MOST_ROWS) -> str:
    return f"… and {count - most} more in {file}" if count > most else ""


def _text(kelvins: float, unit: TemperatureUnit) -> str:
    return unit.text(kelvins, _DIGITS).replace(" ", _NBSP)


def _number(kelvins: float | None, unit: TemperatureUnit) -> str:
    return "?" if kelvins is None else _of(kelvins, unit)
