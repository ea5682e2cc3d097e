"""The cache of compiled kernels: it finds binaries again, and damaged ones do no harm."""

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heatsim.kernels import binaries

cupy = pytest.importorskip("cupy")


class Module:
    """Replaces cupy.RawModule. Compiles lazily from code, loads at once from a path."""

    def __init__(
        self, code: str | None = None, path: str | None = None, options: tuple[str, ...] = (), **_: str
    ) -> None:
        self.code, self.path, self.options = code, path, options

    @property
    def module(self) -> bytes:
        content = Path(self.path).read_bytes()
        if not content.startswith(b"binary of "):
            raise RuntimeError("CUDA_ERROR_INVALID_IMAGE")
        return content


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The list of compiled kernels; the cache starts in an empty folder."""
    calls: list[Any] = []

    def compile_using_nvrtc(code: str, options: tuple[str, ...]) -> tuple[bytes, None]:
        calls.append((code, options))
        return f"binary of {code}".encode(), None

    monkeypatch.setenv("HEATSIM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cupy, "RawModule", Module)
    monkeypatch.setattr(cupy.cuda.compiler, "compile_using_nvrtc", compile_using_nvrtc)
    monkeypatch.setattr(cupy.cuda.runtime, "getDevice", lambda: 0)
    monkeypatch.setattr(cupy.cuda.runtime, "runtimeGetVersion", lambda: 13000)
    monkeypatch.setattr(cupy.cuda, "Device", lambda: type("Device", (), {"compute_capability": "90"}))
    binaries._load.cache_clear()
    yield calls
    binaries._load.cache_clear()


def test_a_binary_is_compiled_once_and_found_by_the_next_process(compiled: list[Any], tmp_path: Path) -> None:
    first = binaries.load("a", ["-DX=1"])
    assert first.module == b"binary of a"
    assert binaries.load("a", ["-DX=1"]) is first
    binaries._load.cache_clear()
    assert binaries.load("a", ["-DX=1"]).path == first.path
    assert compiled == [("a", ("-DX=1", "-ftz=true"))]
    binaries.load("a", ["-DX=2"])
    binaries.load("b", ["-DX=1"])
    assert len(compiled) == 3
    assert len(list((tmp_path / "cache" / "kernels").iterdir())) == 3


@pytest.mark.parametrize("damage", [b"", b"binary of ", b"other content"])
def test_a_damaged_binary_is_compiled_again(compiled: list[Any], damage: bytes) -> None:
    path = Path(binaries.load("a", []).path)
    path.write_bytes(damage)
    binaries._load.cache_clear()
    assert binaries.load("a", []).module == b"binary of a"
    assert len(compiled) == 2


def test_cupy_compiles_if_a_binary_cannot_be_loaded_or_written(
    compiled: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Module, "module", property(lambda module: 1 / 0))
    assert binaries.load("a", ["-DX=1"]).code == "a"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEATSIM_CACHE_DIR", str(tmp_path / "file"))
    module = binaries.load("c", ["-DX=1"])
    assert (module.code, module.options) == ("c", ("-DX=1",))


def test_a_binary_that_cannot_be_written_leaves_no_file(
    compiled: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: str, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.replace", refuse)
    assert binaries.load("a", []).code == "a"
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
