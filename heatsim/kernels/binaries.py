"""Compiled kernels on disk, for the GPU in use.

CuPy keeps binaries too, but each process first compiles an empty file for each set of options, to find out the version
of the compiler: about 40 ms a kernel. Here a binary is found from the text of the kernel, the options, the GPU's
architecture and the version of CuPy alone. A binary that is damaged or cannot be loaded is compiled again; a folder
that cannot be written is ignored.

    HEATSIM_CACHE_DIR/kernels/<digest of all that it depends on>/<CRC-32 of the binary>.cubin
"""

import hashlib
import json
import os
import tempfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from heatsim.kernels.autotune_cache import cache_folder
from heatsim.storage.disk import remove_if_there


def load(code: str, options: Sequence[str]) -> Any:
    """The module of a kernel for the current GPU, as a cupy.RawModule; compiled if no binary is known.

    Equal kernels share a module.
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
        _ = module.module  # loads it
    except Exception:  # whatever is wrong with the cache, CuPy can compile, or report the error
        return compiled
    return module


def _folder(cupy: Any, code: str, options: Sequence[str]) -> Path:
    """The folder of a binary; its name is a digest of all that the binary depends on."""
    runtime = cupy.cuda.runtime.runtimeGetVersion()
    depends = [code, list(options), cupy.cuda.Device().compute_capability, cupy.__version__, runtime]
    return cache_folder() / "kernels" / hashlib.sha256(json.dumps(depends).encode()).hexdigest()[:32]


def _intact(folder: Path) -> Path | None:
    """The binary in a folder, if its checksum is right; damaged ones are removed."""
    with suppress(OSError):
        for path in folder.glob("*.cubin"):
            if f"{zlib.crc32(path.read_bytes()):08x}" == path.stem:
                return path
            remove_if_there(path)
    return None


def _compile(cupy: Any, folder: Path, code: str, options: Sequence[str]) -> Path:
    """Compile a kernel as cupy.RawModule does, and write its binary."""
    binary, _ = cupy.cuda.compiler.compile_using_nvrtc(code, (*options, "-ftz=true"))
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, part = tempfile.mkstemp(dir=folder)
    path = folder / f"{zlib.crc32(binary):08x}.cubin"
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(binary)
        os.replace(part, path)
    except OSError:  # otherwise each process would leave a file on a full disk
        remove_if_there(Path(part))
        raise
    return path
