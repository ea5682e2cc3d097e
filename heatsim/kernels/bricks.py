"""Cut a grid into bricks that fit the shared memory of a GPU's multiprocessors: the launch shape of 10_bricked.cu."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

_ALIGNMENT = 16  # bytes
_ENTRY = 8  # bytes: struct Entry of 10_bricked.cu
_FEWEST_THREADS = 64  # the first warp waits for other blocks, the others copy data
_BITS = 16  # of an entry in the list of cells
_MOST_LAYERS = 64  # threads of a block along z


@dataclass(frozen=True)
class Bricks:
    """Equal bricks, one for each block; the last ones along an axis may be smaller.

    Attributes:
        cells: of a brick along x, y, z.
        threads: of a block along x, y, z: a vector along x, a row and some planes each.
        shared_bytes: dynamic shared memory of a block.
    """

    cells: tuple[int, int, int]
    threads: tuple[int, int, int]
    shared_bytes: int


def fitting_bricks(
    cells: tuple[int, int, int], vector: int, itemsize: int, composite_bytes: int, room: int, blocks: int, threads: int
) -> Bricks | None:
    """The bricks with the least work; None if none fit.

    Args:
        cells: of the grid along x, y, z.
        vector: cells of a vector; it divides the cells along x.
        itemsize: bytes of a value.
        composite_bytes: bytes of shared memory for the tables of a composite body; 0 for one material.
        room: bytes of shared memory that a block may have.
        blocks: the most bricks.
        threads: the most threads of a block.
    """
    best: Bricks | None = None
    least = 0
    for brick in _cuts(cells, vector, blocks):
        x, y, z = brick
        size = _shared_bytes(brick, vector, itemsize, composite_bytes)
        columns = x // vector * y
        if size > room or columns > threads or sum((n - 1).bit_length() for n in brick) > _BITS:
            continue
        layers = min(threads // columns, z, _MOST_LAYERS)
        layers = ceil(z / ceil(z / layers))
        inner = max(0, x // vector - 2) * max(0, y - 2) * max(0, z - 2)
        # In vectors: computed (threads without a column wait meanwhile), stored to the field, and copied from it.
        work = threads * ceil(z / layers) + columns * z - inner + _entries(brick, vector)
        if best is None or work < least:
            layers = max(layers, ceil(_FEWEST_THREADS / columns))
            best, least = Bricks(brick, (x // vector, y, layers), size), work
    return best


def _cuts(cells: tuple[int, int, int], vector: int, blocks: int) -> Iterator[tuple[int, int, int]]:
    """Sizes of bricks of which at most ``blocks`` cover the grid, with as many bricks along z as possible."""
    nx, ny, nz = cells
    for x in _parts(nx // vector, blocks):
        across = ceil(nx / (x * vector))
        for y in _parts(ny, blocks // across):
            layers = blocks // (across * ceil(ny / y))
            yield x * vector, y, ceil(nz / layers)


def _parts(count: int, most: int) -> Iterator[int]:
    """The sizes of the larger parts when a count is cut into 1, 2 ... ``most`` parts."""
    sizes = dict.fromkeys(ceil(count / parts) for parts in range(1, min(most, count) + 1))
    yield from sizes


def _shared_bytes(brick: tuple[int, int, int], vector: int, itemsize: int, composite_bytes: int) -> int:
    """Bytes of the arrays of 10_bricked.cu: buffers, entries of the halo; for composites tables, bytes, the list."""
    x, y, z = brick
    gap = max(vector, 2)
    places = ceil(((x + gap) * (y + 2) * (z + 2) + gap) / vector) * vector
    size = 2 * _aligned(places * itemsize) + _aligned(_entries(brick, vector) * _ENTRY)
    return size + _aligned(composite_bytes) + _aligned(places) + _aligned(2 * x * y * z) if composite_bytes else size


def _entries(brick: tuple[int, int, int], vector: int) -> int:
    """Entries of the halo: vectors across y and z, cells across x."""
    x, y, z = brick
    return 2 * (x // vector * (y + z) + y * z)


def _aligned(size: int) -> int:
    return ceil(size / _ALIGNMENT) * _ALIGNMENT
