"""Folders of runs from someone else: heatsim reads, replaces and executes nothing outside of them."""

import base64
import copy
import itertools
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import runs
from study import study_text

import heatsim
from heatsim import Simulation
from heatsim.cli import main
from heatsim.errors import HeatsimError, Interrupted
from heatsim.render import picture_names
from heatsim.report.page import build
from heatsim.report.tables import summarise
from heatsim.storage import checkpoint, folder
from heatsim.storage.disk import parts_of
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.study_hint import STUDY
from heatsim.study import folder as study_folder
from heatsim.study import page as study_page
from heatsim.study.definition import read
from heatsim.study.results import Results

OWN = (*folder.FILES, folder.FAILURE)
PRECIOUS = b"precious\n" * 100
TABLE = 'type = "temperature"\nvalue = {{ file = "{}", time = "h", column = "T", unit = "degC" }}'


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an interrupted run."""
    at = tmp_path_factory.mktemp("half")
    with pytest.MonkeyPatch.context() as patch:
        runs.after_step(patch, 9, runs.interrupt)
        with pytest.raises(Interrupted):
            Simulation.from_scenario(runs.write(at), output=at / "run").run()
    return at / "run"


@pytest.fixture
def crafted(tmp_path: Path, half: Path) -> Path:
    shutil.copytree(half, tmp_path / "crafted")
    return tmp_path / "crafted"


def refused(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """The message of a command that fails."""
    capsys.readouterr()
    assert main([str(word) for word in words]) in (1, 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("heatsim: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("command", ["resume", "render", "export"])
@pytest.mark.parametrize("name", [*OWN, *(f"{name}.part" for name in OWN)])
def test_links_among_the_files_of_a_run_are_refused(
    crafted: Path, command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    victim = crafted.parent / "victim"
    if (crafted / name).exists():
        os.replace(crafted / name, victim)
    else:
        victim.write_bytes(PRECIOUS)
    before = victim.read_bytes()
    (crafted / name).symlink_to(victim)
    assert f"{crafted / name}: is a symbolic link" in refused(capsys, command, crafted)
    assert victim.read_bytes() == before
    assert (crafted / name).is_symlink()


@pytest.mark.parametrize(
    "name", [part.name for of in (folder.SUMMARY, folder.CHECKPOINT) for part in parts_of(Path(of))]
)
def test_links_to_nowhere_are_refused(crafted: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (crafted / name).symlink_to(crafted.parent / "new")
    assert "is a symbolic link" in refused(capsys, "resume", crafted)
    assert not (crafted.parent / "new").exists()


@pytest.mark.parametrize(("command", "name"), [("render", folder.FIGURES), ("export", folder.EXPORT)])
def test_links_in_place_of_folders_are_refused(
    crafted: Path, command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = crafted.parent / "elsewhere"
    elsewhere.mkdir()
    mine = [elsewhere / "slices_t_mine.png", elsewhere / "temperature_mine.vti"]
    for path in mine:
        path.write_bytes(PRECIOUS)
    (crafted / name).symlink_to(elsewhere)
    assert f"{crafted / name}: is a symbolic link" in refused(capsys, command, crafted)
    assert all(path.read_bytes() == PRECIOUS for path in mine)
    assert sorted(elsewhere.iterdir()) == mine


@pytest.mark.parametrize(("command", "name"), [("render", "probes.png"), ("export", "temperature_0000.vti.part")])
def test_links_in_place_of_pictures_and_exports_are_kept(
    crafted: Path, command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyvista", reason="PyVista is not installed")
    victim = crafted.parent / "victim"
    victim.write_bytes(PRECIOUS)
    at = crafted / (folder.FIGURES if command == "render" else folder.EXPORT)
    at.mkdir()
    (at / name).symlink_to(victim)
    if command == "render":
        (crafted / folder.FIELDS).unlink()
    assert f"{at.name}/{name.removesuffix('.part')} is not as heatsim wrote it" in refused(capsys, command, crafted)
    assert victim.read_bytes() == PRECIOUS
    assert (at / name).is_symlink()


def test_a_link_in_figures_brings_no_file_into_the_report(crafted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor into that of a study."""
    secret = crafted.parent / "secret"
    secret.write_bytes(PRECIOUS)
    (crafted / folder.FIELDS).unlink()
    (crafted / folder.FIGURES).mkdir()
    (crafted / folder.FIGURES / "z_z.png").symlink_to(secret)
    os.mkfifo(crafted / folder.FIGURES / "pipe.png")
    assert main(["render", str(crafted)]) == 0
    page = (crafted / folder.REPORT).read_text()
    assert base64.b64encode(PRECIOUS).decode() not in page
    assert "z_z" not in page  # which no picture has: base64 has no "_"


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir], ids=["pipe", "folder"])
@pytest.mark.parametrize("name", [*OWN[1:], folder.FIGURES])
@pytest.mark.parametrize("command", ["resume", "render", "export"])
def test_what_is_no_file_is_refused_before_anything_changes(
    crafted: Path, command: str, name: str, make: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Reading a pipe would wait for ever."""
    if name == folder.FIGURES and make is Path.mkdir:
        return
    (crafted / name).unlink(missing_ok=True)
    make(crafted / name)
    before = {path: path.stat().st_mtime_ns for path in crafted.rglob("*")}
    if name == folder.SCENARIO:
        assert "scenario.toml is missing" in refused(capsys, command, crafted)
    else:
        assert f"{crafted / name}: is a" in refused(capsys, command, crafted)
    assert {path: path.stat().st_mtime_ns for path in crafted.rglob("*")} == before


@pytest.mark.parametrize("command", ["resume", "render", "export"])
def test_a_folder_without_a_manifest_stays_as_it_is(
    crafted: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its scenario.toml and the files that this names may be the user's only copies."""
    (crafted / "manifest.json").unlink()
    before = {path: path.read_bytes() for path in crafted.iterdir()}
    assert "manifest.json is missing, so heatsim did not write this folder" in refused(capsys, command, crafted)
    assert {path: path.read_bytes() for path in crafted.iterdir()} == before


@pytest.mark.parametrize("outside", ["../secret.csv", "{at}/secret.csv", "link.csv", "folder/secret.csv"])
def test_a_resumed_run_reads_only_files_of_its_folder(
    crafted: Path, outside: str, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = crafted.parent / "secret.csv"
    secret.write_text("h,T\n0,10\n10,30\n")
    (crafted / "link.csv").symlink_to(secret)
    (crafted / "folder").symlink_to(crafted.parent)
    name = outside.format(at=crafted.parent)
    scenario = (crafted / folder.SCENARIO).read_text()
    changed = re.sub(r"(\[boundaries\.y_max\]\n)[^[]*", rf"\1{TABLE.format(name)}\n\n", scenario)
    assert changed != scenario
    (crafted / folder.SCENARIO).write_text(changed)
    assert "is a link, or lies outside of the run's folder" in refused(capsys, "resume", crafted)


def test_a_resumed_run_quotes_nothing_of_a_file_elsewhere(crafted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The secret is no table, so reading it would fail, with a message about its content."""
    (crafted.parent / "secret").write_bytes(PRECIOUS)
    (crafted / "link.csv").symlink_to(crafted.parent / "secret")
    scenario = (crafted / folder.SCENARIO).read_text()
    table = TABLE.format("link.csv")
    (crafted / folder.SCENARIO).write_text(re.sub(r"(\[boundaries\.y_max\]\n)[^[]*", rf"\1{table}\n\n", scenario))
    err = refused(capsys, "resume", crafted)
    assert "link.csv: is a link, or lies outside of the run's folder" in err
    assert "precious" not in err


def replace_field(path: Path, make: Callable[[h5py.Group, str, Any], object]) -> None:
    with h5py.File(path, "r+") as file:
        root, name = file["VTKHDF"], "CellData/temperature"
        values = root[name][...]
        del root[name]
        make(root, name, values)


def outside(root: h5py.Group) -> Path:
    return Path(root.file.filename).parents[1] / "other.h5"


def external_link(root: h5py.Group, name: str, values: Any) -> None:
    with h5py.File(outside(root), "w") as other:
        other["x"] = values
    root[name] = h5py.ExternalLink(str(outside(root)), "/x")


def soft_link(root: h5py.Group, name: str, values: Any) -> None:
    root["elsewhere"] = values
    root[name] = h5py.SoftLink("/VTKHDF/elsewhere")


def external_data(root: h5py.Group, name: str, values: Any) -> None:
    outside(root).write_bytes(values.tobytes())
    root.create_dataset(name, values.shape, values.dtype, external=[(str(outside(root)), 0, values.nbytes)])


def virtual_data(root: h5py.Group, name: str, values: Any) -> None:
    with h5py.File(outside(root), "w") as other:
        other["x"] = values
    layout = h5py.VirtualLayout(values.shape, values.dtype)
    layout[...] = h5py.VirtualSource(str(outside(root)), "x", values.shape)
    root.create_virtual_dataset(name, layout)


@pytest.mark.parametrize("command", ["resume", "render", "export"])
@pytest.mark.parametrize("make", [external_link, soft_link, external_data, virtual_data])
def test_hdf5_files_that_lead_out_of_themselves_are_refused(
    crafted: Path, command: str, make: Callable[[h5py.Group, str, Any], object], capsys: pytest.CaptureFixture[str]
) -> None:
    if command == "export":
        pytest.importorskip("pyvista", reason="PyVista is not installed")
    replace_field(crafted / folder.FIELDS, make)
    other = crafted.parent / "other.h5"
    before = other.read_bytes() if other.exists() else b""
    assert folder.FIELDS in refused(capsys, command, crafted)
    assert (other.read_bytes() if other.exists() else b"") == before


def crafted_checkpoint(run: Path, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> None:
    """A checkpoint with a valid checksum and other content."""
    saved, _ = checkpoint.read_last_good(run)
    assert saved is not None
    arrays, values = dict(saved.arrays), dict(saved.values)
    change(arrays, values)
    checkpoint.write(run, checkpoint.Checkpoint(arrays, values))


CHECKPOINTS: list[Callable[[dict[str, Any], dict[str, Any]], object]] = [
    lambda arrays, values: values.pop("step"),
    lambda arrays, values: values.pop("snapshots"),
    lambda arrays, values: values.pop("extreme_temperatures"),
    lambda arrays, values: values.pop("scenario"),
    lambda arrays, values: values.update(step="many"),
    lambda arrays, values: values.update(extreme_temperatures="[[1], 5]"),
    lambda arrays, values: values.update(scenario="{"),
    lambda arrays, values: arrays.pop("deviation"),
    lambda arrays, values: arrays.update(deviation=np.zeros((1, 1, 1))),
    lambda arrays, values: arrays.pop("ledger_surfaces"),
]


@pytest.mark.parametrize("change", CHECKPOINTS, ids=range(len(CHECKPOINTS)))
def test_a_checkpoint_of_another_kind_is_a_message(
    crafted: Path, change: Callable[[dict[str, Any], dict[str, Any]], object], capsys: pytest.CaptureFixture[str]
) -> None:
    crafted_checkpoint(crafted, change)
    err = refused(capsys, "resume", crafted, "--quiet")
    assert folder.CHECKPOINT in err


@pytest.mark.parametrize(
    "harm",
    [
        lambda file: file["VTKHDF"].attrs.__delitem__("WholeExtent"),
        lambda file: file["VTKHDF"].attrs.__setitem__("WholeExtent", [1]),
        lambda file: file["VTKHDF/Steps"].attrs.__setitem__("NSteps", "many"),
        lambda file: file["VTKHDF"].__delitem__("Steps"),
        lambda file: file.__delitem__("VTKHDF"),
        lambda file: (file.__delitem__("VTKHDF"), file.create_dataset("VTKHDF", data=[1.0])),
    ],
    ids=range(6),
)
@pytest.mark.parametrize("command", ["resume", "render"])
def test_fields_of_another_kind_are_a_message(
    crafted: Path, command: str, harm: Callable[[h5py.File], object], capsys: pytest.CaptureFixture[str]
) -> None:
    with h5py.File(crafted / folder.FIELDS, "r+") as file:
        harm(file)
    if command == "resume" and main(["resume", str(crafted), "--quiet"]) == 0:
        # The checkpoint has the structure of the file, and the fields have the right checksums: the file is restored.
        with FieldReader(crafted / folder.FIELDS) as reader:
            assert len(reader) == len(reader.times) > 0
    else:
        assert folder.FIELDS in refused(capsys, command, crafted)


@pytest.mark.parametrize("content", ["[]", "{}", "7", '{"energy_bound": "much"}', "{"])
def test_a_summary_of_another_kind_is_no_traceback(
    crafted: Path, content: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (crafted / folder.SUMMARY).write_text(content)
    (crafted / folder.FIELDS).unlink()
    assert main(["render", str(crafted)]) in (0, 1)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("name", [folder.PROBES, folder.ENERGY])
def test_a_table_without_its_columns_is_a_message(crafted: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (crafted / folder.FIELDS).unlink()
    (crafted / name).write_text("a,b\n1.0,2.0\n")
    assert f"{name}: its first column is not time (s)" in refused(capsys, "render", crafted)


@pytest.mark.parametrize("name", [folder.PROBES, folder.ENERGY])
def test_what_is_wrong_in_a_damaged_table_is_not_printed(
    crafted: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (crafted / folder.FIELDS).unlink()
    path = crafted / name
    header, first, *rest = path.read_bytes().split(b"\n")
    for damaged in (b"\x1b[31m\x00\x07", "\u202e7".encode(), b"\xff\xfe"):
        path.write_bytes(b"\n".join([header, damaged + first, *rest]))
        err = refused(capsys, "render", crafted)
        assert name in err
        assert err[:-1].isprintable()
        assert "\\x" not in err


@pytest.mark.usefixtures("one_core")
def test_a_module_in_the_current_folder_is_not_executed(crafted: Path) -> None:
    pytest.importorskip("pyvista", reason="PyVista is not installed")
    for name in ("pyvista", "vtk", "heatsim", "numpy", "json"):
        (crafted / f"{name}.py").write_text(f"open({str(crafted / 'executed')!r}, 'w')\nraise SystemExit\n")
    runs.process("render", ".", "--view", "surface", "--times", "0", cwd=crafted, safe_path=True)
    assert not (crafted / "executed").exists()


def test_a_folder_whose_name_is_no_text_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """HTML, JSON and VTK need UTF-8; the system does not."""
    if not sys.platform.startswith("linux"):
        pytest.skip("names are UTF-8 here")
    scenario, at = runs.write(tmp_path), tmp_path / os.fsdecode(b"caf\xe9")
    assert "the name is not UTF-8 text" in refused(capsys, "run", scenario, "--output", at, "--quiet")
    assert not at.exists()
    at.mkdir()
    for command in ("render", "resume", "export"):
        assert "the name is not UTF-8 text" in refused(capsys, command, at)
    assert list(at.iterdir()) == []


def test_a_removed_working_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert "the working folder was removed" in refused(capsys, "schema", "a.json")


JUNK = [
    *(None, True, -1, 7, 10**400, 1e308, float("nan"), float("inf"), "", "much", "\x1b[31m\u202e", "\ud800"),
    *([], [1], ["x"], [[1]], [0] * 4, {}, {"temperature": 1}, "a" * 5000),
]


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All places in a JSON value, except those far into a list."""
    yield path
    entries = node.items() if isinstance(node, dict) else list(enumerate(node))[:3] if isinstance(node, list) else ()
    for key, value in entries:
        yield from places(value, (*path, key))


def mutants(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The document without each of its entries, and with junk there."""
    junk = itertools.cycle(JUNK)
    for *above, last in list(places(document))[1:]:
        for remove in (True, False):
            mutant = copy.deepcopy(document)
            node = mutant
            for key in above:
                node = node[key]
            if remove:
                del node[last]
            else:
                node[last] = next(junk)
            yield mutant


def refusals(attempts: Iterable[Callable[[], object]]) -> tuple[int, int]:
    """How many attempts ended with a message, and how many without; any other error fails the test."""
    messages, done = [], 0
    for attempt in attempts:
        try:
            attempt()
            done += 1
        except HeatsimError as error:
            messages.append(str(error))
    assert all(message.replace("\n", "").isprintable() for message in messages)
    return len(messages), done


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.run(tmp_path_factory.mktemp("whole"), "time.method=stabilized", "output.heat_flux=true")


def test_any_summary_is_shown_or_refused(whole: Path, tmp_path: Path) -> None:
    at = shutil.copytree(whole, tmp_path / "run")
    summary = json.loads((at / folder.SUMMARY).read_text())

    def attempt(mutant: dict[str, Any], show: Callable[[Path], object]) -> None:
        (at / folder.SUMMARY).write_text(json.dumps(mutant))
        show(at)

    halves = [{**summary, "probe_extremes": {"\ud800": summary["highest_temperature"]}}]
    both = itertools.cycle([build, partial(summarise, verbose=True)])
    refused_, done = refusals(
        partial(attempt, mutant, next(both)) for mutant in itertools.chain(halves, mutants(summary))
    )
    assert min(refused_, done) > 50


def test_any_study_is_shown_or_refused(tmp_path: Path) -> None:
    definition = read(study_text.write(tmp_path, study_text.STUDY))[0]
    (tmp_path / "study").mkdir()
    study_folder.write_study(tmp_path / "study", definition)
    path = tmp_path / "study" / STUDY
    content = json.loads(path.read_text())

    def attempt(mutant: dict[str, Any]) -> None:
        path.write_text(json.dumps(mutant))
        found = study_folder.read_study(path.parent)
        rows = Results(path.parent, found).rows()
        study_page.build(path.parent, found, rows)
        repr(heatsim.open(path.parent))

    refused_, done = refusals(partial(attempt, mutant) for mutant in ({**content, "points": []}, *mutants(content)))
    assert min(refused_, done) > 50


def reshaped(name: str, change: Callable[[Any], Any]) -> Callable[[h5py.Group], None]:
    def harm(root: h5py.Group) -> None:
        values, attributes = root[name][...], dict(root[name].attrs)
        del root[name]
        root.create_dataset(name, data=change(values)).attrs.update(attributes)

    return harm


def attribute(name: str, value: Any) -> Callable[[h5py.Group], None]:
    return lambda root: root.attrs.__setitem__(name, value)


HARMS: list[Callable[[h5py.Group], None]] = [
    *(
        reshaped("CellData/temperature", change)
        for change in (
            *(lambda values: values[..., None], lambda values: values[:1], lambda values: values.reshape(-1)),
            *(lambda values: values.astype("S4"), lambda values: values > 0.0, lambda values: values * np.nan),
            *(lambda values: np.zeros(0), lambda values: 7.0),
        )
    ),
    reshaped("CellData/heat_flux", lambda values: values[..., None]),
    reshaped("CellData/heat_flux", lambda values: values[..., :2]),
    reshaped("CellData/heat_flux", lambda values: (values > 0.0).astype("<f2")),
    *(reshaped("Steps/Values", change) for change in (lambda times: times[::-1], lambda times: times[:, None])),
    *(attribute("WholeExtent", value) for value in ([0, 10**6] * 3, [0, -7, 0, 5, 0, 6], [0, 7], 5, [0, 0] * 3)),
    *(attribute(name, value) for name in ("Size", "Origin") for value in ([np.nan] * 3, [1e308] * 3, "x", [0.0])),
    *(attribute("Size", value) for value in ([0.0] * 3, [-1.0] * 3, [1e-320] * 3)),
    lambda root: root["Steps"].attrs.__setitem__("NSteps", 10**9),
    lambda root: root["Steps"].attrs.__setitem__("NSteps", -1),
]


def test_fields_of_any_other_shape_are_refused(whole: Path, tmp_path: Path) -> None:
    fields = (whole / folder.FIELDS).read_bytes()
    at = shutil.copytree(whole, tmp_path / "run")

    def attempt(harm: Callable[[h5py.Group], None]) -> None:
        (at / folder.FIELDS).write_bytes(fields)
        with h5py.File(at / folder.FIELDS, "r+") as file:
            harm(file["VTKHDF"])
        run = heatsim.open(at)
        repr(run)
        assert isinstance(run, heatsim.Run)
        for array in (run.temperature, run.heat_flux, run.material):
            array.load()
        picture_names(at)

    refused_, done = refusals(partial(attempt, harm) for harm in HARMS)
    assert (refused_, done) == (len(HARMS), 0)


@pytest.mark.parametrize("count", ["0", "-1", "10000000000000"])
def test_a_line_of_any_number_of_points_is_a_message(
    crafted: Path, count: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with (crafted / folder.SCENARIO).open("a") as file:
        file.write(
            f'[[probes]]\nname = "l"\nline = {{ from = [0.0, 0.0, 0.0], to = [0.1, 0.0, 0.0], count = {count} }}\n'
        )
    assert f"a line has {count} points" in refused(capsys, "render", crafted)
