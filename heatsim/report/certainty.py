"""How sure the values of a run are: its errors in space, in time, by rounding and in energy, in one table."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heatsim.counts import duration, plain
from heatsim.render.curves.energy_balance import EnergyBalance, SteadyFlows
from heatsim.report.number_tables import NumberTable
from heatsim.report.numbers import in_unit, symbol_of, width, with_error
from heatsim.storage import folder as run_folder
from heatsim.storage.disk import converge_command
from heatsim.storage.run_tables import METRE, header
from heatsim.temperature_units import KELVIN, TemperatureUnit

_UNKNOWN = "not known"
_SMALL = 0.01  # of the largest error
# Half a unit in the last place, as a part of a number.
_ROUNDING = {"float32": 2.0**-24, "float64": 2.0**-53}


class _Error(NamedTuple):
    """An error in K, None if it is not known, and where the number comes from."""

    name: str
    kelvin: float | None
    source: str


def error_table(
    summary: Mapping[str, Any],
    unit: TemperatureUnit,
    folder: Path,
    balance: EnergyBalance | None,
    flows: SteadyFlows | None,
) -> NumberTable:
    """The errors of a finished run, and the largest of them by name.

    Args:
        summary: the content of summary.json.
        unit: in which temperatures are shown.
        folder: of the run.
        balance: its energy balance; None if it has none.
        flows: the heat flows of a steady state.
    """
    errors = [_in_space(summary, folder), _in_time(summary, unit), _of_rounding(summary)]
    errors += _of_energy(summary, balance, flows)
    rows = [
        (each.name, _UNKNOWN if each.kelvin is None else f"±{unit.difference_text(each.kelvin, 2)}", each.source)
        for each in errors
    ]
    known = [each for each in errors if each.kelvin is not None]
    largest = max(known, key=lambda each: each.kelvin or 0.0, default=None)
    unknown = [each.name for each in errors if each.kelvin is None]
    remark = "" if largest is None else f"The largest error that is known is that {_OF[largest.name]}. "
    if unknown:
        remark += f"Not known: the error {' and '.join(_OF[name] for name in unknown)}."
    return NumberTable("Errors of temperatures", ("", "error", "how it is known"), rows, remark.strip())


def error_facts(summary: Mapping[str, Any], unit: TemperatureUnit, folder: Path) -> Iterator[tuple[str, str]]:
    """The errors of temperatures in one line, the largest first; how to find those that are not known."""
    errors = [_in_space(summary, folder), _in_time(summary, unit), _of_rounding(summary)]
    unknown = [each for each in errors[:2] if each.kelvin is None]
    # Rounding alone would look as if it were the error.
    known = sorted((each.kelvin, each.name) for each in errors[: 3 - min(len(unknown), 1)] if each.kelvin)[::-1]
    shown = [(kelvin, name) for kelvin, name in known if kelvin >= _SMALL * known[0][0]]
    texts = [f"±{unit.difference_text(kelvin, 2)} {_OF[name]}" for kelvin, name in shown]
    if unknown:
        texts.append(f"not known {' and '.join(_OF[each.name] for each in unknown)}: {unknown[0].source}")
    if texts:
        yield "error", "; ".join(texts)
    if summary.get("refinement"):
        yield "accuracy", _found_cells(summary["refinement"], unit)


def _found_cells(refinement: Mapping[str, Any], unit: TemperatureUnit) -> str:
    """How the cells were found, as text."""
    grids = [" × ".join(map(str, each["cells"])) for each in refinement["rounds"]]
    before = f", after {' and '.join(filter(None, [', '.join(grids[:-2]), *grids[-2:-1]]))}" if len(grids) > 1 else ""
    asked = f"±{unit.difference_text(refinement['accuracy'], 2)} in space"
    return f"{asked}: {'not reached, with ' * bool(refinement.get('missed'))}{grids[-1]} cells{before}"


def error_of(summary: Mapping[str, Any], name: str, time: float, unit: str = KELVIN.name) -> float | None:
    """The error in space of an extreme value at a time, in SI units; None if it is not known."""
    at_end, extremes = time == (summary.get("time") or 0.0), [f"{name}, highest", f"{name}, lowest"]
    names = [name, *extremes] if unit == METRE else [name] if at_end else extremes
    found = [each for each in errors_in_space(summary) if each["name"] in names and each["unit"] == unit]
    return max((float(each["error"]) for each in found), default=None)


def of_probes(summary: Mapping[str, Any]) -> dict[str, float]:
    """The largest error in space of each column of probes.csv, in SI units; empty if they are not known."""
    found: dict[str, float] = {}
    for value in errors_in_space(summary):
        name = str(value["name"]).removesuffix(", highest").removesuffix(", lowest")
        found[name] = max(found.get(name, 0.0), float(value["error"]))
    return found


_SPACE, _TIME, _SOLVER, _ROUNDED, _ENERGY = "space", "time", "solver", "rounding", "energy"
_OF = {_SPACE: "in space", _TIME: "in time", _SOLVER: "of the solver", _ROUNDED: "of rounding", _ENERGY: "in energy"}


def value_table(summary: Mapping[str, Any], unit: TemperatureUnit, most: int | None = None) -> NumberTable | None:
    """The values of a run with their errors in space; None if these are not known.

    Args:
        summary: the content of summary.json.
        unit: in which temperatures are shown.
        most: rows; None for all.
    """
    values = errors_in_space(summary)
    rows = [texts_of(found, unit) for found in values[:most]]
    if not rows:
        return None
    more = "" if len(rows) == len(values) else f" {len(values) - len(rows)} more in {run_folder.REPORT}."
    remark = f"± in space: {how(summary)}.{more}"
    return NumberTable("Values and their errors in space", ("", "value", "±"), rows, remark)


def texts_of(found: Mapping[str, Any], shown: TemperatureUnit) -> tuple[str, str, str]:
    """The name, the value and the error of a value with its error in space."""
    unit = found["unit"]
    error = width(found["error"], unit, shown)
    name = header(found["name"], symbol_of(unit, shown))
    return name, with_error(in_unit(found["value"], unit, shown), error), plain(error, 2)


def errors_in_space(summary: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The values of a run with their errors in space; empty if these are not known."""
    return (summary.get("error_in_space") or {}).get("values") or []


def how(summary: Mapping[str, Any]) -> str:
    """How the errors in space were found, which a summary has."""
    found = summary["error_in_space"]
    cells, ratio = " × ".join(f"{n:,}" for n in found["cells"]), float(found["ratio"])
    part = "" if ratio >= 2.0 else f"{plain(1.0 / (ratio - 1.0), 2)} times "
    return f"{part}the difference to a run with {cells} cells {plain(ratio, 3)} times as large; two grids show no order"


def in_space(summary: Mapping[str, Any], unit: TemperatureUnit, folder: Path) -> str:
    """The largest error of a temperature in space, or how to find it, as text."""
    error = _in_space(summary, folder)
    return error.source if error.kelvin is None else f"±{unit.difference_text(error.kelvin, 2)}: {error.source}"


def _in_space(summary: Mapping[str, Any], folder: Path) -> _Error:
    found = summary.get("error_in_space") or {}
    for value in errors_in_space(summary):
        if value["name"] == found.get("largest"):
            return _Error(_SPACE, float(value["error"]), f'"{value["name"]}", the largest: {how(summary)}')
    missing, seconds = found.get("missing"), summary.get("converge_time")
    if "converge_time" in summary and seconds is None:
        return _Error(_SPACE, None, "a file has one value for each cell, so there is no other grid to compare with")
    takes = "" if seconds is None else f", which takes {duration(seconds)}"
    command = converge_command(folder / run_folder.SCENARIO)
    why = missing or "of second order in the size of cells"
    return _Error(_SPACE, None, f"{why}; find it with `{command}`{takes}")


def _in_time(summary: Mapping[str, Any], unit: TemperatureUnit) -> _Error:
    if summary.get("method") == "steady":
        tolerance = summary["tolerance"]
        return _Error(_SOLVER, tolerance, "the solver stopped when its correction was below this")
    if summary.get("tolerance") is not None:
        return _Error(_TIME, summary["tolerance"], "time.tolerance: the error of the run that its steps follow")
    steps, limit = summary.get("dt") or [], summary.get("dt_limit")
    part = f", {100.0 * max(steps) / limit:.0f} % of the stability limit" if steps and limit else ""
    longest = f" of {plain(max(steps), 3)} s{part}" if steps else ""
    return _Error(_TIME, None, f"of first order in the Euler steps{longest}; `heatsim converge` finds it")


def _of_rounding(summary: Mapping[str, Any]) -> _Error:
    """A bound on the error of rounding, as if all steps of Euler rounded one way; long steps amplify it within them."""
    precision, reference = str(summary.get("precision")), summary.get("reference_temperature")
    extremes = [
        summary[key]["temperature"] for key in ("highest_temperature", "lowest_temperature") if summary.get(key)
    ]
    long_steps = summary.get("method") in ("stabilized", "implicit")
    if long_steps or precision not in _ROUNDING or reference is None or not extremes:
        return _Error(_ROUNDED, None, "`heatsim converge` finds it")
    largest = max(abs(float(each) - float(reference)) for each in extremes)
    count = max(int(summary.get("steps") or 1), 1)
    kelvin = min(count * _ROUNDING[precision], 1.0) * largest
    return _Error(_ROUNDED, kelvin, f"at most: {count:,} times the rounding of {precision}, all in one direction")


def _of_energy(
    summary: Mapping[str, Any], balance: EnergyBalance | None, flows: SteadyFlows | None
) -> Iterator[_Error]:
    """The heat that is missing in the balance, as the part of the range of temperatures that it is of all heat."""
    extremes = [
        summary[key]["temperature"] for key in ("highest_temperature", "lowest_temperature") if summary.get(key)
    ]
    width = float(max(extremes) - min(extremes)) if extremes else 0.0
    if balance is not None:
        part = abs(float(balance.residual[-1])) / balance.turnover if balance.turnover > 0.0 else 0.0
        yield _Error(_ENERGY, part * width, balance.describe_residual())
    if flows is not None and not flows.none:
        part = abs(flows.percent) / 100.0
        yield _Error(_ENERGY, part * width, f"imbalance of heat flows: {flows.part} of what flows")
