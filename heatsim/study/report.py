"""The results of a study as tables for the terminal."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from heatsim.study import folder as study_folder
from heatsim.study.columns import FAILED, MESSAGE, RUN, STATUS
from heatsim.study.definition import Definition
from heatsim.study.responses import ResponseValues, finished_rows, parameters_of, rank_correlation, responses_of
from heatsim.study.results import Row

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

_MOST_ROWS = 24
_MOST_FAILURES = 8
_MOST_PARAMETERS = 12


def summarise(study: Path, definition: Definition, rows: Sequence[Row]) -> "Group":
    """Tables of the responses, their correlation with the parameters, the failures and the files.

    Up to 24 runs are listed; for more, the table has statistics of the responses.
    """
    from rich.console import Group
    from rich.text import Text

    done = finished_rows(rows)
    failed = [row for row in rows if row[STATUS] == FAILED]
    counts = f"{len(done)} of {len(rows)} runs done" + (f", {len(failed)} failed" if failed else "")
    parts: list[RenderableType] = [Text(f"{definition.document.get('title', definition.path.stem)}: {counts}"), ""]
    if done:
        asked = responses_of(definition, done)
        parts.append(_all_runs(definition, done, asked) if len(done) <= _MOST_ROWS else _spans(done, asked))
        ranks = _ranks(definition, done, asked)
        if ranks is not None:
            parts.append(ranks)
    if failed:
        parts.append(_failures(failed))
    parts.append(_files(study, len(rows)))
    return Group(*parts)


def _new_table(title: str, *columns: str) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for number, column in enumerate(columns):
        table.add_column(Text(column), justify="right" if number else "left", overflow="fold")
    return table


def _all_runs(definition: Definition, done: Sequence[Row], asked: Sequence[ResponseValues]) -> "Table":
    names = [parameter.short for parameter in parameters_of(definition, done)]
    table = _new_table("Responses", RUN, *names, *(response.label for response in asked))
    for index, row in enumerate(done):
        values = [_number(row[axis.keys[0]]) for axis in definition.table.axes]
        table.add_row(str(row[RUN]), *values, *(_number(float(response.values[index])) for response in asked))
    return table


def _spans(done: Sequence[Row], asked: Sequence[ResponseValues]) -> "Table":
    table = _new_table("Responses", "", *(response.label for response in asked))
    spans = [_span(done, response) for response in asked]
    for line, name in enumerate(
        ("least", "  in run", "5 %", "median", "95 %", "most", "  in run", "mean", "deviation")
    ):
        table.add_row(name, *(span[line] for span in spans))
    counts = [int(np.isfinite(response.values).sum()) for response in asked]
    if min(counts) < len(done):
        table.add_row("runs with a value", *map(str, counts))
    return table


def _span(done: Sequence[Row], response: ResponseValues) -> list[str]:
    good = response.values[np.isfinite(response.values)]
    if not len(good):
        return ["–"] * 9
    least, most = (str(done[int(pick(response.values))][RUN]) for pick in (np.nanargmin, np.nanargmax))
    numbers = [_number(float(value)) for value in (*np.percentile(good, (0, 5, 50, 95, 100)), good.mean(), good.std())]
    return [numbers[0], least, *numbers[1:5], most, *numbers[5:]]


def _ranks(definition: Definition, done: Sequence[Row], asked: Sequence[ResponseValues]) -> "Table | None":
    """The rank correlations of responses and parameters."""
    numeric = [parameter for parameter in parameters_of(definition, done) if not parameter.categories]
    lines = []
    for parameter in numeric[:_MOST_PARAMETERS]:
        ranks = [rank_correlation(parameter.values, response.values) for response in asked]
        lines.append((parameter.short, ["–" if rank is None else f"{rank:+.2f}" for rank in ranks]))
    if all(text == "–" for _, texts in lines for text in texts):
        return None
    table = _new_table(
        "Rank correlation of response and parameter, from −1 to 1", "", *(response.name for response in asked)
    )
    for name, texts in lines:
        table.add_row(name, *texts)
    return table


def _failures(failed: Sequence[Row]) -> "Table":
    from rich.text import Text

    table = _new_table("Failed", RUN, "")
    table.columns[1].justify = "left"
    for row in failed[:_MOST_FAILURES]:
        table.add_row(str(row[RUN]), Text(str(row[MESSAGE])))
    if len(failed) > _MOST_FAILURES:
        table.add_row("", f"and {len(failed) - _MOST_FAILURES} more")
    return table


def _files(study: Path, runs: int) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title="Written to", title_justify="left", title_style="bold", box=None, show_header=False, pad_edge=False
    )
    table.add_column(no_wrap=True, overflow="ignore")
    table.add_column(style="dim")
    table.add_row(Text(str(study)), "")
    table.add_row(f"  {study_folder.RESULTS_CSV}, {study_folder.RESULTS_PARQUET}", "one row for each run")
    table.add_row(f"  {study_folder.RUNS}/", f"{runs} folders as `heatsim run` writes them")
    pictures = len(list((study / study_folder.FIGURES).glob("*.png")))
    if pictures:
        table.add_row(f"  {study_folder.FIGURES}/", f"{pictures} pictures")
    return table


def _number(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and np.isfinite(value):
        return f"{value:.6g}"
    return "–"
