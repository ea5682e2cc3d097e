"""The builds of kernels that do the steps on a grid of some size, and whether a grid fits a GPU."""

from dataclasses import replace
from math import ceil

from heatsim.device import Room
from heatsim.grid import Grid
from heatsim.kernels import tiling
from heatsim.kernels.bricks import fitting_bricks
from heatsim.kernels.catalog import BRICKED, SINGLE_STEP, KernelSpec
from heatsim.kernels.compilation import LINEAR, Build, Variant, build, threads_of_bricks
from heatsim.physics.matter.coefficients import Scheme

_LARGEST_PLANE = 2**32  # cells that 07 can count in a plane
# 09: shared memory in bytes that a kernel may have without asking for more, less two struct StepData; threads of a
# block.
_ROOM_OF_09 = 48 * 1024 - 256
_BLOCKS_OF_09 = (64, 128, 256, 512, 1024)
# 10: bytes of shared memory besides temperatures and types: for steps of a composite body; for structs of an ensemble.
_TABLES_OF_10 = 16 * 1024
_MEMBER_OF_10 = 1024


def resident_bytes(spec: KernelSpec, types: int, numbers: int, itemsize: int) -> int:
    """Bytes of shared memory that the tables of a composite body take in a block of a resident kernel.

    Args:
        spec: the kernel.
        types: cell types.
        numbers: in the conditions of a step.
        itemsize: bytes of a number.
    """
    halves, steps = 3 * 4 * types, 2 * (numbers + types)
    inner, links = (4 * types, 3 * types**2) if spec.boxed else (0, 0)
    return (halves + steps + inner + links) * itemsize


def tables_fit(spec: KernelSpec, types: int, numbers: int, itemsize: int) -> bool:
    """Whether a block of a resident kernel has room for the tables of a composite body; arguments as above."""
    return resident_bytes(spec, types, numbers, itemsize) <= (_TABLES_OF_10 if spec.boxed else _ROOM_OF_09)


def _resident(
    spec: KernelSpec, precision: str, scheme: Scheme, grid: Grid, variant: Variant, room: Room
) -> Build | None:
    """The build of a resident kernel with the smallest vectors and blocks that cover a grid; None if none does.

    At most one block runs on each multiprocessor.
    """
    threads, _, _ = build(spec, precision, scheme, grid, variant).spec.block
    most = 1 if variant.faces else 2  # with longer vectors 10 is faster (MEASUREMENTS.md)
    for vector in (width for width in (1, 2) if width <= most and grid.cells[0] % width == 0):
        for block in (size for size in _BLOCKS_OF_09 if size <= threads):
            if ceil(grid.cell_count / (block * vector)) <= room.multiprocessors:
                fitting = replace(spec, block=(block, 1, 1), tile=(block, 1, 1))
                return Build(fitting, precision, scheme, vector, vector, variant, graded=not grid.uniform)
    return None


def _bricked(
    spec: KernelSpec,
    precision: str,
    scheme: Scheme,
    grid: Grid,
    variant: Variant,
    room: Room,
    members: bool = False,
) -> Build | None:
    """The build of a kernel with bricks in shared memory; None if they do not fit, or materials vary."""
    if variant.varying:
        return None
    kernel = build(spec, precision, scheme, grid, variant, members)
    tables = (_TABLES_OF_10 if variant.faces else 0) + _MEMBER_OF_10 * members
    bricks = fitting_bricks(
        grid.cells,
        kernel.vector,
        kernel.itemsize,
        tables,
        room.block_memory,
        room.multiprocessors,
        threads=threads_of_bricks(precision, variant, kernel.graded),
    )
    if bricks is None:
        return None
    return replace(kernel, spec=replace(spec, block=bricks.threads, tile=bricks.cells), room=bricks.shared_bytes)


def bricks_of_members(
    precision: str, scheme: Scheme, grid: Grid, variant: Variant, room: Room, members: int
) -> tuple[Build, int] | None:
    """The build of 10 for the composite bodies of an ensemble, and the number of members that a launch steps.

    It is the largest number for which the bricks of these members fit the multiprocessors; None if it is below 2, or if
    the kernel does not step such bodies.
    """
    if not variant.faces or variant.rate or variant.cell_heat or variant.lit:
        return None
    for launches in range(1, members):
        together = ceil(members / launches)
        own = replace(room, multiprocessors=room.multiprocessors // together)
        fitting = _bricked(BRICKED, precision, scheme, grid, variant, own, members=True) if together > 1 else None
        if fitting is not None:
            return fitting, together
    return None


def builds(
    spec: KernelSpec,
    precision: str,
    scheme: Scheme,
    grid: Grid,
    periodic: tuple[bool, bool, bool],
    room: Room,
    variant: Variant = LINEAR,
    members: bool = False,
) -> tuple[Build, ...]:
    """The builds that together do any number of steps on a grid; the one with most steps per sweep comes first.

    A kernel of several steps per sweep needs ``shared_bytes`` <= ``room.block_memory``. A pipeline also needs a grid
    that its patches fill; a resident kernel needs a grid that its blocks cover. Few kernels take cells of different
    widths. Otherwise single steps do all the work, with the same bits.
    """
    if not (spec.graded or grid.uniform):
        spec = SINGLE_STEP
    heats = variant.cell_heat or variant.lit
    if spec.resident:
        fitting = _bricked if spec.boxed else _resident
        found = None if members or variant.rate or heats else fitting(spec, precision, scheme, grid, variant, room)
        return (found or build(SINGLE_STEP, precision, scheme, grid, variant, members),)
    single = build(SINGLE_STEP if spec.steps > 1 else spec, precision, scheme, grid, variant, members)
    one_step = variant.varying or variant.rate or heats
    if spec.steps == 1 or one_step:
        return (single,)
    several = build(spec, precision, scheme, grid, variant, members)
    nx, ny, _ = grid.cells
    filled = several.pipeline is None or bool(tiling.tiles(grid.cells, periodic, several.pipeline))
    if variant.faces:
        # The grid must consist of whole patches and, along periodic axes, of whole bricks of boxes.py.
        filled &= nx % several.vector == 0 and ny % spec.rows == 0
        filled &= all(n % 4 == 0 for n, wraps in zip(grid.cells, periodic, strict=True) if wraps)
    if not filled or nx * ny >= _LARGEST_PLANE or several.shared_bytes > room.block_memory:
        return (single,)
    return several, single
