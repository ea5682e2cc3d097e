"""The progress of a run, found in the files that it has written."""

from collections.abc import Iterator
from contextlib import suppress
from math import isfinite
from pathlib import Path

from heatsim.errors import HeatsimError
from heatsim.storage import tables
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.folder import ENERGY, FIELDS, PROBES
from heatsim.storage.summary_file import read_summary


def latest_time(folder: Path) -> float:
    """The last time in s in a run's tables, fields and summary; 0 if there is none. Damaged files are ignored."""
    rows = (_times_of_rows(folder / name) for name in (PROBES, ENERGY))
    every = (time for times in (*rows, _times_of_fields(folder), _end(folder)) for time in times)
    return max((time for time in every if isfinite(time)), default=0.0)


def _times_of_rows(path: Path) -> Iterator[float]:
    with suppress(HeatsimError):
        yield from tables.read(path)[1][:, 0].tolist()


def _times_of_fields(folder: Path) -> Iterator[float]:
    with suppress(HeatsimError), FieldReader(folder / FIELDS) as reader:
        yield from reader.times.tolist()


def _end(folder: Path) -> Iterator[float]:
    with suppress(HeatsimError, KeyError, TypeError, ValueError):
        yield float(read_summary(folder)["time"])
