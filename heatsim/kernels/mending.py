"""07 on composite bodies: where it is wrong, boxes of cells are stepped anew.

07 steps every cell as if its patch were of one kind and at no face. That is wrong in cells that touch another kind, in
patches of several, and at faces that let heat through; in each step of a sweep but the first it spreads by one cell.
Boxes over the cells that are wrong after a sweep are stepped anew from the field before it, with all that there is:

    07         every cell, plain      T ──► T_new        wrong along interfaces and faces
    mended.cu  boxes over those       T ──► T_new        right; enters the ledger
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels import launch
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.launch import Build, CudaKernel, Launch
from heatsim.physics.medium import INTERIOR, Medium

# Not on the ladder: it steps no grid on its own.
MENDER = KernelSpec(
    "mended", "cuda", "mended.cu", "boxes of any size, several steps each", (384, 1, 1), vectorised=True
)

_THREADS = {"float32": 384, "float64": 320}  # of a block: twice as many have registers enough
_KEPT = {"float32": 4, "float64": 3}  # KEPT of mended.cu
_RESERVED = 1024  # bytes of shared memory that a GPU keeps of each block
_BYTES_A_CELL = 10  # of the table for a cell that is not plain: 7.4 to 11.1 were counted at 512³

# Cells of the boxes, halos included, for each cell of the grid, beyond which single steps are faster.
MOST = 0.7


@dataclass(frozen=True)
class MendedKernel(CudaKernel):
    """07, and the mender where 07 is wrong.

    Attributes:
        mender: steps boxes.
        boxes: its launches.
    """

    mender: CudaKernel
    boxes: Sequence[Launch]

    def __call__(
        self,
        launches: Sequence[Launch],
        T: Any,
        T_new: Any,
        coefficients: NDArray[Any],
        sweep: int,
        ledger: NDArray[Any],
    ) -> None:
        """Queue a sweep; arguments as for :class:`heatsim.kernels.launch.CudaKernel`."""
        super().__call__(launches, T, T_new, coefficients, sweep, ledger)
        self.mender(self.boxes, T, T_new, coefficients, sweep, ledger)


def mender(build: Build, block_memory: int) -> Build:
    """The build that steps boxes as deep as a build of 07, where a block may have so many bytes of shared memory.

    Two blocks share them: while one loads its box, the other steps its own.
    """
    room = (block_memory + _RESERVED) // 2 - _RESERVED
    spec = replace(MENDER, block=(_THREADS[build.precision], 1, 1), steps=build.spec.steps)
    return replace(build, spec=spec, vector=build.access, room=room)


def boxes(
    build: Build,
    medium: Medium,
    periodic: tuple[bool, bool, bool],
    open_faces: tuple[bool, ...],
    block_memory: int,
    most: float = MOST,
) -> tuple[Launch, ...] | None:
    """The launches of the mender after one of 07, none if nothing is wrong; None where single steps are faster.

    Args:
        build: of 07.
        medium: the kinds of cells.
        periodic: which axes wrap.
        open_faces: which faces let heat through.
        block_memory: bytes of shared memory that a block may have.
        most: cells of the boxes, halos included, for each cell of the grid, beyond which single steps are faster.
    """
    from heatsim.kernels import mending_boxes

    grid = medium.grid
    table = cover(build, medium, periodic, open_faces, mender(build, block_memory).room)
    if table[:, 6].sum(dtype=np.int64) > most * grid.cell_count:
        return None
    if not len(table):
        return ()
    # The largest first, so that all blocks finish together.
    rows = np.ascontiguousarray(table[np.argsort(-table[:, 6], kind="stable"), :6])
    entries, lists = mending_boxes.entries(
        rows,
        medium.cells,
        grid.shape,
        (periodic[2], periodic[1], periodic[0]),
        np.array(open_faces),
        -1 if medium.void is None or medium.exposure is None else medium.void,
        build.access,
        build.spec.steps,
        _KEPT[build.precision] * _THREADS[build.precision],
    )
    table = np.hstack((rows, lists))  # of struct Segment
    table[:, rows.shape[1]] += table.size
    segments = np.concatenate((table.ravel(), entries.view(np.int32)))
    bits = sum(1 << axis for axis, wraps in enumerate(periodic) if wraps)
    return (Launch((len(rows), 1, 1), np.array((grid.cells, bits, (0, 0), 0, 0), dtype=launch.GRID), segments),)


def table_bytes(medium: Medium, open_faces: tuple[bool, ...]) -> int:
    """Bytes on the device that boxes and their lists take, about: an entry is in the halo of several boxes."""
    nz, ny, nx = medium.grid.shape
    special = 0 if medium.uniform else int(np.count_nonzero(medium.cells < INTERIOR))
    special += sum(
        side for face, side in enumerate((ny * nz, ny * nz, nx * nz, nx * nz, nx * ny, nx * ny)) if open_faces[face]
    )
    return _BYTES_A_CELL * special


def cover(
    build: Build, medium: Medium, periodic: tuple[bool, bool, bool], open_faces: tuple[bool, ...], room: int
) -> NDArray[np.int32]:
    """Disjoint boxes over all cells that a sweep of 07 gets wrong.

    Returns:
        Rows (x, y, z, cells in x, in y, in z, cells with the halo).
    """
    from heatsim.kernels import mending_boxes
    from heatsim.kernels.mending_boxes import BRICK

    shape, steps = medium.grid.shape, build.spec.steps
    bricks = tuple(ceil(n / BRICK) for n in shape)
    needed = np.zeros(bricks, dtype=np.bool_)
    wraps = (periodic[2], periodic[1], periodic[0])
    if not medium.uniform:
        mending_boxes.mark(medium.cells, build.vector, build.spec.rows, steps, wraps, needed)
    for face, is_open in enumerate(open_faces):
        if is_open and not periodic[face // 2]:
            axis = 2 - face // 2
            layers, n = np.moveaxis(needed, axis, 0), shape[axis]
            layers[slice(0, ceil(steps / BRICK)) if face % 2 == 0 else slice(max(n - steps, 0) // BRICK, None)] = True
    cell_bytes = 2 * build.itemsize + 1  # before and after a step, and its kind
    return np.asarray(mending_boxes.cover(needed, shape, wraps, steps, build.access, cell_bytes, room))
