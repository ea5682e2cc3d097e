"""The results of a run for the terminal: the answer, its errors, the folder; with details on request."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heatsim.render.curves.energy_balance import EnergyBalance, SteadyFlows, read_balance, read_flows
from heatsim.report import answer, certainty, facts, number_tables
from heatsim.report.number_tables import NumberTable
from heatsim.report.terminal import FAIL_STYLES, TerminalTable, file_table, name_table, written
from heatsim.storage.run_settings import RunSettings, read_settings
from heatsim.storage.run_tables import read_energy, read_nodes, read_probes
from heatsim.storage.summary_file import read_summary

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

_MOST_VALUES = 24  # with their errors


def summarise(folder: Path, verbose: bool = False) -> "Group":
    """What a finished run answers, for rich's console. Tables fit 80 columns without breaking a number.

    Args:
        folder: the folder of a run.
        verbose: also show how it was computed, all heats, the files and the numerics.

    Raises:
        FolderError: the folder is not of a run, or the run has not finished.
        StorageError: a file cannot be read.
    """
    from rich.console import Group
    from rich.text import Text

    summary, settings = read_summary(folder), read_settings(folder)
    unit, probes, nodes = settings.temperature_unit, read_probes(folder), read_nodes(folder)
    balance = None if settings.steady else read_balance(folder, settings.patches)
    flows = read_flows(folder, settings.patches) if settings.steady else None
    parts: list[RenderableType] = [Text(settings.title or folder.name, style="bold"), ""]
    verdicts = settings.verdicts(probes)
    if (limits := answer.limit_table(verdicts, summary, unit, settings.start)) is not None:
        parts.append(TerminalTable(limits, FAIL_STYLES))
    if (measured := answer.measured_table(summary, unit, settings.start)) is not None:
        parts.append(TerminalTable(measured))
    lines = [*facts.answers(summary, unit, probes), *answer.heat_facts(balance, flows)]
    lines += certainty.error_facts(summary, unit, folder)
    if balance is not None and (verbose or not balance.closed or balance.doubtful):
        lines.append(("balance", balance.describe_residual()))
    if verbose:
        lines += [*facts.work(summary, unit), *facts.details(summary, unit)]
    parts += [name_table(lines), ""]
    if verbose and summary.get("coefficients"):
        parts.append(TerminalTable(number_tables.coefficient_table(summary["coefficients"])))
    if probes is not None and probes.columns and len(probes.times):
        parts.append(TerminalTable(number_tables.probe_table(probes, settings, errors=certainty.of_probes(summary))))
    if nodes is not None and len(nodes.times):
        parts.append(TerminalTable(number_tables.node_table(nodes, settings)))
    parts += map(TerminalTable, _details(folder, summary, settings, balance, flows)) if verbose else ()
    parts.append(file_table(folder, facts.written_files(folder, settings.steady)) if verbose else written(folder))
    return Group(*parts)


def _details(
    folder: Path,
    summary: Mapping[str, Any],
    settings: RunSettings,
    balance: EnergyBalance | None,
    flows: SteadyFlows | None,
) -> Iterator[NumberTable]:
    """The heats, and all values with their errors."""
    if flows is not None:
        yield number_tables.flow_table(flows)
    if balance is not None:
        yield number_tables.balance_table(balance)
    energy = read_energy(folder)
    if energy is not None and (table := number_tables.parts_table(energy, settings.steady)) is not None:
        yield table
    if (values := certainty.value_table(summary, settings.temperature_unit, _MOST_VALUES)) is not None:
        yield values
