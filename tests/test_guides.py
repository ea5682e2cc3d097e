"""The guides are true: their files, commands and numbers, from an empty file on."""

import re
import shlex
from pathlib import Path

import pytest

import heatsim
from heatsim.cli import main

FIT = Path(heatsim.__file__).parent / "guides/fit.md"  # in Python
GUIDES = sorted(page for page in FIT.parent.glob("[a-z]*.md") if page != FIT)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LONG = ("study", "converge")  # commands of several runs


def follow(page: Path, capsys: pytest.CaptureFixture[str], long: bool) -> int:
    """Write the blocks of TOML into one file, run commands and Python, find the lines shown; how many there were.

    Without ``long`` commands of several runs are left out, with what they print.
    """
    scenario, out, found = "", None, 0
    names: dict[str, object] = {"__name__": "__main__"}
    for language, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "toml":
            scenario += f"\n{block}"
        elif language == "python":
            exec(block, names)
            out = " ".join(capsys.readouterr().out.split())
        elif language == "sh":
            out = ""
            for line in block.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "heatsim"
                if arguments[0] in LONG and not long:
                    out = None
                    continue
                (name,) = (argument for argument in arguments if argument.endswith(".toml"))
                Path(name).write_text(scenario, encoding="utf-8")
                options = [] if arguments[0] in (*LONG, "plan") else ["--set=output.figures=false"]
                assert main([*arguments, *options]) == 0
                assert out is not None
                out += " ".join(capsys.readouterr().out.split())
        elif out is not None:
            assert language == "text"
            for line in block.splitlines():
                assert " ".join(line.split()) in out, line
                found += 1
    return found


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["runs", "all"])
def test_a_guide_gives_what_it_shows(
    page: Path, long: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    assert follow(page, capsys, long) >= (9 if long else 4)


def test_the_guide_to_fits_gives_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("scipy")
    monkeypatch.chdir(tmp_path)
    assert follow(FIT, capsys, True) == 5
