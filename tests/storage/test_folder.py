"""Output folders: which are replaced, which are refused, and that other files are never removed."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from heatsim.errors import FolderError, StorageError
from heatsim.scenario import input_names, load, write_resolved
from heatsim.storage import manifest
from heatsim.storage.folder import claim, require_run
from heatsim.storage.preparation import prepare
from heatsim.storage.summary_file import read_summary, write_summary

RUN = [
    "checkpoint.h5",
    "checkpoint.h5.part",
    "checkpoint.previous.h5",
    "energy.csv",
    "export/temperature.pvd",
    "export/temperature_0000.vti",
    "fields.vtkhdf",
    "figures/slices.png",
    "inputs/start.npy",
    "photo.png",
    "probes.csv",
    "scenario.toml",
    "summary.json",
]


def tree(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())


def make(folder: Path, *names: str) -> Path:
    """A folder with these files, which heatsim did not write."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


def made(folder: Path, *names: str, complete: bool = True) -> Path:
    """A folder in which heatsim wrote these files, and a manifest."""
    folder.mkdir()
    manifest.create(folder, [name for name in names if not name.endswith(".part")])
    make(folder, *names)
    if complete:
        manifest.end(folder)
    return folder


def test_a_missing_or_empty_folder_is_made_ready(tmp_path):
    prepare(tmp_path / "a" / "b", overwrite=False)
    prepare(tmp_path / "a" / "b", overwrite=False)
    assert tree(tmp_path / "a" / "b") == [manifest.NAME]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("complete", [False, True])
def test_a_finished_run_is_replaced_whole(tmp_path, overwrite, complete):
    folder = made(tmp_path / "run", *RUN, complete=complete)
    prepare(folder, overwrite, names=["scenario.toml"])
    assert [path.name for path in folder.iterdir()] == [manifest.NAME]
    assert manifest.read(folder) == {"scenario.toml": manifest.FileEntry()}


def test_an_unfinished_run_is_replaced_only_on_request(tmp_path):
    folder = made(tmp_path / "my run", *(name for name in RUN if name != "summary.json"))
    before = tree(folder)
    with pytest.raises(FolderError, match=r"unfinished.*`heatsim resume '.*my run'`.*--overwrite") as caught:
        prepare(folder, overwrite=False)
    assert caught.value.exit_code == 2
    assert tree(folder) == before
    prepare(folder, overwrite=True)
    assert tree(folder) == [manifest.NAME]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    "other",
    [
        *("notes.txt", "figures/drawing.xcf", "figures/slices_t0001.png", "export/temperature_0001.vti"),
        *("inputs/other.npy", "thesis/chapter.tex", "mine.part", "failure.json"),
    ],
)
def test_a_folder_with_other_files_is_refused_untouched(tmp_path, other, overwrite):
    folder = make(made(tmp_path / "run", *RUN), other)
    before = tree(folder)
    with pytest.raises(FolderError, match=other.split("/")[0]):
        prepare(folder, overwrite)
    assert tree(folder) == before


@pytest.mark.parametrize("name", ["scenario.toml", "probes.csv", "photo.png", "figures/slices.png", "summary.json"])
@pytest.mark.parametrize("harm", ["MINE", "longer than it was"])
def test_a_file_that_the_user_changed_is_the_users(tmp_path, name, harm):
    folder = made(tmp_path / "run", *RUN)
    (folder / name).write_text(harm.ljust(len(name)))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(FolderError, match=rf"were changed since \({name}\); nothing was removed"):
        prepare(folder, overwrite=True)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_small_file_is_heatsims_with_the_old_and_the_new_content(tmp_path, monkeypatch):
    """The new one is recorded before it is written, and a kill may come between."""
    folder = made(tmp_path / "run", "scenario.toml", "summary.json")
    with monkeypatch.context() as patched:
        patched.setattr(manifest, "write_whole", lambda *_: None)
        manifest.write_own(folder, "report.html", b"one")
        patched.setattr(manifest, "write_whole", lambda path, content, _: path.write_bytes(content))
        manifest.write_own(folder, "report.html", b"two")
        patched.setattr(manifest, "write_whole", lambda *_: None)
        manifest.write_own(folder, "report.html", b"three")
    for content, whose in ((b"one", []), (b"two", []), (b"three", []), (b"four", ["report.html"])):
        (folder / "report.html").write_bytes(content)
        assert manifest.find_yours(folder, ["report.html", "scenario.toml"]) == whose
    with pytest.raises(FolderError, match=r"report\.html is not as heatsim wrote it, and was kept"):
        manifest.write_own(folder, "report.html", b"five")
    assert (folder / "report.html").read_bytes() == b"four"


def test_fields_and_checkpoints_are_known_by_their_paths(tmp_path):
    folder = made(tmp_path / "run", *RUN)
    for name in manifest.GROWING:
        (folder / name).write_text("damaged")
    prepare(folder, overwrite=False)
    assert tree(folder) == [manifest.NAME]


@pytest.mark.parametrize("names", [["probes.csv"], RUN, ["a", "b", "c", "d", "e", "f"], ["scenario.toml", "photo.png"]])
def test_a_folder_without_a_manifest_is_foreign(tmp_path, names):
    folder = make(tmp_path / "run", *names)
    with pytest.raises(FolderError, match="not from heatsim"):
        prepare(folder, overwrite=True)
    assert tree(folder) == sorted(names)
    for change in (lambda: manifest.begin(folder, ["probes.csv"]), lambda: manifest.refuse_foreign(folder)):
        with pytest.raises(FolderError, match=r"manifest\.json is missing, so heatsim did not write this folder"):
            change()


def test_the_run_that_is_to_be_read_is_not_removed(tmp_path):
    folder = made(tmp_path / "run", *RUN)
    before = tree(folder)
    with pytest.raises(FolderError, match=r"input files of this very run \(inputs/start.npy, scenario.toml\)"):
        prepare(folder, overwrite=True, inputs=[folder / "scenario.toml", folder / "inputs" / "start.npy"])
    assert tree(folder) == before


@pytest.mark.parametrize(
    "name", ["../outside.npy", "{tmp}/outside.npy", "link/outside.npy", "a/../../outside.npy", "."]
)
def test_a_manifest_does_not_lead_outside(tmp_path, name):
    """The folder, with its manifest, may come from someone else."""
    outside = make(tmp_path, "outside.npy") / "outside.npy"
    folder = made(tmp_path / "run", "summary.json", complete=False)
    manifest.create(folder, ["summary.json", name.format(tmp=tmp_path)])
    if name.startswith("link"):
        (folder / "link").symlink_to(tmp_path)
        with pytest.raises(FolderError, match="link"):
            prepare(folder, overwrite=True)
    else:
        prepare(folder, overwrite=True)
    assert outside.read_text() == "outside.npy"


@pytest.mark.parametrize("name", ["fields.vtkhdf", "figures", "export", "probes.csv"])
def test_symbolic_links_are_not_ours(tmp_path, name):
    target = make(tmp_path / "elsewhere", "slices.png", "temperature_0000.vti")
    folder = made(tmp_path / "run", "scenario.toml", "summary.json")
    manifest.create(folder, RUN)
    (folder / name).symlink_to(target if name in ("figures", "export") else target / "slices.png")
    with pytest.raises(FolderError, match=name):
        prepare(folder, overwrite=True)
    assert tree(target) == ["slices.png", "temperature_0000.vti"]
    assert (folder / "scenario.toml").exists()


@pytest.mark.parametrize("tail", ["", ",\n", ',\n{"path": "no', ",\n" + "\0" * 40, ',\n{"path": 7}\n]}\n'])
def test_a_torn_manifest_counts_up_to_its_last_whole_line(tmp_path, tail):
    folder = made(tmp_path / "run", "scenario.toml", "probes.csv")
    path = folder / manifest.NAME
    path.write_text(path.read_text().removesuffix("\n]}\n") + tail)
    before = manifest.read(folder)
    assert manifest.begin(folder, ["figures/a.png"], "usual png") == []
    assert manifest.read(folder) == {**before, "figures/a.png": manifest.FileEntry(group="usual png")}
    found = json.loads(path.read_text())
    assert found["files"][-1] == {"path": "figures/a.png", "bytes": None, "crc32": None, "group": "usual png"}


def test_a_damaged_entry_of_a_manifest_costs_no_other(tmp_path):
    folder = made(tmp_path / "run", "scenario.toml", "probes.csv", "energy.csv")
    path, before = folder / manifest.NAME, manifest.read(folder)
    path.write_bytes(path.read_bytes().replace(b'"probes.csv", "bytes": 10,', b'"probes.csv", "bytes": 1\xff,'))
    assert manifest.read(folder) == {**before, "probes.csv": manifest.FileEntry()}
    assert manifest.begin(folder, ["energy.csv", "a.csv"]) == []
    assert manifest.read(folder).keys() == {*before, "a.csv"}


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b"[" * 10_000])
def test_a_manifest_of_another_kind_is_refused(tmp_path, content):
    folder = made(tmp_path / "run", *RUN)
    (folder / manifest.NAME).write_bytes(content)
    before = tree(folder)
    for change in (lambda: prepare(folder, overwrite=True), lambda: manifest.begin(folder, ["a"])):
        with pytest.raises(FolderError, match=r"manifest\.json: was not written by heatsim, or is damaged"):
            change()
    assert tree(folder) == before


@pytest.mark.parametrize("layout", ["", '"layout": 0, '])
def test_a_folder_of_another_version_is_refused(tmp_path, layout):
    """To read and to replace; only a copy without its manifest may be of any version."""
    folder = made(tmp_path / "run", *RUN)
    path = folder / manifest.NAME
    now = f'"layout": {manifest.LAYOUT}, '
    assert now in path.read_text()
    require_run(folder)
    path.write_text(path.read_text().replace(now, layout))
    before = tree(folder)
    for use in (
        require_run,
        lambda folder: prepare(folder, overwrite=True),
        lambda folder: manifest.begin(folder, ["a"]),
    ):
        with pytest.raises(
            FolderError, match=r"run: was written by another version of heatsim, .* move the folder away"
        ):
            use(folder)
    assert tree(folder) == before
    path.unlink()
    require_run(folder)


def test_two_processes_add_to_a_manifest_at_the_same_time(tmp_path):
    folder = made(tmp_path / "run", "scenario.toml")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: manifest.begin(folder, [f"figures/{number}.png"]), range(64)))
    assert manifest.read(folder).keys() == {"scenario.toml", *(f"figures/{number}.png" for number in range(64))}


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    path = make(tmp_path, "file") / "file"
    for folder in (path, path / "below"):
        with pytest.raises(FolderError, match=r"is a file, or inside of a file; choose another --output"):
            prepare(folder, overwrite=True)
    assert path.read_text() == "file"


def test_a_link_to_nowhere_is_refused_with_its_target(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "gone")
    with pytest.raises(FolderError, match=r"is a link to .*gone, which is not there; choose another --output"):
        prepare(link, overwrite=True)


def test_a_folder_that_may_not_be_written_to_is_refused(tmp_path, monkeypatch):
    folder = made(tmp_path / "run", *RUN)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(FolderError, match="permissions"):
        prepare(folder, overwrite=True)
    assert tree(folder) == sorted([*RUN, manifest.NAME])


def test_a_folder_in_use_by_another_process_is_refused(tmp_path):
    folder = made(tmp_path / "run", *RUN)
    program = (
        "import sys; from pathlib import Path; from heatsim.storage.folder import claim\n"
        "with claim(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(FolderError, match="another heatsim process"):
            prepare(folder, overwrite=True)
        with pytest.raises(FolderError, match="another heatsim process"), claim(folder):
            pass
        process.kill()
        process.wait()
        assert tree(folder) == sorted([*RUN, manifest.NAME])
        with claim(folder):
            pass


def test_require_run_tells_what_is_wrong(tmp_path):
    folder = make(tmp_path / "run", "scenario.toml")
    assert require_run(folder) == folder
    with pytest.raises(FolderError, match="not there"):
        require_run(tmp_path / "gone")
    with pytest.raises(FolderError, match=rf"is a file; .*, for instance {re.escape(str(folder))}$"):
        require_run(folder / "scenario.toml")
    with pytest.raises(
        FolderError,
        match=rf"not the folder of a heatsim run, scenario.toml is missing; .*, for instance {re.escape(str(folder))}$",
    ):
        require_run(tmp_path)


def test_the_summary_comes_back_in_order_and_without_nan(tmp_path):
    folder = made(tmp_path / "run", "scenario.toml")
    summary = {
        "versions": {"heatsim": "0.1.0"},
        "device": "NVIDIA H100 – °C",
        "c": (np.float64(0.1), np.float32(0.5)),
        "cells": np.array([1, 2, 3]),
        "step": 0.1 + 0.2,
        "limit": np.inf,
        "residual": [float("nan")],
        "folder": Path("outputs"),
        "again": None,
        "done": np.bool_(True),
    }
    write_summary(folder, summary)
    found = read_summary(folder)
    assert list(found) == list(summary)
    assert found["c"] == [0.1, 0.5]
    assert found["cells"] == [1, 2, 3]
    assert found["step"] == 0.1 + 0.2
    assert found["limit"] is None
    assert found["residual"] == [None]
    assert found["folder"] == "outputs"
    assert found["done"] is True
    text = (folder / "summary.json").read_text(encoding="utf-8")
    assert "°C" in text
    assert json.loads(text, parse_constant=pytest.fail) == found
    assert tree(folder) == [manifest.NAME, "scenario.toml", "summary.json"]


def test_summaries_that_cannot_be_read_get_a_message(tmp_path):
    folder = made(tmp_path / "run", "scenario.toml")
    with pytest.raises(FolderError, match=r"has not finished.*heatsim resume"):
        read_summary(folder)
    for content, reason in (
        (b"{", "line 1 is not JSON"),
        (b"[1]", "not a JSON object"),
        (b"\n\xff", "line 2 is not UTF-8"),
    ):
        (folder / "summary.json").write_bytes(content)
        with pytest.raises(StorageError, match=rf"summary\.json.*{reason}.*the file is damaged"):
            read_summary(folder)
    (folder / "summary.json").unlink()
    (folder / "summary.json").mkdir()
    with pytest.raises(FolderError, match=r"summary\.json is not as heatsim wrote it, and was kept"):
        write_summary(folder, {})


LABELS = """
[domain]
size = [0.02, 0.03, 0.01]
cells = [2, 3, 1]
[materials.a]
conductivity = 1.0
density = 1.0
specific_heat = 1.0
[time]
end = 1.0
[initial]
temperature = 300.0
[[regions]]
name = "part"
labels = { file = "ct", materials = { "1" = "a" } }
[[regions]]
name = "again"
labels = { file = "more/ct", materials = { "1" = "a" } }
"""


def labelled(tmp_path):
    """A scenario that reads two folders of the same name."""
    for name in ("ct", "more/ct"):
        (tmp_path / "home" / name).mkdir(parents=True)
        Image.new("L", (2, 3), 1).save(tmp_path / "home" / name / "0.png")
    (tmp_path / "home" / "part.toml").write_text(LABELS)
    return load(tmp_path / "home" / "part.toml")


def prepared(tmp_path):
    """The folder of a run that has begun, with its copies of slices."""
    run, scenario = tmp_path / "run", labelled(tmp_path)
    prepare(run, overwrite=False, names=["scenario.toml", *input_names(scenario)])
    write_resolved(scenario, run)
    assert sorted(path.relative_to(run).as_posix() for path in run.rglob("*.png")) == ["2/ct/0.png", "ct/0.png"]
    return run


def test_folders_of_slices_are_replaced_with_the_run(tmp_path):
    run = prepared(tmp_path)
    prepare(run, overwrite=True)
    assert tree(run) == [manifest.NAME]


def test_folders_that_are_being_made_for_slices_are_taken_again(tmp_path):
    run = prepared(tmp_path)
    (run / "ct" / "0.png").unlink()
    (run / "2" / "ct" / "0.png").rename(run / "2" / "ct" / "0.png.part")
    (run / "scenario.toml").rename(run / "scenario.toml.part")
    prepare(run, overwrite=False)
    assert tree(run) == [manifest.NAME]


def test_other_files_in_a_folder_of_slices_are_kept(tmp_path):
    run = prepared(tmp_path)
    (run / "ct" / "notes.txt").write_text("mine")
    with pytest.raises(FolderError, match=r"ct/notes\.txt"):
        prepare(run, overwrite=True)
    assert (run / "ct" / "0.png").exists()
