"""Multigrid and conjugate gradients on operators made up for the purpose, against SciPy's sparse direct solver."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import spsolve

from heatsim.errors import NotConvergedError
from heatsim.kernels.multigrid import cycle
from heatsim.kernels.multigrid.cycle import VCycle
from heatsim.kernels.multigrid.operator import Operator, choose_factors, empty_like, merge
from heatsim.kernels.multigrid.pairs import Factors
from heatsim.kernels.multigrid.sweeps import CpuSweeps
from heatsim.solver.steady.newton import Convergence, smallest_eigenvalue, solve
from heatsim.solver.steady.steady_equations import LinearSystem

Array = NDArray[np.float64]
Shape = tuple[int, int, int]


@dataclass
class Linear:
    """What the solver wants to know of a linear system."""

    operator: Operator
    b: Array
    x: Array
    xp: Any = np
    sought: str = "steady state"
    linear = True
    patience = 1

    @property
    def shape(self) -> Shape:
        return self.operator.shape

    def linearise(self) -> LinearSystem:
        return LinearSystem(self.operator, self.b, self.x, self.x, exact=True)

    def update(self, system: LinearSystem) -> None:
        assert system.x is self.x


def links_of(conductivity: Array, spacing: tuple[float, float, float], resistance: Array | float = 0.0) -> list[Array]:
    """Half cells in series; between unequal cells a contact."""
    links = []
    for axis, d in enumerate(spacing):
        k = np.moveaxis(conductivity, 2 - axis, 0)
        link = np.zeros(k.shape)
        contact = resistance * (k[1:] != k[:-1])
        with np.errstate(divide="ignore"):
            link[1:] = np.prod(spacing) / d / (d / 2 / k[1:] + contact + d / 2 / k[:-1])
        links.append(np.moveaxis(link, 0, 2 - axis))
    return links


def operator_of(links: list[Array], ground: Array, precision: str = "float64") -> tuple[Operator, float]:
    """In units of the largest diagonal, which is returned too."""
    diagonal = ground + sum(link + np.roll(link, -1, 2 - axis) for axis, link in enumerate(links))
    scale = float(diagonal.max())
    x, y, z = (np.ascontiguousarray(link / scale).astype(precision) for link in links)
    return Operator((x, y, z), (ground / scale).astype(precision)), scale


def coarsened(operator: Operator, factors: Factors) -> Operator:
    """The operator of merged cells."""
    out = empty_like(np, operator, factors)
    CpuSweeps().coarsen(operator, out, factors)
    return out


def matrix_of(operator: Operator) -> Any:
    places = np.arange(operator.size).reshape(operator.shape)
    matrix = sparse.diags(operator.ground.astype(np.float64).ravel()).tocsc()
    for axis, link in enumerate(operator.links):
        k, here, there = link.astype(np.float64).ravel(), places.ravel(), np.roll(places, 1, 2 - axis).ravel()
        rows, columns = np.concatenate((here, there, here, there)), np.concatenate((here, there, there, here))
        matrix = matrix + sparse.csc_matrix((np.concatenate((k, k, -k, -k)), (rows, columns)), matrix.shape)
    return matrix


def exact(operator: Operator, b: Array) -> Array:
    """By elimination; 0 where nothing conducts."""
    matrix = matrix_of(operator)
    conducts = matrix.diagonal() > 0.0
    T = np.zeros(operator.size)
    T[conducts] = spsolve(matrix[conducts][:, conducts].tocsc(), b.ravel()[conducts])
    return T.reshape(operator.shape)


def random_body(shape: Shape, seed: int, periodic: bool = False, void: float = 0.0) -> tuple[list[Array], Array]:
    """Conductivities over four decades, cell by cell; ground at one face, and a little of it everywhere with void."""
    rng = np.random.default_rng(seed)
    k = 10.0 ** rng.uniform(-2.0, 2.0, shape)
    empty = rng.random(shape) < void
    links, ground = links_of(k, (1.0, 1.0, 1.0)), np.zeros(shape)
    ground[0] = rng.random(shape[1:])
    ground += 1e-3 * (void > 0.0)
    for axis, link in enumerate(links):
        if periodic and shape[2 - axis] > 1:
            np.moveaxis(link, 2 - axis, 0)[0] = 3.0
        link[empty | np.roll(empty, 1, 2 - axis)] = 0.0
    ground[empty] = 0.0
    return links, ground


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "periodic", "void"),
    [
        ((1, 1, 1), False, 0.0),
        ((1, 1, 300), False, 0.0),
        ((300, 1, 2), True, 0.0),
        ((1, 23, 29), True, 0.0),
        ((9, 10, 11), False, 0.0),
        ((13, 7, 21), True, 0.3),
        ((24, 17, 30), False, 0.3),
    ],
)
def test_solutions_are_those_of_elimination(shape: Shape, periodic: bool, void: float, precision: str) -> None:
    """Odd sizes, axes of one cell, axes that wrap, void, four decades of conductivity from cell to cell."""
    links, ground = random_body(shape, sum(shape), periodic, void)
    operator, _ = operator_of(links, ground, precision)
    b = np.random.default_rng(1).normal(size=shape) * (matrix_of(operator).diagonal().reshape(shape) > 0.0)
    known = exact(operator, b)
    equations = Linear(operator, b, np.zeros(shape))
    tolerance = 1e-5 * float(np.abs(known).max())
    progress = solve(equations, CpuSweeps(), tolerance)
    assert progress.newton_steps == 1
    assert progress.correction < 0.1 * tolerance
    assert np.abs(equations.x - known).max() <= tolerance


def test_a_tolerance_far_below_float32_is_met() -> None:
    links, ground = random_body((12, 13, 14), 3)
    operator, _ = operator_of(links, ground)
    b = np.random.default_rng(2).normal(size=operator.shape)
    known = exact(operator, b)
    equations = Linear(operator, b, np.zeros(operator.shape))
    solve(equations, CpuSweeps(), 1e-11 * float(np.ptp(known)))
    assert np.abs(equations.x - known).max() <= 1e-11 * float(np.ptp(known))


def test_an_error_that_cycles_hardly_reduce_is_seen() -> None:
    """Of a cluster that void nearly closes off, corrections show 1 % of the error; the tolerance holds all the same."""
    shape = (13, 7, 21)
    operator, _ = operator_of(*random_body(shape, sum(shape), periodic=True, void=0.3))
    b = np.random.default_rng(1).normal(size=shape) * (matrix_of(operator).diagonal().reshape(shape) > 0.0)
    known = exact(operator, b)
    for part in (1e-3, 1e-4, 1e-5, 1e-6):
        equations = Linear(operator, b, np.zeros(shape))
        tolerance = part * float(np.abs(known).max())
        solve(equations, CpuSweeps(), tolerance)
        assert np.abs(equations.x - known).max() <= 0.5 * tolerance, part


def test_the_smallest_eigenvalue_is_that_of_the_matrix() -> None:
    """As many steps of conjugate gradients as there are unknowns, without preconditioning."""
    rng = np.random.default_rng(4)
    A = np.diag([0.01, 0.2, 0.5, 1.0, 1.3])
    r = p = rng.normal(size=5)
    steps = []
    for _ in range(5):
        alpha = (r @ r) / (p @ A @ p)
        following = r - alpha * (A @ p)
        beta = (following @ following) / (r @ r)
        steps.append((alpha, beta))
        r, p = following, following + beta * p
    assert smallest_eigenvalue(steps) == pytest.approx(0.01, rel=1e-6)
    assert smallest_eigenvalue([]) == 1.0


def test_a_cycle_is_symmetric_and_positive() -> None:
    """As conjugate gradients need it."""
    links, ground = random_body((14, 15, 16), 4, periodic=True, void=0.2)
    operator, _ = operator_of(links, ground, "float32")
    cycle = VCycle(np, CpuSweeps(), operator)

    def solved(b: Array) -> Array:
        out, spare = (np.full(operator.shape, np.nan, dtype="float32") for _ in range(2))
        cycle.solve(b, out, spare)
        return out.astype(np.float64)

    rng = np.random.default_rng(5)
    conducts = matrix_of(operator).diagonal().reshape(operator.shape) > 0.0
    one, other = ((rng.normal(size=operator.shape) * conducts).astype("float32") for _ in range(2))
    across, back = float((solved(one) * other).sum()), float((one * solved(other)).sum())
    size = np.sqrt(float((one * solved(one)).sum()) * float((other * solved(other)).sum()))
    assert size > 0.0
    assert abs(across - back) <= 1e-5 * size


def test_coarse_links_of_a_uniform_body_are_those_of_larger_cells() -> None:
    """Four times the area, twice the distance: of cubes twice the link. The last of an odd number stays alone."""
    shape = (11, 12, 12)
    links = links_of(np.full(shape, 3.0), (1.0, 1.0, 1.0))
    coarse = coarsened(Operator((links[0], links[1], links[2]), np.zeros(shape)), (2, 2, 2))
    assert coarse.shape == (6, 6, 6)
    inner = slice(2, -1)
    for axis in range(3):
        np.testing.assert_allclose(coarse.links[axis][2:4, inner, inner], 6.0)
        assert not np.moveaxis(coarse.links[axis], 2 - axis, 0)[0].any()
    np.testing.assert_allclose(coarse.links[2][5, inner, inner], 12.0 / 1.5)
    np.testing.assert_allclose(coarse.links[0][5, inner, inner], 3.0)


def test_a_good_conductor_keeps_its_links_in_a_pair_with_an_insulator() -> None:
    """Copper below gel: with half of the copper's link to the gel in series, 0.8 W/K would be left of 400 W/K."""
    k = np.full((6, 4, 4), 400.0)
    k[3:] = 0.2
    links = links_of(k, (1.0, 1.0, 1.0))
    coarse = coarsened(Operator((links[0], links[1], links[2]), np.zeros(k.shape)), (1, 1, 2))
    assert (coarse.links[2][1] > 200.0).all()
    assert (coarse.links[2][2] < 0.2).all()


def test_a_held_face_moves_away_from_the_centres_of_coarse_cells() -> None:
    """Four half cells of twice the length: 4·k from 2·k; corners and edges get about their share of each face."""
    shape = (16, 16, 16)
    links, ground = links_of(np.full(shape, 1.0), (1.0, 1.0, 1.0)), np.zeros(shape)
    for axis in range(3):
        np.moveaxis(ground, axis, 0)[0] += 2.0
    coarse = coarsened(Operator((links[0], links[1], links[2]), ground), (2, 2, 2)).ground
    np.testing.assert_allclose(coarse[0, 1:-1, 1:-1], 4.0, rtol=0.1)
    np.testing.assert_allclose(coarse[0, 0, 1:-1], 8.0, rtol=0.2)
    np.testing.assert_allclose(coarse[0, 0, 0], 12.0, rtol=0.3)
    assert not coarse[1:, 1:, 1:].any()


def test_strong_axes_are_coarsened_first() -> None:
    links = links_of(np.ones((16, 16, 16)), (1.0, 1.0, 0.1))
    operator = Operator((links[0], links[1], links[2]), np.zeros((16, 16, 16)))
    seen = []
    while operator.size > 1:
        seen.append(choose_factors(operator.shape, CpuSweeps().mean_links(operator)))
        operator = coarsened(operator, seen[-1])
    assert seen[:2] == [(1, 1, 2), (1, 1, 2)]
    assert seen[-1] != (1, 1, 2)


def blocks(spacing: tuple[float, float, float], n: int = 48) -> tuple[list[Array], Array, Array]:
    """Random blocks of 8³ cells, conductivities 1 : 20 : 400, with contacts between them; heated at the top."""
    ids = np.random.default_rng(1).integers(0, 3, (n // 8,) * 3)
    k = np.kron(np.array([1.0, 20.0, 400.0])[ids], np.ones((8, 8, 8)))
    links, ground, b = links_of(k, spacing, 1e-5), np.zeros(k.shape), np.zeros(k.shape)
    area = spacing[0] * spacing[1]
    ground[0] = area / (1.0 / 1000.0 + spacing[2] / 2.0 / k[0])
    ground[:, :, -1] += spacing[1] * spacing[2] * 10.0
    b[-8:] = 1e-3
    return links, ground, b


def counted(links: list[Array], ground: Array, b: Array) -> Convergence:
    """Work to 0.01 % of the range, with the error that this leaves checked against a far smaller tolerance."""
    operator, scale = operator_of(links, ground, "float32")
    solutions = []
    for tolerance in (None, 1e-7 * float(np.abs(b / ground.max()).max())):
        equations = Linear(operator, b / scale, np.zeros(operator.shape))
        progress = solve(equations, CpuSweeps(), tolerance)
        solutions.append((equations.x, progress))
    (found, progress), (known, _) = solutions
    assert progress.tolerance == pytest.approx(1e-4 * float(np.ptp(known)), rel=0.01)
    assert np.abs(found - known).max() <= progress.tolerance
    return progress


@pytest.mark.parametrize("film", [500.0, 1e30], ids=["convection", "held"])
@pytest.mark.parametrize("n", [16, 32, 64])
def test_work_for_a_cube_does_not_grow_with_its_cells(n: int, film: float) -> None:
    """Whether its faces are cooled a little or held at a temperature."""
    k, d = np.full((n, n, n), 237.0), 0.1 / n
    ground = np.zeros(k.shape)
    for axis in range(3):
        for end in (0, -1):
            np.moveaxis(ground, axis, 0)[end] += d * d / (1.0 / film + d / 2.0 / 237.0)
    b = np.zeros(k.shape)
    b[:, : n // 4] = 1e7 * d**3
    assert counted(links_of(k, (d, d, d)), ground, b).applications <= 45.0


@pytest.mark.quick("spacing1-120.0")
@pytest.mark.parametrize(
    ("spacing", "most"), [((1e-3, 1e-3, 1e-3), 120.0), ((1e-3, 1e-3, 1e-2), 120.0), ((1e-3, 1e-3, 1e-4), 170.0)]
)
def test_work_for_blocks_with_contacts(spacing: tuple[float, float, float], most: float) -> None:
    assert counted(*blocks(spacing)).applications <= most


def with_capacity(capacity: Array, links: list[Array], ground: Array) -> Operator:
    """The operator of a step in time, in units of its largest diagonal."""
    operator, scale = operator_of(links, ground + capacity)
    return Operator(operator.links, operator.ground, (capacity / scale).astype(operator.ground.dtype))


@pytest.mark.quick("0.0001", "100.0")
@pytest.mark.parametrize("step", [1e-4, 1e-2, 1.0, 1e2, 1e6])
def test_a_step_in_time_takes_few_cycles_however_long_it_is(step: float) -> None:
    """From a step in which heat does not leave its cell to one that leads nearly to the steady state."""
    links, ground = random_body((24, 17, 30), 7, void=0.2)
    capacity = np.random.default_rng(8).uniform(0.5, 2.0, ground.shape) * (ground > 0.0) / step
    operator = with_capacity(capacity, links, ground)
    b = np.random.default_rng(9).normal(size=ground.shape) * (ground > 0.0)
    known = exact(operator, b)
    equations = Linear(operator, b, np.zeros(ground.shape))
    tolerance = 1e-5 * float(np.abs(known).max())
    progress = solve(equations, CpuSweeps(), tolerance)
    assert np.abs(equations.x - known).max() <= tolerance
    steady = Linear(operator_of(links, ground)[0], b, np.zeros(ground.shape))
    of_steady = solve(steady, CpuSweeps(), 1e-5 * float(np.abs(exact(steady.operator, b)).max()))
    assert progress.cycles <= 1.2 * of_steady.cycles


def test_coarse_cells_have_the_sum_of_the_capacities_of_their_cells() -> None:
    """Beside it the ground that leads to the surroundings becomes what it becomes without capacity."""
    links, ground = random_body((11, 8, 9), 11)
    capacity = np.random.default_rng(12).uniform(1.0, 2.0, ground.shape)
    known = coarsened(Operator((links[0], links[1], links[2]), ground), (2, 1, 2))
    cycle = VCycle(np, CpuSweeps(), Operator((links[0], links[1], links[2]), ground + capacity, capacity))
    merged = merge(capacity, (2, 1, 2))
    assert merged.shape == (6, 8, 5)
    assert merged[1, 3, 2] == pytest.approx(capacity[2:4, 3, 4:6].sum(), rel=1e-14)
    assert merged[5, 3, 4] == capacity[10, 3, 8]
    coarse = empty_like(np, Operator((links[0], links[1], links[2]), ground + capacity, capacity), (2, 1, 2))
    cycle.coarsen(Operator((links[0], links[1], links[2]), ground + capacity, capacity), coarse, (2, 1, 2))
    np.testing.assert_allclose(coarse.capacity, merged, rtol=1e-14)
    np.testing.assert_allclose(coarse.ground - merged, known.ground, atol=1e-13)


def pair(link: float, ground: float) -> Operator:
    """Two cells."""
    links = np.zeros((1, 1, 2))
    links[0, 0, 1] = link
    return Operator((links, np.zeros_like(links), np.zeros_like(links)), np.full_like(links, ground))


def test_weak_ground_is_not_lost_in_rounding() -> None:
    """1e20 W/K between two cells, 1 W/K to the surroundings: the sum of both is 1e20."""
    T = np.zeros((1, 1, 2))
    solve(Linear(pair(1e20, 1.0), np.ones_like(T), T), CpuSweeps(), 1e-3)
    np.testing.assert_allclose(T, 1.0, atol=1e-3)


def test_the_inverse_of_weakly_grounded_cells_is_accurate_in_every_entry() -> None:
    """The temperatures of an almost isolated body are equal: the heat over the ground."""
    rng = np.random.default_rng(7)
    links = [rng.random((3, 4, 5)) for _ in range(3)]
    for axis, link in enumerate(links):
        np.moveaxis(link, 2 - axis, 0)[0] = 0.0
    ground = 1e-30 * rng.random((3, 4, 5))
    np.testing.assert_allclose(cycle._inverse(links, ground), 1.0 / ground.sum(), rtol=1e-12)


def test_a_part_without_ground_is_an_error() -> None:
    operator = pair(1.0, 0.0)
    with pytest.raises(NotConvergedError, match="exchanges no heat with its surroundings; check film coefficients"):
        solve(Linear(operator, np.ones((1, 1, 2)), np.zeros((1, 1, 2))), CpuSweeps(), 1e-3)
