"""CUDA C kernels compiled by g++ and executed on the host.

``cuda_host.h`` gives g++ the words of CUDA C and runs blocks, threads, shared memory, barriers and warps;
``compile_kernel`` makes a kernel of a .cu file as it stands, ``HostKernel.launch`` runs it on NumPy arrays.

A launch raises :class:`KernelError` for what would hang or damage memory on a GPU: threads that wait at different
barriers, an index beyond a shared or local array, a misaligned address. Shared memory is filled with NaN before each
block. A race between threads shows as a difference between ``order="forward"`` and ``order="reverse"``; a write outside
an array shows in :class:`Guarded`.
"""

import atexit
import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import DeviceError, RunError
from heatsim.kernels import compilation, compiled

FOLDER = Path(__file__).parent
BUILDS = "HEATSIM_HOST_BUILDS"
COMPILER_OPTIONS = (
    *("-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-strict-aliasing"),
    *("-ffp-contract=off", "-Wno-unknown-pragmas"),
)
# Kernels of composite bodies take longer to compile than to run, except in whole runs.
FAST_TO_COMPILE, FAST_TO_RUN = "-O0", "-Og"
# Options for a kernel whose accesses to memory are counted.
COUNTED = ("-fsanitize=thread", "--param=tsan-instrument-func-entry-exit=0")
# They double the time to compile: in float64 kernels are compiled without them.
CHECKS = (
    "-fsanitize=bounds,alignment,signed-integer-overflow",
    "-fno-sanitize-recover=all",  # a failed check ends the launch; code that could go on takes longer to compile
)
KERNEL = re.compile(r"^extern \"C\" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\(", re.MULTILINE)

Dim3 = tuple[int, int, int]
Order = Literal["forward", "reverse"]


class KernelError(RunError):
    """A launch that would have hung or damaged memory on a GPU."""


class CompilationError(RunError):
    """CUDA C that g++ cannot compile."""


class _Parameter(ctypes.Structure):
    _fields_ = (("is_pointer", ctypes.c_int), ("size", ctypes.c_uint))


class _Counted(ctypes.Structure):
    """Struct Counted of grid_of_blocks.cpp."""

    _fields_ = (
        *(("watched", ctypes.c_void_p), ("size", ctypes.c_size_t), ("shared", 4 * ctypes.c_size_t)),
        *(("read", ctypes.c_uint64), ("written", ctypes.c_uint64), ("in_shared", ctypes.c_uint64)),
    )


@dataclass(frozen=True)
class Traffic:
    """What a kernel compiled with ``COUNTED`` reads and writes, in bytes.

    Attributes:
        read, written: of an array in global memory.
        shared: of shared memory, read or written.
    """

    read: int
    written: int
    shared: int


@dataclass(frozen=True)
class HostKernel:
    """A compiled kernel; each parameter is (is a pointer, bytes of the value or of what it points to)."""

    name: str
    library: ctypes.CDLL
    launcher: Callable[..., bytes | None]
    parameters: tuple[tuple[bool, int], ...]

    def launch(self, grid: Dim3, block: Dim3, *arguments: Any, order: Order = "forward", shared_bytes: int = 0) -> None:
        """Run a grid to its end.

        Args:
            grid: blocks along x, y, z.
            block: threads of a block along x, y, z.
            arguments: for a pointer an array or NumPy scalar, whose address is passed, or None; for a value a NumPy
                scalar or 0-d array, structured for a struct, or bytes.
            order: in which blocks and threads take turns.
            shared_bytes: dynamic shared memory of a block.

        Raises:
            KernelError: the launch went wrong; the text says where.
            TypeError: arguments that the kernel cannot take.
        """
        if len(arguments) != len(self.parameters):
            raise TypeError(f"{self.name} takes {len(self.parameters)} arguments, not {len(arguments)}")
        slots = [
            self._slot(number, argument, *parameter)
            for number, (argument, parameter) in enumerate(zip(arguments, self.parameters, strict=True))
        ]
        addresses = (ctypes.c_void_p * len(slots))(*(slot.ctypes.data for slot, _ in slots))
        unsigned3 = ctypes.c_uint * 3
        error = self.launcher(unsigned3(*grid), unsigned3(*block), shared_bytes, order == "reverse", addresses)
        if error:
            raise KernelError(f"{self.name}: {error.decode()}")

    def traffic(self, array: NDArray[Any], launch: Callable[[], object]) -> Traffic:
        """What the kernel, compiled with ``COUNTED``, reads and writes of an array while ``launch`` launches it."""
        counted = _Counted.in_dll(self.library, "counted")
        counted.watched, counted.size = array.ctypes.data, array.nbytes
        counted.read = counted.written = counted.in_shared = 0
        launch()
        counted.size = 0
        return Traffic(counted.read, counted.written, counted.in_shared)

    def address(self, name: str) -> int:
        """The address of a global variable."""
        return ctypes.addressof(ctypes.c_byte.in_dll(self.library, name))

    def _slot(self, number: int, argument: Any, is_pointer: bool, size: int) -> tuple[NDArray[Any], Any]:
        """The memory that holds the value to pass, and what must live as long as it."""
        where = f"{self.name}, argument {number}"
        if not is_pointer:
            value = np.frombuffer(argument, np.uint8) if isinstance(argument, bytes) else np.array(argument)
            if value.nbytes != size:
                raise TypeError(f"{where}: a value of {size} bytes is expected, not {value.nbytes}")
            return value, None
        if argument is None:
            return np.zeros(1, np.uintp), None
        target = argument if isinstance(argument, np.ndarray) else np.array(argument)
        if size and target.itemsize != size:
            raise TypeError(f"{where}: a pointer to items of {size} bytes is expected, not {target.itemsize}")
        if not target.flags.c_contiguous:
            raise TypeError(f"{where}: the array is not contiguous")
        return np.array([target.ctypes.data], np.uintp), target


@dataclass(frozen=True)
class Guarded:
    """An array between two zones in which every byte is 0xFF: NaN to whoever reads them, and found out if written."""

    memory: NDArray[np.uint8]
    array: NDArray[Any]

    def assert_guards_untouched(self) -> None:
        """Check that nothing was written outside the array.

        Raises:
            KernelError: something was.
        """
        zone = (self.memory.nbytes - self.array.nbytes) // 2
        for side, guard in (("before", self.memory[:zone]), ("behind", self.memory[zone + self.array.nbytes :])):
            touched = np.flatnonzero(guard != 0xFF)
            if touched.size:
                raise KernelError(f"{touched.size} bytes written {side} the array of shape {self.array.shape}")


def guarded(values: NDArray[Any], zone: int = 1 << 16) -> Guarded:
    """A copy of an array with guard zones of ``zone`` bytes on both sides."""
    memory = np.full(values.nbytes + 2 * zone, 0xFF, np.uint8)
    array = memory[zone : zone + values.nbytes].view(values.dtype).reshape(values.shape)
    array[...] = values
    return Guarded(memory, array)


def compile_kernel(
    source: Path,
    options: Sequence[str] = (),
    name: str = "advance",
    include: Sequence[Path] = (compilation.FOLDER,),
    for_runs: bool = False,
    once: bool = False,
) -> HostKernel:
    """The kernel of a .cu file, compiled once for each set of options, by the first of the processes that ask for it.

    Args:
        source: the .cu file.
        options: macros, as ``-DREAL=float``.
        name: the ``extern "C" __global__`` function.
        include: folders for ``#include``; the source's own is searched first.
        for_runs: whether it does many steps.
        once: whether it is launched only a few times, so that a fast compiler counts more than a fast kernel.

    Raises:
        DeviceError: there is no g++ on Linux.
        CompilationError: g++ does not accept the file.
    """
    source = source.resolve()
    level = FAST_TO_COMPILE if once or ("-DFACES=1" in options and not for_runs) else FAST_TO_RUN
    text = source.read_text(encoding="utf-8")
    return _compile(source, text, (level, *options), name, tuple(dict.fromkeys((source.parent, *include))))


def compile_kernels(jobs: Iterable[tuple[Path, Sequence[str]]]) -> list[HostKernel]:
    """``compile_kernel`` for several (source, options), on all processor cores at once."""
    jobs = list(jobs)
    find_compiler()  # raises here, not in a thread
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda job: compile_kernel(*job), jobs))


def function(
    source: str, name: str, macros: Mapping[str, str | int], folder: Path = compiled.FOLDER, order: Order = "forward"
) -> Callable[[Sequence[int], Sequence[int], Sequence[Any]], None]:
    """As :func:`heatsim.kernels.compiled.function`, for arrays of NumPy; threads take turns in an order."""
    options = [option for option in compiled.options(macros) if option.startswith("-D")]
    kernel = compile_kernel(folder / source, options, name)

    def launch(blocks: Sequence[int], threads: Sequence[int], arguments: Sequence[Any]) -> None:
        given = [as_items(argument, *kind) for argument, kind in zip(arguments, kernel.parameters, strict=True)]
        kernel.launch(_three(blocks), _three(threads), *given, order=order)

    return launch


def as_items(argument: Any, is_pointer: bool, size: int) -> Any:
    """The items of ``size`` bytes that a pointer points to; other arguments as they are."""
    return np.asarray(argument).view(np.dtype((np.void, size))) if is_pointer else argument


def _three(sizes: Sequence[int]) -> Dim3:
    x, y, z, *_ = (*sizes, 1, 1)
    return x, y, z


@cache
def _compile(source: Path, text: str, options: tuple[str, ...], name: str, folders: tuple[Path, ...]) -> HostKernel:
    """All kernels of a source are in one library, except those that it includes."""
    names = tuple(KERNEL.findall(text))
    exported = names if name in names else (name,)
    digest = hashlib.sha256(repr((source, text, options, exported, folders)).encode()).hexdigest()[:16]
    stem = build_folder() / f"{source.stem}-{digest}"
    unit, object_file, linked, library = (stem.with_suffix(suffix) for suffix in (".cpp", ".o", ".part", ".so"))
    compiler, checks = find_compiler(), () if "-DREAL=double" in options else CHECKS
    with _alone(stem):
        if not library.exists():
            exports = "".join(f"CUDA_HOST_EXPORT({each})\n" for each in exported)
            unit.write_text(f'#line 1 "{source}"\n{_with_dynamic_shared(text)}\n{exports}', encoding="utf-8")
            _run(
                compiler,
                *COMPILER_OPTIONS,
                *checks,
                *_fma_option(),
                *options,
                *(f"-I{folder}" for folder in folders),
                "-include",
                str(_header(options[0], checks)),
                "-c",
                str(unit),
                "-o",
                str(object_file),
            )
            # Without the libraries of C++, which take longer to link than a kernel. grid_of_blocks.cpp answers the
            # checks of -fsanitize.
            _run(
                compiler,
                "-shared",
                "-nostdlib",
                "-Wl,--no-undefined",
                str(object_file),
                str(_grid_of_blocks(options)),
                "-lm",
                "-lc",
                "-lgcc",
                "-o",
                str(linked),
            )
            linked.rename(library)
    return _load(library, source.name, name)


def _grid_of_blocks(options: tuple[str, ...]) -> Path:
    """The machine that executes a kernel: an object file to link to it."""
    switch = [option for option in options if option == "-DCUDA_HOST_UCONTEXT"]
    made = build_folder() / ("grid_of_blocks_ucontext.o" if switch else "grid_of_blocks.o")
    with _alone(made):
        if not made.exists():
            part = made.with_suffix(".part")
            source = FOLDER / "grid_of_blocks.cpp"
            more = ("-O2", "-fno-threadsafe-statics", *switch)
            _run(find_compiler(), *COMPILER_OPTIONS, *CHECKS, *more, "-c", str(source), "-o", str(part))
            part.rename(made)
    return made


def _header(level: str, checks: tuple[str, ...]) -> Path:
    """What includes cuda_host.h, precompiled; g++ reads the text instead where the options differ."""
    header = build_folder() / f"{'precompiled' if checks else 'unchecked'}{level}.h"
    with _alone(header):
        if not header.exists():
            text = header.with_suffix(".text")
            text.write_text(f'#include "{FOLDER / "cuda_host.h"}"\n', encoding="utf-8")
            _run(
                find_compiler(),
                *COMPILER_OPTIONS,
                level,
                *checks,
                *_fma_option(),
                "-x",
                "c++-header",
                str(text),
                "-o",
                str(header.with_suffix(".h.gch")),
            )
            text.rename(header)
    return header


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Only one thread of one process at a time makes what is at a path."""
    import fcntl  # not on Windows, where nothing is compiled

    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _with_dynamic_shared(text: str) -> str:
    """``extern __shared__ T name[];`` has no counterpart in C++: the name of an array whose memory the launch gives."""
    return re.sub(
        r"extern\s+__shared__\s+(?:__align__\(\d+\)\s+)?([\w ]+?)\s+(\w+)\s*\[\s*\]\s*;",
        r"\1* const \2 = reinterpret_cast<\1*>(cuda_host::dynamic_shared);",
        text,
    )


def _load(path: Path, file: str, name: str) -> HostKernel:
    library = ctypes.CDLL(str(path))
    launch, list_parameters = library[f"cuda_host_launch_{name}"], library[f"cuda_host_parameters_{name}"]
    launch.restype = ctypes.c_char_p
    launch.argtypes = (
        *(ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(ctypes.c_uint)),
        *(ctypes.c_size_t, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p)),
    )
    parameters = (_Parameter * list_parameters(None))()
    list_parameters(parameters)
    kinds = tuple((bool(item.is_pointer), item.size) for item in parameters)
    return HostKernel(f"{file}:{name}", library, launch, kinds)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise CompilationError(f"g++ does not compile this:\n{done.stderr.rstrip()}")


@cache
def build_folder() -> Path:
    """What this process and those that it starts from here on have compiled; removed when it ends."""
    if BUILDS not in os.environ:
        os.environ[BUILDS] = tempfile.mkdtemp(prefix="heatsim-cuda-host-")
        atexit.register(shutil.rmtree, os.environ[BUILDS], ignore_errors=True)
    return Path(os.environ[BUILDS])


def find_compiler() -> str:
    """The path of g++.

    Raises:
        DeviceError: there is none, or this is not Linux.
    """
    path = shutil.which("g++") if sys.platform == "linux" else None
    if path is None:
        raise DeviceError("emulated CUDA kernels need g++ on Linux: install it, such as `apt install g++`")
    return path


@cache
def _fma_option() -> tuple[str, ...]:
    """The processor's own fused multiply-add where it has one; the C library's is exact too, and slow."""
    cpuinfo = Path("/proc/cpuinfo")
    has_fma = cpuinfo.exists() and re.search(r"^flags\s*:.*\bfma\b", cpuinfo.read_text(), re.MULTILINE)
    return ("-mfma",) if has_fma else ()
