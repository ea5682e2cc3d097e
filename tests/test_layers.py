"""Imports point down only, and nothing heavy is imported before it is used."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
import runs

import heatsim
from heatsim.version import version

PACKAGE = Path(str(files("heatsim")))
# A module imports only from its own layer or from layers above it in this list.
LAYERS = (
    "errors",
    "counts",
    "amounts",
    "version",
    "garbage",
    "grid",
    "temperature_units",
    "limits",
    "device",
    "parallel",
    "numba_cache",
    "outputs",
    "storage",
    "scenario",
    "physics",
    "kernels",
    "solver",
    "observers",
    "render",
    "report",
    "run",
    "benchmark",
    "verification",
    "study",
    "converge",
    "opened",
    "commands",
    "cli",
    "__main__",
)
# Narrower than the order: who reads files knows nothing of how they came about, and the other way round.
ONLY = {
    "storage": {"errors", "counts", "grid", "limits", "temperature_units", "parallel"},
    "render": {"errors", "counts", "amounts", "grid", "limits", "device", "scenario", "storage", "temperature_units"},
    "parallel": {"errors", "counts", "grid", "device"},
    "report": {"errors", "counts", "amounts", "version", "grid", "limits", "storage", "temperature_units", "render"},
}
HEAVY = (
    *("cupy", "cupy_backends", "pyvista", "vtk", "vtkmodules", "numba", "matplotlib", "pint", "PIL"),
    *("pyarrow", "pandas", "xarray", "distributed", "dask", "mpi4py"),
)
# Modules that a function imports when it needs them: compiled kernels, and an artist of Matplotlib.
MAY_BE_HEAVY = {
    (f"kernels/{name}.py", "numba")
    for name in (
        *(
            "multigrid/cpu_coarsening",
            "multigrid/cpu_sweeps",
            "reductions/cpu_fused",
            "reductions/cpu_step_error",
            "primers/cpu",
        ),
        *("cpu/plan", "cpu/march", "cpu/blocked", "cpu/lines", "cpu/composite_cells", "cpu/composite"),
        *("cpu/called_parts", "cpu/compiling", "cpu/composite_parts"),
        *("cpu/linked_functions", "cpu/subnormals"),
        *("temporal_composite/boxes", "temporal_composite/box_cells", "temporal_composite/box_contents"),
    )
} | {
    *(("numba_cache.py", "numba"), ("physics/geometry/voxel_gravity.py", "numba")),
    ("physics/geometry/ray_crossings.py", "numba"),
    *(("render/page/raster.py", "matplotlib"), ("opened/lazy_fields.py", "xarray")),
}

MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def imports(node: ast.AST, everywhere: bool) -> Iterator[str]:
    """Dotted names of a module's imports; those inside functions and under TYPE_CHECKING only if ``everywhere``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (name.name for name in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "relative import"
            yield from (f"{child.module}.{name.name}" for name in child.names)
        elif everywhere or not (
            isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            or (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING")
        ):
            yield from imports(child, everywhere)


@cache
def parse(module: str) -> ast.Module:
    return ast.parse((PACKAGE / module).read_text(encoding="utf-8"))


def layer(module: str) -> str:
    return module.split("/")[0].removesuffix(".py")


def within_heatsim(name: str) -> str | None:
    """The layer of an imported name of the package itself."""
    parts = name.split(".")
    if parts[0] != "heatsim":
        return None
    return parts[1] if parts[1] in LAYERS else "package"


def test_imports_point_down_only() -> None:
    wrong = []
    for module in MODULES:
        if module == "__init__.py":
            continue
        mine = layer(module)
        assert mine in LAYERS, module
        above = ONLY.get(mine, set(LAYERS[: LAYERS.index(mine)])) | {mine}
        imported = {found for name in imports(parse(module), everywhere=True) if (found := within_heatsim(name))}
        wrong += [f"{module} imports {sorted(imported - above)}"] * (not imported <= above)
    assert not wrong


def test_heavy_packages_are_imported_by_the_functions_that_use_them() -> None:
    found = {
        (module, package)
        for module in MODULES
        for name in imports(parse(module), everywhere=False)
        if (package := name.split(".")[0]) in HEAVY
    }
    assert found <= MAY_BE_HEAVY


def test_importing_the_package_and_asking_for_help_is_light() -> None:
    script = """
import sys
import heatsim
assert "numpy" not in sys.modules, "numpy"
from heatsim.cli import main
assert main(["--help"]) == 0
print(*sorted({name.split(".")[0] for name in sys.modules}))
"""
    path = [str(PACKAGE.parent), *sys.path]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}\n{script}"],
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "cyclopts" in loaded
    assert not loaded & {*HEAVY, "numpy", "h5py", "pydantic"}


# Modules that a plain run on one CPU does not need.
_ELSEWHERE = ("commands.ranks", "parallel.launch", "parallel.mpi_team", "study", "render.figure")


def test_a_run_without_pictures_imports_nothing_that_draws(tmp_path: Path) -> None:
    scenario = runs.write(tmp_path)
    arguments = ["heatsim", "run", str(scenario), "--output", str(tmp_path / "run"), "--quiet"]
    script = f"""
import ctypes, gc, sys
library = ctypes.CDLL
def without_driver(name, *arguments, **options):
    if name and "cuda" in str(name):
        raise OSError(name)
    return library(name, *arguments, **options)
ctypes.CDLL = without_driver
from heatsim.__main__ import main
sys.argv = {arguments!r}
assert main() == 0
assert not gc.get_stats()[2]["collections"], "looked at all objects for garbage"
print(*sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=runs.environment(), capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    packages = {name.split(".")[0] for name in loaded}
    assert packages & set(HEAVY) <= {"numba", "pint"}
    assert "rich" not in packages
    assert not loaded & {f"heatsim.{module}" for module in _ELSEWHERE}


def test_drawing_a_run_needs_no_models_of_scenarios() -> None:
    """The process that draws has a second for its imports in a short run."""
    script = "import sys, heatsim.render.drawing; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], env=runs.environment(), capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "heatsim.render.run_pictures" in loaded
    assert not loaded & {"pydantic", "heatsim.scenario"}


def test_the_package_offers_what_it_says() -> None:
    assert heatsim.__all__ == ["HeatsimError", "Run", "Simulation", "Study", "StudyResults", "open"]
    for name in heatsim.__all__:
        assert getattr(heatsim, name).__name__ == name
    assert [name for name in dir(heatsim) if not name.startswith("_")] == heatsim.__all__
    assert "__version__" in dir(heatsim)
    assert heatsim.__version__ == version()
    with pytest.raises(AttributeError, match="no attribute 'simulate'"):
        heatsim.simulate  # noqa: B018


@cache
def needs_of_modules() -> dict[str, set[str]]:
    """The modules that each module imports."""
    names = {
        "heatsim." + module.removesuffix(".py").removesuffix("/__init__").replace("/", "."): module
        for module in MODULES
    }
    return {
        name: {
            whole if whole in names else whole.rpartition(".")[0] for whole in imports(parse(module), everywhere=True)
        }
        & names.keys()
        for name, module in names.items()
    }


def in_circles(needs: dict[str, set[str]]) -> list[str]:
    """What remains when whatever needs nothing is taken away again and again."""
    needs = {name: set(needed) for name, needed in needs.items()}
    while free := [name for name, needed in needs.items() if not needed]:
        for name in free:
            del needs[name]
        for needed in needs.values():
            needed.difference_update(free)
    return sorted(needs)


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert not in_circles(needs_of_modules())


@pytest.mark.parametrize("package", ["physics", "render", "scenario", "solver"])
def test_no_folders_of_a_package_import_each_other_in_a_circle(package: str) -> None:
    """A file beside the folders counts as a folder; the package itself, which offers names of all, does not."""
    start = f"heatsim.{package}."

    def folder(module: str) -> str:
        parts = module.removeprefix(start).split(".")
        return parts[0] if (PACKAGE / package / parts[0]).is_dir() else module

    folders: dict[str, set[str]] = {}
    for module, needed in needs_of_modules().items():
        if module.startswith(start):
            others = {folder(other) for other in needed if other.startswith(start)}
            folders.setdefault(folder(module), set()).update(others - {folder(module)})
    assert not in_circles(folders)


@pytest.mark.parametrize("folder", sorted({str(Path(module).parent) for module in MODULES}))
def test_a_folder_has_at_most_thirty_files_of_at_most_500_lines(folder: str) -> None:
    sizes = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in (PACKAGE / folder).glob("*.py")}
    assert len(sizes) <= 30 or Path(folder).name == "cases"
    assert max(sizes.values()) <= 500


def test_a_class_name_is_unique_in_the_package() -> None:
    modules: dict[str, list[str]] = {}
    for module in MODULES:
        for node in ast.walk(parse(module)):
            if isinstance(node, ast.ClassDef):
                modules.setdefault(node.name, []).append(module)
    assert not {name: found for name, found in modules.items() if len(found) > 1}
