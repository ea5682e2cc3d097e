"""probes.csv and energy.csv: exact numbers, whole rows."""

import csv
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heatsim.counts import counted
from heatsim.errors import FolderError, StorageError
from heatsim.storage.tables import TableWriter, read

COLUMNS = ["time", "centre", 'a "quoted", name', "Fühler 1", "two\nlines"]
ROWS = [[0.0, 1.0, -0.0, 1e-300, 0.1], [0.1 + 0.2, 1 / 3, 5e-324, -1e308, 12345678901234567.0]]


def write(path: Path, rows=ROWS, columns=COLUMNS):
    with TableWriter.create(path, columns) as table:
        for row in rows:
            table.append(row)


def test_rows_come_back_to_the_bit(tmp_path):
    path = tmp_path / "probes.csv"
    write(path)
    columns, rows = read(path)
    assert columns == COLUMNS
    assert rows.tobytes() == np.array(ROWS).tobytes()
    assert b"\r" not in path.read_bytes()
    assert path.read_bytes().endswith(
        b"\n0.30000000000000004,0.3333333333333333,5e-324,-1e+308,1.2345678901234568e+16\n"
    )


def test_other_programs_read_the_header(tmp_path):
    path = tmp_path / "probes.csv"
    write(path)
    with open(path, newline="", encoding="utf-8") as file:
        assert next(csv.reader(file)) == COLUMNS


@given(row=st.lists(st.floats(allow_nan=False), min_size=1, max_size=4))
def test_any_number_comes_back(tmp_path_factory, row):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    write(path, [row], [f"c{i}" for i in range(len(row))])
    assert read(path)[1].tobytes() == np.array([row]).tobytes()


def test_float32_numbers_keep_their_value(tmp_path):
    path = tmp_path / "probes.csv"
    write(path, [np.array([0.1, 300.7], np.float32)], ["time", "centre"])
    assert read(path)[1].astype(np.float32).tolist() == np.array([[0.1, 300.7]], np.float32).tolist()


def test_a_table_without_rows_has_its_columns(tmp_path):
    path = tmp_path / "probes.csv"
    write(path, [])
    columns, rows = read(path)
    assert columns == COLUMNS
    assert rows.shape == (0, 5)


def test_a_row_is_in_the_file_as_soon_as_it_is_appended(tmp_path):
    path = tmp_path / "probes.csv"
    with TableWriter.create(path, ["time"]) as table:
        for i in range(3):
            table.append([float(i)])
            assert table.rows == i + 1
            assert read(path)[1].tolist() == [[float(j)] for j in range(i + 1)]
        table.flush()


def test_every_cut_reads_as_the_rows_that_are_whole_and_is_repaired(tmp_path):
    path = tmp_path / "probes.csv"
    columns = ["time", "a,b"]
    rows = [[float(i), math.sqrt(i)] for i in range(4)]
    write(path, rows, columns)
    whole = path.read_bytes()
    header = whole.index(b"\n") + 1
    for length in range(header, len(whole) + 1):
        path.write_bytes(whole[:length])
        complete = whole[:length].count(b"\n") - 1
        assert read(path)[1].tolist() == rows[:complete]
        with TableWriter.reopen(path, columns, complete) as table:
            assert table.rows == complete
            for row in rows[complete:]:
                table.append(row)
        assert path.read_bytes() == whole
        path.write_bytes(whole[:length])
        with pytest.raises(
            StorageError, match=f"holds {counted(complete, 'row')}, the checkpoint counts {complete + 1}"
        ):
            TableWriter.reopen(path, columns, complete + 1)


def test_reopening_cuts_off_what_the_checkpoint_does_not_count(tmp_path):
    path = tmp_path / "probes.csv"
    write(path)
    TableWriter.reopen(path, COLUMNS, 1).close()
    assert read(path)[1].tolist() == ROWS[:1]


def test_reopening_another_table_is_refused(tmp_path):
    path = tmp_path / "probes.csv"
    with pytest.raises(StorageError, match="is missing"):
        TableWriter.reopen(path, COLUMNS, 0)
    write(path)
    before = path.read_bytes()
    for columns in (COLUMNS[:2], [*COLUMNS, "more"], ["time"]):
        with pytest.raises(StorageError, match="was expected"):
            TableWriter.reopen(path, columns, 1)
    assert path.read_bytes() == before


def test_a_row_of_another_length_is_refused(tmp_path):
    with TableWriter.create(tmp_path / "probes.csv", ["time", "a"]) as table:
        with pytest.raises(ValueError, match="3 numbers for 2 columns"):
            table.append([1.0, 2.0, 3.0])
        assert table.rows == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no complete header"),
        (b"time,centre", "no complete header"),
        (b"time,centre\n1.0\n", "line 2 has 1 value for 2 columns; the file is damaged"),
        (b"time,centre\n1.0,2.0\n1.0,warm\n", "line 3: its values are not numbers"),
        (b"time,\xff\n", "could not be read"),
    ],
)
def test_damaged_tables_get_a_message(tmp_path, content, message):
    path = tmp_path / "probes.csv"
    path.write_bytes(content)
    with pytest.raises(StorageError, match=message):
        read(path)


def test_a_table_that_is_not_there_gets_a_message(tmp_path):
    with pytest.raises(FolderError, match="not there"):
        read(tmp_path / "probes.csv")
    with pytest.raises(StorageError, match="could not be written"):
        TableWriter.create(tmp_path / "gone" / "probes.csv", COLUMNS)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full, a disk that is always full")
def test_a_full_disk_gives_advice():
    with pytest.raises(StorageError, match=r"free some disk space and run `heatsim resume"):
        TableWriter.create(Path("/dev/full"), COLUMNS)
