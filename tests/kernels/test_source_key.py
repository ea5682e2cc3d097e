"""Code that numba keeps on disk is not used when a source that it was compiled from has changed."""

import ast
import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from heatsim.kernels.cpu import composite_parts
from heatsim.kernels.source_key import source_key

KEPT: dict[str, Callable[[Any], Any]] = {
    "heatsim.kernels.cpu.blocked": lambda module: module.advance,
    "heatsim.kernels.cpu.composite": lambda module: module.advance,
    "heatsim.kernels.multigrid.cpu_sweeps": lambda module: module.coarsen,
    "heatsim.kernels.reductions.cpu_step_error": lambda module: module.look,
}
NOT_COMPILED = {
    *("heatsim.device", "heatsim.parallel", "heatsim.kernels.cpu.compiling"),
    *("heatsim.numba_cache", "heatsim.kernels.source_key"),
}


def test_the_key_follows_the_sources(tmp_path: Path) -> None:
    one, other = ModuleType("one"), ModuleType("other")
    keys = set()
    for source in ("x = 1\n", "x = 2\n"):
        for number, module in enumerate((one, other)):
            module.__file__ = str(tmp_path / f"{number}.py")
            Path(module.__file__).write_text(source)
            keys.add(source_key((one, other)) if number else source_key((one,)))
    assert len(keys) == 4
    assert source_key((one, other)) in keys


def used(module: ModuleType) -> set[str]:
    """Names of the modules from which one takes something, and of those from which compiled ones among them do."""
    tree = ast.parse(inspect.getsource(module))
    imported = (node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module)
    names = {name for name in imported if name.startswith("heatsim.")} - NOT_COMPILED
    names = {name for name in names if not hasattr(import_module(name), "__path__")}  # folders have no code
    return names.union(*(used(import_module(name)) for name in names if name.startswith("heatsim.kernels.")))


@pytest.mark.parametrize("name", KEPT)
def test_all_that_a_kernel_takes_from_other_modules_is_in_its_key(name: str) -> None:
    module = import_module(name)
    found = used(module)
    assert found
    default = inspect.signature(KEPT[name](module).py_func).parameters["other_sources"].default
    assert default == source_key(map(import_module, found))


def test_all_that_parts_of_the_composite_kernel_take_from_other_modules_is_in_their_key() -> None:
    """The kernel, which calls them by their addresses, does not belong to it."""
    found = used(composite_parts) - {"heatsim.kernels.cpu.composite", "heatsim.kernels.cpu.subnormals"}
    assert set(composite_parts.SOURCES) == set(map(import_module, found))
