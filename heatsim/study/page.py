"""report.html of a study: its responses, the curves of its probes over all runs, pictures and the scenario."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np

from heatsim.counts import plain
from heatsim.render.page.dates import time_axis
from heatsim.report import charts, document
from heatsim.report.charts import Chart
from heatsim.report.document import Badge, Part
from heatsim.report.number_tables import NumberTable
from heatsim.storage.manifest import write_own
from heatsim.storage.own_files import is_own_file
from heatsim.study import folder as study_folder
from heatsim.study.columns import FAILED, FOLDER, LIMITS, MESSAGE, PASS, RUN, STATUS
from heatsim.study.definition import Definition
from heatsim.study.report import (
    answers,
    describe_limits,
    describe_progress,
    error_tables,
    files_of,
    response_tables,
    title_of,
)
from heatsim.study.responses import curve_marks, curve_of, describe_point, finished_rows, label_of, parameters_of
from heatsim.study.results import Row, read_curves
from heatsim.version import version

_MOST_RUNS = 500  # rows of the table; for more runs it has their statistics
_MOST_CURVES = 200
_MOST_VALUES = 8  # of a parameter that are listed
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
    details = [("method", definition.table.method), ("folder", str(study.resolve())), *files_of(study, len(rows))]
    sections = [
        Part("Answer", document.name_list(answers(study, definition, rows))),
        Part("What was varied", document.table(_varied(definition, done)) if done else ""),
        Part("Responses", "".join(map(document.table, _responses(definition, rows)))),
        Part("Failed runs", document.sentences(f"run {row[RUN]}: {row[MESSAGE]}" for row in failed)),
        Part("Pictures", document.pictures(drawn)),
        Part("Curves", "".join(map(charts.draw, _charts(study, definition, done)))),
        Part("How sure it is", "".join(map(document.table, error_tables(study, definition, rows)))),
        Part(
            "Details",
            document.name_list(details) + document.listing(tomli_w.dumps(definition.document), definition.path.name),
        ),
    ]
    badges = [Badge(describe_progress(rows), len(done) == len(rows))]
    if definition.limited and done:
        kept = sum(row[LIMITS] == PASS for row in done)
        badges.insert(0, Badge(describe_limits(done), None if 0 < kept < len(done) else bool(kept)))
    results = study / study_folder.RESULTS_CSV
    now = datetime.fromtimestamp(results.stat().st_mtime) if results.exists() else datetime.now()
    subtitle = f"heatsim {version()} study · {now:%d %B %Y, %H:%M} · {study.resolve().name}"
    return document.page(title_of(definition), subtitle, badges, sections)


def _responses(definition: Definition, rows: Sequence[Row]) -> Iterator[NumberTable]:
    """The tables of responses; the first is named by the heading above it."""
    for number, table in enumerate(response_tables(definition, rows, _MOST_RUNS)):
        yield table if number else replace(table, title="")


def _varied(definition: Definition, done: Sequence[Row]) -> NumberTable:
    """The parameters with their keys and values."""
    found, rows = parameters_of(definition, done), []
    for parameter in found:
        if parameter.categories:
            values = ", ".join(parameter.categories)
        else:
            different = np.unique(parameter.values)
            shown = [plain(value, 6) for value in different]
            texts = ", ".join(shown) if len(shown) <= _MOST_VALUES else f"{shown[0]} to {shown[-1]}"
            values = f"{texts} {parameter.unit}".strip()
        rows.append((parameter.short, values, parameter.name))
    return NumberTable("", ("parameter", "values", "keys"), rows)


def _charts(study: Path, definition: Definition, done: Sequence[Row]) -> Iterator[Chart]:
    """For each probe the curves of the finished runs, named after their parameters."""
    shown = done[:_MOST_CURVES]
    over = parameters_of(definition, done)
    curves = [read_curves(study / str(row[FOLDER])) for row in shown]
    for probe in definition.probes[:_MOST_PROBES]:
        if not curves or not all(probe in columns and len(times) > 1 for times, columns in curves):
            continue
        ends = min(float(times[0]) for times, _ in curves), max(float(times[-1]) for times, _ in curves)
        unit, x_label, dates = time_axis(ends, definition.start)
        named = {
            f"run {row[RUN]}: {describe_point(over, index)}": (times / unit.size, curve_of(definition, probe, columns))
            for index, (row, (times, columns)) in enumerate(zip(shown, curves, strict=True))
        }
        more = f", the first {len(shown)} of {len(done)} runs" if len(shown) < len(done) else ""
        label = label_of(definition, probe)
        if any(values.any() for _, values in named.values()):
            title = f'Probe "{probe}" in each run{more}'
            marks = curve_marks(definition, probe, [values for _, values in named.values()])
            yield Chart(title, x_label, label, named, marks=marks, dates=dates, start=definition.start, size=unit.size)
