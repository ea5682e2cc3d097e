"""report.html of a study: its responses, the curves of its probes over all runs, pictures and the scenario."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from heatsim.amounts import TIMES, choose_unit
from heatsim.report import charts, document
from heatsim.report.charts import Chart
from heatsim.report.document import Badge, Part
from heatsim.storage.manifest import write_own
from heatsim.storage.own_files import is_own_file
from heatsim.study import folder as study_folder
from heatsim.study.columns import FAILED, FOLDER, MESSAGE, RUN, STATUS
from heatsim.study.definition import Definition
from heatsim.study.report import describe_progress, error_tables, files_of, response_tables, title_of
from heatsim.study.responses import Parameter, curve_of, finished_rows, label_of, parameters_of
from heatsim.study.results import Row, read_curves

_MOST_RUNS = 500  # rows of the table; for more runs it has their statistics
_MOST_CURVES = 200
_MOST_PROBES = 12


def write_report(study: Path, definition: Definition, rows: Sequence[Row]) -> Path:
    """Write report.html into a study's folder; the path.

    Raises:
        FolderError: heatsim did not write the folder, or the user changed the page.
        StorageError: a file cannot be read or written.
    """
    content = build(study, definition, rows).encode()
    write_own(study, study_folder.REPORT, content, study_folder.AGAIN)
    return study / study_folder.REPORT


def build(study: Path, definition: Definition, rows: Sequence[Row]) -> str:
    """The HTML of a study's report.

    Raises:
        StorageError: a file cannot be read.
    """
    import tomli_w

    done, failed = finished_rows(rows), [row for row in rows if row[STATUS] == FAILED]
    drawn = sorted(filter(is_own_file, (study / study_folder.FIGURES).glob("*.png")))
    sections = [
        Part("What was varied", document.name_list(_describe(definition, done)) if done else ""),
        Part("Responses", "".join(map(document.table, response_tables(definition, rows, _MOST_RUNS)))),
        Part("How sure it is", "".join(map(document.table, error_tables(study, definition, rows)))),
        Part("Curves", "".join(map(charts.draw, _charts(study, definition, done)))),
        Part("Failed runs", document.sentences(f"run {row[RUN]}: {row[MESSAGE]}" for row in failed)),
        Part("Pictures", document.pictures(drawn)),
        Part("Files", document.name_list(files_of(study, len(rows)))),
        Part("Scenario", document.listing(tomli_w.dumps(definition.document), definition.path.name)),
    ]
    badges = [Badge(describe_progress(rows), len(done) == len(rows)), Badge(f"method {definition.table.method}")]
    subtitle = f"heatsim study · {study.resolve().name}"
    return document.page(title_of(definition), subtitle, badges, sections)


def _describe(definition: Definition, done: Sequence[Row]) -> Iterator[tuple[str, str]]:
    for parameter in parameters_of(definition, done):
        if parameter.categories:
            yield parameter.name, ", ".join(parameter.categories)
        else:
            low, high = float(parameter.values.min()), float(parameter.values.max())
            yield parameter.name, f"{low:.6g} to {high:.6g} {parameter.unit}".strip()


def _charts(study: Path, definition: Definition, done: Sequence[Row]) -> Iterator[Chart]:
    """For each probe the curves of the finished runs, named after their parameters."""
    shown = done[:_MOST_CURVES]
    over = parameters_of(definition, done)
    curves = [read_curves(study / str(row[FOLDER])) for row in shown]
    for probe in definition.probes[:_MOST_PROBES]:
        if not curves or not all(probe in columns and len(times) > 1 for times, columns in curves):
            continue
        unit = choose_unit(TIMES, max(float(times[-1]) for times, _ in curves))
        named = {
            f"run {row[RUN]}: {_describe_point(over, index)}": (times / unit.size, curve_of(definition, probe, columns))
            for index, (row, (times, columns)) in enumerate(zip(shown, curves, strict=True))
        }
        more = f", the first {len(shown)} of {len(done)} runs" if len(shown) < len(done) else ""
        label = label_of(definition, probe)
        yield Chart(f'Probe "{probe}" in each run{more}', f"Time ({unit.symbol})", label, named)


def _describe_point(over: Sequence[Parameter], index: int) -> str:
    """The values of the parameters in a run."""
    texts = (
        parameter.categories[int(parameter.values[index])]
        if parameter.categories
        else f"{parameter.values[index]:.6g} {parameter.unit}".strip()
        for parameter in over
    )
    return ", ".join(f"{parameter.short} {text}" for parameter, text in zip(over, texts, strict=True))
