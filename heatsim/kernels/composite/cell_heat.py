"""Step bodies with sources in single cells: one kernel calculates their heat, then the step adds it."""

from dataclasses import replace
from math import ceil

import numpy as np

from heatsim.grid import Grid
from heatsim.kernels import launch, structs
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.compilation import Build
from heatsim.kernels.launch import CudaKernel, Launch

_THREADS = 256  # of a block
# Not on the ladder: it steps no cell.
CELL_HEAT = KernelSpec("cell_heat", "cuda", "composite/cell_heat.cu", "the heat of sources in cells", (_THREADS, 1, 1))


def heating_build(build: Build) -> Build:
    """The build of the kernel that calculates the heat, for the build of a kernel that does steps."""
    return replace(build, spec=CELL_HEAT, vector=1, access=1)


def heating_launch(grid: Grid, count: int) -> Launch:
    """The launch for ``count`` heated cells."""
    struct = np.zeros((), dtype=structs.GRID)
    struct["cells"] = grid.cells
    return Launch((ceil(count / _THREADS), 1, 1), struct)


def compile_kernel(build: Build, grid: Grid, count: int) -> CudaKernel:
    """A kernel for the current GPU; if its variant needs it, with the heat of sources in ``count`` cells."""
    kernel = launch.compile_kernel(build)
    if not build.variant.cell_heat:
        return kernel
    heating = launch.compile_kernel(heating_build(build))
    return replace(kernel, before=(heating, (heating_launch(grid, count),)))
