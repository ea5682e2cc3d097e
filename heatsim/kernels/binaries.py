"""Compiled kernels on disk, for the GPU in use.

CuPy has such a cache too. But with it each process compiles an empty file for each set of options, to get the version
of the compiler: about 40 ms per kernel. This cache needs no compiler to find a binary: its key is the text of the
kernel, the options, the GPU's architecture and the versions of CuPy and CUDA. A damaged binary is compiled again. If
the folder cannot be written, kernels are compiled in each process.

    HEATSIM_CACHE_DIR/kernels/<digest of the key>/<CRC-32 of the binary>.cubin
"""

import hashlib
import json
import zlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from heatsim.kernels import disk_cache
from heatsim.storage.disk import remove_if_there


def load(code: str, options: Sequence[str]) -> Any:
    """A kernel as a cupy.RawModule for the current GPU. Compiles it if the cache has no binary.

    Later calls with the same arguments return the same module.
    """
    import cupy

    return _load(cupy, code, tuple(options), cupy.cuda.runtime.getDevice())


@cache
def _load(cupy: Any, code: str, options: tuple[str, ...], device: int) -> Any:
    compiled = cupy.RawModule(code=code, options=options, backend="nvrtc")
    try:
        folder = _folder(cupy, code, options)
        path = _intact(folder) or _compile(cupy, folder, code, options)
        module = cupy.RawModule(path=str(path))
        _ = module.module  # loads the binary
    except Exception:  # if the cache fails, let CuPy compile the kernel or report its error
        return compiled
    return module


def _folder(cupy: Any, code: str, options: Sequence[str]) -> Path:
    """The folder of a binary; its name is the digest of the key."""
    runtime = cupy.cuda.runtime.runtimeGetVersion()
    depends = [code, list(options), cupy.cuda.Device().compute_capability, cupy.__version__, runtime]
    return disk_cache.cache_folder() / "kernels" / hashlib.sha256(json.dumps(depends).encode()).hexdigest()[:32]


def _intact(folder: Path) -> Path | None:
    """The binary in a folder; None if there is none with the right checksum. Removes damaged ones."""
    with suppress(OSError):
        for path in filter(disk_cache.is_own, folder.glob("*.cubin")):
            if f"{zlib.crc32(disk_cache.load(path)):08x}" == path.stem:
                return path
            remove_if_there(path)
    return None


def _compile(cupy: Any, folder: Path, code: str, options: Sequence[str]) -> Path:
    """Compile a kernel as cupy.RawModule does, and write its binary. Returns the file."""
    binary, _ = cupy.cuda.compiler.compile_using_nvrtc(code, (*options, "-ftz=true"))
    path = folder / f"{zlib.crc32(binary):08x}.cubin"
    disk_cache.store(path, binary)
    return path
