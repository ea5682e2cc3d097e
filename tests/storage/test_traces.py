"""The progress of a run, from files some of which are damaged."""

from pathlib import Path

from heatsim.storage import folder, traces


def test_damaged_files_do_not_tell_of_a_time(tmp_path: Path) -> None:
    (tmp_path / folder.PROBES).write_bytes(b"time,here\nnan,300.0\n")
    (tmp_path / folder.FIELDS).write_bytes(b"no HDF5")
    (tmp_path / folder.SUMMARY).write_bytes(b'{"time": [10]}')
    assert traces.latest_time(tmp_path) == 0.0
    (tmp_path / folder.ENERGY).write_bytes(b"time,heat\n0.0,0.0\n2.5,1.0\n5.0,2")
    assert traces.latest_time(tmp_path) == 2.5
