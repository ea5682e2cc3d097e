"""Tiles for kernels that stream planes through a pipeline of steps (07), and their distribution over blocks.

A tile has a halo as wide as the number of steps per sweep, except where it ends with the box:

    n = 512, tiles of 128 cells, 4 steps     |<- 120 ->|<- 120 ->|<- 120 ->|<- 96 ->| 56 |

The cells that a tile writes begin at a memory sector of 32 bytes: if two tiles write parts of one sector at different
times, float32 loses a sixth of its speed. Along a periodic axis the first tile begins with a halo before cell 0 and the
last ends with one after cell n - 1, so that the threads' patches meet where the axis closes. The rest in x may take one
or two narrower tiles of more rows, here 64 × 64 cells besides 128 × 32: the halo is as wide in x as in y, and fewer
threads compute unneeded cells.

A block gets a range of planes of one tile, then of another, so that all blocks have the same amount of work. They take
tiles in the order of their numbers, from the bottom up: so adjacent blocks climb together, and each finds in cache the
halo that the other has read.
"""

from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

Cells = tuple[int, int, int]

LANES = (32, 16, 8)  # widths of tiles in patches
# How much a row of tiles with this many lanes is worth avoiding, by bytes of a value. Narrow tiles have short rows in
# memory, which slows float32; float64 is as fast with 1.1 and 1.2 as with 1.06 and 1.15 or 1.2 and 1.4.
_NARROWNESS = {4: {32: 1.0, 16: 1.35, 8: 1.65}, 8: {32: 1.0, 16: 1.1, 8: 1.2}}
# Costs of faces by (bytes of a value, who adds heat to the ledger). The first three are the times of an iteration of a
# tile at a face in x, in y and in both, relative to a tile at none. The last is the extra cost of an end of the box in
# z, in iterations. They were fitted to the times of blocks on an H200, then searched there on nine grids; later changes
# made some of them smaller. The costs for the correction were the fastest on six grids on an H100.
_FACE_COSTS = {
    (4, "none"): (1.07, 1.32, 1.42, 3),
    (4, "itself"): (1.24, 1.32, 1.75, 7),
    (8, "none"): (1.22, 1.23, 1.74, 5),
    (8, "itself"): (1.3, 1.24, 1.82, 7),
    (4, "correction"): (1.1, 1.2, 1.4, 0),
    (8, "correction"): (1.1, 1.1, 1.2, 0),
}
_FILL = 10  # iterations to fill the pipeline, for each segment
_SECTOR = 32  # bytes of L2 that are read and written together
_SHORTEST = 24  # minimum planes of a segment, if there are enough planes

# struct Segment of 07_temporal.cu.
SEGMENT = np.dtype(
    [
        *((name, np.int32) for name in ("x", "y", "lanes", "x_begin", "x_end", "y_begin", "y_end", "z_begin", "z_end")),
        ("sides", np.int32),
    ]
)


@dataclass(frozen=True)
class Pipeline:
    """The block of a streaming kernel.

    Attributes:
        threads: threads of the block.
        vector, rows: cells in x and y that a thread owns.
        steps: time steps per sweep.
        itemsize: bytes of a value.
        corrected: whether a correction updates the cells at faces again.
    """

    threads: int
    vector: int
    rows: int
    steps: int
    itemsize: int
    corrected: bool = False

    @property
    def halo_x(self) -> int:
        """Cells of halo in x, whole vectors."""
        return ceil(self.steps / self.vector) * self.vector

    def height(self, lanes: int) -> int:
        """Rows of a tile that is ``lanes`` patches wide."""
        return self.threads // lanes * self.rows


@dataclass(frozen=True)
class Tile:
    """A tile: its first cell (in the halo, possibly outside the box), its width in patches, and the cells it writes."""

    x: int
    y: int
    lanes: int
    x_begin: int
    x_end: int
    y_begin: int
    y_end: int
    sides: int


@cache
def tiles(cells: Cells, periodic: tuple[bool, bool, bool], pipeline: Pipeline) -> tuple[Tile, ...]:
    """Tiles that together write each cell of a plane once, y fastest; empty if patches do not fill the box."""
    nx, ny, nz = cells
    if nz <= pipeline.steps or nx < 2 * pipeline.vector or ny < 2 * pipeline.rows:
        return ()
    widths = min(_partitions(cells, periodic, pipeline), default=(0.0, ()))[1]
    result = []
    for x, x_begin, x_end, width in _spans(
        nx, [lanes * pipeline.vector for lanes in widths], pipeline.halo_x, periodic[0], _sector(nx, pipeline.itemsize)
    ):
        lanes = width // pipeline.vector
        height = pipeline.height(lanes)
        heights = [height] * _count(ny, height, pipeline.steps, periodic[1])
        for y, y_begin, y_end, _ in _spans(ny, heights, pipeline.steps, periodic[1]):
            touches = (x_begin == 0, x_end == nx, y_begin == 0, y_end == ny)
            sides = sum(1 << face for face in range(4) if touches[face] and not periodic[face // 2])
            result.append(Tile(x, y, lanes, x_begin, x_end, y_begin, y_end, sides))
    return tuple(result)


def _partitions(
    cells: Cells, periodic: tuple[bool, bool, bool], pipeline: Pipeline
) -> list[tuple[float, tuple[int, ...]]]:
    """Ways to cut x into tiles of one width, of which the last two may be narrower, as (cost, widths in patches)."""
    nx, ny, _ = cells
    halo, unit = pipeline.halo_x, _sector(nx, pipeline.itemsize)
    ways: list[tuple[int, ...]] = []
    for lanes in LANES:
        side = lanes * pipeline.vector
        inner = (side - 2 * halo) // unit * unit
        first = inner if periodic[0] else (side - halo) // unit * unit
        for *between, narrow in _ends_of_rows(lanes):
            last = narrow * pipeline.vector
            # Cells that the tiles of the first width write.
            need = nx + halo - last + (halo if periodic[0] else 0)
            need -= sum((width * pipeline.vector - 2 * halo) // unit * unit for width in between)
            if nx + 2 * halo * periodic[0] <= last:
                ways.append((narrow,))
            elif need > 0 and inner > 0:
                ways.append((lanes,) * (1 + max(0, ceil((need - first) / inner))) + (*between, narrow))
    avoided = _NARROWNESS[pipeline.itemsize]
    return [
        (sum(_count(ny, pipeline.height(w), pipeline.steps, periodic[1]) * avoided[w] for w in widths), widths)
        for widths in ways
        if _filled(nx, widths[-1] * pipeline.vector, pipeline.vector)
        and all(_filled(ny, pipeline.height(w), pipeline.rows) for w in set(widths))
    ]


def _ends_of_rows(lanes: int) -> list[tuple[int, ...]]:
    """Widths in patches of the last tile of a row, or of its last two, after tiles that are ``lanes`` patches wide."""
    pairs = [(width, last) for width in LANES for last in LANES if lanes > width >= last]
    return [*((last,) for last in LANES if last <= lanes), *pairs]


def _filled(n: int, side: int, patch: int) -> bool:
    """Whether patches fill an axis of n cells: the tiles at its ends must begin or end with it."""
    return n % patch == 0 or n >= side


def _count(n: int, side: int, halo: int, periodic: bool) -> int:
    inner = side - 2 * halo
    return ceil(n / inner) if periodic else max(1, ceil((n - 2 * halo) / inner))


def _sector(nx: int, itemsize: int) -> int:
    """Cells per L2 sector if rows of nx cells consist of whole sectors, else 1: no two tiles may share a sector."""
    cells = _SECTOR // itemsize
    return cells if nx % cells == 0 else 1


def _spans(n: int, sides: list[int], halo: int, periodic: bool, unit: int = 1) -> list[tuple[int, int, int, int]]:
    """(start, begin and end of the written cells, side) of each tile along an axis; ends are multiples of unit."""
    spans: list[tuple[int, int, int, int]] = []
    end = 0
    for i, side in enumerate(sides):
        begin, last = end, i == len(sides) - 1
        start = begin - halo if i > 0 or periodic else 0
        if last and i > 0:
            # Patches must meet at the seam of a periodic axis.
            start = n + (halo if periodic else 0) - side
            begin = ceil((start + halo) / unit) * unit
            spans[-1] = (*spans[-1][:2], begin, spans[-1][3])
        end = n if last else (start + side - halo) // unit * unit
        spans.append((start, begin, end, side))
    return spans


@cache
def segments(
    cells: Cells,
    periodic: tuple[bool, bool, bool],
    pipeline: Pipeline,
    multiprocessors: int,
    recorded: bool = False,
    members: int = 1,
    written: tuple[int, int] | None = None,
) -> NDArray[Any]:
    """The segments of each block: SEGMENT records of shape (blocks, most per block).

    In an ensemble, tiles are numbered member after member, and the bits of ``sides`` above the lowest four hold the
    member. Blocks with fewer segments have empty ones at the end. Blocks that record heat (``recorded``) take longer at
    faces and at the ends of the box. ``written`` has the first plane to write and the end; None for all planes.
    """
    first, last = written or (0, cells[2])
    plane_tiles = tiles(cells, periodic, pipeline)
    adds = "correction" if pipeline.corrected else "itself" if recorded else "none"
    at_x, at_y, at_both, at_end = _FACE_COSTS[pipeline.itemsize, adds]
    costs = [
        at_both if t.sides & 3 and t.sides & 12 else at_x if t.sides & 3 else at_y if t.sides & 12 else 1.0
        for t in plane_tiles
    ] * members
    busy_blocks = [block for block in _distribute(costs, last - first, at_end, multiprocessors) if block]
    table = np.zeros((len(busy_blocks), max(map(len, busy_blocks))), dtype=SEGMENT)
    for i, block in enumerate(busy_blocks):
        for j, (number, z, end) in enumerate(block):
            member, t = number // len(plane_tiles), plane_tiles[number % len(plane_tiles)]
            sides = t.sides | member << 4
            table[i, j] = (t.x, t.y, t.lanes, t.x_begin, t.x_end, t.y_begin, t.y_end, first + z, first + end, sides)
    return table


# The segments of each block: (number of the tile, first plane, end).
_Dealt = list[list[tuple[int, int, int]]]


def _distribute(costs: list[float], nz: int, at_end: int, blocks: int) -> _Dealt:
    """The segments of each block in the shortest time in which the blocks can take all tiles, found by bisection.

    Args:
        costs: relative time of an iteration of each tile.
        nz: planes of the box.
        at_end: extra iterations of a segment that begins or ends with the box in z.
        blocks: number of blocks.
    """
    shortest = max(4, min(_SHORTEST, len(costs) * nz // blocks))
    least = sum(costs) * nz / blocks
    most = least + 4 * (_FILL + at_end) + shortest
    while (dealt := _deal(most, costs, nz, at_end, blocks, shortest)) is None:
        most = least + 2.0 * (most - least)
    while most - least > 0.5:
        middle = (least + most) / 2.0
        attempt = _deal(middle, costs, nz, at_end, blocks, shortest)
        if attempt is None:
            least = middle
        else:
            most, dealt = middle, attempt
    return dealt


def _deal(time: float, costs: list[float], nz: int, at_end: int, blocks: int, shortest: int) -> _Dealt | None:
    """Segments of at least ``shortest`` planes for each block, none busy for longer than ``time``; None if impossible.

    Segments are dealt in rounds: each block takes the next tile, or the rest of one, as far as its time allows.
    """
    dealt: _Dealt = [[] for _ in range(blocks)]
    busy = [0.0] * blocks
    waiting = [(tile, 0) for tile in range(len(costs))]
    taken = 0
    while taken < len(waiting):
        before = taken
        for block in range(blocks):
            if taken == len(waiting):
                break
            tile, z = waiting[taken]
            begun = _FILL + at_end * (z == 0)
            reach = int((time - busy[block]) / costs[tile]) - begun
            end = nz if reach >= nz - z + at_end else min(z + reach, nz - shortest // 2)
            if end < nz and (reach < shortest or end <= z):
                continue
            taken += 1
            dealt[block].append((tile, z, end))
            busy[block] += costs[tile] * (end - z + begun + at_end * (end == nz))
            if end < nz:
                waiting.append((tile, end))
        if taken == before:
            return None
    return dealt
