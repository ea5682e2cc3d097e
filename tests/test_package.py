"""What users get with `pip install`: templates, `heatsim doctor`, messages where a package is missing."""

import shutil
import sys
import tomllib
from fnmatch import fnmatch
from importlib.metadata import metadata
from pathlib import Path

import pytest
import runs

import heatsim
from heatsim import device
from heatsim.cli import main
from heatsim.commands import doctor, new
from heatsim.parallel import launch
from heatsim.render import opengl
from heatsim.scenario import load
from heatsim.study.definition import read

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TEMPLATES = sorted(path.stem for path in (ROOT / "scenarios").glob("*.toml"))


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_is_complete_where_it_is_written(name: str, tmp_path: Path) -> None:
    written = new.copy_template(new.find_template(name), tmp_path, overwrite=False)
    assert sorted(written) == sorted(tmp_path.iterdir())
    assert written[0] == tmp_path / f"{name}.toml"
    study = "study" in tomllib.loads(written[0].read_text(encoding="utf-8"))
    assert read(written[0])[1] if study else load(written[0])
    assert "scenarios/" not in written[0].read_text(encoding="utf-8")
    # The wheel has these files too.
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["sources"] == {"scenarios": "heatsim/templates"}
    for path in written:
        assert any(fnmatch(f"scenarios/{path.name}", pattern) for pattern in wheel["include"]), path.name


def test_the_templates_of_an_installed_package_are_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "heatsim"
    monkeypatch.setattr(new, "__file__", str(package / "commands" / "new.py"))
    with pytest.raises(heatsim.HeatsimError, match=r"templates: there are no templates in this installation"):
        new.template_folder()
    for folder in (tmp_path / "scenarios", package / "templates"):  # a checkout's; those of a wheel come first
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "scenarios" / "cube.toml", folder)
        assert new.template_folder() == folder


def test_new_lists_templates_and_keeps_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[: len(TEMPLATES)]] == TEMPLATES
    assert main(["new", "wall_year"]) == 0
    assert capsys.readouterr().out.endswith("weather.csv; next: heatsim wall_year.toml\n")
    assert main(["new", "heat_sink_study"]) == 0
    assert capsys.readouterr().out.endswith("next: heatsim study heat_sink_study.toml\n")
    Path("weather.csv").write_text("mine")
    Path("wall_year.toml").unlink()
    assert main(["new", "wall_year"]) == 2
    assert "weather.csv: is there already; nothing was written; replace it with --over" in capsys.readouterr().err
    assert not Path("wall_year.toml").exists()
    assert main(["new", "wall_year", "--overwrite"]) == 0
    assert load(Path("wall_year.toml")).title
    assert main(["new", "wall_yaer"]) == 2
    assert 'did you mean "wall_year"?' in capsys.readouterr().err


def test_doctor_compiles_what_a_first_run_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "_LOOKS", {"Python": doctor._python, "cache": doctor._cache})
    monkeypatch.setattr(doctor, "_COMPILED", {"slab_convection": ("euler",)})
    monkeypatch.setattr(doctor, "_SHORT", (*doctor._SHORT, "solver.kernel=numpy"))
    assert main(["doctor", "--compile"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("Python       works  heatsim ")
    assert out[1].startswith("cache        works  kernels of the GPU in ")
    assert out[-1].endswith(" s, with 1 short runs")


def test_doctor_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for package in ("pyvista", "distributed", "mpi4py", "imageio_ffmpeg", "cupy"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(opengl, "_works", True)  # no trial
    device._cuda.cache_clear()
    monkeypatch.setattr(device, "cuda_of_driver", lambda: 12)
    assert main(["doctor"]) == 0
    device._cuda.cache_clear()
    lines = capsys.readouterr().out.splitlines()
    found = {line.split()[0]: line for line in lines}
    assert len(found) == len(lines) == len(doctor._LOOKS)
    advice = {
        "GPU": 'for this driver: pip install "heatsim[cuda12]"',
        "OpenGL": "pip install pyvista",
        "MPI": 'pip install "heatsim[ranks]"',
        "Dask": "install heatsim[cluster]",
        "ffmpeg": 'pip install "heatsim[video]"',
        "g++": "only CUDA kernels without a GPU need g++",
    }
    for name, remedy in advice.items():
        assert remedy in found[name]
        assert " works " not in found[name]
    assert " works " in found["CPU"]


@pytest.mark.parametrize("cuda", [0, 11])
def test_doctor_asks_for_a_driver(cuda: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "cuda_of_driver", lambda: cuda)
    with pytest.raises(heatsim.HeatsimError, match="install driver 580 or newer"):
        doctor._gpu()


def test_a_command_whose_package_is_missing_says_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("pyvista", "distributed"):
        monkeypatch.setitem(sys.modules, package, None)
    done, out = runs.run(tmp_path, "solver.kernel=numpy"), ("--output", str(tmp_path / "out"))
    path = runs.write(tmp_path, runs.TEXT.replace("[7, 5, 6]", "[7, 5, 8]"))
    table = '[study]\nmethod = "grid"\n[study.parameters]\n"time.end" = [10.0]\n'
    study = runs.write(tmp_path, f"{runs.TEXT}\n{table}", name="study.toml")
    monkeypatch.setattr(launch.shutil, "which", lambda *arguments, **options: None)
    for arguments, remedy in {
        ("render", str(done), "--view", "surface"): "pip install pyvista",
        ("export", str(done), "--format", "pvd"): "pip install pyvista",
        ("study", str(study), "--cluster", "tcp://127.0.0.1:9", *out): "install heatsim[cluster]",
        ("run", str(path), "--ranks", "2", *out): "install heatsim[ranks]",
    }.items():
        assert main(arguments) == 2, arguments
        message = capsys.readouterr().err
        assert message.count("\n") == 1
        assert remedy in message


def test_the_package_says_what_it_is() -> None:
    project, package = PROJECT["project"], Path(heatsim.__file__).parent
    assert (project["license"], project["license-files"]) == ("BSD-3-Clause", ["heatsim/LICENSE"])
    assert (package / "LICENSE").read_text(encoding="utf-8").startswith("BSD 3-Clause License")
    assert (package / "py.typed").is_file()
    assert not [each for each in project["classifiers"] if each.startswith("License")]
    assert f"\n## {project['version']}" in (package / "CHANGELOG.md").read_text(encoding="utf-8")
    assert metadata("heatsim")["Name"] == "heatsim"
