"""Sweeps over a level on a GPU: the functions of multigrid.cu."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.grid import PlaneGroups
from heatsim.kernels import binaries, compilation
from heatsim.kernels.compiled import REAL
from heatsim.kernels.multigrid.lines import Lines, span_of
from heatsim.kernels.multigrid.operator import Operator
from heatsim.kernels.multigrid.pairs import Factors, Pairs, Strengths, pairs_of, relative_links, strengths
from heatsim.kernels.multigrid.sweeps import SCALARS, Scalars, WholeLevels
from heatsim.parallel.team import ALONE, Team

SOURCE = Path(__file__).parent / "multigrid.cu"
THREADS = 256  # of a block
BLOCKS = 1024  # of a sum, at least
WARP = 32
_PRECISION = {4: "float32", 8: "float64"}  # by bytes
_FOUND = 24  # bytes of struct Found of sums.cuh

# Gives a function of the source, for macros.
Compile = Callable[[str, Mapping[str, str | int]], Any]
# Gives a CUDA graph of the launches that some work makes.
Record = Callable[[Callable[[], object]], Any]


def macros(precision: str, pairs: bool = False) -> dict[str, str | int]:
    """What multigrid.cu wants defined, for links of a precision; ``pairs``: whether planes merge in any pairs."""
    return {"LINK": REAL[precision], "THREADS": THREADS, "PAIRS": int(pairs)}


def source() -> str:
    """multigrid.cu with what it includes."""
    return compilation.source(f"{SOURCE.parent.name}/{SOURCE.name}")


def compile_function(name: str, defined: Mapping[str, str | int]) -> Any:
    """A function for the current GPU."""
    return _module(tuple(f"-D{macro}={value}" for macro, value in defined.items())).get_function(name)


@cache
def _module(definitions: tuple[str, ...]) -> Any:
    # Unlike in steps, whose bits are compared, products and sums may be contracted.
    return binaries.load(source(), ("--std=c++17", *definitions))


def _any_pairs(factors: Factors) -> bool:
    """Whether planes of an axis merge in pairs; else whole axes do."""
    return any(isinstance(factor, Pairs) for factor in factors)


class CudaSweeps(WholeLevels):
    """By the kernels of multigrid.cu; see :class:`heatsim.kernels.multigrid.sweeps.LevelSweeps`.

    Cells are counted in 32 bits: a GPU has no memory for 2³² cells and what a solution needs beside them.
    """

    def __init__(
        self,
        device: Device,
        record: Record | None = None,
        compile_function: Compile = compile_function,
        team: Team = ALONE,
    ) -> None:
        """Compile nothing yet.

        Args:
            device: a GPU.
            record: makes CUDA graphs; without it every kernel is launched by itself.
            compile_function: gives a function of multigrid.cu, which is called with blocks, threads and arguments.
            team: the ranks that share the levels that have a slab; their sums are collective.
        """
        self._compile = cache(lambda name, precision, pairs: compile_function(name, macros(precision, pairs)))
        self._device, self._record, self._team = device, record, team
        self._sums: dict[tuple[tuple[int, int, int], int], SumOver] = {}
        self._tables: WeakKeyDictionary[Pairs, Any] = WeakKeyDictionary()

    def scalars(self) -> Any:
        """See :class:`LevelSweeps`."""
        return self._device.xp.zeros(SCALARS, dtype=np.float64)

    def read(self, scalars: Any) -> Scalars:
        """See :class:`LevelSweeps`."""
        return Scalars.of(self._device.to_host(scalars))

    def on_host(self, A: Operator) -> NDArray[Any]:
        """See :class:`LevelSweeps`; with one wait for the GPU."""
        return np.asarray(self._device.to_host(self._device.xp.stack((*A.links, A.ground))))

    def repeated(self, work: Callable[[], object]) -> Callable[[], object]:
        """See :class:`LevelSweeps`. Launched at first, which loads kernels, and recorded while the GPU works."""
        graph: Any = None
        record = self._record
        if record is None:
            return work

        def do() -> None:
            nonlocal graph
            if graph is None:
                work()
                graph = record(work)
            else:
                graph.launch()

        return do

    def start(self, A: Operator, b: Any, out: Any, tau: float) -> None:
        """See :class:`LevelSweeps`."""
        self._launch("start", A.size, A, b, out, np.float32(tau))

    def smooth(self, A: Operator, T: Any, b: Any, out: Any, tau: float) -> None:
        """See :class:`LevelSweeps`."""
        self._launch("smooth", A.size, A, T, b, out, np.float32(tau))

    def residual(self, A: Operator, T: Any, b: Any, out: Any) -> None:
        """See :class:`LevelSweeps`."""
        self._launch("residual", A.size, A, T, b, out)

    def restrict(self, A: Operator, T: Any, b: Any, out: Any, factors: Factors) -> None:
        """See :class:`LevelSweeps`."""
        width = pairs_of(factors[0], A.shape[2]).widest
        merged = self._merged(A, factors)
        pairs = _any_pairs(factors)
        self._launch("restrict_residual", width * out.size, A, T, b, out, *merged, np.uint32(width), pairs=pairs)

    def smooth_corrected(
        self, A: Operator, T: Any, correction: Any, factors: Factors, b: Any, out: Any, tau: float
    ) -> None:
        """See :class:`LevelSweeps`; in one pass."""
        merged = self._merged(A, factors)
        pairs = _any_pairs(factors)
        self._launch("smooth_corrected", A.size, A, T, correction, b, out, np.float32(tau), *merged, pairs=pairs)

    def remainder(self, A: Operator, T: Any, b: Any, out: Any) -> None:
        """See :class:`LevelSweeps`."""
        self.restrict(A, T, b, out, (1, 1, 1))

    def join(self, A: Operator, lines: Lines) -> None:
        """See :class:`LevelSweeps`."""
        self._along("join", A, lines)

    def solve_lines(
        self, A: Operator, lines: Lines, b: Any, out: Any, tau: float, *, forth: bool = True, back: bool = True
    ) -> None:
        """See :class:`LevelSweeps`."""
        self._along("solve_lines", A, lines, b, out, np.float32(tau), np.uint32(forth), np.uint32(back))

    def _along(self, name: str, A: Operator, lines: Lines, *arguments: Any) -> None:
        link, span = A.links[lines.axis], span_of(A, lines.axis)
        precision = _PRECISION[link.dtype.itemsize]
        self._call(name, precision, span.groups * span.width, link, lines.pivot, *map(np.uint32, span), *arguments)

    def add(self, T: Any, change: Any) -> None:
        """See :class:`LevelSweeps`."""
        self._call("add", "float32", T.size, T, change, np.uint32(T.size))

    def correct(self, A: Operator, T: Any, correction: Any, factors: Factors) -> None:
        """See :class:`LevelSweeps`."""
        merged = self._merged(A, factors)
        self._launch("correct", A.size, A, T, correction, *merged, pairs=_any_pairs(factors))

    def multiply(self, A: Operator, matrix: Any, b: Any, out: Any) -> None:
        """See :class:`LevelSweeps`."""
        self._call("multiply", "float32", WARP * b.size, matrix, b, out, np.uint32(b.size))

    def coarsen(self, A: Operator, out: Operator, factors: Factors) -> None:
        """See :class:`LevelSweeps`."""
        merged = self._merged(A, factors)
        self._launch("coarsen", out.size, A, *out.links, out.ground, *merged, pairs=_any_pairs(factors))

    def mean_links(self, A: Operator) -> tuple[float, float, float]:
        """See :class:`LevelSweeps`."""
        scalars, over = self.scalars(), self._sum_over(A)
        for axis, links in enumerate(A.links):
            own = links if A.slab is None else links[A.slab.own]
            self._call("sum_of_links", _PRECISION[links.dtype.itemsize], over.threads, own, *over.arguments)
            self._total("total_of_links", A, over, scalars, np.uint32(axis))
        x, y, z = (total / A.cells for total in self.read(scalars).links)
        return x, y, z

    def strengths(self, A: Operator) -> Sequence[Strengths]:
        """See :class:`LevelSweeps`."""
        rows = relative_links(self._device.xp, A.links, self._device.to_host)
        if A.slab is not None:
            rows = np.concatenate(self._team.gathered(rows[A.slab.own]))
        return strengths(rows, A.whole_shape[::-1])

    def apply(self, A: Operator, T: Any, out: Any, scalars: Any) -> None:
        """See :class:`LevelSweeps`."""
        over = self._sum_over(A) if A.slab is None else self._sum_of(A.shape, A.shape[0])
        self._launch("apply", over.threads, A, T, out, *over.arguments)
        if A.slab is not None:
            # The kernel has summed over halo planes too. So `inner` sums again, over own planes. The sums have the same
            # bits as those of the kernel on one rank, because products of float32 are exact in float64.
            over = self._sum_over(A)
            self.leave_inner(T[A.slab.own], out[A.slab.own], over)
        self._total("total_of_apply", A, over, scalars)

    def advance(self, x: Any, p: Any, r: Any, Ap: Any, scalars: Any) -> None:
        """See :class:`LevelSweeps`."""
        self._call("advance", "float32", x.size, x, p, r, Ap, scalars, np.uint32(x.size))

    def direct(self, p: Any, z: Any, scalars: Any) -> None:
        """See :class:`LevelSweeps`."""
        self._call("direct", "float32", p.size, p, z, scalars, np.uint32(p.size))

    def inner(self, A: Operator, r: Any, z: Any, scalars: Any) -> None:
        """See :class:`LevelSweeps`."""
        over = self._sum_over(A)
        if A.slab is not None:
            r, z = r[A.slab.own], z[A.slab.own]
        self.leave_inner(r, z, over)
        self._total("total_of_inner", A, over, scalars)

    def leave_inner(self, r: Any, z: Any, over: "SumOver") -> None:
        """Leave the parts of r·z and max |z|."""
        self._call("inner", "float32", over.threads, r, z, *over.arguments)

    def extremes(self, A: Operator, x: Any) -> tuple[float, float]:
        """See :class:`LevelSweeps`."""
        # Halo planes count too: they are own planes of other ranks.
        scalars, over = self.scalars(), self._sum_of(A.shape, A.shape[0])
        self._launch("extremes", over.threads, A, x, *over.arguments)
        self._unite("total_of_extremes", over.parts, scalars)
        found = self.read(scalars)
        return found.lowest, found.largest

    def _sum_over(self, A: Operator) -> "SumOver":
        """How sums over the own cells of a level are formed."""
        return self._sum_of(A.whole_shape, A.shape[0] if A.slab is None else A.slab.count)

    def _sum_of(self, shape: tuple[int, int, int], planes: int) -> "SumOver":
        """A sum over some planes of a level. It is kept: graphs use its parts again."""
        if (shape, planes) not in self._sums:
            self._sums[shape, planes] = SumOver.of(self._device.xp, shape, planes)
        return self._sums[shape, planes]

    def _total(self, name: str, A: Operator, over: "SumOver", scalars: Any, *arguments: Any) -> None:
        """A function that unites the parts of a sum over a level."""
        parts = over.parts
        if A.slab is not None:
            parts = self._device.xp.asarray(np.concatenate(self._team.gathered(self._device.to_host(parts))))
        self._unite(name, parts, scalars, *arguments)

    def _unite(self, name: str, parts: Any, scalars: Any, *arguments: Any) -> None:
        self._call(name, "float32", THREADS, parts, np.uint32(parts.size // _FOUND), scalars, *arguments)

    def _merged(self, A: Operator, factors: Factors) -> tuple[Any, ...]:
        """How the planes of a level merge, in the order of the kernels' parameters."""
        merged = [pairs_of(factor, n) for factor, n in zip(factors, A.shape[::-1], strict=True)]
        soft = np.float32(min(pairs.soft for pairs in merged))
        return *map(self._table, merged), *(np.uint32(len(pairs)) for pairs in merged), soft

    def _table(self, pairs: Pairs) -> Any:
        """Pairs on the device. They are kept as long as the pairs: graphs use them again."""
        if pairs not in self._tables:
            table = np.concatenate((pairs.first, pairs.coarse)).astype(np.uint32)
            self._tables[pairs] = self._device.xp.asarray(table)
        return self._tables[pairs]

    def _launch(self, name: str, threads: int, A: Operator, *arguments: Any, pairs: bool = False) -> None:
        """A function that looks at the operator."""
        level = (*A.links, A.ground, *map(np.uint32, A.shape[::-1]))
        self._call(name, _PRECISION[A.ground.dtype.itemsize], threads, *level, *arguments, pairs=pairs)

    def _call(self, name: str, precision: str, threads: int, *arguments: Any, pairs: bool = False) -> None:
        self._compile(name, precision, pairs)((-(-threads // THREADS),), (THREADS,), arguments)


@dataclass(frozen=True, eq=False)
class SumOver:
    """A sum over the cells of a level, or over those of some groups of its planes.

    Attributes:
        cells: their number.
        of_group: cells of a group; the last one may have fewer.
        blocks_of_group: blocks that share a group.
        blocks: of all groups.
        parts: struct Found of each block on the device, as bytes.
    """

    cells: int
    of_group: int
    blocks_of_group: int
    blocks: int
    parts: Any

    @classmethod
    def of(cls, xp: Any, shape: tuple[int, int, int], planes: int) -> "SumOver":
        """Lay out a sum.

        Args:
            xp: the library of the device's arrays.
            shape: of the whole level.
            planes: how many of its planes are summed here; they begin where a group begins.
        """
        nz, ny, nx = shape
        size = PlaneGroups.of(shape).size
        share = min(ceil(BLOCKS / ceil(nz / size)), ceil(size * ny * nx / THREADS))
        blocks = share * ceil(planes / size)
        return cls(planes * ny * nx, size * ny * nx, share, blocks, xp.empty(_FOUND * blocks, dtype=np.uint8))

    @property
    def threads(self) -> int:
        """Threads of all blocks."""
        return self.blocks * THREADS

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The last arguments of the kernels that leave parts."""
        return (*map(np.uint32, (self.cells, self.of_group, self.blocks_of_group)), self.parts)
