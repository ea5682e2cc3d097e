"""Files that options name, such as `plan --picture FILE`: heatsim replaces those that it wrote, and no input."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from heatsim.cli import main
from heatsim.errors import FolderError
from heatsim.render.page.figure import new_figure
from heatsim.storage.single_file import check_replaceable, marked_json, refuse_inputs

PLATE = """
domain = { size = [0.1, 0.1, 0.01], cells = [16, 16, 1] }
material = "library:copper"
initial.temperature = { image = "photo.png", range = [300.0, 400.0] }
time = { end = 0.1, method = "euler" }
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Image.fromarray(np.arange(256, dtype=np.uint8).reshape(16, 16)).save("photo.png")
    Path("plate.toml").write_text(PLATE)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("name", ["photo.png", "./photo.png", "link.png", "hard.png"])
def test_a_picture_never_replaces_an_input(here: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("link.png").symlink_to("photo.png")
    os.link("photo.png", "hard.png")
    before = contents(here)
    for options, complaint in (([], "heatsim did not write it"), (["--overwrite"], "is an input file of this")):
        assert main(["plan", "plate.toml", "--picture", name, "--device", "cpu", *options]) == 2
        assert complaint in capsys.readouterr().err
    assert contents(here) == before


def test_an_input_that_bears_the_mark_stays(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A picture that heatsim drew may be the input of another scenario."""
    with new_figure(here / "photo.png", "drawn", 64, 64):
        pass
    before = contents(here)
    for command in (["plan", "plate.toml", "--picture"], ["bench", "plate.toml", "--methods", "--plot"]):
        assert main([*command, "photo.png", "--device", "cpu"]) == 2
        assert "is an input file of this scenario" in capsys.readouterr().err
    assert contents(here) == before


def test_a_file_among_the_slices_that_a_scenario_reads(tmp_path: Path) -> None:
    (tmp_path / "ct").mkdir()
    (tmp_path / "ct" / "1.png").write_bytes(b"")
    for name in ("1.png", "new.png"):
        with pytest.raises(FolderError, match="nothing was written"):
            refuse_inputs(tmp_path / "ct" / name, [tmp_path / "ct"])
    refuse_inputs(tmp_path / "new.png", [tmp_path / "ct", tmp_path / "gone.csv"])


@pytest.mark.quick(".png")
@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_a_picture_replaces_one_that_heatsim_drew(here: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    """So the commands of the README can be run twice."""
    words = ["plan", "plate.toml", "--device", "cpu", "--picture", f"parts{suffix}"]
    assert main(words) == 0
    assert main([*words, "--set", "title=Another"]) == 0
    Path(f"parts{suffix}").write_bytes(Path("photo.png").read_bytes())
    capsys.readouterr()
    assert main(words) == 2
    assert "replace it with --overwrite; nothing was written" in capsys.readouterr().err
    assert contents(here)[f"parts{suffix}"] == Path("photo.png").read_bytes()
    assert main([*words, "--overwrite"]) == 0
    assert main(words) == 0


MINE = {
    "text": b"mine",
    "object": b'{"name": "mine"}',
    "list": b"[1, 2]",
    "deep": b"[" * 100_000,
    "other": b'{"written_by": "me"}',
    "empty": b"",
}


@pytest.mark.parametrize("content", MINE.values(), ids=MINE)
@pytest.mark.parametrize(
    "command", [["schema"], ["bench", "--device", "cpu", "--json"], ["verify", "--device", "cpu", "--json"]]
)
def test_a_json_file_of_the_user_is_kept(
    here: Path, command: list[str], content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("package.json").write_bytes(content)
    assert main([*command, "package.json"]) == 2
    assert "package.json: is there already, and heatsim did not write it" in capsys.readouterr().err
    assert Path("package.json").read_bytes() == content


def test_a_json_file_that_heatsim_wrote_is_replaced(here: Path) -> None:
    assert main(["schema", "a.json"]) == 0
    assert json.loads(Path("a.json").read_bytes())["written_by"] == "heatsim"
    assert main(["schema", "a.json"]) == 0
    Path("a.json").write_text("{}")
    assert main(["schema", "a.json"]) == 2
    assert main(["schema", "a.json", "--overwrite"]) == 0
    Path("other.json").write_text(marked_json({"measurements": []}))
    check_replaceable(Path("other.json"), (".json",), overwrite=False)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(FolderError, match="no regular file"):
        check_replaceable(tmp_path / "pipe.png", (".png",), overwrite=True)
