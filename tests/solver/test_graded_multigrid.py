"""Multigrid where planes of cells merge in pairs: levels of graded grids, against elimination, and their work."""

import numpy as np
import pytest
import scipy.sparse as sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import spsolve

from heatsim.kernels.multigrid.cycle import VCycle
from heatsim.kernels.multigrid.lines import Lines, invert_rests, set_across
from heatsim.kernels.multigrid.operator import COARSEST_IN_TIME, Operator, empty_like, merge
from heatsim.kernels.multigrid.pairs import Pairs, choose_pairs, pairs_of, shapes_below
from heatsim.kernels.multigrid.sweeps import CpuSweeps
from heatsim.solver.steady.newton import Convergence, solve
from heatsim.solver.steady.steady_equations import LinearSystem

Array = NDArray[np.float64]
Widths = tuple[Array, Array, Array]


class Linear:
    """What the solver wants to know of a linear system."""

    linear, patience, sought, xp = True, 1, "steady state", np

    def __init__(self, operator: Operator, b: Array) -> None:
        self.operator, self.b, self.x = operator, b, np.zeros(operator.shape)

    def linearise(self) -> LinearSystem:
        return LinearSystem(self.operator, self.b, self.x, self.x, exact=True)

    def update(self, system: LinearSystem) -> None:
        """The solution is in its place."""


def growing(n: int, growth: float, ends: str) -> Array:
    """Widths that sum up to 1: narrow at "both" ends, at the "first" one, in the "middle", or "equal"."""
    half = growth ** np.arange((n + 1) // 2)
    widths = {
        "both": np.concatenate((half, half[: n // 2][::-1])),
        "first": growth ** np.arange(n),
        "middle": np.concatenate((half[::-1], half[: n // 2])),
        "equal": np.ones(n),
    }[ends]
    return np.asarray(widths / widths.sum())


def system(
    widths: Widths, k: Array, film: float = 10.0, contact: float = 0.0, precision: str = "float32"
) -> tuple[Operator, Array]:
    """Convection at all faces, heat in the lowest quarter; ``contact``: a resistance between unequal cells."""
    x, y, z = widths
    measures = x[None, None, :], y[None, :, None], z[:, None, None]
    volume, links, ground = x * y[:, None] * z[:, None, None], [], np.zeros(k.shape)
    for axis, width in enumerate(measures):
        dimension = 2 - axis
        with np.errstate(divide="ignore"):
            half = np.moveaxis(width / 2.0 / k, dimension, 0)
        area = np.moveaxis(volume / width, dimension, 0)
        unlike = np.moveaxis(k, dimension, 0)[1:] != np.moveaxis(k, dimension, 0)[:-1]
        link, faces = np.zeros(half.shape), np.moveaxis(ground, dimension, 0)
        link[1:] = area[1:] / (half[1:] + half[:-1] + contact * unlike)
        for end in (0, -1):
            faces[end] += area[end] / (half[end] + 1.0 / film)
        links.append(np.ascontiguousarray(np.moveaxis(link, 0, dimension)))
    b = volume * (np.arange(len(z)) < max(1, len(z) // 4))[:, None, None]
    ground[k == 0.0], b[k == 0.0] = 0.0, 0.0
    scale = max(link.max() for link in links)
    lx, ly, lz, g, heat = ((values / scale).astype(precision) for values in (*links, ground, 1e3 * b))
    return Operator((lx, ly, lz), g, graded=True), heat


def boxes(shape: tuple[int, int, int], seed: int) -> Array:
    """Twelve boxes of conductivities from 0.01 to 400 in a body of 1 W/(m·K)."""
    rng, k = np.random.default_rng(seed), np.ones(shape)
    for _ in range(12):
        first = [rng.integers(0, n - 2) for n in shape]
        last = [rng.integers(begin + 2, n + 1) for begin, n in zip(first, shape, strict=True)]
        k[tuple(map(slice, first, last))] = 10.0 ** rng.uniform(-2.0, 2.6)
    return k


def exact(operator: Operator, b: Array) -> Array:
    """By elimination; 0 where nothing conducts."""
    places = np.arange(operator.size).reshape(operator.shape)
    matrix = sparse.diags(operator.ground.astype(np.float64).ravel()).tocsc()
    for axis, link in enumerate(operator.links):
        k, here, there = link.astype(np.float64).ravel(), places.ravel(), np.roll(places, 1, 2 - axis).ravel()
        rows, columns = np.concatenate((here, there, here, there)), np.concatenate((here, there, there, here))
        matrix = matrix + sparse.csc_matrix((np.concatenate((k, k, -k, -k)), (rows, columns)), matrix.shape)
    conducts, T = matrix.diagonal() > 0.0, np.zeros(operator.size)
    T[conducts] = spsolve(matrix[conducts][:, conducts].tocsc(), b.ravel()[conducts])
    return T.reshape(operator.shape)


def work(operator: Operator, b: Array) -> Convergence:
    return solve(Linear(operator, b), CpuSweeps())


def test_planes_join_the_next_one_from_the_first_on() -> None:
    pairs = Pairs.joining([True, True, False, False, True])
    assert pairs.first.tolist() == [0, 2, 3, 4, 6]
    assert pairs.coarse.tolist() == [0, 0, 1, 2, 3, 3]
    assert pairs_of(2, 5).first.tolist() == [0, 2, 4, 5]
    assert pairs_of(1, 3).widest == 1
    summed = merge(np.arange(12.0).reshape(1, 2, 6), (pairs, 2, 1))
    np.testing.assert_array_equal(summed, [[[0 + 1 + 6 + 7, 2 + 8, 3 + 9, 4 + 5 + 10 + 11]]])


def test_levels_of_equal_cells_are_those_of_whole_axes() -> None:
    """Pairs give the same bits as the axes that they are, if they are as soft."""
    operator, _ = system((growing(11, 1.0, "equal"),) * 3, boxes((11, 11, 11), 3))
    by_axes, by_pairs = (empty_like(np, operator, factors) for factors in ((2, 1, 2), (2, 1, 2)))
    CpuSweeps().coarsen(operator, by_axes, (2, 1, 2))
    pairs = Pairs.starting(Pairs.joining([True] * 10).first, np.inf)
    CpuSweeps().coarsen(operator, by_pairs, (pairs, 1, pairs_of(2, 11)))
    for mine, known in zip((*by_pairs.links, by_pairs.ground), (*by_axes.links, by_axes.ground), strict=True):
        np.testing.assert_array_equal(mine, known)
    alike, _ = system((growing(32, 1.0, "equal"),) * 3, np.ones((32, 32, 32)))
    strengths = [along.mean for along in CpuSweeps().strengths(alike)]
    found = [pairs.first.tolist() for pairs in choose_pairs(strengths)]
    assert found == [pairs_of(2, 32).first.tolist()] * 3


def test_a_link_between_a_pair_and_a_single_plane_has_half_of_the_pair() -> None:
    """Links of 3: along x 1/(1/3 + 1/6) through each tube; across x links of both cells of the pair add up."""
    ones, zeros = np.full((1, 4, 5), 3.0), np.zeros((1, 4, 5))
    x, y = ones.copy(), ones.copy()
    x[:, :, 0] = y[:, 0] = 0.0
    operator, pairs = Operator((x, y, zeros), zeros), Pairs.starting([0, 1, 3, 4, 5])
    coarse = empty_like(np, operator, (pairs, 1, 1))
    CpuSweeps().coarsen(operator, coarse, (pairs, 1, 1))
    np.testing.assert_allclose(coarse.links[0], np.tile([0.0, 2.0, 2.0, 3.0], (1, 4, 1)))
    np.testing.assert_allclose(coarse.links[1][0, 1:], np.tile([3.0, 6.0, 3.0, 3.0], (3, 1)))


@pytest.mark.parametrize("capacity", [0.0, 1.0])
def test_solutions_are_those_of_elimination(capacity: float) -> None:
    """Widths of 1 : 100 in any order, conductivities of 1 : 40,000, void; steady and a step in time."""
    rng, shape = np.random.default_rng(5), (13, 12, 16)
    x, y, z = (10.0 ** rng.uniform(0.0, 2.0, n) for n in shape[::-1])
    k = boxes(shape, 8)
    k[3:7, 4:8, 5:9] = 0.0
    operator, b = system((x, y, z), k, precision="float64")
    if capacity:
        part = capacity * operator.ground.max() * (k > 0.0)
        operator = Operator(operator.links, operator.ground + part, part, graded=True)
    known, equations = exact(operator, b), Linear(operator, b)
    tolerance = 1e-7 * float(np.ptp(known))
    solve(equations, CpuSweeps(), tolerance)
    assert np.abs(equations.x - known).max() <= tolerance


@pytest.mark.parametrize(
    ("growth", "ends", "seed", "most"),
    [
        (1.0, "equal", None, 45.0),
        (1.2, "both", None, 100.0),
        (1.2, "middle", None, 110.0),
        (1.2, "first", None, 170.0),
        (1.2, "both", 3, 110.0),
        (1.25, "first", 4, 170.0),
    ],
)
def test_work_where_widths_grow_along_all_axes(growth: float, ends: str, seed: int | None, most: float) -> None:
    """The last one has widths of 1 : 6,000 and conductivities of 1 : 40,000."""
    shape = (40, 40, 40)
    k = np.ones(shape) if seed is None else boxes(shape, seed)
    assert work(*system((growing(40, growth, ends),) * 3, k)).applications <= most


@pytest.mark.parametrize("planes", [40, 60, 80])
def test_work_in_two_dimensions_where_every_cell_has_another_ratio(planes: int) -> None:
    """Widths of 1 : 1,200 to 1 : 2,000,000: in one corner links are strong along x, in another one along y."""
    x = growing(planes, 1.2, "first")
    assert work(*system((x, x, np.ones(1)), np.ones((1, planes, planes)))).applications <= 110.0


def test_work_where_one_axis_is_graded() -> None:
    """Widths of 1 : 47,000 along x; steps of Jacobi alone take 2,200 applications."""
    widths = growing(60, 1.2, "first"), growing(32, 1.0, "equal"), growing(20, 1.0, "equal")
    assert work(*system(widths, boxes((20, 32, 60), 7))).applications <= 100.0


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_line_that_is_the_whole_body_is_solved(axis: int) -> None:
    """Widths of 1 : 7,600, void in the middle, weak films at all faces."""
    shape, widths = [1, 1, 1], [np.ones(1)] * 3
    shape[2 - axis], widths[axis] = 50, growing(50, 1.2, "first")
    k = np.ones(shape)
    k.flat[20:23] = 0.0
    operator, b = system((widths[0], widths[1], widths[2]), k, film=1e-2, precision="float64")
    lines, sweeps, out = Lines(axis, np.empty_like(operator.ground)), CpuSweeps(), np.empty(shape, dtype="float32")
    set_across(np, operator, lines)
    sweeps.join(operator, lines)
    invert_rests(np, operator, lines)
    sweeps.solve_lines(operator, lines, b.astype("float32"), out, 1.0)
    np.testing.assert_allclose(out, exact(operator, b), rtol=1e-5)


def test_work_for_a_board_with_copper_of_35_um() -> None:
    z = 1e-3 * np.array([0.035, 0.2, 0.2, 0.035, 0.3, 0.3, 0.3, 0.035, 0.2, 0.2, 0.035, 0.1, 0.3, 0.3, 0.3, 0.3])
    k = np.full((16, 80, 96), 0.3)
    k[[0, 3, 7, 10]], k[11:, :30], k[11:, 30:50, 30:60] = 390.0, 0.03, 100.0
    assert work(*system((np.full(96, 5e-4), np.full(80, 5e-4), z), k)).applications <= 120.0


def test_levels_become_smaller_even_if_no_links_are_strong() -> None:
    """Conductivities of 1 : 10,000 from cell to cell: without weaker pairs there would be no end of levels."""
    k = 10.0 ** np.random.default_rng(1).uniform(-2.0, 2.0, (24, 24, 24))
    operator, _ = system((growing(24, 1.1, "both"),) * 3, k)
    cycle = VCycle(np, CpuSweeps(), operator)
    assert cycle.applications / 4.0 <= 5.0


def test_the_shapes_of_levels_are_estimated_from_the_widths_alone() -> None:
    widths = growing(60, 1.08, "first"), growing(30, 1.2, "both"), growing(20, 1.0, "equal")
    operator, _ = system(widths, np.ones((20, 30, 60)))
    # All levels of a step in time do four steps of Jacobi.
    operator = Operator(operator.links, operator.ground, np.zeros_like(operator.ground), graded=True)
    cycle = VCycle(np, CpuSweeps(), operator)
    cells = sum(np.prod(shape) for shape in shapes_below(widths, COARSEST_IN_TIME)) + operator.cells
    assert cells == pytest.approx(cycle.applications / 4.0 * operator.cells, rel=0.1)
