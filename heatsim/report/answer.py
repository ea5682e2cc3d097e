"""What a run answers: whether limits are kept, the extreme temperatures with their errors, where the heat goes."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from heatsim.amounts import ENERGIES, POWERS, TIMES, Unit, choose_unit, format_amount, format_time, readable_unit
from heatsim.counts import plain
from heatsim.limits import AT_MOST, SIGNS, LimitVerdict
from heatsim.render.curves.energy_balance import EnergyBalance, Gross, SteadyFlows
from heatsim.render.page.dates import moment
from heatsim.report.certainty import error_of
from heatsim.report.number_tables import FAIL, PASS, NumberTable
from heatsim.report.numbers import with_error
from heatsim.temperature_units import KELVIN, TemperatureUnit

_MOST_HEATS = 5
_COARSE = 0.1  # of the run: between rows farther apart a straight line says little of when a limit is passed
_DOUBTFUL = 0.1  # of the deviation, that straight lines between rows may be off
_NEVER = "not reached"  # a limit that the largest value has to reach
_SMALL = 1e-4  # of the largest heat


def limit_table(
    verdicts: Sequence[LimitVerdict], summary: Mapping[str, Any], unit: TemperatureUnit, start: datetime | None = None
) -> NumberTable | None:
    """A row for each limit, those that are not kept first; None without limits.

    Args:
        verdicts: on the limits.
        summary: the content of summary.json.
        unit: in which temperatures are shown.
        start: the date of the start, for dates at which limits are passed.
    """
    if not verdicts:
        return None
    end, open_ = float(summary.get("time") or 0.0), False
    rows = []
    for verdict in sorted(verdicts, key=lambda each: each.kept):
        error = error_of(summary, verdict.probe, verdict.time, verdict.unit)
        within = error is not None and error > abs(verdict.margin)
        open_ = open_ or within
        shown = readable_unit(verdict.unit, [verdict.limit, verdict.value])
        value = _text(verdict.value, verdict.unit, shown, unit, error)
        state = (PASS if verdict.kept else FAIL) + ("?" if within else "")
        first = "" if verdict.kept or end == 0.0 else _NEVER
        if first and verdict.passed_at is not None:
            first = moment(verdict.passed_at, end, start)
            low, high = verdict.passed_between or (verdict.passed_at, verdict.passed_at)
            if high - low > _COARSE * end:
                first = f"{moment(low, end, start)} to {moment(high, end, start)}"
        rows.append((verdict.probe, state, value, limit_text(verdict, unit), _beyond(verdict, shown, unit), first))
    headers = ("limits", "", "value", "limit", "by", "first passed at")
    columns = [0, *range(1, 5), *([5] if any(row[5] for row in rows) else [])]
    failed = sum(not verdict.kept for verdict in verdicts)
    title = f"Limits: {failed} of {len(verdicts)} not kept" if failed else "Limits: all kept"
    remark = "?: the error in space is larger than the distance to the limit." if open_ else ""
    return NumberTable(
        title, [headers[column] for column in columns], [[row[column] for column in columns] for row in rows], remark
    )


def limit_text(verdict: LimitVerdict, unit: TemperatureUnit) -> str:
    """The limit of a verdict, such as "≤ 85 °C"."""
    shown = readable_unit(verdict.unit, [verdict.limit, verdict.value])
    return f"{SIGNS[verdict.key]} {_text(verdict.limit, verdict.unit, shown, unit)}"


def _text(value: float, its_unit: str, shown: Unit, temperatures: TemperatureUnit, error: float | None = None) -> str:
    """A value with its unit, and with its error if that is known."""
    kelvins = its_unit == KELVIN.name
    number = temperatures.of(value) if kelvins else value / shown.size
    if error is None:
        text = plain(number, 5 if kelvins else 4)
    else:
        size = temperatures.of_difference(error) if kelvins else error / shown.size
        text = f"{with_error(number, size)} ± {plain(size, 2)}"
    return f"{text} {temperatures.symbol if kelvins else shown.symbol}".rstrip()


def _beyond(verdict: LimitVerdict, shown: Unit, unit: TemperatureUnit) -> str:
    """The distance to the limit, such as "2.2 K above"."""
    size = abs(verdict.margin)
    amount = unit.difference_text(size, 3) if verdict.unit == KELVIN.name else _text(size, verdict.unit, shown, unit)
    return f"{amount} {'above' if verdict.kept != (verdict.key == AT_MOST) else 'below'}" if size else "none"


def measured_table(
    summary: Mapping[str, Any], unit: TemperatureUnit, start: datetime | None = None
) -> NumberTable | None:
    """A row for each probe with measured values: the deviations of the run; None without such a probe.

    Arguments are those of :func:`limit_table`.
    """
    found = summary.get("measured", [])
    rows = []
    for each in found:
        deviations = [each[key] for key in ("rms", "mean", "largest")]
        if each["unit"] == KELVIN.name:
            texts = [unit.difference_text(value, 3) for value in deviations]
        else:
            shown = readable_unit(each["unit"], deviations)
            texts = [_text(value, each["unit"], shown, unit) for value in deviations]
        counts = f"{each['compared']} of {each['measured']}"
        rows.append((each["probe"], *texts, moment(each["time"], float(summary.get("time") or 0.0), start), counts))
    headers = ("computed − measured", "RMS", "mean", "largest", "at", "times")
    remark = "At the measured times within the run, each counts as much; linear between rows of probes.csv."
    if doubtful := [each["probe"] for each in found if each["lines"] > _DOUBTFUL * each["rms"]]:
        remark += f" Rows are too far apart for {', '.join(doubtful)}: set a shorter output.probe_every."
    return NumberTable("Measured values", headers, rows, remark) if rows else None


def heat_facts(balance: EnergyBalance | None, flows: SteadyFlows | None) -> Iterator[tuple[str, str]]:
    """What heat went where, the largest amounts first, in one line; nothing where no heat flows."""
    if balance is not None and not balance.only_noise:
        heats = {name: float(heat[-1]) for name, heat in balance.real().items()} | {"stored": float(balance.stored[-1])}
        unit = choose_unit(TIMES, float(balance.times[-1]))
        until = format_time(float(balance.times[-1]), unit)
        yield "heat", f"{_largest(heats, balance.both, ENERGIES)} until {until}"
    if flows is not None and not flows.none:
        yield "heat", _largest(flows.flows, flows.both, POWERS)


def _largest(heats: Mapping[str, float], both: Gross, units: Sequence[Unit]) -> str:
    """The largest of some heats, as text; positive into the body. Of ``both``: what enters, and what leaves."""
    sizes = {name: max(abs(heat), *both.get(name, (0.0,))) for name, heat in heats.items()}
    order = sorted(heats, key=lambda name: -sizes[name])
    kept = [name for name in order if sizes[name] > _SMALL * sizes[order[0]]]
    amounts = {name: [format_amount(heat, units, 4) for heat in both.get(name, (heats[name],))] for name in kept}
    texts = [
        f"{name} {' in and '.join(amounts[name])}" + (" out" if name in both else "") for name in kept[:_MOST_HEATS]
    ]
    return ", ".join(texts) + (", …" if len(kept) > len(texts) else "")
