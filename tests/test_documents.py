"""The documents are true: commands, scenarios, Python lines, messages, links, file names, tables and sizes."""

import io
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import pytest

import heatsim
from heatsim.cli import app, main
from heatsim.kernels.catalog import KERNELS
from heatsim.scenario import load
from heatsim.scenario.documents.load import parse
from heatsim.scenario.documents.reference import PAGE, SECTIONS, insert, keys
from heatsim.study import reference as study_reference
from heatsim.study.definition import read
from heatsim.verification import CASES

ROOT = Path(__file__).parents[1]
SCENARIOS = ROOT / "scenarios"
PACKAGE = Path(heatsim.__file__).parent
README = ROOT / "README.md"
EXAMPLES = SCENARIOS / "README.md"
CODE, KERNEL, MEASUREMENTS = PACKAGE / "README.md", PACKAGE / "kernels/README.md", PACKAGE / "kernels/MEASUREMENTS.md"
PHYSICS, RESULTS, STUDIES = PACKAGE / "physics/README.md", PACKAGE / "storage/README.md", PACKAGE / "study/README.md"
VERIFICATION, REDUCTIONS = PACKAGE / "verification/README.md", PACKAGE / "kernels/reductions/README.md"
PRIMERS, RANKS = PACKAGE / "kernels/primers/README.md", PACKAGE / "parallel/README.md"
ERRORS = PACKAGE / "converge/README.md"
COURSE = PACKAGE / "kernels/course/README.md"
# tests/test_guides.py runs their commands
GUIDES = tuple(sorted((PACKAGE / "guides").glob("*.md")))
DOCUMENTS = (
    *(README, EXAMPLES, CODE, KERNEL, MEASUREMENTS, PHYSICS, RESULTS, STUDIES, VERIFICATION, REDUCTIONS, PRIMERS),
    *(COURSE, PAGE, RANKS, ERRORS, PACKAGE / "CHANGELOG.md", *GUIDES),
)
# The page on kernels has a row and a paragraph for each rung of the ladder.
# Cells that take less time to plan.
COARSER = {"cube": "[12,12,16]", "circuit_board": "[20,16,15]", "moving_beam": "[12,9,4]"}
RUNGS = sum(spec.backend == "cuda" for spec in KERNELS)
MOST_BYTES = {README: 10_240, KERNEL: 7_600 + 300 * RUNGS}
ABOUT_RUNS = ("resume", "render", "export")
FILE_NAME = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:py|cu|cuh|toml))`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
# Folders that a page's file names may leave out, and file names of runs and of users.
NAMED_FROM = ("", "heatsim", "tests", "scenarios", "heatsim/verification/cases")
NOT_HERE = {"scenario.toml", "board.toml", "corner.toml", "wax.toml", "weld.toml"}


@cache
def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str, section: str = "") -> list[str]:
    """The fenced blocks of a language, in a whole page or in the section with a heading."""
    within = text(page).split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0] if section else text(page)
    return re.findall(rf"^```{language}\n(.*?)^```$", within, re.DOTALL | re.MULTILINE)


def commands_of(page: Path) -> Iterator[list[str]]:
    """The arguments of every heatsim command in a page's blocks."""
    lines = "".join(blocks(page, "sh")).splitlines()
    lines += [line[2:] for line in "".join(blocks(page, "console")).splitlines() if line.startswith("$ ")]
    # Indented blocks name the machine: node1$ heatsim …
    lines += re.findall(r"^    \w+\$ (.*)$", text(page), re.MULTILINE)
    for step in (step.strip() for line in lines for step in line.split("&&")):
        for start in ("heatsim ", "python -m heatsim "):
            if step.startswith(start):
                yield shlex.split(step.removeprefix(start), comments=True)


ONE_BY_ONE = [page for page in DOCUMENTS if page not in GUIDES]
COMMANDS = list({tuple(arguments): arguments for page in ONE_BY_ONE for arguments in commands_of(page)}.values())

# What `run` and `plan` do with a scenario, once each.
PLANNED = list(
    {
        (wanted := tuple(part for part in arguments if part not in ("run", "plan"))): list(wanted)
        for arguments in COMMANDS
        if arguments[0] in ("run", "plan") or arguments[0].endswith(".toml")
    }.values()
)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as on GitHub."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text(page), flags=re.DOTALL | re.M), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the files that the documents' commands read."""
    shutil.copytree(SCENARIOS, tmp_path / "scenarios", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PACKAGE / "verification/cases", tmp_path / "heatsim/verification/cases")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def run_of_cube(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small run in outputs/cube."""
    folder = tmp_path_factory.mktemp("run")
    small = ["domain.cells=[6, 6, 1]", "time.end=5", "output.figures=false", "solver.kernel=numpy", "solver.device=cpu"]
    heatsim.Simulation.from_scenario(SCENARIOS / "cube.toml", small, output=folder / "outputs/cube").run()
    return folder


def run_python(lines: str) -> str:
    """The output of a Python block, which finds nothing but what it imports."""
    with redirect_stdout(io.StringIO()) as out:
        exec(lines, {"__name__": "__main__"})
    return out.getvalue()


def test_every_document_is_looked_at() -> None:
    found = {*ROOT.glob("*.md"), *SCENARIOS.rglob("*.md"), *PACKAGE.rglob("*.md")}
    assert found == set(DOCUMENTS)


@pytest.mark.parametrize("page", MOST_BYTES, ids=name)
def test_document_is_short(page: Path) -> None:
    assert page.stat().st_size <= MOST_BYTES[page]


@pytest.mark.parametrize("page", DOCUMENTS, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(text(page)):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert not file.startswith("http"), "a link that cannot be checked here"
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link
        if target.suffix == ".png":
            assert target.read_bytes().startswith(b"\x89PNG")
            assert target.stat().st_size < 300_000


@pytest.mark.parametrize("page", DOCUMENTS, ids=name)
def test_files_named_exist(page: Path) -> None:
    for file in set(FILE_NAME.findall(text(page))) - NOT_HERE:
        places = [ROOT / folder / file for folder in NAMED_FROM]
        assert any(place.is_file() for place in places) or any(page.parent.rglob(file)), file


def test_set_up_is_two_commands() -> None:
    first, second = blocks(README, "sh", "Set-up")
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
    # Tools of the same names that only print their arguments, so that nothing is installed.
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
    command = blocks(README, "sh", "Set-up")[1]
    assert done.stdout == command
    called = [f"python {line}" for line in seen.read_text().splitlines()]
    assert called == [" ".join(shlex.split(step)) for step in command.split("&&")]
    made = Path((tmp_path / "environment").read_text().strip())
    assert not made.is_relative_to(ROOT)
    assert not made.exists()


def test_gallery_has_every_scenario_and_picture() -> None:
    for path in SCENARIOS.glob("*.toml"):
        assert f"({path.name})" in text(EXAMPLES), path.name
    for path in SCENARIOS.glob("pictures/*.png"):
        assert f"(pictures/{path.name})" in text(EXAMPLES), path.name


def test_readme_has_the_scenario_of_the_first_command_in_twelve_lines() -> None:
    (short,) = blocks(README, "toml")
    assert len(short.splitlines()) == 12
    assert parse(tomllib.loads(short), SCENARIOS / "cube.toml") == load(SCENARIOS / "cube.toml")


@pytest.mark.parametrize(
    "tables",
    [block for page in ONE_BY_ONE for block in blocks(page, "toml") if "\n[" in f"\n{block}"],
    ids=lambda block: next(line for line in block.splitlines() if line.startswith("[")),
)
def test_tables_can_stand_in_a_scenario(tables: str, tmp_path: Path) -> None:
    cube = (SCENARIOS / "cube.toml").read_text(encoding="utf-8")
    shown, document = tomllib.loads(tables), tomllib.loads(cube)
    if "study" in shown:
        (tmp_path / "cube.toml").write_text(f"{cube}\n{tables}", encoding="utf-8")
        assert len(read(tmp_path / "cube.toml")[1]) == 3 * 2 * 2
        return
    # [materials.NAME] replace [material].
    kept = {key: table for key, table in document.items() if key != "material" or "materials" not in shown}
    changed = parse({**kept, **shown}, SCENARIOS / "cube.toml")
    # The table of the solver shows the defaults.
    assert (changed == load(SCENARIOS / "cube.toml")) == ("solver" in shown)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_command_is_understood(arguments: list[str]) -> None:
    _, bound, unused = app.parse_args(arguments, exit_on_error=False, print_error=False)[:3]
    assert not unused
    assert bound.arguments or arguments in (["kernels"], ["materials"], ["schema"], ["verify"], ["bench"])


def test_readme_shows_every_command() -> None:
    shown = {arguments[0] for arguments in commands_of(README)}
    assert {command for command in app if not command.startswith("-")} <= shown
    assert ["scenarios/cube.toml"] in list(commands_of(README))


@pytest.mark.parametrize(
    "arguments",
    PLANNED,
    ids=" ".join,
)
@pytest.mark.usefixtures("frozen_again")
def test_scenario_command_can_be_planned(
    arguments: list[str], checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = next((COARSER[name] for part in arguments if (name := Path(part).stem) in COARSER), "")
    code = main(["plan", *arguments, *(["--set", f"domain.cells={cells}"] if cells else [])])
    if "conductivity=-237" in " ".join(arguments):
        assert code == 2
    else:
        assert code == 0, capsys.readouterr().err


def test_commands_on_a_run_work(
    run_of_cube: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyvista", reason="PyVista is not installed")
    monkeypatch.chdir(run_of_cube)
    on_folders = [arguments for arguments in COMMANDS if arguments[0] in ABOUT_RUNS]
    assert {arguments[0] for arguments in on_folders} == set(ABOUT_RUNS)
    for arguments in on_folders:
        assert main(arguments) == 0, capsys.readouterr().err
    assert list((run_of_cube / "outputs/cube/figures").glob("*.png"))
    assert list((run_of_cube / "outputs/cube/export").glob("*.pvd"))


def test_message_shown_is_the_one_given(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks(PAGE, "console")
    command, _, message = block.partition("\n")
    assert main(shlex.split(command.removeprefix("$ heatsim "))) == 2
    assert capsys.readouterr().err == message


def test_python_lines_of_the_readme_run(checkout: Path) -> None:
    (lines,) = blocks(README, "python")
    assert len([line for line in lines.splitlines() if line]) == 6
    printed = run_python(lines)
    assert re.fullmatch(r"3\d\d\.\d\d to 3\d\d\.\d\d K after \d+ steps, in outputs.small\n", printed)
    assert (checkout / "outputs" / "small" / "summary.json").is_file()


@pytest.mark.parametrize("package", ["pyvista", "pandas"])
def test_results_are_read_as_shown(package: str, run_of_cube: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(package)
    monkeypatch.chdir(run_of_cube)
    (lines,) = (block for block in blocks(RESULTS, "python") if f"import {package}\n" in block)
    printed = run_python(lines)
    if package == "pyvista":
        simulation = heatsim.Simulation.resume("outputs/cube")
        T = simulation.temperature
        assert printed == f"{T.min():.2f} to {T.max():.2f} K at {simulation.time} s\n"


def test_lines_for_notebooks_run(run_of_cube: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run_of_cube)
    opened, made, steered = (block for block in blocks(RESULTS, "python") if "import heatsim\n" in block)
    printed = run_python(opened).splitlines()
    assert printed[0] == '<heatsim run "Aluminium cube quenched in water" in outputs/cube: finished, t = 5 s>'
    assert re.fullmatch(r"hottest at the end: 37\d\.\d\d K, at the start: 37\d\.\d\d K", printed[1])
    assert float(printed[2].split()[1]) < 0.0
    printed = run_python(made).splitlines()
    assert printed[0] == '<heatsim simulation "Bar that cools": 50 × 1 × 1 cells, t = 120 of 120 s, in outputs/bar>'
    ends = [float(text) for text in printed[1].strip("[]").split(",")]
    assert ends[0] == 100.0
    assert ends == sorted(ends, reverse=True)
    printed = run_python(steered).splitlines()
    assert 39.0 < float(printed[0].removesuffix(" °C")) < 42.0
    assert printed[1] == "True"


def test_python_lines_on_studies_run(checkout: Path) -> None:
    (lines,) = blocks(STUDIES, "python")
    path = checkout / "scenarios" / "heat_sink_study.toml"
    study = path.read_text(encoding="utf-8")
    shorter = {
        'end = "10 min"': "end = 10.0",
        "[output]\n": "[output]\nfigures = false\n",
        "[16.0, 50.0, 120.0, 200.0, 390.0]": "[50.0]",
        "[25.0, 50.0, 100.0, 200.0, 400.0]": "[50.0]",
    }
    for before, after in shorter.items():
        assert before in study
        study = study.replace(before, after)
    path.write_text(study, encoding="utf-8")
    (foot,) = re.findall(r"3\d\d\.\d+", run_python(lines))
    assert 298.15 < float(foot) < 350.0


@pytest.mark.parametrize(
    ("page", "reference"), [(PAGE, keys), (STUDIES, study_reference.keys)], ids=["scenario", "study"]
)
def test_reference_of_keys_is_made_from_the_models(page: Path, reference: object) -> None:
    assert callable(reference)
    assert text(page) == insert(text(page), reference()), f"run python -m {reference.__module__}"


def test_every_key_is_described() -> None:
    for heading, model in (*SECTIONS, *study_reference.SECTIONS):
        for key, info in model.model_fields.items():
            assert info.description, f"{heading}: {key}"


def test_every_case_of_the_verification_is_shown() -> None:
    (table,) = blocks(VERIFICATION, "text", "Result")
    explained = text(VERIFICATION).split("\n## What the cases check\n")[1].split("\n## ")[0]
    for case in CASES:
        assert re.search(rf"^{case.name} .* pass$", table, re.MULTILINE), case.name
        assert f"`{case.name}`" in explained
    cases = {case.name for case in CASES}
    assert set(re.findall(r"^(\w+) .* pass$", table, re.MULTILINE)) == cases
    named = [part for arguments in COMMANDS if arguments[0] == "verify" for part in arguments[1:] if part[0] != "-"]
    assert cases >= set(named) - {"cpu", "float64", "stabilized", "steady", "verdicts.json"}


def test_ladders_list_the_catalog() -> None:
    for spec in KERNELS:
        if spec.backend == "cuda":
            number = spec.source[:2]
            row, rows = rf"^\| {number} \| `{spec.name}` \|", rf"^\| {number} \| {spec.name} \|"
            assert re.search(row, text(KERNEL), re.MULTILINE), f"kernels/README.md has no row of {spec.name}"
            assert f"**{number} {spec.name}" in text(KERNEL), f"kernels/README.md has no paragraph on {spec.name}"
            found = len(re.findall(rows, text(MEASUREMENTS), re.MULTILINE))
            assert found == 2, f"kernels/MEASUREMENTS.md has {found} rows of {spec.name}, 2 are expected"
        else:
            assert f"`{spec.name}`" in text(KERNEL)


def test_glossary_is_in_order() -> None:
    glossary = text(PHYSICS).split("\n## Glossary\n")[1]
    words = [word for word in re.findall(r"^\| ([^|]+) \|", glossary, re.MULTILINE) if word not in ("word", "---")]
    assert len(words) > 10
    assert words == sorted(words)
