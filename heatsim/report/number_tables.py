"""The tables of a report: probes, energy balance, regions and contacts, coefficients."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.amounts import ENERGIES, POWERS, TIMES, Unit, choose_unit, format_amount, format_time, readable_unit
from heatsim.counts import counted, plain
from heatsim.render.curves.energy_balance import EnergyBalance, SteadyFlows
from heatsim.report.numbers import decimals_of_heats, decimals_of_temperatures, fixed
from heatsim.storage import folder as run_folder
from heatsim.storage.run_settings import RunSettings
from heatsim.storage.run_tables import JOULE, METRE, WATT, RunTable, header
from heatsim.storage.tables import CONTACT, REGION, SURFACE
from heatsim.temperature_units import KELVIN

_Floats = NDArray[np.float64]

PASS, FAIL = "pass", "FAIL"  # whether a limit is kept
_MOST_ROWS = 12
_OTHER_CELLS = "into all other cells"
_NO_CELLS = 1e-6  # of the heat of all regions: a smaller rest is rounding
# Kinds of heat in nodes.csv, and what they come with.
_NODE_HEATS = {"surfaces": "surfaces", "links": "links", "flows": "fluids", "power": "power"}
_COEFFICIENTS = ("c0", "c1", "c2", "c3", "c4", "c5", "c6")


@dataclass(frozen=True)
class NumberTable:
    """A table with names in the first column and numbers, as texts, in the others.

    Attributes:
        title: above it.
        headers: of all columns.
        rows: each has as many texts as there are headers. The first text is a name, which may come from the user.
        remark: a sentence below it.
    """

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    remark: str = ""


def probe_table(
    probes: RunTable, settings: RunSettings, most: int = _MOST_ROWS, errors: Mapping[str, float] | None = None
) -> NumberTable:
    """First, last, lowest and highest value of each probe; all points along a line share one row.

    With ``errors`` of columns in SI units, by name, a column has the largest of each row. If values are not
    temperatures, the name has their unit: m and s in readable multiples, such as mm and h.
    """
    unit, once = settings.temperature_unit, len(probes.times) == 1
    curves_of: dict[str, list[_Floats]] = {}  # by probe, in the order of the file
    labels: dict[str, str] = {}
    around: dict[str, float] = {}
    others: dict[str, str] = {}  # of other quantities
    lengths = np.concatenate([np.zeros(1), *probes.in_unit(METRE).values()])
    for (column, its_unit), values in probes.columns.items():
        line, error = settings.line_of(column), (errors or {}).get(column)
        if its_unit == KELVIN.name:
            if error is not None:
                around[line or column] = max(around.get(line or column, 0.0), unit.of_difference(error))
            curves_of.setdefault(line or column, []).append(unit.of(values))
            labels[line or column] = column if line is None else f"{line} ({counted(settings.lines[line][1], 'point')})"
        else:
            # Lengths can be compared; durations of a pulse and of a year have little in common.
            shown = readable_unit(its_unit, lengths if its_unit == METRE else values)
            curves_of[column], others[column] = [values / shown.size], header(column, shown.symbol)
            if error is not None:
                around[column] = error / shown.size
    of_temperature = [name for name in curves_of if name not in others]
    numbers = {name: _numbers(np.stack(curves), once) for name, curves in curves_of.items()}
    decimals = decimals_of_temperatures(value for name in of_temperature for value in numbers[name])
    texts = {name: [plain(value, 4) for value in values] for name, values in numbers.items()}
    texts |= _columns({name: numbers[name] for name in of_temperature}, decimals)
    labels |= others
    rows = [(labels[name], *_joined(texts[name], once)) for name in curves_of]
    headers = ("name", "value" if others else "temperature") if once else ("name", "first", "last", "min", "max")
    if around:
        headers = (*headers, "±")
        sizes = [plain(around[name], 2) if name in around else "?" for name in curves_of]
        rows = [(*row, size) for row, size in zip(rows, sizes, strict=True)]
    return NumberTable(
        f"Probes ({unit.symbol})", headers, rows[:most], _mention_rest(len(rows), run_folder.PROBES, most)
    )


def _numbers(curves: _Floats, once: bool) -> list[float]:
    """The lowest and highest value of some curves [curves, rows] at the first row, at the last row, and in all rows."""
    parts = (curves,) if once else (curves[:, 0], curves[:, -1], curves)
    return [float(end) for part in parts for end in (part.min(), part.max())]


def _columns(numbers: Mapping[str, Sequence[float]], decimals: int) -> dict[str, list[str]]:
    """Rows of numbers as texts, all with the same number of decimals."""
    texts = iter(fixed((value for values in numbers.values() for value in values), decimals))
    return {name: [next(texts) for _ in values] for name, values in numbers.items()}


def _joined(texts: Sequence[str], once: bool) -> list[str]:
    """The two ends at each moment as one text, such as ``347…349``; then the other texts."""
    pairs = 1 if once else 2
    moments = ["…".join(dict.fromkeys(texts[2 * pair : 2 * pair + 2])) for pair in range(pairs)]
    return [*moments, *texts[2 * pairs :]]


def balance_table(balance: EnergyBalance) -> NumberTable:
    """The terms of an energy balance at its last row, with their mean heat flows and those since the row before.

    The terms add up to the stored heat.
    """
    terms = {_through(name): float(heat[-1]) for name, heat in balance.real().items()}
    terms["stored, the sum"] = float(balance.stored[-1])
    remarks = [balance.describe_residual()]
    if balance.only_noise:
        size = f"within rounding, ±{format_amount(balance.noise, ENERGIES, 2)}" if balance.noise else "zero"
        remarks.insert(0, f"All heats are {size}: no heat flows.")
    elif balance.negligible():
        remarks.insert(0, f"Zero, or rounding only: {', '.join(balance.negligible())}.")
    if balance.hidden:
        remarks.insert(0, balance.hidden)
    unit = choose_unit(ENERGIES, max(map(abs, terms.values())))
    time = format_time(float(balance.times[-1]), choose_unit(TIMES, float(balance.times[-1])))
    headers: tuple[str, ...] = ("heat into the body", unit.symbol)
    rows: list[tuple[str, ...]] = list(_amounts(terms, unit))
    if len(balance.times) > 1 and not balance.only_noise:
        heats = [*balance.real().values(), balance.stored]
        means = [float(heat[-1] / balance.times[-1]) for heat in heats]
        ends = [float((heat[-1] - heat[-2]) / (balance.times[-1] - balance.times[-2])) for heat in heats]
        power = choose_unit(POWERS, max(map(abs, (*means, *ends))))
        headers += (f"mean ({power.symbol})", f"at the end ({power.symbol})")
        columns = [_amounts(dict(zip(terms, values, strict=True)), power) for values in (means, ends)]
        rows = [(*row, mean, end) for row, (_, mean), (_, end) in zip(rows, *columns, strict=True)]
    return NumberTable(f"Energy balance at {time}", headers, rows, " ".join(remarks))


def _amounts(terms: Mapping[str, float], unit: Unit) -> list[tuple[str, str]]:
    """Names and numbers in a unit. All have the same number of decimals, so that a reader can check sums."""
    values = [value / unit.size for value in terms.values()]
    return list(zip(terms, fixed(values, decimals_of_heats(values)), strict=True))


def _through(name: str) -> str:
    return name if name == "sources" else f"through {name}"


def flow_table(found: SteadyFlows) -> NumberTable:
    """The heat flows of a steady state, each listed once; their sum is the imbalance. In and out, where both count."""
    shown = {name: (found.flows[name], *ways) for name, ways in found.gross.items() if any(ways)}
    totals = (sum(way) for way in zip(*found.gross.values(), strict=True))
    shown["imbalance, the sum" + ("" if found.none else f" ({found.part})")] = (found.imbalance, *totals)
    headers = ("", "in", "out") if found.both and not found.none else ("",)
    columns = [{name: flows[column] for name, flows in shown.items()} for column in range(len(headers))]
    unit = choose_unit(POWERS, max(abs(flow) for column in columns for flow in column.values()))
    texts = [dict(_amounts(column, unit)) for column in columns]
    rows = [(name, *(of_column[name] for of_column in texts)) for name in shown]
    units = (f"{way} ({unit.symbol})" if way else unit.symbol for way in headers)
    remark = "All flows are within the imbalance: no heat flows." if found.none else ""
    return NumberTable("Heat flows", ("into the body", *units), rows, remark)


def parts_table(energy: RunTable, steady: bool) -> NumberTable | None:
    """The heat of regions and what passes contacts at the last row; None if the table has neither.

    A contact without a column in J shows its flow only: flows at the rows do not add up to a heat.
    """
    if not len(energy.times):
        return None
    flows, heats = energy.of_parts(WATT), energy.of_parts(JOULE)
    if not flows:
        return None
    if not steady:
        flows, heats = _with_other_cells(energy, flows, heats)
    last = {name: float(flow[-1]) for name, flow in flows.items() if np.isfinite(flow[-1])}
    power = choose_unit(POWERS, max(map(abs, last.values()), default=0.0))
    flow_texts = dict(_amounts(last, power))
    if steady:
        rows: list[tuple[str, ...]] = [(_part(name), flow_texts[name]) for name in last]
        return NumberTable(_title(last), ("heat flow", power.symbol), rows)
    ends = {name: float(heats[name][-1]) for name in flows if name in heats}
    unit = choose_unit(ENERGIES, max(map(abs, ends.values()), default=0.0))
    heat_texts = dict(_amounts(ends, unit))
    rows = [(_part(name), flow_texts.get(name, "–"), heat_texts.get(name, "–")) for name in flows]
    headers = ("", f"flow at the end ({power.symbol})", f"heat since the start ({unit.symbol})")
    return NumberTable(_title(flows), headers, rows, "")


def node_table(nodes: RunTable, settings: RunSettings) -> NumberTable:
    """Temperatures of nodes and channels at the last row, and the heats that they took up, without kinds that are 0."""
    unit, heats = settings.temperature_unit, nodes.in_unit(WATT if settings.steady else JOULE)
    last = {name: float(unit.of(values)[-1]) for name, values in nodes.in_unit(KELVIN.name).items()}
    degrees = fixed(list(last.values()), decimals_of_temperatures(last.values()))
    taken = {kind: [float(heats[f"{name} {kind}"][-1]) for name in last] for kind in _NODE_HEATS}
    taken = {kind: values for kind, values in taken.items() if any(values)}
    every = [value for values in taken.values() for value in values]
    scale = choose_unit(POWERS if settings.steady else ENERGIES, max(map(abs, every), default=0.0))
    places = decimals_of_heats([value / scale.size for value in every])
    columns = [fixed([value / scale.size for value in values], places) for values in taken.values()]
    rows = [*zip(last, degrees, *columns, strict=True)]
    headers = ("", unit.symbol, *(_NODE_HEATS[kind] for kind in taken))
    rest = _mention_rest(len(rows), run_folder.NODES)
    title = f"Nodes: temperature at the end, and heat taken up ({scale.symbol})"
    return NumberTable(title, headers, rows[:_MOST_ROWS], rest)


def _with_other_cells(
    energy: RunTable, flows: Mapping[str, _Floats], heats: Mapping[str, _Floats]
) -> tuple[dict[str, _Floats], dict[str, _Floats]]:
    """The flows and heats with those into cells outside of all regions after the regions, if there are such cells."""
    regions = [name for name in flows if name.startswith(REGION)]
    stored, stored_flow = energy.of_body(JOULE).get("stored"), energy.of_body(WATT).get("stored")
    if not regions or stored is None or stored_flow is None:
        return dict(flows), dict(heats)
    rest = stored - np.sum([heats[name] for name in regions], axis=0)
    if abs(rest[-1]) <= _NO_CELLS * sum(abs(heats[name][-1]) for name in regions):
        return dict(flows), dict(heats)
    rest_flow = stored_flow - np.sum([flows[name] for name in regions], axis=0)
    others = [name for name in flows if name not in regions]
    return (
        {**{name: flows[name] for name in regions}, _OTHER_CELLS: rest_flow, **{name: flows[name] for name in others}},
        {**heats, _OTHER_CELLS: rest},
    )


def _title(names: Iterable[str]) -> str:
    """The kinds of parts that some names have, such as "Regions and contacts"."""
    titles = {REGION: "regions", CONTACT: "contacts", SURFACE: "surfaces towards void"}
    *others, last = (title for kind, title in titles.items() if any(name.startswith(kind) for name in names))
    return (", ".join(others) + " and " + last if others else last).capitalize()


def _part(name: str) -> str:
    if name.startswith(REGION):
        return f"into {name}"
    if name.startswith(SURFACE):
        return f"through the surface of {name.removeprefix(SURFACE)}"
    return name


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


def _mention_rest(count: int, file: str, most: int = _MOST_ROWS) -> str:
    return f"… and {count - most} more in {file}" if count > most else ""
