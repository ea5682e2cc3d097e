"""Random bodies on grids of several widths against dense matrices that are written down independently."""

import numpy as np
import pytest
from graded_bodies import GradedBody

from heatsim.physics.operator.balance import Balance
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import parse


@pytest.mark.parametrize("axial", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_links_and_limits_are_those_of_the_matrices(seed: int, axial: bool) -> None:
    body = GradedBody(seed, axial)
    problem = HeatProblem.from_scenario(parse(body.document, "case.toml"))
    equations = body.equations
    links = Balance(problem, 300.0).links("float64", 1.0)
    shape, size = problem.grid.shape, problem.grid.cell_count
    places, full = np.arange(size).reshape(shape), np.zeros((size, size))
    for axis, link in enumerate(links):
        before = np.roll(places, 1, 2 - axis)
        full[places.reshape(-1), before.reshape(-1)] -= link.reshape(-1)
        full[before.reshape(-1), places.reshape(-1)] -= link.reshape(-1)
    np.fill_diagonal(full, 0.0)
    cells, matrix = equations.cells, equations.matrix
    expected = matrix - np.diag(matrix.diagonal())
    np.testing.assert_allclose(full[np.ix_(cells, cells)], expected, rtol=1e-12, atol=1e-12 * np.abs(matrix).max())
    assert problem.limit.dt == pytest.approx(1.0 / (matrix.diagonal() / equations.capacity).max(), rel=1e-9)
