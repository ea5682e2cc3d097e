"""report.html of a run: what was computed, how sure it is, curves, pictures, tables and the scenario."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.amounts import ENERGIES, LENGTHS, choose_unit
from heatsim.counts import counted
from heatsim.limits import LimitVerdict
from heatsim.render.curves.curves import (
    Band,
    MeasuredPoints,
    colours_of_times,
    error_bands,
    limit_lines,
    line_style,
    measured_points,
    number_groups,
    profile_times,
    title_with_signs,
)
from heatsim.render.curves.energy_balance import (
    EnergyBalance,
    SteadyFlows,
    flow_parts,
    read_balance,
    read_flows,
)
from heatsim.render.curves.energy_picture import parts_to_draw, styles_of_flows, styles_of_terms
from heatsim.render.curves.flow_curves import flow_curves
from heatsim.render.page.dates import moment, time_axis
from heatsim.render.page.figure import import_matplotlib
from heatsim.report import answer, certainty, charts, document, facts, number_tables
from heatsim.report.charts import Chart
from heatsim.report.document import Badge, Part
from heatsim.report.model_tables import model_tables
from heatsim.report.number_tables import NumberTable
from heatsim.storage import folder as run_folder
from heatsim.storage.disk import resume_command
from heatsim.storage.manifest import write_own
from heatsim.storage.own_files import is_own_file
from heatsim.storage.run_settings import RunSettings, read_settings
from heatsim.storage.run_tables import WATT, RunTable, read_energy, read_nodes, read_probes
from heatsim.storage.summary_file import read_summary
from heatsim.temperature_units import KELVIN
from heatsim.version import version

_Floats = NDArray[np.float64]

_MOST_CURVES = 60
_MOST_DIFFERENT = 28  # curves that colours and dashes can distinguish
_MOST_PROBES = 200  # rows of the table
GEOMETRY = "geometry"  # the picture of the model


def write_report(folder: Path) -> Path:
    """Write report.html into a run's folder, from the files that are there; the path.

    Raises:
        FolderError: heatsim did not write the folder, or the user changed the page.
        StorageError: a file cannot be read or written.
    """
    run_folder.require_run(folder)
    write_own(folder, run_folder.REPORT, build(folder).encode())
    return folder / run_folder.REPORT


def build(folder: Path) -> str:
    """The HTML of a run's report.

    Raises:
        FolderError: the folder is not that of a run.
        StorageError: a file cannot be read.
    """
    import_matplotlib()
    settings = read_settings(folder)
    summary: Mapping[str, Any] = read_summary(folder) if (folder / run_folder.SUMMARY).exists() else {}
    balance = None if settings.steady else read_balance(folder, settings.patches)
    flows = read_flows(folder, settings.patches) if settings.steady else None
    probes, energy, nodes = read_probes(folder), read_energy(folder), read_nodes(folder)
    verdicts = settings.verdicts(probes)
    figures = _figures(folder, settings.steady)
    geometry = [path for path in figures if path.stem == GEOMETRY]
    sections = [
        Part("Answer", _answer(folder, summary, settings, verdicts, probes, balance, flows)),
        Part("Model", document.pictures(geometry) + "".join(map(document.table, model_tables(summary)))),
        Part("Pictures", document.pictures([path for path in figures if path not in geometry])),
        Part("Curves", "".join(map(charts.draw, _charts(settings, summary, balance, probes, energy, nodes)))),
        Part(
            "Tables",
            "".join(map(document.table, _tables(settings, summary, balance, flows, probes, energy, nodes))),
        ),
        Part("How sure it is", _certainty(folder, summary, settings, balance, flows)),
        Part("Details", _details(folder, summary, settings)),
    ]
    subtitle = f"heatsim {version()} · {_written_at(folder):%d %B %Y, %H:%M} · {folder.resolve().name}"
    badges = list(_badges(summary, verdicts, balance, flows))
    return document.page(settings.title or folder.name, subtitle, badges, sections)


def _written_at(folder: Path) -> datetime:
    """When the run ended, or when it last wrote; in the time zone of this machine."""
    there = [folder / name for name in (run_folder.SUMMARY, run_folder.SCENARIO) if (folder / name).exists()]
    return datetime.fromtimestamp(there[0].stat().st_mtime)


def _badges(
    summary: Mapping[str, Any],
    verdicts: Sequence[LimitVerdict],
    balance: EnergyBalance | None,
    flows: SteadyFlows | None,
) -> Iterator[Badge]:
    if not summary:
        yield Badge("not finished", False)
    failed = [verdict for verdict in verdicts if not verdict.kept]
    if verdicts:
        text = f"{len(failed)} of {counted(len(verdicts), 'limit')} not kept" if failed else "all limits kept"
        yield Badge(text, not failed)
    if balance is not None and balance.verdict:
        yield Badge(balance.verdict, None if balance.doubtful else balance.closed)
    if flows is not None:
        yield Badge("no heat flows" if flows.none else f"imbalance of heat flows {flows.part}")
    if warnings := summary.get("warnings"):
        yield Badge(counted(len(warnings), "warning"), False)


def _answer(
    folder: Path,
    summary: Mapping[str, Any],
    settings: RunSettings,
    verdicts: Sequence[LimitVerdict],
    probes: RunTable | None,
    balance: EnergyBalance | None,
    flows: SteadyFlows | None,
) -> str:
    """Limits, extreme temperatures with their errors and places, heats, warnings."""
    unit = settings.temperature_unit
    limits = answer.limit_table(verdicts, summary, unit, settings.start)
    table = "" if limits is None else document.table(limits)
    warnings = document.sentences((f"Warning: {warning}" for warning in summary.get("warnings", [])), "warnings")
    if not summary:
        texts = ["This run has not finished. The page shows what it has written so far."]
        texts.append(f"If it was interrupted, continue it with `{resume_command(folder)}`.")
        return document.name_list(facts.unfinished_facts(folder, settings)) + table + document.sentences(texts)
    lines = [*facts.answers(summary, unit, probes), *answer.heat_facts(balance, flows)]
    compared = answer.measured_table(summary, unit, settings.start)
    table += "" if compared is None else document.table(compared)
    return table + document.name_list([*lines, *certainty.error_facts(summary, unit, folder)]) + warnings


def _certainty(
    folder: Path,
    summary: Mapping[str, Any],
    settings: RunSettings,
    balance: EnergyBalance | None,
    flows: SteadyFlows | None,
) -> str:
    if not summary:
        return ""
    remark = ["All heats are within rounding: no heat flows."] if balance is not None and balance.only_noise else []
    tables = [certainty.error_table(summary, settings.temperature_unit, folder, balance, flows)]
    if (values := certainty.value_table(summary, settings.temperature_unit)) is not None:
        tables.append(values)
    return "".join(map(document.table, tables)) + document.sentences(remark)


def _figures(folder: Path, steady: bool) -> list[Path]:
    """The pictures of a run except curves over time: first the fields, then the others."""
    figures = folder / run_folder.FIGURES
    suffixes = run_folder.PICTURES
    found = sorted(path for path in figures.glob("*") if path.suffix in suffixes and is_own_file(path))
    if not steady:
        # The curves of the page show the same.
        found = [
            path for path in found if path.stem not in ("energy", "heat_flows") and not path.stem.startswith("probes")
        ]
    return sorted(found, key=lambda path: path.stem.startswith(("energy", "line_")))


def _tables(
    settings: RunSettings,
    summary: Mapping[str, Any],
    balance: EnergyBalance | None,
    flows: SteadyFlows | None,
    probes: RunTable | None,
    energy: RunTable | None,
    nodes: RunTable | None,
) -> Iterator[NumberTable]:
    if probes is not None and probes.columns and len(probes.times):
        yield number_tables.probe_table(probes, settings, _MOST_PROBES, certainty.of_probes(summary))
    if balance is not None:
        yield number_tables.balance_table(balance)
    if flows is not None:
        yield number_tables.flow_table(flows)
    parts = None if energy is None else number_tables.parts_table(energy, settings.steady)
    if parts is not None:
        yield parts
    if nodes is not None and len(nodes.times):
        yield number_tables.node_table(nodes, settings)


def _details(folder: Path, summary: Mapping[str, Any], settings: RunSettings) -> str:
    """How the run was computed, its files, and, folded, the numerics and the scenario."""
    lines = [*facts.work(summary, settings.temperature_unit), ("folder", str(folder.resolve()))]
    files = document.name_list(facts.written_files(folder, settings.steady))
    numerics = document.name_list(facts.details(summary, settings.temperature_unit))
    found = summary.get("coefficients")
    numerics += document.table(number_tables.coefficient_table(found)) if found else ""
    return (
        document.name_list(lines)
        + document.folded(files, "The files of the run")
        + (document.folded(numerics, "The numerics of the run") if summary else "")
        + document.listing(settings.text, f"{run_folder.SCENARIO}, every default filled in")
    )


def _charts(
    settings: RunSettings,
    summary: Mapping[str, Any],
    balance: EnergyBalance | None,
    probes: RunTable | None,
    energy: RunTable | None,
    nodes: RunTable | None,
) -> Iterator[Chart]:
    if probes is not None and len(probes.times):
        yield from _probe_charts(settings, summary, probes)
    if nodes is not None and len(nodes.times) > 1:
        unit = settings.temperature_unit
        curves = {name: unit.of(values) for name, values in nodes.in_unit(KELVIN.name).items()}
        yield _over_time("Nodes", f"Temperature ({unit.symbol})", nodes.times, curves, start=settings.start)
    if balance is not None and not balance.only_noise:
        yield _balance_chart(balance, settings.start)
    if energy is not None and len(energy.times) > 1 and balance is not None and not balance.only_noise:
        yield from _flow_charts(energy, balance, settings)


def _probe_charts(settings: RunSettings, summary: Mapping[str, Any], probes: RunTable) -> Iterator[Chart]:
    unit, columns = settings.temperature_unit, probes.in_unit(KELVIN.name)
    label, measured = f"Temperature ({unit.symbol})", measured_points(summary)
    alone = {name: unit.of(values) for name, values in columns.items() if settings.line_of(name) is None}
    if alone and len(probes.times) > 1:
        chart = _over_time("Probes", label, probes.times, alone, start=settings.start)
        bands = error_bands(summary, probes)
        at = {name: MeasuredPoints(of.times, unit.of(of.values)) for name, of in measured.items() if name in alone}
        title = title_with_signs(chart.title, bands, at)
        around = {
            name: Band(band.times / chart.size, unit.of(band.low), unit.of(band.high))
            for name, band in bands.items()
            if name in chart.curves
        }
        marks = limit_lines({name: columns[name] for name in alone}, settings.limits, unit.text)
        marks = [mark._replace(value=unit.of(mark.value)) for mark in marks]
        yield replace(chart, title=title, around=around, marks=marks, points=_within(chart, at))
    if len(probes.times) > 1:
        for group in number_groups(probes, settings.limits, measured):
            numbers = {name: values for name, values in group.curves.items() if values.any()}
            if not numbers:
                continue
            title = title_with_signs(f"Probes: {', '.join(numbers)}", (), group.points)
            chart = _over_time(title, group.label, probes.times, numbers, start=settings.start)
            yield replace(chart, marks=group.marks, points=_within(chart, group.points))
    for name, (length, points) in settings.lines.items():
        values = [columns[column] for index in range(points) if (column := f"{name}[{index}]") in columns]
        if len(values) == points:
            yield _along_line(name, length, probes.times, np.stack(values, axis=1), settings)


def _within(chart: Chart, points: Mapping[str, MeasuredPoints]) -> dict[str, MeasuredPoints]:
    """The points at curves of a chart, over its axis."""
    return {
        name: MeasuredPoints(of.times / chart.size, of.values) for name, of in points.items() if name in chart.curves
    }


def _along_line(name: str, length: float, times: _Floats, temperatures: _Floats, settings: RunSettings) -> Chart:
    from matplotlib.colors import rgb2hex

    lengths, unit, last = choose_unit(LENGTHS, length), settings.temperature_unit, float(times[-1])
    place = np.linspace(0.0, length, temperatures.shape[1]) / lengths.size
    rows = profile_times(temperatures) if len(times) > 1 else [0]
    profiles = {moment(float(times[row]), last, settings.start): (place, unit.of(temperatures[row])) for row in rows}
    label = f"Distance along the line ({lengths.symbol})"
    colours = (rgb2hex(colour) for colour in colours_of_times(len(profiles)))
    styles = {name: {"color": colour} for name, colour in zip(profiles, colours, strict=True)}
    if len(times) == 1:
        profiles, styles = {name: next(iter(profiles.values()))}, {}
    title = f'Probe "{name}"' + (" at several times" if len(times) > 1 else "")
    return Chart(title, label, f"Temperature ({unit.symbol})", profiles, 0.0, styles)


def _balance_chart(balance: EnergyBalance, start: datetime | None) -> Chart:
    parts = parts_to_draw(balance)
    terms = {"stored": balance.stored, **parts}
    largest = max(float(np.abs(heat).max()) for heat in terms.values())
    unit = choose_unit(ENERGIES, max(largest, balance.noise) if balance.only_noise else largest)
    title = "Energy balance: the parts and the residual add up to the stored heat"
    if balance.only_noise:
        title = "Energy balance: all heats are within rounding (grey band)"
    band = balance.noise / unit.size if balance.only_noise else 0.0
    scaled = {name: heat / unit.size for name, heat in terms.items()}
    label = f"Heat into the body ({unit.symbol})"
    return _over_time(title, label, balance.times, scaled, band, styles_of_terms(balance), start)


def _flow_charts(energy: RunTable, balance: EnergyBalance, settings: RunSettings) -> Iterator[Chart]:
    """Heat flows, with the colours of the energy balance."""
    for title, label, found in (
        ("Heat flows", "Heat flow into the body", flow_parts(energy, settings.patches)),
        ("Heat flows into regions, and through contacts", "Heat flow", energy.of_parts(WATT)),
    ):
        curves = flow_curves(energy.times, found)
        if curves is not None:
            axis = f"{label} ({curves.unit.symbol})"
            styles = styles_of_flows(curves.flows, balance)
            chart = _over_time(title, axis, curves.times, curves.flows, 0.0, styles, settings.start)
            remark = f": {curves.remark}" if curves.remark else ""
            yield replace(chart, title=chart.title + remark, limits=curves.limits)


def _over_time(
    title: str,
    label: str,
    times: _Floats,
    curves: Mapping[str, _Floats],
    band: float = 0.0,
    styles: Mapping[str, dict[str, Any]] | None = None,
    start: datetime | None = None,
) -> Chart:
    unit, x_label, dates = time_axis((float(times[0]), float(times[-1])), start)
    shown = {name: (times / unit.size, values) for name, values in list(curves.items())[:_MOST_CURVES]}
    left = len(curves) - len(shown)
    more = f" ({left} more in the table)" if left else ""
    if styles is None and len(shown) <= _MOST_DIFFERENT:
        # As in the pictures.
        styles = {name: line_style(number) for number, name in enumerate(shown)}
    return Chart(title + more, x_label, label, shown, band, styles or {}, dates=dates, start=start, size=unit.size)
