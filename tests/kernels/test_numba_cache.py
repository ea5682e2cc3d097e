"""Damaged files in numba's cache, and folders that cannot be written to: compiled again, said in one line."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest
import runs
from numba import types

from heatsim import numba_cache

SOURCE = """
from numba import njit

def twice(x):
    return 2 * x


def thrice(x):
    return 3 * x


def made(factor):
    @njit
    def multiplied(x):
        return factor * x

    def counted(x):
        return multiplied(x) + 1

    return counted
"""


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], int]:
    """Uses two kept functions as a new process would; how often they were found in the folder given."""
    path = tmp_path / "functions.py"
    path.write_text(SOURCE)
    specification = importlib.util.spec_from_file_location("functions", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "functions", module)
    specification.loader.exec_module(module)

    def process(folder: Path) -> int:
        monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))
        monkeypatch.setattr(numba_cache, "_told", set())
        twice, thrice = numba_cache.kept(nogil=True)(module.twice), numba_cache.kept()(module.thrice)
        assert (twice(21), twice(1.5), thrice(7)) == (42, 3.0, 21)
        return sum(sum(function.stats.cache_hits.values()) for function in (twice, thrice))

    return process


@pytest.fixture
def forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[int]]:
    """Use two forms of a callback as a new process would; returns how often each was found in the cache."""
    path = tmp_path / "functions.py"
    path.write_text(SOURCE)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))

    def process() -> list[int]:
        specification = importlib.util.spec_from_file_location("functions", path)
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        monkeypatch.setitem(sys.modules, "functions", module)
        specification.loader.exec_module(module)
        hits = []
        for factor in (2, 3):
            counted = numba_cache.Callback(module.made(factor), types.int64(types.int64), f"factor_{factor}")
            counted.compile()
            hits.append(counted.cache_hits)
            assert counted.stored
            assert counted.ctypes(7) == 7 * factor + 1
        return hits

    return process


def test_forms_of_a_function_are_found_and_told_apart(forms: Callable[[], list[int]]) -> None:
    """They call functions that are other objects in each process."""
    assert forms() == [0, 0]
    assert forms() == [1, 1]


def test_a_file_with_the_code_of_another_form_is_not_used(
    tmp_path: Path, forms: Callable[[], list[int]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Two processes may write code for different arguments to the same file, and then one of them the index."""
    forms()
    first, second = sorted((tmp_path / "cache").rglob("*.nbc"))
    first.write_bytes(second.read_bytes())
    assert forms() == [0, 1]
    assert forms() == [1, 1]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("sources", ["", "digest of what both are compiled from"])
def test_swapped_files_of_two_functions_are_not_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sources: str
) -> None:
    """Two functions of one file with the same bytecode and signature differ in their names alone."""
    path, cache = tmp_path / "functions.py", tmp_path / "cache"
    path.write_text("A, B = 2.0, 3.0\n\ndef a(x):\n    return A * x\n\ndef b(x):\n    return B * x\n")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(cache))
    monkeypatch.setattr(numba_cache, "_told", set())

    def process() -> list[float]:
        specification = importlib.util.spec_from_file_location("functions", path)
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        monkeypatch.setitem(sys.modules, "functions", module)
        specification.loader.exec_module(module)
        if not sources:
            return [numba_cache.kept()(function)(7.0) for function in (module.a, module.b)]
        signature = types.float64(types.float64)
        callbacks = [numba_cache.Callback(getattr(module, name), signature, name, sources) for name in "ab"]
        for callback in callbacks:
            callback.compile()
        return [callback.ctypes(7.0) for callback in callbacks]

    assert process() == [14.0, 21.0]
    for suffix in (".nbc", ".nbi"):
        first, second = sorted(cache.rglob(f"*{suffix}"))
        content = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(content)
        assert process() == [14.0, 21.0]


def damaged(content: bytes, harm: str) -> bytes:
    middle = len(content) // 2
    changed = bytearray(content)
    changed[middle : middle + 1] = bytes([content[middle] ^ 1])
    zeros = content[: middle - 20] + bytes(40) + content[middle + 20 :]
    return {"empty": b"", "half": content[:middle], "text": b"no\n", "flip": bytes(changed), "zeros": zeros}[harm]


def test_damaged_files_are_replaced(
    tmp_path: Path, start: Callable[[Path], int], capsys: pytest.CaptureFixture[str]
) -> None:
    cache = tmp_path / "cache"
    assert start(cache) == 0
    assert start(cache) == 3
    whole = {path: path.read_bytes() for path in cache.rglob("*.nb?")}
    assert len(whole) == 2 + 3  # an index a function, and code for each signature
    assert capsys.readouterr() == ("", "")
    for suffix in (".nbi", ".nbc"):
        for harm in ("empty", "half", "text", "zeros", "flip"):
            for path, content in whole.items():
                path.write_bytes(damaged(content, harm) if path.suffix == suffix else content)
            found = start(cache)
            out, err = capsys.readouterr()
            assert out == ""
            # A changed digit of the index may be another key or source, whose code is compiled without a word.
            if suffix == ".nbc" or harm in ("empty", "half", "text"):
                assert found == 0
                assert err.count("\n") == 1
                assert err.startswith(f"heatsim: warning: cached code in {cache}")
                assert err.endswith("; compiling it again\n")
            assert start(cache) == 3
            assert capsys.readouterr() == ("", "")


def test_a_folder_that_cannot_be_written_to(
    tmp_path: Path, start: Callable[[Path], int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nowhere(function: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(numba_cache._Code, "__init__", lambda self, function: nowhere(function))
        assert start(tmp_path / "cache") == 0
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert err.startswith("heatsim: warning: cannot cache compiled code (RuntimeError: cannot cache function")
    with monkeypatch.context() as patch:
        patch.setattr("numba.core.caching.IndexDataCacheFile._save_index", full)
        assert start(tmp_path / "cache") == 0
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert "cannot cache compiled code in" in err
        assert "No space left on device" in err
    # An index that can neither be read nor replaced.
    assert start(tmp_path / "cache") == 0
    for path in (tmp_path / "cache").rglob("*.nbi"):
        path.write_bytes(b"")
    with monkeypatch.context() as patch:
        patch.setattr("numba.core.caching.IndexDataCacheFile._save_index", full)
        assert start(tmp_path / "cache") == 0
        assert capsys.readouterr().err.count("\n") == 1


def test_what_is_kept_is_called_like_what_numba_keeps(tmp_path: Path, start: Callable[[Path], Any]) -> None:
    start(tmp_path / "cache")
    names = sorted(path.name.split("-")[0] for path in (tmp_path / "cache").rglob("*.nb?"))
    assert names == ["functions.thrice"] * 2 + ["functions.twice"] * 3


def test_code_from_the_cache_needs_no_compiler(tmp_path: Path) -> None:
    module = "from heatsim.numba_cache import kept\n\n\n@kept(nogil=True)\ndef twice(x):\n    return 2.0 * x\n"
    (tmp_path / "functions.py").write_text(module)
    script = """
import sys
from functions import twice
assert twice(3.0) == 6.0
print(sum(twice.stats.cache_hits.values()), "numba.np.arraymath" in sys.modules)
"""
    environment = runs.environment()
    environment["PYTHONPATH"] = os.pathsep.join((str(tmp_path), environment["PYTHONPATH"]))
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
    said = [
        subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    # numba imports the types that it can compile, a third of a second, when it compiles.
    assert [done.stdout for done in said] == ["0 True\n", "1 False\n"]
