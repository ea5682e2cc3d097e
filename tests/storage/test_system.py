"""The system calls that change files do not follow links."""

import os
import stat
from pathlib import Path

import pytest

from heatsim.errors import FolderError
from heatsim.storage.disk import write_whole
from heatsim.storage.system import File


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_not_opened(tmp_path: Path, there: bool) -> None:
    victim, link = tmp_path / "victim", tmp_path / "link"
    if there:
        victim.write_bytes(b"precious")
    link.symlink_to(victim)
    for opened in (File, File.create):
        with pytest.raises(FolderError, match="link: is a symbolic link"):
            opened(link)
    assert victim.exists() == there
    assert not there or victim.read_bytes() == b"precious"


def test_a_link_that_appears_beside_a_file_is_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "summary.json.part").symlink_to(victim)
    with pytest.raises(FolderError, match=r"summary\.json\.part: is a symbolic link"):
        write_whole(tmp_path / "summary.json", b"{}")
    assert victim.read_bytes() == b"precious"
    assert (tmp_path / "summary.json.part").is_symlink()


def test_a_file_and_then_its_name_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = list[str]()

    def sync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            synced.append(",".join(os.listdir(descriptor)))
        else:
            synced.append(os.pread(descriptor, 9, 0).decode())

    monkeypatch.setattr(os, "fsync", sync)
    write_whole(tmp_path / "summary.json", b"{}")
    assert synced == ["{}", "summary.json"]
