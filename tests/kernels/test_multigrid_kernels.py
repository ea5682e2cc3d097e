"""The multigrid kernels, compiled for the host, against the CPU's sweeps and inside a whole solution."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from cuda_host.multigrid import sweeps_on_host
from numpy.typing import NDArray

from heatsim import device
from heatsim.grid import PlaneGroups
from heatsim.kernels.cuda_graphs import record
from heatsim.kernels.multigrid.cuda_sweeps import CudaSweeps, SumOver
from heatsim.kernels.multigrid.lines import Lines, invert_rests, set_across
from heatsim.kernels.multigrid.operator import Operator, empty_like, shape_below
from heatsim.kernels.multigrid.pairs import Factors, Pairs
from heatsim.kernels.multigrid.sweeps import CpuSweeps, LevelSweeps
from heatsim.solver.steady.newton import solve
from heatsim.solver.steady.steady_equations import LinearSystem

Array = NDArray[Any]


@dataclass
class Linear:
    """What the solver wants to know of a linear system, on the CPU or on a GPU."""

    operator: Operator
    b: Any
    x: Any
    xp: Any
    linear = True
    patience = 1

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.operator.shape

    def linearise(self) -> LinearSystem:
        return LinearSystem(self.operator, self.b, self.x, self.x, exact=True)

    def update(self, system: LinearSystem) -> None:
        """The solution is in its place."""


@pytest.fixture(params=["host", pytest.param("gpu", marks=pytest.mark.gpu)])
def where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, LevelSweeps]:
    """The array module and the sweeps: the host in the part of a GPU, and a GPU."""
    if request.param == "gpu":
        gpu = device.choose("cuda")
        return gpu.xp, CudaSweeps(gpu, partial(record, gpu))
    return np, sweeps_on_host(np, monkeypatch)[0]


def random_operator(shape: tuple[int, int, int], precision: str) -> Operator:
    """Links of all sizes, some of them 0, cells that nothing joins, axes that wrap."""
    rng = np.random.default_rng(sum(shape))
    links = [rng.random(shape) * (rng.random(shape) > 0.3) for _ in range(3)]
    for axis, link in enumerate(links):
        if shape[2 - axis] == 1:
            link[...] = 0.0
    x, y, z = (link.astype(precision) for link in links)
    return Operator((x, y, z), (rng.random(shape) * (rng.random(shape) > 0.8)).astype(precision))


def both(xp: Any, A: Operator) -> Operator:
    x, y, z = (xp.asarray(link) for link in A.links)
    return Operator((x, y, z), xp.asarray(A.ground))


@pytest.mark.parametrize(
    ("shape", "factors"),
    [
        ((5, 6, 7), (2, 2, 2)),
        ((1, 1, 70), (2, 1, 1)),
        ((9, 8, 1), (1, 2, 2)),
        ((4, 3, 2), (1, 1, 2)),
        (
            (6, 5, 9),
            (Pairs.starting([0, 1, 3, 4, 6, 8, 9]), Pairs.starting([0, 2, 3, 5]), Pairs.starting([0, 1, 3, 4, 6])),
        ),
        ((7, 1, 5), (Pairs.starting([0, 1, 2, 3, 4, 5]), 1, Pairs.starting([0, 2, 4, 5, 6, 7]))),
    ],
)
def test_every_sweep_does_what_the_cpu_s_does(
    where: tuple[Any, LevelSweeps], shape: tuple[int, int, int], factors: Factors
) -> None:
    xp, sweeps = where
    check(xp, sweeps, shape, factors)


@pytest.mark.slow
def test_links_in_float64(where: tuple[Any, LevelSweeps]) -> None:
    """The sweeps that look at links and right-hand sides; the rest is of float32 alone."""
    xp, sweeps = where
    A, rng = random_operator((3, 5, 6), "float64"), np.random.default_rng(7)
    T, b = (rng.normal(size=A.shape).astype("float32") for _ in range(2))
    x, right = (rng.normal(size=A.shape) for _ in range(2))
    found = []
    for module, using in ((xp, sweeps), (np, CpuSweeps())):
        out = [module.asarray(np.zeros(A.shape, dtype="float32")) for _ in range(2)]
        using.smooth(both(module, A), module.asarray(T), module.asarray(b), out[0], 0.7)
        using.residual(both(module, A), module.asarray(x), module.asarray(right), out[1])
        found.append([values if isinstance(values, np.ndarray) else values.get() for values in out])
    for mine, known in zip(*found, strict=True):
        np.testing.assert_allclose(mine, known, rtol=2e-5, atol=1e-5)


def test_a_solution_by_these_sweeps_is_that_of_the_cpu_s(where: tuple[Any, LevelSweeps]) -> None:
    """Three levels, conjugate gradients and the residual in float64."""
    xp, sweeps = where
    A = random_operator((6, 8, 9), "float32")
    A.ground[...] += np.float32(0.05)
    b = np.random.default_rng(3).normal(size=A.shape).astype("float32")
    solutions = []
    for module, using in ((xp, sweeps), (np, CpuSweeps())):
        equations = Linear(both(module, A), module.asarray(b), module.asarray(np.zeros(A.shape)), module)
        progress = solve(equations, using, 1e-6)
        assert progress.correction < 1e-7
        solutions.append(equations.x if isinstance(equations.x, np.ndarray) else equations.x.get())
    np.testing.assert_allclose(*solutions, rtol=0.0, atol=2e-6)


@pytest.mark.parametrize("pieces", [2, 3, 8])
def test_pieces_leave_the_parts_of_the_whole(where: tuple[Any, CudaSweeps], pieces: int) -> None:
    """A level that is cut between groups of planes: one block unites the parts of all pieces in their order."""
    xp, sweeps = where
    shape = (37, 5, 6)
    rng = np.random.default_rng(11)
    r, z = (rng.normal(size=shape).astype("float32") for _ in range(2))

    def parts(first: int, end: int) -> bytes:
        over = SumOver.of(xp, shape, end - first)
        sweeps.leave_inner(xp.asarray(r[first:end].copy()), xp.asarray(z[first:end].copy()), over)
        return over.parts.tobytes()

    starts = PlaneGroups.of(shape).starts(shape[0])
    cuts = [int(starts[len(starts[:-1]) * piece // pieces]) for piece in range(pieces)]
    found = [parts(first, end) for first, end in zip(cuts, [*cuts[1:], shape[0]], strict=True)]
    assert b"".join(found) == parts(0, shape[0])


def by_lines(xp: Any, sweeps: LevelSweeps, level: Operator, T: Array, b: Array) -> list[Any]:
    """Of each axis the pivots, and a step from T."""
    found = []
    for axis in range(3):
        lines, out, moved = Lines(axis, xp.empty_like(level.ground)), xp.asarray(np.empty_like(T)), xp.asarray(T.copy())
        set_across(xp, level, lines)
        sweeps.join(level, lines)
        invert_rests(xp, level, lines)
        sweeps.remainder(level, moved, xp.asarray(b), out)
        sweeps.solve_lines(level, lines, out, out, 0.7)
        sweeps.add(moved, out)
        found += [lines.pivot, moved]
    return found


def check(xp: Any, sweeps: LevelSweeps, shape: tuple[int, int, int], factors: Factors) -> None:
    cpu, A, rng = CpuSweeps(), random_operator(shape, "float32"), np.random.default_rng(7)
    T, b, p, r = (rng.normal(size=shape).astype("float32") for _ in range(4))
    x, right = rng.normal(size=shape), rng.normal(size=shape).astype("float32")
    coarse = np.zeros(shape_below(shape, factors), dtype="float32")
    correction = rng.normal(size=coarse.shape).astype("float32")
    matrix = rng.normal(size=(A.size, A.size))

    def results(xp: Any, sweeps: LevelSweeps) -> list[Any]:
        level = both(xp, A)
        out = [xp.asarray(np.full(shape, np.nan, dtype="float32")) for _ in range(5)]
        sums, below, scalars = xp.asarray(coarse.copy()), empty_like(xp, level, factors), sweeps.scalars()
        sweeps.start(level, xp.asarray(b), out[0], 0.7)
        sweeps.smooth(level, xp.asarray(T), xp.asarray(b), out[1], 0.7)
        sweeps.residual(level, xp.asarray(x), xp.asarray(right), out[2])
        sweeps.restrict(level, xp.asarray(T), xp.asarray(b), sums, factors)
        sweeps.coarsen(level, below, factors)
        sweeps.multiply(level, xp.asarray(matrix), xp.asarray(b), out[3])
        fine, moved, left, ahead = (xp.asarray(values.copy()) for values in (T, x, r, p))
        sweeps.smooth_corrected(level, xp.asarray(T.copy()), xp.asarray(correction), factors, xp.asarray(b), fine, 0.7)
        sweeps.inner(level, xp.asarray(r), xp.asarray(T), scalars)
        sweeps.apply(level, xp.asarray(p), out[4], scalars)
        sweeps.advance(moved, xp.asarray(p), left, out[4], scalars)
        sweeps.inner(level, left, xp.asarray(T), scalars)
        sweeps.direct(ahead, left, scalars)
        found = sweeps.read(scalars)
        numbers = [found.rz, found.rz_before, found.energy, found.largest]
        numbers += [*sweeps.mean_links(level), *sweeps.extremes(level, xp.asarray(x))]
        for along in sweeps.strengths(level):
            numbers += [*along.mean, *along.pairs, *along.weak.ravel()]
        corrected = xp.asarray(T.copy())
        sweeps.correct(level, corrected, xp.asarray(correction), factors)
        out += [corrected, *by_lines(xp, sweeps, level, T, b)]
        return [*out, sums, *below.links, below.ground, fine, moved, left, ahead, np.array(numbers)]

    for mine, known in zip(results(xp, sweeps), results(np, cpu), strict=True):
        found = mine if isinstance(mine, np.ndarray) else mine.get()
        # float32, of sums of up to eight cells' seven terms, which may cancel.
        np.testing.assert_allclose(found, known, rtol=2e-5, atol=1e-4)
