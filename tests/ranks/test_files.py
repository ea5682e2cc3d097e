"""Files that several ranks write together are those of one rank, byte by byte; a disk that refuses ends it on all."""

import errno
import os
import tomllib
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thread_team import current_team, on_ranks

from heatsim.errors import InputError, StorageError
from heatsim.grid import Grid
from heatsim.parallel.slab import Slab, slabs
from heatsim.parallel.team import Team
from heatsim.run.ranks import check_inputs_of_ranks
from heatsim.scenario import parse
from heatsim.storage.checkpoint import Checkpoint, read_last_good, write
from heatsim.storage.checkpoint_draft import Pieces
from heatsim.storage.checksums import combined
from heatsim.storage.field_file import FieldFile
from heatsim.storage.field_writer import FieldWriter
from heatsim.storage.stored_arrays import StoredArrays

GRID = Grid((9, 7, 23), (0.9, 0.7, 2.3))
SHAPE = GRID.shape
FIELDS = [np.random.default_rng(number).random(SHAPE) for number in range(4)]
FLUXES = [np.random.default_rng(9 + number).random((*SHAPE, 3)) for number in range(4)]
KINDS = np.random.default_rng(20).integers(0, 2, SHAPE, np.uint8)


@given(st.lists(st.binary(max_size=300), max_size=6), st.binary(max_size=20))
def test_checksums_of_pieces_are_combined(pieces: list[bytes], before: bytes) -> None:
    sums = [(zlib.crc32(piece), len(piece)) for piece in pieces]
    assert combined(sums, zlib.crc32(before)) == zlib.crc32(before + b"".join(pieces))


def own(team: Team) -> Slab:
    return slabs(SHAPE[0], team.size, periodic=False)[team.rank]


def in_pieces(values: Any, planes: int = 2) -> Iterable[Any]:
    return (values[first : first + planes] for first in range(0, len(values), planes))


def append(writer: FieldWriter, slab: Slab, numbers: Iterable[int]) -> None:
    for number in numbers:
        planes = slice(slab.first, slab.last)
        writer.append(float(number), in_pieces(FIELDS[number][planes]), in_pieces(FLUXES[number][planes], 3))


def write_fields(path: Path, ranks: int, precision: str, expected: int) -> None:
    """Write two fields, then two more with a writer that continues, on another number of ranks."""

    def begin(team: Team) -> Any:
        slab = own(team)
        names = ("steel", "air")
        with FieldWriter.create(path, GRID, precision, expected, True, names, team, slab) as writer:
            writer.write_materials(in_pieces(KINDS[slab.first : slab.last]))
            append(writer, slab, (0, 1))
            writer.flush()
            return writer.record(2) if team.first else None

    def go_on(team: Team) -> None:
        slab = own(team)
        FieldWriter.check(path, GRID, precision, 2, record, team)
        with FieldWriter.reopen(
            path, GRID, precision, 2, expected, record, checked=True, team=team, slab=slab
        ) as writer:
            append(writer, slab, (2, 3))

    record = on_ranks(ranks, begin)[0]
    on_ranks(max(1, ranks - 1), go_on)


@pytest.mark.quick("1-float32", "4-float64")
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("expected", [4, 1])
def test_fields_of_ranks_are_those_of_one(tmp_path: Path, precision: str, expected: int) -> None:
    """With space for all of them, and with a file that has to grow."""
    for ranks in (1, 3, 4):
        write_fields(tmp_path / f"{ranks}.vtkhdf", ranks, precision, expected)
    whole = (tmp_path / "1.vtkhdf").read_bytes()
    assert (tmp_path / "3.vtkhdf").read_bytes() == whole
    assert (tmp_path / "4.vtkhdf").read_bytes() == whole


def test_each_rank_checks_some_of_the_fields(tmp_path: Path) -> None:
    path = tmp_path / "fields.vtkhdf"

    def make(team: Team) -> Any:
        with FieldWriter.create(path, GRID, "float64", 4, False, (), team, own(team)) as writer:
            for number in range(4):
                writer.append(float(number), [FIELDS[number][own(team).first : own(team).last]])
            return writer.record(4)

    record = on_ranks(3, make)[0]
    content = path.read_bytes()
    for number in range(4):
        place = content.find(FIELDS[number].tobytes()[:64])
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(StorageError, match=rf"the field at t = {number}\.0 s differs from what was written"):
            on_ranks(3, lambda team: FieldWriter.check(path, GRID, "float64", 4, record, team))


@pytest.mark.parametrize("rank", [0, 2])
def test_a_full_disk_of_one_rank_is_an_error_on_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: int) -> None:
    path = tmp_path / "fields.vtkhdf"

    place, full = FieldFile._place, False

    def place_unless_full(*arguments: Any) -> None:
        if full and current_team().rank == rank:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        place(*arguments)

    def work(team: Team) -> str:
        nonlocal full
        slab = own(team)
        with FieldWriter.create(path, GRID, "float64", 4, True, (), team, slab) as writer:
            append(writer, slab, (0,))
            team.meet()
            full = True
            with pytest.raises(StorageError, match="No space left on device") as caught:
                append(writer, slab, (1,))
            team.meet()
            full = False
            append(writer, slab, (1,))
        return str(caught.value)

    monkeypatch.setattr(FieldFile, "_place", place_unless_full)
    told = on_ranks(3, work)
    assert told[0] == told[1] == told[2]
    write_alone = tmp_path / "alone.vtkhdf"
    with FieldWriter.create(write_alone, GRID, "float64", 4, True) as writer:
        append(writer, Slab.whole(SHAPE[0]), (0, 1))
    assert path.read_bytes() == write_alone.read_bytes()


def save(at: Path, ranks: int, step: int, before: Callable[[], object] = lambda: None) -> list[str]:
    """Write a checkpoint with small arrays, two large ones, and one that describes files; what each rank is told."""
    at.mkdir(exist_ok=True)

    def work(team: Team) -> str:
        slab = own(team)

        def pieces(number: int) -> Pieces:
            values = FIELDS[number][slab.first : slab.last]
            return Pieces(SHAPE, "float64", lambda: in_pieces(values), slab.first)

        values = {"step": step, "rank 0": True} if team.first else {"step": -1}
        files = {"rows": Pieces((3,), "uint32", lambda: [np.arange(3, dtype=np.uint32)])} if team.first else {}
        saved = Checkpoint({"ledger": np.arange(5.0)}, values)
        try:
            write(at, saved, {"deviation": pieces(step), "compared": pieces(step + 1)}, before, files, team)
        except StorageError as error:
            return str(error)
        return ""

    return on_ranks(ranks, work)


def test_checkpoints_of_ranks_are_those_of_one(tmp_path: Path) -> None:
    for ranks in (1, 3, 4):
        for step in (0, 1):
            save(tmp_path / str(ranks), ranks, step)
    for name in ("checkpoint.h5", "checkpoint.previous.h5"):
        whole = (tmp_path / "1" / name).read_bytes()
        assert (tmp_path / "3" / name).read_bytes() == whole
        assert (tmp_path / "4" / name).read_bytes() == whole


def test_ranks_read_their_part_of_a_checkpoint_and_check_all_of_it(tmp_path: Path) -> None:
    for step in (0, 1):
        save(tmp_path, 3, step)

    def read(team: Team) -> tuple[int, list[str], bool]:
        found, warnings = read_last_good(tmp_path, team)
        assert found is not None
        assert isinstance(found.arrays, StoredArrays)
        step, slab = found.values["step"], own(team)
        part = found.part("deviation", slab.first, slab.last)
        whole = found.arrays["deviation"]
        same = (part == FIELDS[step][slab.first : slab.last]).all() and (whole == FIELDS[step]).all()
        assert found.shape("deviation") == SHAPE
        assert (found.arrays["ledger"] == np.arange(5.0)).all()
        return step, warnings, bool(same)

    assert on_ranks(4, read) == [(1, [], True)] * 4
    newest = tmp_path / "checkpoint.h5"
    content = newest.read_bytes()
    for place in (3, 600, len(content) // 3, len(content) // 2, len(content) - 1):
        newest.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        warning = f"{newest} is damaged (checksum differs); using checkpoint.previous.h5"
        assert on_ranks(4, read) == [(0, [warning], True)] * 4, place


def test_a_rank_that_cannot_save_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    save(tmp_path, 3, 0)
    content = (tmp_path / "checkpoint.h5").read_bytes()
    for rank in (0, 1):

        def before(rank: int = rank) -> None:
            if current_team().rank == rank:
                raise StorageError("no room")

        assert save(tmp_path, 3, 1, before) == ["no room"] * 3
        assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.h5"]
        assert (tmp_path / "checkpoint.h5").read_bytes() == content


def test_ranks_that_read_different_input_files_start_no_run(tmp_path: Path) -> None:
    """Something changes the file after each rank has read it."""
    text = (
        "[domain]\nsize = [1.0, 1.0, 1.0]\ncells = [2, 2, 2]\n[material]\nconductivity = 1.0\ndensity = 1.0\n"
        'specific_heat = 1.0\n[initial]\ntemperature = { file = "start.npy" }\n[time]\nend = 1.0\n'
    )
    scenarios = []
    for rank in range(2):
        np.save(tmp_path / "start.npy", np.full((2, 2, 2), 300.0 + rank))
        scenarios.append(parse(tomllib.loads(text), tmp_path / "case.toml"))
    with pytest.raises(InputError, match=r"start\.npy changed while the ranks read it; run again"):
        on_ranks(2, lambda team: check_inputs_of_ranks(scenarios[team.rank], team))
    assert on_ranks(2, lambda team: check_inputs_of_ranks(scenarios[0], team)) == [None, None]
