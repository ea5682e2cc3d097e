"""Tables in time from CSV files: their numbers, their copies and the messages about their mistakes."""

import json
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
from refusals import mistakes_of
from runs import results
from scenario_text import write

import heatsim
from heatsim.errors import FolderError, ScenarioError
from heatsim.scenario import load, write_resolved
from heatsim.scenario.values import csv_table
from heatsim.scenario.values.timefunction import Table

HOURS = "hour,T_out,sun\n0,20.1,0\n1,21.5,100\n2,-3,900\n"
KEYS = 'time = "hour", time_unit = "h", column = "T_out", unit = "degC"'


def scenario_with(folder: Path, content: str | bytes, keys: str = KEYS, name: str = "weather.csv") -> Path:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    ambient = f'{{ file = "{name}", {keys} }}'
    face = f'[boundaries]\nx_max = {{ type = "convection", coefficient = 5.0, ambient = {ambient} }}\n'
    return write(folder, extra=face)


def table(folder: Path, content: str | bytes, keys: str = KEYS) -> Table:
    function = load(scenario_with(folder, content, keys)).boundaries.x_max.ambient
    assert isinstance(function, Table)
    return function


def mistake(folder: Path, content: str | bytes, keys: str = KEYS) -> tuple[str, str]:
    (found,) = mistakes_of(scenario_with(folder, content, keys))
    return found[0].removeprefix("boundaries.x_max.ambient."), found[1]


def test_numbers_are_those_of_a_table_in_the_scenario(tmp_path: Path) -> None:
    read = table(tmp_path, HOURS)
    assert read.times == (0.0, 3600.0, 7200.0)
    assert read.values == (293.25, 294.65, 270.15)  # decimals that are rounded once
    assert read == Table((0.0, 3600.0, 7200.0), (293.25, 294.65, 270.15))


def test_seconds_and_si_units_are_the_default(tmp_path: Path) -> None:
    read = table(tmp_path, HOURS, 'time = "hour", column = "sun", repeat = true')
    assert (read.times, read.values, read.repeat) == ((0.0, 1.0, 2.0), (0.0, 100.0, 900.0), True)


def test_a_unit_that_is_not_usual_is_converted_too(tmp_path: Path) -> None:
    read = table(tmp_path, HOURS, 'time = "hour", time_unit = "days", column = "sun", unit = "degF"')
    assert read.times == (0.0, 86400.0, 172800.0)
    np.testing.assert_allclose(read.values, (np.array([0.0, 100.0, 900.0]) + 459.67) / 1.8, rtol=1e-15)


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + HOURS.encode(),
        HOURS.replace("\n", "\r\n").encode(),
        HOURS.replace(",", " , ").encode(),
        b'"hour","T_out","sun, W"\n\n0,20.1,0\n,,\n1,21.5,1\n"2","-3",2\n\n',
    ],
)
def test_byte_order_marks_line_ends_blanks_and_quotes_do_not_matter(tmp_path: Path, content: bytes) -> None:
    assert table(tmp_path, content) == table(tmp_path, HOURS)


def test_semicolons_and_decimal_commas(tmp_path: Path) -> None:
    european = "hour;T_out\n0;20,1\n1;21,5\n2;-3\n"
    assert table(tmp_path, european, KEYS + ', delimiter = ";", decimal = ","') == table(tmp_path, HOURS)


def test_dates_count_from_the_first_row(tmp_path: Path) -> None:
    keys = 'time = "when", column = "T", unit = "degC"'
    read = table(tmp_path, "when,T\n2023-12-31T23:00,1\n2024-01-01 00:30:15,2\n2024-02-29,3\n", keys)
    assert read.times == (0.0, 5415.0, 59 * 86400.0 + 3600.0)
    zoned = table(tmp_path, "when,T\n2024-03-31T01:00+01:00,1\n2024-03-31T03:00+02:00,2\n2024-03-31T02:00Z,3\n", keys)
    assert zoned.times == (0.0, 3600.0, 7200.0)


def test_a_time_twice_is_a_jump(tmp_path: Path) -> None:
    read = table(tmp_path, "hour,T_out\n0,10\n1,10\n1,30\n2,30\n")
    assert read.at(np.array([3599.0, 3600.0])).tolist() == [283.15, 303.15]
    assert read.jumps(7200.0).tolist() == [3600.0]


@pytest.mark.parametrize(
    ("content", "keys", "key", "fragments"),
    [
        (HOURS.replace("21.5", "n/a"), KEYS, "column", ["weather.csv, line 3", '"T_out"', 'got "n/a"', "remove rows"]),
        (HOURS.replace("21.5", "NaN"), KEYS, "column", ["line 3", 'got "NaN"; a number']),
        (HOURS.replace("21.5", "").replace("-3", ""), KEYS, "column", ["line 3", 'got ""', "(and 1 more such row)"]),
        (HOURS.replace("-3", "-300"), KEYS, "column", ["line 4", "got -300 degC; a temperature must be at least 0 K"]),
        (HOURS.replace("-3", "1e999999999"), KEYS, "column", ["line 4", "must be finite"]),
        (HOURS.replace("2,-3", "0.5,-3"), KEYS, "time", ["line 4", 'got "0.5" after "1"; times must increase']),
        (HOURS.replace("2,-3", "x,-3"), KEYS, "time", ["line 4", '"hour"', 'got "x"', "ISO date"]),
        (HOURS, KEYS.replace("T_out", "T_ot"), "column", ['got "T_ot"', '"hour", "T_out"', 'did you mean "T_out"?']),
        (HOURS.replace("sun", "T_out"), KEYS, "column", ["the name of 2 columns"]),
        (HOURS.replace(",", ";"), KEYS, "delimiter", ["semicolons", 'write delimiter = ";"']),
        (HOURS.replace(",", "\t"), KEYS, "delimiter", ["tabs", 'write delimiter = "\\t"']),
        ("hour;T_out\n0;20,1\n1;2\n", KEYS + ', delimiter = ";"', "column", ['write decimal = ","']),
        ("hour,T_out\n0,20,1\n1,21,5\n", KEYS, "file", ["3 entries in line 2 for 2 columns", "decimal comma"]),
        ("hour,T_out\n0\n1,3\n", KEYS, "file", ["1 entry in line 2 for 2 columns"]),
        ("", KEYS, "file", ["is empty"]),
        ("hour,T_out\n", KEYS, "file", ["has no row below the names"]),
        (HOURS.encode("utf-16"), KEYS, "file", ["UTF-16", "UTF-8"]),
        (HOURS.encode("utf-16-le"), KEYS, "file", ["UTF-16", "UTF-8"]),
        (b"hour,T_out\n0,1\n1,2 \xb0\n", KEYS, "file", ["0xb0 in line 3", "UTF-8"]),
        (HOURS, KEYS.replace('"h"', '"kg"'), "time_unit", ['"kg" cannot be converted to s']),
        (HOURS, KEYS.replace('"degC"', '"W"'), "unit", ['"W" cannot be converted to K']),
        (HOURS, KEYS.replace('"degC"', '"C"'), "unit", ['"C" cannot be converted to K; write "degC"']),
        (HOURS, KEYS.replace('"degC"', '"5 5"'), "unit", ["cannot be read as a unit"]),
        (HOURS, KEYS + ', repeat = "yes"', "repeat", ["true or false"]),
        (HOURS.replace("0,20", "0.5,20"), KEYS + ", repeat = true", "repeat", ["must start at 0"]),
        (HOURS, KEYS + ', delimiter = "x"', "delimiter", ['got "x"; one of ","']),
        (HOURS, KEYS + ", colum = 3", "colum", ['did you mean "column"?']),
        (HOURS, KEYS.replace('column = "T_out"', "column = 3"), "column", ["got 3; a text"]),
        (HOURS, KEYS.replace('time = "hour", ', ""), "time", ["missing"]),
        ("when,T_out\n2024-01-01,2\n5,3\n", KEYS.replace("hour", "when"), "time_unit", ["dates have no unit"]),
        ("when,T_out\n2024-01-01,2\n5,3\n", 'time = "when", column = "T_out"', "time", ["line 3", 'got "5"']),
        ("when,T_out\n2024-01-01,2\n2024-01-02T00Z,3\n", 'time = "when", column = "T_out"', "time", ["time zone"]),
    ],
)
def test_a_mistake_names_the_line_and_the_column(
    tmp_path: Path, content: str | bytes, keys: str, key: str, fragments: list[str]
) -> None:
    found, message = mistake(tmp_path, content, keys)
    assert found == key
    for fragment in fragments:
        assert fragment in message


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    path = scenario_with(tmp_path, HOURS)
    ((key, message),) = mistakes_of(path, ["boundaries.x_max.ambient.file=wether.csv"])
    assert key == "boundaries.x_max.ambient.file"
    assert "there is no such file" in message
    assert "(from --set)" in message


def test_the_file_is_copied_beside_the_resolved_scenario(tmp_path: Path) -> None:
    """A file with the name of a result goes to a separate folder."""
    for name, copy in (("weather.csv", "weather.csv"), ("energy.csv", "2/energy.csv")):
        scenario = load(scenario_with(tmp_path, HOURS, name=name))
        assert scenario.input_files == (tmp_path / name,)
        out = tmp_path / f"out of {name}"
        write_resolved(scenario, out)
        assert (out / copy).read_text() == HOURS
        resolved = tomllib.loads((out / "scenario.toml").read_text())
        ambient = {"file": copy, "time": "hour", "time_unit": "h", "column": "T_out", "unit": "degC", "repeat": False}
        assert resolved["boundaries"]["x_max"]["ambient"] == ambient
        assert load(out / "scenario.toml") == scenario


def test_a_run_from_a_file_has_the_bits_of_a_run_from_numbers(tmp_path: Path) -> None:
    """The run of the resolved scenario too; a copy that was changed cannot be resumed."""
    short = ["time.end=2", "output.probe_every=0.5", "solver.device=cpu", "output.figures=false"]
    short.append('probes=[{ name = "end", point = [0.1, 0.1, 0.1] }]')
    path = scenario_with(tmp_path, "s,T\n0,20\n1,90\n1,-40\n2,5\n", 'time = "s", column = "T", unit = "degC"')
    numbers = '{ times = [0, 1, 1, 2], values = ["20 degC", "90 degC", "-40 degC", "5 degC"] }'
    runs = {"file": (path, []), "numbers": (path, [f"boundaries.x_max.ambient={numbers}"])}
    runs["again"] = (tmp_path / "file" / "scenario.toml", [])
    for name, (scenario, overrides) in runs.items():
        heatsim.Simulation.from_scenario(scenario, [*short, *overrides], output=tmp_path / name).run()
    found = [results(tmp_path / name) for name in runs]
    for key in ("fields", "probes", "energy", "checkpoint"):
        assert found[0][key] == found[1][key] == found[2][key]
    (tmp_path / "file" / "weather.csv").write_text("s,T\n0,20\n1,91\n1,-40\n2,5\n")
    (tmp_path / "file" / "summary.json").unlink()
    with pytest.raises(FolderError, match=r"weather\.csv: was changed since the run began"):
        heatsim.Simulation.resume(tmp_path / "file").run()


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    assert table(tmp_path, HOURS).values[2] == 270.15
    time.sleep(0.01)
    assert table(tmp_path, HOURS.replace("-3", "-4")).values[2] == 269.15


LONG_FILES = {
    "numbers": (np.arange(9.0) / 3.0, np.array([20.1, -3.3, 0.1, 1e-7, 1e5, 17.25, 0.3, 3.14159265358979, 2.5]), {}),
    "a decimal comma": (np.arange(3.0), np.array([20.1, -3.25, 0.1]), {"delimiter": ";", "decimal": ","}),
    "a year": (np.arange(8760.0), np.round(20.0 + 15.0 * np.sin(np.arange(8760.0) / 24.0), 3), {"delimiter": "\t"}),
}


def both_ways(folder: Path, content: str, keys: str, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What a short and a long file with the same content give: the table, or the mistake."""
    found: list[object] = []
    for number, long in enumerate((1 << 20, 0)):
        monkeypatch.setattr(csv_table, "LONG", long)
        csv_table._read.cache_clear()
        (folder / str(number)).mkdir()
        path = scenario_with(folder / str(number), content, keys)
        try:
            read = load(path).boundaries.x_max.ambient
            found.append((tuple(read.times), tuple(read.values)))
        except ScenarioError as error:
            found.append([(mistake.key, mistake.message) for mistake in error.mistakes])
    return found


@pytest.mark.each_value
@pytest.mark.parametrize("unit", ["K", "degC", "mK", "degF"])
@pytest.mark.parametrize("kind", LONG_FILES)
def test_long_files_give_the_bits_of_short_ones(
    kind: str, unit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times, values, more = LONG_FILES[kind]
    values = abs(values) if unit in ("K", "mK") else values
    mark, point = more.get("delimiter", ","), more.get("decimal", ".")
    rows = [
        f"{time!r}{mark}x{mark} {value!r}".replace(".", point)
        for time, value in zip(times.tolist(), values.tolist(), strict=True)
    ]
    keys = f'time = "t", time_unit = "h", column = "T", unit = "{unit}"' + "".join(
        f", {key} = {json.dumps(value)}" for key, value in more.items()
    )
    short, long = both_ways(tmp_path, "\n\n".join([mark.join(("t", "n", "T")), *rows, ""]), keys, monkeypatch)
    assert short == long
    assert len(long[0]) == len(times)


def test_long_files_are_read_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not row by row by Python, which takes ten times as long."""

    def row_by_row(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(csv_table, "LONG", 0)
    monkeypatch.setattr(csv_table, "read_columns", row_by_row)
    for content, keys in (
        (HOURS, KEYS),
        ("t,T\n2024-01-31T13:00,20\n2024-01-31 14:00:00.5,21\n", 'time = "t", column = "T", unit = "degC"'),
        ("t,T\n2024-01-31T13:00Z,290\n2024-01-31T15:00+01:00,291\n", 'time = "t", column = "T"'),
    ):
        assert table(tmp_path, content, keys).times[:2] in ((0.0, 3600.0), (0.0, 3600.5))


@pytest.mark.parametrize(
    "content",
    [
        "t,T\n0,300\n1,nan\n",
        "t,T\n0,300\n1,\n2,310\n",
        "t,T\n0,300\n1,inf\n",
        "t,T\n0,300\n1,3,600\n",
        't,T\n0,300\n1,"3,600"\n',
        "t,T\n0,300\n1,0x12\n",
        "t,T\n0,300\n1,-5\n",
        "t,T\n0,300\n2,310\n1,320\n",
        "t,T\n0,300\n0,310\n0,320\n",
        "t,T\n0,300\n0,310\n",
        "t,T\n0,300\n1e-300,310\n",
        "t,T\n2024-01-31,300\n2024-01-31T13:00Z,310\n",
        "t,T\n2024-01-31,300\n5,310\n",
        "t,T\n0,300\n",
        "t,t\n0,300\n1,300\n",
        "t,T\n0,300\n+1,+310\n ,  \n2.,.5e3\n",
        't,T\n"0","300"\n1, "310"\n',
        "t,T\r0,300\r\n1,310\r",
    ],
)
def test_long_files_have_the_same_mistakes_as_short_ones(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, long = both_ways(tmp_path, content, 'time = "t", column = "T"', monkeypatch)
    assert short == long


def test_numbers_with_commas_between_thousands_get_advice(tmp_path: Path) -> None:
    key, message = mistake(tmp_path, 'hour,T_out\n0,300\n1,"3,600"\n', 'time = "hour", column = "T_out"')
    assert key == "column"
    assert 'a number is expected, as in 3600; if the comma is the decimal point, write decimal = ","' in message
