"""The results of a study as tables: for the terminal and for its report."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heatsim.amounts import readable_unit
from heatsim.counts import counted, minus
from heatsim.limits import SIGNS
from heatsim.render.curves.curves import in_readable_unit
from heatsim.report import certainty
from heatsim.report.number_tables import FAIL, NumberTable
from heatsim.report.numbers import decimals_of_heats, decimals_of_temperatures, fixed
from heatsim.report.terminal import FAIL_STYLES, TerminalTable, file_table, name_table, written
from heatsim.storage.folder import SUMMARY
from heatsim.storage.run_tables import SECOND
from heatsim.storage.summary_file import read_summary
from heatsim.study import folder as study_folder
from heatsim.study.columns import FAIL as RUN_FAILS
from heatsim.study.columns import FAILED, FOLDER, LIMITS, MESSAGE, OPEN, PASS, RUN, STATUS
from heatsim.study.definition import Definition
from heatsim.study.model import Response
from heatsim.study.responses import (
    ResponseValues,
    best_run,
    describe_point,
    extreme_runs,
    finished_rows,
    parameters_of,
    rank_correlation,
    responses_of,
)
from heatsim.study.results import Row
from heatsim.temperature_units import TEMPERATURE_UNITS

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

_MOST_ROWS = 24
_MOST_FAILURES = 8
_MOST_PARAMETERS = 12


def summarise(study: Path, definition: Definition, rows: Sequence[Row], verbose: bool = False) -> "Group":
    """What a study answers, its responses, their correlation with the parameters, and failures, for rich's console.

    Up to 24 runs are listed; for more, the table has statistics of the responses. If ``verbose``, errors and files too.
    """
    from rich.console import Group
    from rich.text import Text

    failed = [row for row in rows if row[STATUS] == FAILED]
    title = Text(f"{title_of(definition)}: {describe_progress(rows)}", style="bold")
    parts: list[RenderableType] = [title, "", name_table(answers(study, definition, rows)), ""]
    parts += (TerminalTable(table, FAIL_STYLES) for table in response_tables(definition, rows))
    if failed:
        parts.append(_failures(failed))
    parts += map(TerminalTable, error_tables(study, definition, rows)) if verbose else ()
    parts.append(file_table(study, files_of(study, len(rows))) if verbose else written(study))
    return Group(*parts)


def answers(study: Path, definition: Definition, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Which runs keep the limits, the best run, the extremes of each response with their runs, and their errors.

    Raises:
        StorageError: the summary of a run cannot be read.
    """
    done = finished_rows(rows)
    over, numbers = parameters_of(definition, done) if done else [], [row[RUN] for row in done]

    def name_of(row: Row) -> str:
        return f"run {row[RUN]}: {describe_point(over, numbers.index(row[RUN]))}"

    if definition.limited and done:
        of_probes = [
            f"{probe} {SIGNS[key]} {_limit_text(limit, definition.probe_units[probe], definition)}"
            for probe, its in definition.probe_limits.items()
            for key, limit in its.given.items()
        ]
        yield "limits", "; of probes: ".join(filter(None, (describe_limits(done), ", ".join(of_probes))))
    asked, extremes = responses_of(definition, done) if done else [], extreme_runs(definition, rows)
    limits = {each.name: _limits(each, definition) for each in definition.table.responses if each.limits.given}
    best = best_run(definition, rows)
    if best is not None:
        its = (f"{each.name} {_at(each, numbers.index(best[RUN]))}" for each in asked if each.name in limits)
        yield "best" if best[LIMITS] == PASS else "nearest to them", f"{name_of(best)}: {', '.join(its)}"
    for response in asked:
        ends = (extremes.get((response.name, which)) for which in ("smallest", "largest"))
        found = [f"{_at(response, numbers.index(row[RUN]))} in {name_of(row)}" for row in ends if row]
        if found:
            never = int((~np.isfinite(response.values)).sum())
            rest = f"; not reached in {never} of {counted(len(done), 'run')}" if never else ""
            limit = f"; limit {limits[response.name]}" if response.name in limits else ""
            yield response.name, "; to ".join(dict.fromkeys(found)) + rest + limit
    tables, remarks = _errors(study, definition, rows)
    if remarks and not tables:
        yield "error in space", f"not known. {remarks[0]}"


def _at(response: ResponseValues, index: int) -> str:
    """The value of a response in a run, with its unit."""
    text = column_texts(response.values, response.unit)[index]
    return f"{text} {response.unit}" if np.isfinite(response.values[index]) else "not reached"


def _limits(response: Response, definition: Definition) -> str:
    """The limits of a response, in units for readers."""
    unit = SECOND if response.is_time else definition.probe_units[response.probe]
    return " and ".join(
        f"{SIGNS[key]} {_limit_text(limit, unit, definition)}" for key, limit in response.limits.given.items()
    )


def _limit_text(limit: float, unit: str, definition: Definition) -> str:
    if unit in TEMPERATURE_UNITS:
        return definition.temperature_unit.text(limit)
    return in_readable_unit(limit, readable_unit(unit, [limit]))


def describe_limits(done: Sequence[Row]) -> str:
    """How many finished runs keep all limits."""
    kept, opened = (sum(row[LIMITS] == state for row in done) for state in (PASS, OPEN))
    more = f"; {counted(opened, 'run')} ended before the limit of a time" if opened else ""
    return f"{kept} of {counted(len(done), 'run')} keep{'s' * (len(done) == 1)} all limits{more}"


def title_of(definition: Definition) -> str:
    """The title of a study: that of its scenario, or the name of its file."""
    return str(definition.document.get("title", definition.path.stem))


def describe_progress(rows: Sequence[Row]) -> str:
    """How many runs are done and have failed."""
    failed = sum(row[STATUS] == FAILED for row in rows)
    return f"{len(finished_rows(rows))} of {counted(len(rows), 'run')} done" + (f", {failed} failed" if failed else "")


def response_tables(definition: Definition, rows: Sequence[Row], most: int = _MOST_ROWS) -> Iterator[NumberTable]:
    """The responses of up to ``most`` runs, or their statistics, and their rank correlation with the parameters."""
    done = finished_rows(rows)
    if not done:
        return
    asked = responses_of(definition, done)
    yield run_table(definition, done, asked) if len(done) <= most else span_table(done, asked)
    ranks = _ranks(definition, done, asked)
    if ranks is not None:
        yield ranks


def error_tables(study: Path, definition: Definition, rows: Sequence[Row]) -> Iterator[NumberTable]:
    """The smallest and the largest value of each response with their errors in space, if any is known.

    Raises:
        StorageError: the summary of a run cannot be read.
    """
    lines, remarks = _errors(study, definition, rows)
    if lines:
        yield NumberTable("Errors in space", ("", "run", "value", "±"), lines, " ".join(remarks[:2]))


def _errors(study: Path, definition: Definition, rows: Sequence[Row]) -> tuple[list[tuple[str, ...]], list[str]]:
    """The extreme values of the responses with their errors in space, and how these were found or can be."""
    unit, lines, remarks = definition.temperature_unit, list[tuple[str, ...]](), dict[str, None]()
    for (name, which), row in extreme_runs(definition, rows).items():
        folder = study / str(row[FOLDER])
        summary = read_summary(folder) if (folder / SUMMARY).is_file() else {}
        if "error_in_space" not in summary:
            continue
        label, run = f"{name}, {which}", str(row[RUN])
        found = next((value for value in certainty.errors_in_space(summary) if value["name"] == name), None)
        if found is None:
            remarks[f"Run {run}: {certainty.in_space(summary, unit, folder)}."] = None
        else:
            label, *numbers = certainty.texts_of({**found, "name": label}, unit)
            lines.append((label, run, *numbers))
            remarks[f"± in space: {certainty.how(summary)}."] = None
    return lines, list(remarks)


def run_table(definition: Definition, done: Sequence[Row], asked: Sequence[ResponseValues]) -> NumberTable:
    """The parameters and responses of each run."""
    parameters = parameters_of(definition, done)
    columns = [[str(row[RUN]) for row in done]]
    columns += [column_texts(parameter.values, parameter.unit, parameter.categories) for parameter in parameters]
    columns += [column_texts(response.values, response.unit) for response in asked]
    headers = (RUN, *(parameter.label for parameter in parameters), *(response.label for response in asked))
    if definition.limited:
        columns.append([FAIL if row[LIMITS] == RUN_FAILS else str(row[LIMITS]) for row in done])
        headers = (*headers, LIMITS)
    return NumberTable("Responses", headers, [*zip(*columns, strict=True)])


def span_table(done: Sequence[Row], asked: Sequence[ResponseValues]) -> NumberTable:
    """Statistics of the responses over all runs."""
    spans = [_span(done, response) for response in asked]
    names = ("least", "  in run", "5 %", "median", "95 %", "most", "  in run", "mean", "deviation")
    rows = [(name, *(span[line] for span in spans)) for line, name in enumerate(names)]
    counts = [int(np.isfinite(response.values).sum()) for response in asked]
    if min(counts) < len(done):
        rows.append(("runs with a value", *map(str, counts)))
    if any(response.limits.given for response in asked):
        beyond = (str(int(response.beyond.sum())) if response.limits.given else "" for response in asked)
        rows.append(("runs beyond the limit", *beyond))
    return NumberTable("Responses", ("", *(response.label for response in asked)), rows)


def _span(done: Sequence[Row], response: ResponseValues) -> list[str]:
    good = response.values[np.isfinite(response.values)]
    if not len(good):
        return ["–"] * 9
    least, most = (str(done[int(pick(response.values))][RUN]) for pick in (np.nanargmin, np.nanargmax))
    several = [*np.percentile(good, (0, 5, 50, 95, 100)), good.mean(), good.std()]
    numbers = column_texts(np.array(several), response.unit)
    return [numbers[0], least, *numbers[1:5], most, *numbers[5:]]


def _ranks(definition: Definition, done: Sequence[Row], asked: Sequence[ResponseValues]) -> NumberTable | None:
    """The rank correlations of responses and parameters."""
    numeric = [parameter for parameter in parameters_of(definition, done) if not parameter.categories]
    lines = []
    for parameter in numeric[:_MOST_PARAMETERS]:
        ranks = [rank_correlation(parameter.values, response.values) for response in asked]
        lines.append((parameter.short, *("–" if rank is None else minus(f"{rank:+.2f}") for rank in ranks)))
    if all(text == "–" for _, *texts in lines for text in texts):
        return None
    headers = ("", *(response.name for response in asked))
    return NumberTable("Rank correlation of response and parameter, from −1 to 1", headers, lines)


def _failures(failed: Sequence[Row]) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text("Failed"), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(RUN)
    table.add_column("")
    for row in failed[:_MOST_FAILURES]:
        table.add_row(str(row[RUN]), Text(str(row[MESSAGE])))
    if len(failed) > _MOST_FAILURES:
        table.add_row("", f"and {len(failed) - _MOST_FAILURES} more")
    return table


def files_of(study: Path, runs: int) -> Iterator[tuple[str, str]]:
    """The files of a study and their contents."""
    if (study / study_folder.REPORT).exists():
        yield study_folder.REPORT, "all of this on one page, for a browser"
    yield f"{study_folder.RESULTS_CSV}, {study_folder.RESULTS_PARQUET}", "one row for each run"
    yield f"{study_folder.RUNS}/", f"{counted(runs, 'folder')} as `heatsim run` writes them"
    pictures = len(list((study / study_folder.FIGURES).glob("*.png")))
    if pictures:
        yield f"{study_folder.FIGURES}/", counted(pictures, "picture")


_FEWEST_UNITS = 100  # of the last decimal in the smallest number of a column
_TEMPERATURES = frozenset(unit.symbol for unit in TEMPERATURE_UNITS.values())


def column_texts(values: NDArray[np.float64], unit: str, categories: Sequence[str] = ()) -> list[str]:
    """The numbers of a column, "–" for NaN: with equal decimals, or with five digits each if they differ too much.

    Args:
        values: numbers, or the indices of categories.
        unit: its symbol; the decimals of temperatures follow from their range, those of others from the largest.
        categories: texts.
    """
    if categories:
        return [categories[int(value)] for value in values]
    finite = values[np.isfinite(values)]
    if unit in _TEMPERATURES:
        decimals = decimals_of_temperatures(finite.tolist())
    else:
        decimals, sizes = decimals_of_heats(finite.tolist()), np.abs(finite)
        if np.any((sizes > 0.0) & (sizes < _FEWEST_UNITS * 10.0**-decimals)):
            return [minus(f"{value:.5g}") if np.isfinite(value) else "–" for value in values]
    return [text if np.isfinite(value) else "–" for text, value in zip(fixed(values, decimals), values, strict=True)]
