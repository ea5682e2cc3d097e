"""The ladder of kernels. A new kernel is one file in this folder and one line here."""

from dataclasses import dataclass

from heatsim.device import Backend
from heatsim.errors import DeviceError
from heatsim.scenario import suggest
from heatsim.scenario.messages import show


@dataclass(frozen=True)
class KernelSpec:
    """A kernel and its launch shape.

    Attributes:
        name: the name in ``solver.kernel``.
        backend: the kind of device that it runs on.
        source: its file in this folder.
        general_source: its file for several materials, general faces and sources; empty if it is ``source``.
        varying_source: its file for materials that vary with temperature; empty if it is ``source``.
        idea: one line for `heatsim kernels`.
        block: threads along x, y, z (CUDA).
        tile: cells along x, y, z that a block writes (CUDA). If ``vectorised`` and not ``boxed``, x counts vectors and
            y counts threads, each with ``rows`` rows.
        vectorised: whether a thread owns a vector of consecutive cells in x.
        steps: time steps per sweep.
        rows: rows of cells in y that a thread owns.
        boxed: whether a block does all steps of a sweep on a tile with a halo in shared memory.
        resident: whether a launch does any number of steps, with blocks that wait for their neighbours. ``block`` is
            the largest one. If ``boxed`` too, the tile follows from the grid.
        composite: whether it steps composite bodies; see ``HeatProblem.composite_features``.
        graded: whether it steps grids whose cells have different widths.
    """

    name: str
    backend: Backend
    source: str
    idea: str
    block: tuple[int, int, int] = (1, 1, 1)
    tile: tuple[int, int, int] = (1, 1, 1)
    vectorised: bool = False
    steps: int = 1
    rows: int = 1
    boxed: bool = False
    resident: bool = False
    composite: bool = False
    graded: bool = False
    general_source: str = ""
    varying_source: str = ""


KERNELS = (
    KernelSpec(
        name="naive",
        backend="cuda",
        source="01_naive.cu",
        idea="one thread a cell, from global memory",
        block=(32, 8, 1),
        tile=(32, 8, 1),
        composite=True,
        graded=True,
    ),
    KernelSpec("tiled", "cuda", "02_tiled.cu", "block = input tile in shared memory", (16, 8, 8), (14, 6, 6)),
    KernelSpec(
        "tiled_halo", "cuda", "03_tiled_halo.cu", "block = output tile, halo by whole warps", (8, 8, 8), (8, 8, 8)
    ),
    KernelSpec(
        "coarsened", "cuda", "04_coarsened.cu", "marches along z, three planes shared", (32, 16, 1), (30, 14, 32)
    ),
    KernelSpec("register_tiled", "cuda", "05_register_tiled.cu", "one plane shared", (32, 16, 1), (30, 14, 32)),
    KernelSpec(
        name="streamed",
        backend="cuda",
        source="06_streamed.cu",
        idea="vectors, no barrier, no shared memory",
        block=(32, 4, 1),
        tile=(32, 4, 5),
        vectorised=True,
        rows=2,
        composite=True,
        graded=True,
        general_source="composite/streamed.cu",
        varying_source="composite/varying_streamed.cu",
    ),
    KernelSpec(
        name="temporal",
        backend="cuda",
        source="07_temporal.cu",
        idea="four steps a sweep",
        block=(32, 8, 1),
        vectorised=True,
        steps=4,
        rows=4,
        composite=True,
    ),
    KernelSpec(
        name="boxed",
        backend="cuda",
        source="08_boxed.cu",
        idea="boxes of cells, four steps each: small grids",
        block=(576, 1, 1),
        tile=(16, 16, 8),
        vectorised=True,
        steps=4,
        boxed=True,
    ),
    KernelSpec(
        name="resident",
        backend="cuda",
        source="09_resident.cu",
        idea="many steps a launch, blocks wait for neighbours: small grids",
        block=(1024, 1, 1),
        tile=(1024, 1, 1),
        resident=True,
        composite=True,
        graded=True,
    ),
    KernelSpec(
        name="bricked",
        backend="cuda",
        source="10_bricked.cu",
        idea="as resident, with a brick of cells in shared memory: middle-sized grids",
        block=(768, 1, 1),
        vectorised=True,
        boxed=True,
        resident=True,
        composite=True,
        graded=True,
    ),
    KernelSpec(
        name="numpy",
        backend="cpu",
        source="cpu/oracle.py",
        idea="whole arrays: the oracle, written to be read",
        composite=True,
        graded=True,
    ),
    KernelSpec(
        name="numba",
        backend="cpu",
        source="cpu/blocked.py",
        idea="several steps a sweep, in tiles that fit the cache",
        composite=True,
        graded=True,
    ),
)

# The kernels of "auto": the fastest of each backend on large grids. On a GPU a run measures which kernel is fastest.
AUTO = {"cuda": "temporal", "cpu": "numba"}

# Does the remaining steps after sweeps of several steps.
SINGLE_STEP = next(kernel for kernel in KERNELS if kernel.name == "streamed")

# Do many steps a launch on small grids; the fastest comes first.
RESIDENT = tuple(kernel for kernel in KERNELS if kernel.resident)
BRICKED = next(kernel for kernel in RESIDENT if kernel.boxed)


def choose(requested: str, backend: Backend, graded: bool = False) -> KernelSpec:
    """The kernel with this name; for "auto" the fastest one on large grids.

    Args:
        requested: the name, or "auto".
        backend: the kind of device.
        graded: whether "auto" must step cells of different widths.

    Raises:
        DeviceError: no such kernel, or it runs on another device.
    """
    name = AUTO[backend] if requested == "auto" else requested
    spec = next((kernel for kernel in KERNELS if kernel.name == name), None)
    if requested == "auto" and graded and spec is not None and not spec.graded:
        return SINGLE_STEP
    here = ", ".join(kernel.name for kernel in KERNELS if kernel.backend == backend)
    if spec is None:
        near = suggest(name, [kernel.name for kernel in KERNELS])
        hint = f'; did you mean "{near}"?' if near else ""
        raise DeviceError(f'solver.kernel = {show(name)}: no such kernel; device "{backend}" has auto, {here}{hint}')
    if spec.backend != backend:
        raise DeviceError(
            f'solver.kernel = "{name}" runs on device "{spec.backend}", but the device is "{backend}"; '
            f"choose auto, {here}"
        )
    return spec
