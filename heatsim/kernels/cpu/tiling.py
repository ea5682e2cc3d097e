"""How the CPU's blocked kernel cuts a grid into tiles; no result depends on it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# A core's own cache where the operating system does not tell, in bytes.
_USUAL_CACHE = 2**20

# The part of that cache which a tile's levels may take: the field passes through it too.
_SHARE = 0.75

# Time to bring a cell from memory and back, in updates of a cell in cache.
_MEMORY_COST = 4.0

# Cells that are summed and then finished, in first-level cache.
_RUN = 4096

# Cells of work that a worker has before it waits for the others, who on a busy machine are 50 to 250 µs late.
_CELLS_A_WORKER = 2**19

LINE = 64  # bytes of a cache line
_MOST_STEPS = 16
_MOST_TILES_Y = 256


@dataclass(frozen=True)
class Tiling:
    """Tiles of one grid.

    Attributes:
        workers: threads that share the tiles.
        depth: steps that a sweep does at most.
        tile_y, tile_z: rows and planes that a tile writes; rows are whole.
        rows: that are summed, then finished while they are still in the first-level cache.
        stride: cells from a row to the next in a worker's ring.
        margin: cells before its first row.
        ring: cells that a worker needs.
    """

    workers: int
    depth: int
    tile_y: int
    tile_z: int
    rows: int
    stride: int
    margin: int
    ring: int


def choose(
    shape: tuple[int, int, int], periodic: tuple[bool, bool, bool], itemsize: int, steps: int, threads: int
) -> Tiling:
    """The tiling with the least estimated time.

    Args:
        shape: cells along z, y, x.
        periodic: which of x, y, z wrap.
        itemsize: bytes of a cell.
        steps: that are to be done in one call.
        threads: that may be used.
    """
    return _choose(shape, periodic, itemsize, min(steps, _MOST_STEPS), threads)


@cache
def _choose(
    shape: tuple[int, int, int], periodic: tuple[bool, bool, bool], itemsize: int, depth: int, threads: int
) -> Tiling:
    cells = shape[0] * shape[1] * shape[2]
    workers = max(1, min(threads, cells * depth // _CELLS_A_WORKER))
    candidates = list(_candidates(shape, itemsize, depth, workers))
    budget = _SHARE * _core_cache()
    # Where not even the smallest fits, it is the one that fits best.
    fitting = [tiling for tiling in candidates if tiling.ring * itemsize <= budget]
    fitting = fitting or [min(candidates, key=lambda tiling: tiling.ring)]
    return min(fitting, key=lambda tiling: _estimate(tiling, shape, periodic))


def _candidates(shape: tuple[int, int, int], itemsize: int, most: int, workers: int) -> Iterator[Tiling]:
    nz, ny, nx = shape
    line = LINE // itemsize
    whole_lines = -(-(nx + 2) // line) * line
    # Rows that begin with a cache line are faster, but not by more than a quarter.
    stride = whole_lines if 4 * whole_lines <= 5 * (nx + 2) else nx + 2
    rows = max(1, _RUN // stride)
    for depth in range(1, most + 1):
        for tiles_y in range(1, min(ny, _MOST_TILES_Y) + 1):
            tile_y = -(-ny // tiles_y)
            tile_z = -(-nz // min(nz, -(-workers // tiles_y)))
            ring = 3 * depth * (tile_y + 2 * depth + 2) * stride + 2 * line
            tiles = -(-ny // tile_y) * -(-nz // tile_z)
            yield Tiling(min(workers, tiles), depth, tile_y, tile_z, rows, stride, line, -(-ring // line) * line)


def _estimate(tiling: Tiling, shape: tuple[int, int, int], periodic: tuple[bool, bool, bool]) -> float:
    """Time a step, in updates of a cell in cache."""
    nz, ny, _ = shape
    tiles_y, tiles_z = -(-ny // tiling.tile_y), -(-nz // tiling.tile_z)
    rounds = -(-tiles_y * tiles_z // tiling.workers)
    halo_y = 2 * tiling.depth if tiles_y > 1 or periodic[1] else 0
    halo_z = 2 * tiling.depth if tiles_z > 1 or periodic[2] else 0
    moved = (tiling.tile_y + halo_y) * (tiling.tile_z + halo_z)
    # The halo shrinks from stage to stage.
    updated = (tiling.tile_y + halo_y / 2) * (tiling.tile_z + halo_z / 2)
    return rounds * (updated + _MEMORY_COST * moved / tiling.depth)


@cache
def _core_cache() -> int:
    """Bytes of the second-level cache that a core has for itself."""
    try:
        size = Path("/sys/devices/system/cpu/cpu0/cache/index2/size").read_text(encoding="ascii").strip()
        return int(size.removesuffix("K")) * 1024
    except (OSError, ValueError):
        return _USUAL_CACHE
