"""The results of a run as tables for the terminal: set-up, temperatures, energies and files."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heatsim.storage import folder as run_folder
from heatsim.storage import run_tables
from heatsim.storage.run_settings import read_settings
from heatsim.temperature_units import KELVIN, TemperatureUnit

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

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


_STEADY_CONTENTS = run_folder.CONTENTS | {
    run_folder.FIELDS: "temperature, for ParaView",
    run_folder.PROBES: "probes",
    run_folder.ENERGY: "heat flows in W",
}


def summarise(folder: Path) -> "Group":
    """Tables of a finished run for rich's console, within 100 columns.

    Args:
        folder: the folder of a run.

    Raises:
        FolderError: the folder is not of a run, or the run has not finished.
        StorageError: a file cannot be read.
    """
    from rich.console import Group

    summary = run_folder.read_summary(folder)
    unit = read_settings(folder).temperature_unit
    parts: list[RenderableType] = [_run_table(summary, unit), ""]
    if summary.get("coefficients"):
        parts.append(_coefficient_table(summary["coefficients"]))
    energy = run_tables.read_energy(folder)
    if "heat_flows" in summary:
        parts.append(_flow_table(summary["heat_flows"]))
    elif energy is not None and len(energy.times):
        last = {name: float(heat[-1]) for name, heat in energy.in_unit(run_tables.JOULE).items()}
        parts.append(_energy_table(float(energy.times[-1]), last, summary.get("energy_bound")))
    probes = run_tables.read_probes(folder)
    if probes is not None and probes.columns and len(probes.times):
        parts.append(_probe_table(probes.in_unit(KELVIN.name), unit))
    steady = summary.get("method") == "steady"
    parts.append(_file_table(folder, _STEADY_CONTENTS if steady else run_folder.CONTENTS))
    return Group(*parts)


def _new_table(title: str | None, *columns: str) -> "Table":
    """A table with text in the first column and numbers in the others; without columns, a list of names and values."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD if columns else None,
        show_header=bool(columns),
        pad_edge=False,
        collapse_padding=True,
    )
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    return table


def _run_table(summary: Mapping[str, Any], unit: TemperatureUnit) -> "Table":
    from rich.text import Text

    table = _new_table(None)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for term, value in _run_lines(summary, unit):
        table.add_row(term, Text(value))
    return table


def _run_lines(summary: Mapping[str, Any], unit: TemperatureUnit) -> Iterator[tuple[str, str]]:
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
        yield "speed", f"{summary['cells_per_second'] / 1e9:.4g} GCells/s while stepping"
    lowest = summary.get("lowest_temperature")
    if lowest:
        moment = "" if summary.get("method") == "steady" else f" at {lowest['time']:g} s"
        yield "lowest", f"{unit.text(lowest['temperature'], _DIGITS)}{moment} in cell {lowest['cell']}"
    temperature = summary.get("temperature")
    if temperature:
        low, high, mean = (_number(temperature.get(key), unit) for key in ("min", "max", "mean"))
        reference = summary.get("reference_temperature")
        yield (
            "temperature",
            f"min {low}, max {high}, mean {mean} {unit.symbol}"
            + (f" (stored as the difference from {unit.text(reference, _DIGITS)})" if reference is not None else ""),
        )


def _describe_steps(summary: Mapping[str, Any], unit: TemperatureUnit) -> str:
    until = f" to {summary['time']:g} s" if "time" in summary else ""
    if summary.get("stages") is None:
        return f"{summary['steps']:,}{until}"
    return (
        f"{summary['steps']:,} {summary['method']} steps{until}, {summary['stages']:,} stages; "
        f"{summary['rejected']:,} steps rejected at a tolerance of "
        f"{unit.difference_text(summary['tolerance'], 3)}"
    )


def _describe_search(summary: Mapping[str, Any], unit: TemperatureUnit) -> str:
    newton = summary["newton_steps"]
    return (
        f"to {unit.difference_text(summary['tolerance'], 2)}, in {summary['cycles']:,} cycles"
        + (f" and {newton} Newton steps" if newton > 1 else "")
        + f", {summary['equivalent_applications']:.0f} equivalent applications"
    )


def _describe_wall_time(summary: Mapping[str, Any]) -> str:
    parts = [f"{name} {summary[key]:.3g} s" for name, key in _PARTS_OF_WALL_TIME if key in summary]
    return f"{summary['wall_time']:.3g} s: {', '.join(parts)}" if "wall_time" in summary else ", ".join(parts)


def _coefficient_table(coefficients: list[Mapping[str, Any]]) -> "Table":
    table = _new_table(
        "T' = c0·T + c1·T(x−) + c2·T(x+) + c3·T(y−) + c4·T(y+) + c5·T(z−) + c6·T(z+)", "dt (s)", "steps", *_COEFFICIENTS
    )
    for row in coefficients[:_MOST_ROWS]:
        values = (row[name] for name in _COEFFICIENTS)
        texts = (f"{value:.4f}" if value == 0.0 or value >= 1e-2 else f"{value:.1e}" for value in values)
        table.add_row(f"{row['dt']:.6g}", f"{row['steps']:,}", *texts)
    _mention_rest(table, len(coefficients), run_folder.SUMMARY)
    return table


def _energy_table(time: float, row: Mapping[str, float], bound: float | None) -> "Table":
    from rich.text import Text

    table = _new_table(f"Energy balance at {time:g} s", "heat into the body", "J")
    table.add_row("stored", f"{row['stored']:.9g}")
    for name in row:
        if name not in ("stored", "residual") and row[name]:
            table.add_row(Text(name if name == "sources" else f"through {name}"), f"{row[name]:.9g}")
    verdict = ""
    if bound is not None:
        verdict = f" (bound {bound:.2g} J: {'closed' if abs(row['residual']) <= bound else 'NOT CLOSED'})"
    table.add_row(f"residual{verdict}", f"{row['residual']:.3g}")
    return table


def _flow_table(flows: Mapping[str, float]) -> "Table":
    from rich.text import Text

    table = _new_table("Heat flows", "into the body", "W")
    for name, heat in flows.items():
        if name.endswith(" (W)") and heat and not name.startswith("imbalance"):
            table.add_row(Text(name.removesuffix(" (W)")), f"{heat:.9g}")
    table.add_row(f"imbalance ({flows['imbalance (%)']:.2g} %)", f"{flows['imbalance (W)']:.3g}")
    return table


def _probe_table(probes: Mapping[str, NDArray[np.float64]], unit: TemperatureUnit) -> "Table":
    from rich.text import Text

    once = all(len(values) == 1 for values in probes.values())
    table = _new_table(
        f"Probes ({unit.symbol})", "name", *(("temperature",) if once else ("first", "last", "min", "max"))
    )
    for name, values in list(probes.items())[:_MOST_ROWS]:
        numbers = (float(values[0]), float(values[-1]), float(values.min()), float(values.max()))
        table.add_row(Text(name), *(_number(value, unit) for value in (numbers[:1] if once else numbers)))
    _mention_rest(table, len(probes), run_folder.PROBES)
    return table


def _mention_rest(table: "Table", count: int, file: str) -> None:
    if count > _MOST_ROWS:
        table.add_row(f"… and {count - _MOST_ROWS} more in {file}")


def _file_table(folder: Path, contents: Mapping[str, str]) -> "Table":
    from rich.text import Text

    table = _new_table("Written to")
    table.add_column(no_wrap=True, overflow="ignore")
    table.add_column(style="dim")
    table.add_row(Text(str(folder)), "")
    for name, content in contents.items():
        if (folder / name).exists():
            table.add_row(Text(f"  {name}"), content)
    pictures = sorted((folder / run_folder.FIGURES).glob("*.png"))
    if pictures:
        table.add_row(Text(f"  {run_folder.FIGURES}/"), f"{len(pictures)} pictures")
    return table


def _number(kelvins: float | None, unit: TemperatureUnit) -> str:
    return "?" if kelvins is None else f"{unit.of(kelvins):.{_DIGITS}g}"
