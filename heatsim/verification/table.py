"""A table of verdicts for a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from heatsim.verification.verdict import Verdict

if TYPE_CHECKING:
    from rich.console import Group


def describe(verdicts: Sequence[Verdict]) -> "Group":
    """A row for each case, within 80 columns; then the reasons of failed runs, and the total time."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    table.add_column("case", no_wrap=True)
    table.add_column("source")
    for column in ("reference\nK", "computed\nK", "error\nK", "tolerance\nK", "order"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for before, verdict in zip([None, *verdicts], verdicts, strict=False):
        of_same_case = before is not None and before.name == verdict.name
        table.add_row(
            *(("  its end state", "") if of_same_case else (verdict.name, verdict.source)),
            *(_format(value, ".3f") for value in (verdict.reference, verdict.computed)),
            *(_format(value, ".2g") for value in (verdict.error, verdict.tolerance)),
            _format(verdict.order, ".2f"),
            Text("pass") if verdict.passed else Text("FAIL", "bold red"),
        )
    parts: list[Table | Text] = [table]
    parts += [Text(f"{verdict.name}: {verdict.failure}", "red") for verdict in verdicts if verdict.failure]
    passed = sum(verdict.passed for verdict in verdicts)
    seconds = sum(verdict.seconds for verdict in verdicts)
    how = (
        " and ".join(dict.fromkeys(getattr(verdict, what) for verdict in verdicts))
        for what in ("method", "device", "kernel", "precision")
    )
    parts.append(Text(f"{passed} of {len(verdicts)} passed in {seconds:.3g} s: {', '.join(how)}"))
    return Group(*parts)


def _format(value: float | None, how: str) -> str:
    return "–" if value is None else format(value, how)
