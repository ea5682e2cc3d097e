"""Tiles of the blocked CPU kernel. The results do not depend on them."""

from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

# Cache of a core in bytes, if the operating system does not report it.
_USUAL_CACHE = 2**20

# Fraction of that cache for a tile's levels: the field passes through the cache too.
_SHARE = 0.75

# Time to read a cell from memory and write it back, in units of one update of a cell in cache.
_MEMORY_COST = 4.0

# Cells that are summed and then finished while they are in the first-level cache.
_RUN = 4096

# Minimum cells of a worker's share: on a busy machine workers wait 50 to 250 µs for each other.
_CELLS_A_WORKER = 2**19

LINE = 64  # bytes of a cache line
MOST_STEPS = 16
_MOST_TILES_Y = 256


@dataclass(frozen=True)
class Tiling:
    """Tiles of one grid.

    Attributes:
        workers: threads that share the tiles.
        depth: the most steps that a sweep does.
        tile_y, tile_z: rows and planes that a tile writes; it is whole in x.
        rows: rows that are summed, then finished while they are still in the first-level cache.
        stride: cells from one row to the next in a worker's ring.
        margin: cells before the first row of the ring.
        ring: cells of a worker's ring.
    """

    workers: int
    depth: int
    tile_y: int
    tile_z: int
    rows: int
    stride: int
    margin: int
    ring: int

    def sweeps(self, steps: int) -> int:
        """Number of sweeps for a number of steps."""
        return -(-steps // self.depth)

    def plan(self, shape: tuple[int, ...], periodic: tuple[bool, bool, bool], steps: int) -> dict[str, int]:
        """The fields that march.py needs of a plan for a number of steps."""
        nz, ny, nx = shape
        x, y, z = periodic
        of_grid = {"nz": nz, "ny": ny, "nx": nx, "periodic_x": int(x), "periodic_y": int(y), "periodic_z": int(z)}
        of_call = {"steps": steps, "sweeps": self.sweeps(steps), "workers": self.workers}
        of_tiles = {"tile_y": self.tile_y, "tile_z": self.tile_z, "rows": self.rows}
        return {**of_grid, **of_call, **of_tiles, "stride": self.stride, "margin": self.margin}


def choose(
    shape: tuple[int, int, int],
    periodic: tuple[bool, bool, bool],
    itemsize: int,
    steps: int,
    threads: int,
    fields: int = 1,
) -> Tiling:
    """The tiling with the least estimated time.

    Args:
        shape: cells along z, y, x.
        periodic: which of x, y, z wrap.
        itemsize: bytes of a cell.
        steps: steps of one call.
        threads: available threads.
        fields: values of a cell that a tile keeps.
    """
    return _choose(shape, periodic, itemsize, min(steps, MOST_STEPS), threads, fields)


@cache
def _choose(
    shape: tuple[int, int, int],
    periodic: tuple[bool, bool, bool],
    itemsize: int,
    depth: int,
    threads: int,
    fields: int,
) -> Tiling:
    nz, ny, nx = shape
    workers = max(1, min(threads, nz * ny * nx * depth // _CELLS_A_WORKER))
    line = LINE // itemsize
    whole_lines = -(-(nx + 2) // line) * line
    # Rows that begin at a cache line are faster, but by a quarter at most.
    stride = whole_lines if 4 * whole_lines <= 5 * (nx + 2) else nx + 2
    # All pairs of a number of steps a sweep and a number of tiles along y.
    depths, tiles_y = (
        numbers.ravel() for numbers in np.mgrid[1 : depth + 1, 1 : min(ny, _MOST_TILES_Y) + 1].astype(np.int64)
    )
    tile_y = -(-ny // tiles_y)
    tile_z = -(-nz // np.minimum(nz, -(-workers // tiles_y)))
    ring = 3 * depths * (tile_y + 2 * depths + 2) * stride + 2 * line
    ring = -(-ring // line) * line
    tiles = -(-ny // tile_y) * -(-nz // tile_z)
    of_tiles = np.minimum(workers, tiles)
    times = _estimate(shape, periodic, depths, tile_y, tile_z, of_tiles)
    fits = ring * itemsize <= _SHARE * _core_cache() / fields
    # If none fits, take the smallest.
    best = int(np.argmin(np.where(fits, times, np.inf) if fits.any() else ring))
    its_workers, its_depth, its_tile_y, its_tile_z = (int(each[best]) for each in (of_tiles, depths, tile_y, tile_z))
    rows = max(1, _RUN // stride)
    return Tiling(its_workers, its_depth, its_tile_y, its_tile_z, rows, stride, line, int(ring[best]))


def _estimate(
    shape: tuple[int, int, int],
    periodic: tuple[bool, bool, bool],
    depth: Numbers,
    tile_y: Numbers,
    tile_z: Numbers,
    workers: Numbers,
) -> NDArray[np.float64]:
    """Times per step of some tilings, in units of one update of a cell in cache."""
    nz, ny, _ = shape
    tiles_y, tiles_z = -(-ny // tile_y), -(-nz // tile_z)
    rounds = -(-tiles_y * tiles_z // workers)
    halo_y = np.where((tiles_y > 1) | periodic[1], 2 * depth, 0)
    halo_z = np.where((tiles_z > 1) | periodic[2], 2 * depth, 0)
    moved = (tile_y + halo_y) * (tile_z + halo_z)
    # The halo shrinks from stage to stage.
    updated = (tile_y + halo_y / 2) * (tile_z + halo_z / 2)
    return np.asarray(rounds * (updated + _MEMORY_COST * moved / depth))


def zeros_on_lines(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Zeros aligned to a cache line. A vector load that crosses a line takes twice as long."""
    size, line = prod(shape), LINE // dtype.itemsize
    memory = np.zeros(size + line, dtype)
    first = -memory.ctypes.data % LINE // dtype.itemsize
    return memory[first : first + size].reshape(shape)


@cache
def _core_cache() -> int:
    """Bytes of a core's second-level cache."""
    try:
        size = Path("/sys/devices/system/cpu/cpu0/cache/index2/size").read_text(encoding="ascii").strip()
        return int(size.removesuffix("K")) * 1024
    except (OSError, ValueError):
        return _USUAL_CACHE
