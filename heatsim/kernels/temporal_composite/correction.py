"""The correction of 07 on composite bodies: boxes of cells where 07 is wrong are stepped again.

07 steps every cell as if its patch had one cell type and were at no face. This is wrong in cells next to another type,
in patches of several types, and at faces that let heat through; with each further step of the sweep the error spreads
by one cell. Boxes cover all cells that are wrong after the sweep. They are stepped again from the field before the
sweep:

    07_temporal.cu    every cell, as if plain    T ──► T_new    wrong along interfaces and faces
    correction.cu     boxes over wrong cells     T ──► T_new    correct; adds heat to the ledger
"""

from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.kernels import launch, structs
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.compilation import Build
from heatsim.kernels.launch import CudaKernel, Launch
from heatsim.physics.cells.cell_types import INTERIOR, CellTypes

# Not on the ladder: it does not step a whole grid.
CORRECTION = KernelSpec(
    "corrected",
    "cuda",
    "temporal_composite/correction.cu",
    "boxes of any size, several steps each",
    (384, 1, 1),
    vectorised=True,
)

# As in correction.cu. The threads of a block have enough registers; the blocks share a multiprocessor's shared memory.
_BLOCKS = {"float32": 2, "float64": 1}  # per multiprocessor
_THREADS = {"float32": 384, "float64": 640}  # per block
_KEPT = {"float32": 4, "float64": 3}  # pairs per thread
_THREADS_OF_MIXED = 512  # per block in float64 where patches share cells, which takes more registers
_RESERVED = 1024  # bytes of shared memory per block that the GPU reserves
_BYTES_A_CELL = 13  # of the table for each cell that is not plain: 10 to 17 measured at 512³
_WORK = 4  # ints of struct Work

# Cells of the boxes with halos / cells of the grid: above this, single steps are faster.
MOST = 0.7
_MOST_CELLS = 2**31 - 1  # of all boxes: positions in the table have 32 bits


def correct(
    build: Build,
    materials: CellTypes,
    periodic: tuple[bool, bool, bool],
    open_faces: tuple[bool, ...],
    device: Device,
    written: tuple[int, int] | None = None,
) -> CudaKernel | None:
    """07 compiled with the correction for a composite body; None if single steps are faster.

    Args:
        build: the build of 07.
        materials: the cell types.
        periodic: which axes wrap.
        open_faces: which faces let heat through.
        device: the current GPU.
        written: the first plane that must be right and the end; None for all planes.
    """
    memory = device.block_memory()
    found = boxes(build, materials, periodic, open_faces, memory, device.multiprocessors(), written=written)
    if found is None:
        return None
    correction = launch.compile_kernel(correction_build(build, memory))
    return replace(launch.compile_kernel(build), after=(correction, found))


def _threads(build: Build) -> int:
    """Threads per block."""
    if build.variant.mixed and build.precision == "float64":
        return _THREADS_OF_MIXED
    return _THREADS[build.precision]


def correction_build(build: Build, block_memory: int) -> Build:
    """The build of the correction for a build of 07; ``block_memory`` is the shared memory of a block in bytes.

    In float32 two blocks share a multiprocessor: one works while the other waits. In float64 the boxes would be too
    small.
    """
    blocks = _BLOCKS[build.precision]
    room = (block_memory + _RESERVED) // blocks - _RESERVED
    spec = replace(CORRECTION, block=(_threads(build), 1, 1), steps=build.spec.steps)
    return replace(build, spec=spec, vector=build.access, room=room)


def boxes(
    build: Build,
    materials: CellTypes,
    periodic: tuple[bool, bool, bool],
    open_faces: tuple[bool, ...],
    block_memory: int,
    multiprocessors: int,
    most: float = MOST,
    written: tuple[int, int] | None = None,
) -> tuple[Launch, ...] | None:
    """The launches of the correction; an empty tuple if no cell is wrong, None if single steps are faster.

    Args:
        build: the build of 07.
        materials: the cell types.
        periodic: which axes wrap.
        open_faces: which faces let heat through.
        block_memory: shared memory of a block in bytes.
        multiprocessors: multiprocessors of the device.
        most: cells of the boxes with halos / cells of the grid, above which single steps are faster.
        written: the first plane that must be right and the end; None for all planes.
    """
    from heatsim.kernels.temporal_composite.box_contents import StencilBody, contents

    grid = materials.grid
    second = correction_build(build, block_memory)
    table = cover(build, materials, periodic, open_faces, second.room, written)
    if table[:, 6].sum(dtype=np.int64) > min(most * grid.cell_count, _MOST_CELLS):
        return None
    if not len(table):
        return ()
    body = StencilBody(
        cells=materials.cells,
        shape=grid.shape,
        wraps=(periodic[2], periodic[1], periodic[0]),
        open_faces=np.array(open_faces),
        void=-1 if materials.void is None or not materials.exposed_cells else materials.void,
        bits=materials.weighted_surfaces.bits,
        vector=build.access,
    )
    most_pairs = _KEPT[build.precision] * _threads(build)
    found = contents(np.ascontiguousarray(table[_order(table), :6]), body, build.spec.steps, most_pairs)
    segments = _table(*found, build.access, _THREADS[build.precision], _vectors(build, second.room))
    bits = structs.periodic_bits(periodic)
    blocks = min(len(table), _BLOCKS[build.precision] * multiprocessors)
    return (
        Launch(
            (blocks, 1, 1), np.array((grid.cells, bits, (0, 0), 0, 0, 1, (0, 0, 0), 0), dtype=structs.GRID), segments
        ),
    )


def _order(table: NDArray[np.int32]) -> NDArray[np.int64]:
    """Order of the boxes: adjacent ones together, to share L2; small ones last, so that all blocks end together."""
    x, y, z, volume = table[:, 0], table[:, 1], table[:, 2], table[:, 6]
    return np.lexsort((x, y, z, volume <= volume.max() / 2))


def _table(
    rows: NDArray[np.int32],
    stencils: NDArray[np.int32],
    infos: NDArray[np.uint8],
    entries: NDArray[np.uint32],
    vector: int,
    threads: int,
    vectors: int,
) -> NDArray[np.int32]:
    """The table that correction.cu reads: struct Work, struct Box for each box, infos, entries."""
    from heatsim.kernels.temporal_composite.box_contents import PAIRS, PORTION

    steps = rows.shape[1] - PAIRS
    segments = np.zeros(len(rows), _box_dtype(steps))
    extents = rows[:, :12].reshape(-1, 3, 4)
    before, size, every = extents[:, :, 1], extents[:, :, 2], extents[:, :, 3]
    segments["extents"], segments["pairs"], segments["stencils"] = extents, rows[:, PAIRS:], stencils
    for name, column in (("plane", 12), ("entries", 13), ("infos", 14), ("others", 15)):
        segments[name] = rows[:, column]
    segments["by_row"], segments["by_plane"] = vector / every[:, 0], 1.0 / rows[:, 12]
    for step in range(steps + 1):
        more = steps - 1 - step if step < steps else steps  # layers of halo: one per later step; the last reach has all
        low, high = np.maximum(before - more, 0), np.minimum(before + size + more, every)
        low[:, 0], high[:, 0] = low[:, 0] // vector, -(-high[:, 0] // vector)
        lanes, lines, planes = (high - low).T
        columns = lanes * lines
        length = -(-planes // np.clip(threads // columns, 1, planes))
        reach = segments["reach"][:, step]
        reach["first"], reach["planes"], reach["lanes"], reach["columns"] = low, planes, lanes, columns
        reach["marches"], reach["length"] = columns * -(-planes // length), length
        reach["by_lanes"], reach["by_columns"] = 1.0 / lanes, 1.0 / columns
    work = np.zeros(_WORK, np.int32)
    work[:2] = len(rows), vectors
    before_infos = work.nbytes + segments.nbytes
    segments["infos"] += before_infos // PORTION
    segments["entries"] += (before_infos + infos.nbytes) // entries.itemsize
    return np.concatenate([part.view(np.int32).ravel() for part in (work, segments, infos, entries)])


def _box_dtype(steps: int) -> np.dtype[Any]:
    """The layout of struct Box."""
    from heatsim.kernels.temporal_composite.box_contents import LISTED

    reach: list[Any] = [
        *(("first", np.int32, 3), ("planes", np.int32), ("lanes", np.int32), ("columns", np.int32)),
        *(("marches", np.int32), ("length", np.int32), ("by_lanes", np.float32), ("by_columns", np.float32)),
        ("aligned", np.int32, 2),
    ]
    fields: list[Any] = [
        *(("extents", np.int32, (3, 4)), ("plane", np.int32), ("entries", np.int32), ("infos", np.int32)),
        *(("others", np.int32), ("pairs", np.int32, steps), ("by_row", np.float32), ("by_plane", np.float32)),
        *(("stencils", np.int32, LISTED), ("aligned", np.int32, (2 - steps - LISTED) % 4)),
        ("reach", np.dtype(reach), steps + 1),
    ]
    return np.dtype(fields)


def _vectors(build: Build, room: int) -> int:
    """Vectors per buffer. There are two buffers of values, of infos, and of descriptions of a box."""
    from heatsim.kernels.temporal_composite.box_contents import LISTED, PORTION

    stencil = 8 + (build.spec.steps if build.variant.heated else 0)  # numbers of struct Stencil
    known = _box_dtype(build.spec.steps).itemsize + LISTED * (stencil * build.itemsize + 15) // 16 * 16
    left = room - 2 * known - 16
    return left // (2 * build.access * build.itemsize + 2) // PORTION * PORTION


def table_bytes(materials: CellTypes, open_faces: tuple[bool, ...]) -> int:
    """Approximate device memory of the boxes and their lists, in bytes; an entry can be in the halos of several boxes.

    0 if more cells need a correction than the boxes may have: then single steps are used.
    """
    nz, ny, nx = materials.grid.shape
    special = 0 if materials.uniform else int(np.count_nonzero(materials.cells < INTERIOR))
    if special > MOST * materials.grid.cell_count:
        return 0
    special += sum(
        side for face, side in enumerate((ny * nz, ny * nz, nx * nz, nx * nz, nx * ny, nx * ny)) if open_faces[face]
    )
    return _BYTES_A_CELL * special


def cover(
    build: Build,
    materials: CellTypes,
    periodic: tuple[bool, bool, bool],
    open_faces: tuple[bool, ...],
    room: int,
    written: tuple[int, int] | None = None,
) -> NDArray[np.int32]:
    """Disjoint boxes over all cells that are wrong after a sweep of 07, of the planes ``written`` or of all planes.

    Returns:
        Rows (x, y, z, cells in x, in y, in z, cells with the halo).
    """
    from heatsim.kernels.temporal_composite import boxes
    from heatsim.kernels.temporal_composite.boxes import BRICK

    shape, steps = materials.grid.shape, build.spec.steps
    bricks = tuple(ceil(n / BRICK) for n in shape)
    needed = np.zeros(bricks, dtype=np.bool_)
    wraps = (periodic[2], periodic[1], periodic[0])
    if not materials.uniform:
        boxes.mark(materials.cells, build.vector, build.spec.rows, steps, wraps, needed)
    for face, is_open in enumerate(open_faces):
        if is_open and not periodic[face // 2]:
            axis = 2 - face // 2
            layers, n = np.moveaxis(needed, axis, 0), shape[axis]
            layers[slice(0, ceil(steps / BRICK)) if face % 2 == 0 else slice(max(n - steps, 0) // BRICK, None)] = True
    if written is not None:
        needed[: written[0] // BRICK] = needed[ceil(written[1] / BRICK) :] = False
    most_cells = _vectors(build, room) * build.access
    return np.asarray(boxes.cover(needed, shape, wraps, steps, build.access, most_cells))
