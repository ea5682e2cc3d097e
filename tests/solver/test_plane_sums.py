"""Sums over the cells of surfaces: by condition, in a fixed order."""

from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
import pytest

from heatsim.device import Device
from heatsim.grid import Grid
from heatsim.physics.operator.surface_exchange import ExchangingCells, Label
from heatsim.solver.field.field import Field
from heatsim.solver.field.plane_sums import PlaneSums
from heatsim.solver.ledger.heats import RunningSums

GRID = Grid((7, 6, 40), (1.0, 1.0, 1.0))
COUNTS = {3: 200, 1: 90, 8: 1}  # cells of each condition


@dataclass(frozen=True, eq=False)
class Cells(ExchangingCells):
    """Cells of several conditions."""

    name: str = "some"

    @property
    def labels(self) -> list[Label]:
        return [(self.name, number) for number in COUNTS]

    @property
    def slices(self) -> list[slice]:
        ends = np.cumsum(list(COUNTS.values())).tolist()
        return [slice(end - count, end) for end, count in zip(ends, COUNTS.values(), strict=True)]


def surfaces(where: Device) -> list[tuple[ExchangingCells, Any]]:
    """Listed cells in any order, the same cells again, a whole face, and no cells; each with values."""
    rng, xp = np.random.default_rng(2), where.xp
    cells = xp.asarray(rng.integers(0, GRID.cell_count, sum(COUNTS.values())))
    values = [rng.normal(size=shape) for shape in (len(cells), len(cells), (40, 1, 7), 0)]
    face = ExchangingCells(xp, (slice(None), slice(0, 1), slice(None)))
    kinds = (Cells(xp, cells), Cells(xp, cells, "others"), face, ExchangingCells(xp, xp.asarray(np.zeros(0, np.int64))))
    return [(kind, xp.asarray(of)) for kind, of in zip(kinds, values, strict=True)]


def by_label(where: Device) -> dict[Label, list[float]]:
    """The values of each condition."""
    found: dict[Label, list[float]] = {}
    for surface, values in surfaces(where):
        for label, place in zip(surface.labels, surface.slices, strict=True):
            found.setdefault(label, []).extend(where.to_host(values)[place].reshape(-1).tolist())
    return found


def test_sums_and_largest_values_of_conditions(where: Device) -> None:
    sums, expected = PlaneSums(Field(where, GRID, "float64", 300.0)), by_label(where)
    for _ in range(2):  # the second time with what was kept
        found, largest = sums.of_conditions(surfaces(where)), sums.largest_of_conditions(surfaces(where))
        assert found == pytest.approx({label: fsum(values) for label, values in expected.items()}, rel=1e-12)
        assert largest == {label: max(map(abs, values)) for label, values in expected.items()}
        assert sums.of_surfaces(surfaces(where)) == pytest.approx(fsum(found.values()), rel=1e-12)
    assert (sums.of_surfaces([]), sums.of_conditions([]), sums.largest_of_conditions([])) == (0.0, {}, {})


def test_nan_shows_in_sums_and_largest_values(where: Device) -> None:
    sums, some = PlaneSums(Field(where, GRID, "float64", 300.0)), surfaces(where)
    some[0][1][5] = np.nan
    largest, found = sums.largest_of_conditions(some), sums.of_conditions(some)
    assert {label for label, value in largest.items() if np.isnan(value)} == {("some", 3)}
    assert {label for label, value in found.items() if np.isnan(value)} == {("some", 3)}


def test_sums_from_row_to_row_are_rounded_once() -> None:
    """Numbers of many sizes, which mostly cancel; in two calls."""
    rng = np.random.default_rng(4)
    rows = rng.uniform(-1.0, 1.0, (1000, 3)) * 10.0 ** rng.integers(-8, 8, (1000, 1))
    sums = RunningSums(np.zeros((2, 3)))
    found = np.concatenate([sums.add(rows[:400]), sums.add(rows[400:])])
    exact = [[fsum(rows[: row + 1, column]) for column in range(3)] for row in range(1000)]
    np.testing.assert_allclose(found, exact, rtol=2.0**-52, atol=1e-18)
