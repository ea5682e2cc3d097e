"""The cache on disk: its folder, its files, and the end of files that are no longer used."""

import os
import time
from pathlib import Path

import pytest

from heatsim.kernels import disk_cache
from heatsim.kernels.disk_cache import cache_folder, load, store

DAY = 86400.0  # s


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEATSIM_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_cache_lies_where_the_platform_wants_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == folder
    monkeypatch.delenv("HEATSIM_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "xdg"))
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_folder().parts[-1] == "heatsim"


A, B, C = (f"kernels/{digit * 32}/{digit * 8}.cubin" for digit in "abc")
TUNED = f"tuning/{'d' * 32}.json"


def test_files_are_removed_after_the_last_use(folder: Path) -> None:
    """Files of folders below too, with their folders; files of other parts of the cache stay."""
    forgotten, used, other, part = (folder / name for name in (A, B, TUNED, f"{C}.7-8.part"))
    for path in (forgotten, used, other, part):
        store(path, b"content")
    for path in (forgotten, used, other, part):
        os.utime(path, (0.0, time.time() - 100 * DAY))
    assert load(used) == b"content"
    store(folder / "kernels" / ("e" * 32) / "eeeeeeee.cubin", b"new")
    assert sorted(path.name for path in (folder / "kernels").iterdir()) == ["b" * 32, "e" * 32]
    assert used.exists()
    assert other.exists()


def test_files_of_the_user_stay_in_the_cache_whatever_their_age(folder: Path) -> None:
    """HEATSIM_CACHE_DIR may be any folder, and one in it may be called kernels."""
    elsewhere = folder.parent / "elsewhere"
    linked = elsewhere / Path(A).name
    mine = [
        *(folder / name for name in ("kernels/mine/thesis.tex", "tuning/piano.json", "tuning/mine.part", f"{B}.bak")),
        *(folder / "kernels" / ("c" * 32) / "kernel.cubin", linked),
    ]
    for path in mine:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"mine")
        os.utime(path, (0.0, time.time() - 200 * DAY))
    (folder / A).parent.symlink_to(elsewhere)
    store(folder / TUNED, b"new")
    store(folder / C, b"new")
    assert all(path.read_bytes() == b"mine" for path in mine)


def test_others_may_read_what_the_umask_allows(folder: Path) -> None:
    before = os.umask(0o022)
    try:
        store(folder / A, b"")
    finally:
        os.umask(before)
    assert (folder / A).stat().st_mode & 0o777 == 0o644


def test_a_file_that_cannot_be_written_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(disk_cache.os, "replace", refuse)
    with pytest.raises(OSError, match="full"):
        store(folder / A, b"content")
    assert list((folder / A).parent.iterdir()) == []
