"""The results of a run as tables for the terminal: set-up, temperatures, energies and files."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from heatsim.render.curves.energy_balance import read_balance, read_flows
from heatsim.report import certainty, facts, number_tables
from heatsim.report.terminal import TerminalTable
from heatsim.storage.run_settings import read_settings
from heatsim.storage.run_tables import read_energy, read_nodes, read_probes
from heatsim.storage.summary_file import read_summary

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

_MOST_VALUES = 24  # with their errors


def summarise(folder: Path, verbose: bool = False) -> "Group":
    """Tables of a finished run for rich's console. They fit 80 columns without breaking a number.

    Args:
        folder: the folder of a run.
        verbose: also show c0…c6 and other details of the numerics.

    Raises:
        FolderError: the folder is not of a run, or the run has not finished.
        StorageError: a file cannot be read.
    """
    from rich.console import Group

    summary = read_summary(folder)
    settings = read_settings(folder)
    probes = read_probes(folder)
    lines = [*facts.run_facts(summary, settings.temperature_unit, probes)]
    if "error_in_space" in summary:
        lines.append(("error in space", certainty.in_space(summary, settings.temperature_unit, folder)))
    if verbose:
        lines += facts.details(summary, settings.temperature_unit)
    parts: list[RenderableType] = [_name_table(lines), ""]
    if verbose and summary.get("coefficients"):
        parts.append(TerminalTable(number_tables.coefficient_table(summary["coefficients"])))
    if probes is not None and probes.columns and len(probes.times):
        parts.append(TerminalTable(number_tables.probe_table(probes, settings)))
    if settings.steady:
        flows = read_flows(folder, settings.patches)
        if flows is not None:
            parts.append(TerminalTable(number_tables.flow_table(flows)))
    elif (balance := read_balance(folder, settings.patches)) is not None:
        parts.append(TerminalTable(number_tables.balance_table(balance)))
    energy = read_energy(folder)
    if energy is not None and (table := number_tables.parts_table(energy, settings.steady)) is not None:
        parts.append(TerminalTable(table))
    nodes = read_nodes(folder)
    if nodes is not None and len(nodes.times):
        parts.append(TerminalTable(number_tables.node_table(nodes, settings)))
    values = certainty.value_table(summary, settings.temperature_unit, _MOST_VALUES)
    if values is not None:
        parts.append(TerminalTable(values))
    parts.append(_file_table(folder, settings.steady))
    return Group(*parts)


def _name_table(lines: Iterable[tuple[str, str]]) -> "Table":
    """Names and texts, which are wrapped between words."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, collapse_padding=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in lines:
        table.add_row(Text(name), Text(text))
    return table


def _file_table(folder: Path, steady: bool) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title="Written to", title_justify="left", title_style="bold", box=None, show_header=False, pad_edge=False
    )
    table.add_column(no_wrap=True, overflow="ignore")
    table.add_column(style="dim")
    table.add_row(Text(str(folder)), "")
    for name, content in facts.written_files(folder, steady):
        table.add_row(Text(f"  {name}"), content)
    return table
