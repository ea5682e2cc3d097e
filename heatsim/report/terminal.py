"""Tables for the terminal: they break no number, however narrow it is."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from heatsim.report.number_tables import FAIL, NumberTable
from heatsim.storage.folder import REPORT

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table
    from rich.text import Text

FAIL_STYLES = dict.fromkeys((FAIL, f"{FAIL}?"), "bold red")
_WIDEST_NAME = 26  # characters, of texts beside names
_BETWEEN = 2  # spaces between columns
_SHORTEST_NAME = 12
# Characters of headers, and the part of the width for names: the first with which all columns fit side by side.
_WIDEST = ((40, 1 / 3), (24, 1 / 3), (12, 1 / 3), (12, 0.0))


class TerminalTable:
    """A table of numbers for rich's console. Columns that do not fit beside the names go into another table below."""

    def __init__(self, table: NumberTable, styles: Mapping[str, str] | None = None) -> None:
        """Show a table; texts that ``styles`` name have its style of rich."""
        self._table = table
        self._styles = styles or {}

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        """The parts of the table for a width."""
        from rich.text import Text

        for most, part in _WIDEST:
            widths = self._widths(most)
            groups = _group(widths, options.max_width, max(_SHORTEST_NAME, int(part * options.max_width)))
            if len(groups) == 1:
                break
        # Not as the title of rich's table, which breaks it at the width of the table.
        yield Text(self._table.title, style="bold")
        for columns in groups:
            room = options.max_width - sum(widths[column] + _BETWEEN for column in columns) - 2
            yield self._part(columns, widths, min(widths[0], room))
        if self._table.remark:
            yield Text(self._table.remark)
        yield ""

    def _widths(self, most: int) -> list[int]:
        """Characters of each column: as many as the numbers have; headers are wrapped to that, or to ``most``."""
        from rich.cells import cell_len

        headers, rows = self._table.headers, self._table.rows
        widths = [max((cell_len(row[column]) for row in rows), default=0) for column in range(len(headers))]
        first = max(widths[0], cell_len(headers[0]))
        return [
            first,
            *(max(width, min(cell_len(header), most)) for width, header in zip(widths[1:], headers[1:], strict=True)),
        ]

    def _part(self, columns: Sequence[int], widths: Sequence[int], names: int) -> "Table":
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        table.add_column(Text(self._table.headers[0]), overflow="fold", width=max(names, 1))
        for column in columns:
            header = "\n".join(wrap(self._table.headers[column], widths[column]))
            table.add_column(Text(header), justify="right", no_wrap=True, width=widths[column])
        for row in self._table.rows:
            texts = (row[column] for column in columns)
            table.add_row(Text(row[0]), *(Text(text, style=self._styles.get(text, "")) for text in texts))
        return table


def _group(widths: Sequence[int], room: int, names: int) -> list[list[int]]:
    """The numbers of the columns in groups: each group fits on a line behind the names.

    Args:
        widths: of the columns in characters; the first one has the names.
        names: the most characters of a name on a line.
        room: characters of a line.
    """
    groups: list[list[int]] = [[]]
    used = start = min(widths[0], names) + _BETWEEN
    for column, width in list(enumerate(widths))[1:]:
        if groups[-1] and used + width + _BETWEEN > room:
            groups.append([])
            used = start
        groups[-1].append(column)
        used += width + _BETWEEN
    return groups


def name_table(lines: Iterable[tuple[str, str]]) -> "Table":
    """Names and texts, which are wrapped between words."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, collapse_padding=True)
    table.add_column(style="dim", max_width=_WIDEST_NAME)
    table.add_column(overflow="fold")
    for name, text in lines:
        table.add_row(Text(name), Text(text))
    return table


def file_table(folder: Path, files: Iterable[tuple[str, str]]) -> "Table":
    """A folder, and the files in it with their contents."""
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title="Written to", title_justify="left", title_style="bold", box=None, show_header=False, pad_edge=False
    )
    table.add_column(no_wrap=True, overflow="ignore")
    table.add_column(style="dim")
    table.add_row(Text(str(folder)), "")
    for name, content in files:
        table.add_row(Text(f"  {name}"), content)
    return table


def written(folder: Path) -> "Text":
    """The page for a browser in a folder, or the folder if it has none, on one line."""
    from rich.text import Text

    place = folder / REPORT if (folder / REPORT).exists() else folder
    return Text(f"Written to {place}", no_wrap=True, overflow="ignore")
