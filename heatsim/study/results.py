"""The results of a study: a table with one row for each run, made from the files of the runs alone."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import HeatsimError, StorageError
from heatsim.limits import first_time
from heatsim.scenario import Scenario
from heatsim.scenario.values.document_quantities import quantity_of
from heatsim.scenario.values.quantities import TEMPERATURE, si_number
from heatsim.storage import folder as run_folder
from heatsim.storage import run_tables, tables
from heatsim.storage.manifest import write_own
from heatsim.storage.own_files import refuse_others
from heatsim.storage.run_tables import JOULE, SECOND
from heatsim.storage.summary_file import read_summary
from heatsim.study import folder as study_folder
from heatsim.study.columns import (
    DONE,
    FAIL,
    FAILED,
    FINAL_COLUMNS,
    FOLDER,
    LIMITS,
    MESSAGE,
    OPEN,
    PASS,
    RESIDUAL,
    RUN,
    STATUS,
    WAITING,
    WALL_TIME,
    probe_columns,
    rms_column,
)
from heatsim.study.definition import Definition
from heatsim.study.model import FINAL, MAX, MEAN, MIN, TIME_ABOVE, Response
from heatsim.temperature_units import CELSIUS, FAHRENHEIT, KELVIN, TEMPERATURE_UNITS

if TYPE_CHECKING:
    import pyarrow

Row = dict[str, Any]
ColumnTypes = dict[str, type[int] | type[float] | type[str]]


def column_types(definition: Definition) -> ColumnTypes:
    """The columns in order, and the type of their values."""
    table = definition.table
    columns: ColumnTypes = {RUN: int}
    for key in table.keys:
        columns[key] = _kind([cell(point[key]) for point in definition.points])
        if columns[key] is int and _key_unit(definition, key) in (CELSIUS.name, FAHRENHEIT.name):
            columns[key] = float
    columns.update({STATUS: str, MESSAGE: str}, **({LIMITS: str} if definition.limited else {}))
    columns.update(dict.fromkeys(FINAL_COLUMNS, float))
    for probe in definition.probes:
        columns.update(dict.fromkeys(probe_columns(probe), float))
    columns.update(dict.fromkeys(map(rms_column, definition.measured_probes), float))
    columns.update({response.name: float for response in table.responses})
    columns.update({RESIDUAL: float, FOLDER: str, WALL_TIME: float})
    return columns


def column_units(definition: Definition) -> dict[str, str]:
    """The unit of each column; "" for texts and pure numbers."""
    table, temperature = definition.table, definition.table_unit.name
    units = dict.fromkeys(column_types(definition), "")
    units.update({key: _key_unit(definition, key) for key in table.keys})
    units.update(dict.fromkeys(FINAL_COLUMNS, temperature))
    of_probes = definition.probe_units
    for probe, unit in of_probes.items():
        units.update(dict.fromkeys(probe_columns(probe), unit))
    units.update({rms_column(name): unit_of_rms(of_probes[name]) for name in definition.measured_probes})
    units.update(
        {response.name: SECOND if response.is_time else of_probes[response.probe] for response in table.responses}
    )
    return units | {RESIDUAL: JOULE, WALL_TIME: SECOND}


def unit_of_rms(unit: str) -> str:
    """The unit of the deviations of a probe in a unit: K for temperatures, whatever their unit."""
    return KELVIN.name if unit in TEMPERATURE_UNITS else unit


def _key_unit(definition: Definition, key: str) -> str:
    """The unit of a key that varies: that of its quantity, if its values are numbers."""
    if any(isinstance(cell(point[key]), str) for point in definition.points):
        return ""
    quantity = quantity_of(".".join(definition.paths[key]), definition.document_of(1), Scenario)
    if quantity is None:
        return ""
    return definition.table_unit.name if quantity is TEMPERATURE else quantity.unit


def cell(value: object) -> int | float | str:
    """A parameter's value in the results: a number in SI units, any other value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value
    number = si_number(value)
    if number is not None:
        return number
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _kind(values: Sequence[int | float | str]) -> type[int] | type[float] | type[str]:
    if any(isinstance(value, str) for value in values):
        return str
    return int if all(isinstance(value, int) for value in values) else float


class Results:
    """The rows of a study; a finished run is read once.

    Args:
        study: the study's folder.
        definition: the study.
    """

    def __init__(self, study: Path, definition: Definition) -> None:
        self._study = study
        self._definition = definition
        self._column_types = column_types(definition)
        self._column_units = column_units(definition)
        self._responses = definition.table.responses
        self._probes = definition.probes
        self._finished: dict[int, Row] = {}
        self._failures: dict[int, str] = {}

    def note_failure(self, number: int, message: str) -> None:
        """Keep the reason of a failure in memory; a full disk cannot keep it."""
        self._failures[number] = message

    def read(self, number: int) -> None:
        """Read a run that has ended."""
        self._row(number)

    def rows(self) -> list[Row]:
        """All rows in the order of their numbers."""
        return [self._row(number) for number in self._definition.numbers]

    def table(self) -> "pyarrow.Table":
        """All rows as a table; the metadata of each column with a unit have it as `unit`."""
        import pyarrow

        types = {int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string()}
        schema = pyarrow.schema(
            [
                pyarrow.field(name, types[column_type], metadata={"unit": unit} if unit else None)
                for (name, column_type), unit in zip(
                    self._column_types.items(), self._column_units.values(), strict=True
                )
            ]
        )
        rows = self.rows()
        columns = [
            pyarrow.array([row[name] for row in rows], type=field.type)
            for name, field in zip(self._column_types, schema, strict=True)
        ]
        return pyarrow.Table.from_arrays(columns, schema=schema)

    def write(self) -> None:
        """Write results.csv and results.parquet; each file is replaced as a whole.

        Raises:
            FolderError: the user changed a file.
            StorageError: a file could not be written.
        """
        import pyarrow.parquet

        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(run_tables.header(name, unit) for name, unit in self._column_units.items())
        lines.writerows([_csv_value(row[name]) for name in self._column_types] for row in self.rows())
        write_own(self._study, study_folder.RESULTS_CSV, text.getvalue().encode(), study_folder.AGAIN)
        content = io.BytesIO()
        pyarrow.parquet.write_table(self.table(), content)
        write_own(self._study, study_folder.RESULTS_PARQUET, content.getvalue(), study_folder.AGAIN)

    def _row(self, number: int) -> Row:
        if number in self._finished:
            return self._finished[number]
        path = study_folder.run_path(self._study, number)
        row: Row = dict.fromkeys(self._column_types)
        row[RUN] = number
        for key, value in self._definition.points[number - 1].items():
            column_type = self._column_types[key]
            row[key] = self._in_unit(key, column_type(cell(value)))
        row[STATUS], row[MESSAGE] = WAITING, ""
        row[FOLDER] = path.relative_to(self._study).as_posix()
        if study_folder.is_done(path):
            try:
                found = _read_run(path, self._probes, self._responses)
                row.update({name: self._in_unit(name, value) for name, value in found.items() if name in row})
                row[STATUS] = DONE
                self._finished[number] = row
            except HeatsimError as error:
                remedy = f"put a good copy of the file there, or remove {path} to repeat the run"
                row[STATUS], row[MESSAGE] = FAILED, f"{error}; {remedy}"
            return row
        failure = study_folder.read_failure(path)
        if failure or number in self._failures:
            row[STATUS], row[MESSAGE] = FAILED, failure[0] if failure else self._failures[number]
        return row

    def _in_unit(self, name: str, value: Any) -> Any:
        """A value of a column in the unit of the table; temperatures come in K."""
        unit = TEMPERATURE_UNITS.get(self._column_units[name])
        return value if unit is None or value is None else unit.of(value)


def _csv_value(value: object) -> str:
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)


def _read_run(path: Path, probes: Sequence[str], responses: Sequence[Response]) -> Row:
    """The values of a finished run, from its folder; temperatures in K."""
    refuse_others((), [path])
    summary = read_summary(path)
    found: Row = {}
    temperature: Mapping[str, Any] = summary.get("temperature", {})
    for column, name in zip(FINAL_COLUMNS, ("min", "max", "mean"), strict=True):
        found[column] = temperature.get(name)
    expected = summary.get("checksums", {}).get(run_folder.PROBES)
    if expected is not None and tables.checksum(path / run_folder.PROBES) != expected:
        raise StorageError(f"{path / run_folder.PROBES}: was changed since the run ended: its checksum has changed")
    times, curves = read_curves(path)
    for probe in probes:
        if probe in curves:
            values = float(curves[probe].max()), float(curves[probe][-1])
            found.update(zip(probe_columns(probe), values, strict=True))
    found.update({rms_column(each["probe"]): each["rms"] for each in summary.get("measured", [])})
    states = [PASS if verdict["kept"] else FAIL for verdict in summary.get("limits", [])]
    for response in responses:
        if response.probe in curves:
            found[response.name] = evaluate(response, times, curves[response.probe])
            states.append(limit_state(response, found[response.name], float(times[-1])))
    found[LIMITS] = next((state for state in (FAIL, OPEN) if state in states), PASS)
    if "energy" in summary:
        found[RESIDUAL] = summary["energy"].get("residual")
    found[WALL_TIME] = summary.get("wall_time")
    return found


def read_curves(path: Path) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """The times in s and the curves of a run's probes by name, temperatures in K; empty if the run has no probes."""
    probes = run_tables.read_probes(path)
    if probes is None or not len(probes.times):
        return np.empty(0), {}
    return probes.times, {name: values for (name, _), values in probes.columns.items()}


def response_values(probes: run_tables.RunTable | None, responses: Sequence[Response]) -> dict[tuple[str, str], float]:
    """The responses of a run by name and unit, from the table of its probes; NaN where there is no value."""
    found: dict[tuple[str, str], float] = {}
    columns = {} if probes is None else {name: (unit, values) for (name, unit), values in probes.columns.items()}
    for response in responses:
        if probes is not None and response.probe in columns:
            unit, values = columns[response.probe]
            value = evaluate(response, probes.times, values)
            found[response.name, SECOND if response.is_time else unit] = np.nan if value is None else value
    return found


def limit_state(response: Response, value: float | None, end: float) -> str:
    """Whether a response keeps its limits: PASS, FAIL, or OPEN if a run ended before its limit was reached.

    Args:
        response: the response.
        value: in SI units; None for a time at which a curve reaches its threshold only after the end, or never.
        end: of the run in s.
    """
    if not response.limits.given:
        return PASS
    if value is not None:
        return PASS if response.limits.margin(value) >= 0.0 else FAIL
    if any(end < limit for limit in response.limits.given.values()):
        return OPEN
    return PASS if response.limits.at_most is None else FAIL


def evaluate(response: Response, times: NDArray[np.float64], values: NDArray[np.float64]) -> float | None:
    """The value of a response for a probe's curve, such as temperatures in K at times in s.

    "mean" is the mean over time by the trapezoidal rule. "time_above" and "time_below" are the first time at which the
    curve reaches the threshold, with linear interpolation between rows; None if it does not reach it.
    """
    if response.statistic == FINAL:
        return float(values[-1])
    if response.statistic == MAX:
        return float(values.max())
    if response.statistic == MIN:
        return float(values.min())
    if response.statistic == MEAN:
        if len(times) == 1:
            return float(values[0])
        return float(np.sum(0.5 * (values[1:] + values[:-1]) * np.diff(times)) / (times[-1] - times[0]))
    assert response.threshold is not None
    beyond = values - response.threshold if response.statistic == TIME_ABOVE else response.threshold - values
    return first_time(times, beyond, touching=True)
