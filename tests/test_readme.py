"""What the README says works: its commands, scenarios, Python lines, and the messages it shows."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib import resources
from pathlib import Path

import pytest

import heatsim
from heatsim.cli import app, main
from heatsim.kernels.catalog import KERNELS
from heatsim.scenario import load
from heatsim.scenario.load import parse
from heatsim.study.definition import read
from heatsim.verification import CASES

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SCENARIOS = ROOT / "scenarios"


def blocks(language: str, section: str = "") -> list[str]:
    """The fenced blocks of a language, in the whole README or in the section with a heading."""
    text = README.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0] if section else README
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands() -> list[list[str]]:
    """The arguments of every heatsim command in a block."""
    lines = "".join(blocks("sh")).splitlines()
    lines += [line.removeprefix("$ ") for line in "".join(blocks("console")).splitlines() if line.startswith("$ ")]
    found = []
    for step in (step.strip() for line in lines for step in line.split("&&")):
        for start in ("heatsim ", "python -m heatsim "):
            if step.startswith(start):
                found.append(shlex.split(step.removeprefix(start), comments=True))
    return found


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the scenarios in it, as the one that the README's commands are typed in; the current one."""
    shutil.copytree(SCENARIOS, tmp_path / "scenarios", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_set_up_is_two_commands() -> None:
    first, second = blocks("sh", "Set-up")
    assert first == "python -m pip install -e . && python -m heatsim scenarios/cube.toml\n"
    steps = [step.strip() for step in second.split("&&")]
    assert second.count("\n") == 1
    assert steps[0] == 'python -m pip install -e ".[test]"'
    for step in steps[1:]:
        tool = shlex.split(step)[2]
        assert shlex.split(step)[:2] == ["python", "-m"]
        assert tool in ("ruff", "mypy", "pytest")


@pytest.mark.skipif(os.name != "posix", reason="needs bash")
def test_ci_runs_the_second_command_as_it_stands(tmp_path: Path) -> None:
    # Tools of the same names that only say what they were called with: nothing is installed here.
    tools, seen = tmp_path / "tools", tmp_path / "seen"
    tools.mkdir()
    python = tools / "python3"
    python.write_text(
        f"#!/usr/bin/env bash\nmkdir -p $3/bin && printf '#!/bin/sh\\necho \"$@\" >> {seen}\\n' > $3/bin/python && "
        "chmod +x $3/bin/python && echo PATH=$3/bin:$PATH > $3/bin/activate\n"
        f"echo $3 > {tmp_path}/environment\n"
    )
    python.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([ROOT / ".ci" / "run"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    command = blocks("sh", "Set-up")[1]
    assert done.stdout == command
    called = [f"python {line}" for line in seen.read_text().splitlines()]
    assert called == [" ".join(shlex.split(step)) for step in command.split("&&")]
    made = Path((tmp_path / "environment").read_text().strip())
    assert not made.is_relative_to(ROOT)
    assert not made.exists()


def test_every_scenario_is_mentioned_and_the_picture_is_there() -> None:
    for path in SCENARIOS.glob("*.toml"):
        assert path.name in README
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / link).is_file(), link
    picture = ROOT / "scenarios" / "pictures" / "cube.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 300_000


def test_scenario_explained_is_the_one_that_the_first_command_runs() -> None:
    explained = blocks("toml", "A scenario, table by table")[0]
    assert parse(tomllib.loads(explained), SCENARIOS / "cube.toml") == load(SCENARIOS / "cube.toml")


@pytest.mark.parametrize("text", blocks("toml")[1:], ids=lambda text: text.splitlines()[0])
def test_other_tables_can_stand_in_that_scenario(text: str, tmp_path: Path) -> None:
    cube = tomllib.loads(blocks("toml")[0])
    tables = tomllib.loads(text)
    if "study" in tables:
        (tmp_path / "cube.toml").write_text(blocks("toml")[0] + text, encoding="utf-8")
        assert len(read(tmp_path / "cube.toml")[1]) == 3 * 2 * 2
        return
    # [materials.NAME] stand in place of [material].
    kept = {key: table for key, table in cube.items() if key != "material" or "materials" not in tables}
    changed, unchanged = (parse(document, SCENARIOS / "cube.toml") for document in ({**kept, **tables}, cube))
    # The table of the solver shows the defaults.
    assert (changed == unchanged) == ("solver" in tables)


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_command_is_understood(arguments: list[str]) -> None:
    _, bound, unused = app.parse_args(arguments, exit_on_error=False, print_error=False)[:3]
    assert not unused
    assert bound.arguments or arguments in (["kernels"], ["verify"])


def test_every_command_is_shown() -> None:
    shown = {arguments[0] for arguments in commands()}
    assert {"run", "plan", "resume", "render", "export", "kernels", "study", "verify"} <= shown
    assert [arguments for arguments in commands() if arguments == ["scenarios/cube.toml"]]


@pytest.mark.parametrize(
    "arguments",
    [arguments for arguments in commands() if arguments[0] in ("run", "plan") or arguments[0].endswith(".toml")],
    ids=" ".join,
)
def test_scenario_command_can_be_planned(
    arguments: list[str], checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = [part for part in arguments if part not in ("run", "plan")]
    code = main(["plan", *wanted])
    if "conductivity=-237" in " ".join(arguments):
        assert code == 2
    else:
        assert code == 0, capsys.readouterr().err


def test_commands_on_a_run_work(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyvista", reason="PyVista is not installed")
    small = ["domain.cells=[6, 6, 1]", "time.end=5", "output.figures=false", "solver.kernel=numpy", "solver.device=cpu"]
    heatsim.Simulation.from_scenario("scenarios/cube.toml", small).run()
    on_folders = [arguments for arguments in commands() if arguments[0] in ("resume", "render", "export")]
    assert len(on_folders) == 3
    for arguments in on_folders:
        assert main(arguments) == 0, capsys.readouterr().err
    assert list((checkout / "outputs" / "cube" / "figures").glob("*.png"))
    assert list((checkout / "outputs" / "cube" / "export").glob("*.pvd"))


def test_message_shown_is_the_one_given(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command, _, message = blocks("console")[0].partition("\n")
    assert main(shlex.split(command.removeprefix("$ heatsim "))) == 2
    assert capsys.readouterr().err == message


def test_python_lines_run(checkout: Path) -> None:
    (lines,) = blocks("python")
    assert len(lines.splitlines()) == 7
    done = subprocess.run(
        [sys.executable, "-c", lines],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(heatsim.__file__).parents[1]), *sys.path]),
            "PYTHONIOENCODING": "utf-8",
        },
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"3\d\d\.\d\d to 3\d\d\.\d\d K after \d+ steps, in outputs.small\n", done.stdout)
    assert (checkout / "outputs" / "small" / "summary.json").is_file()


def test_every_case_of_the_verification_is_shown() -> None:
    (table,) = blocks("text", "Verification")
    for case in CASES:
        assert re.search(rf"^{case.name} .* pass$", table, re.MULTILINE), case.name
    named = [name for arguments in commands() if arguments[0] == "verify" for name in arguments[1:] if name[0] != "-"]
    assert {case.name for case in CASES} >= set(named) - {"cpu", "float64", "verdicts.json"}


def test_ladders_list_the_catalog() -> None:
    kernels_readme = (resources.files("heatsim") / "kernels" / "README.md").read_text(encoding="utf-8")
    for spec in KERNELS:
        if spec.backend == "cuda":
            number = spec.source[:2]
            assert re.search(rf"^\| {number} \| `{spec.name}` \|", README, re.MULTILINE), spec.name
            assert len(re.findall(rf"^\| {number} \| {spec.name} \|", kernels_readme, re.MULTILINE)) == 2, spec.name
            assert f"**{number} {spec.name}" in kernels_readme
        else:
            assert f"`{spec.name}`" in README
