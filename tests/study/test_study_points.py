"""The points: every combination in order, lists in parallel, or a draw with one value from each part of every range."""

import numpy as np
import pytest

from heatsim.study.model import StudyTable
from heatsim.study.points import count, identity, points


def test_a_grid_has_every_combination_the_last_axis_fastest() -> None:
    table = StudyTable(
        method="grid", parameters={"a": [1, 2]}, linked=[{"keys": ["b", "c"], "values": ["x", "y", "z"]}]
    )
    made = points(table)
    assert count(table) == len(made) == 6
    assert made[0] == {"a": 1, "b": "x", "c": "x"}
    assert [(point["a"], point["b"]) for point in made] == [(a, b) for a in (1, 2) for b in "xyz"]
    assert all(point["b"] == point["c"] for point in made)


def test_zip_takes_lists_side_by_side() -> None:
    table = StudyTable(method="zip", parameters={"a": [1, 2], "b": [30.0, 40.0]})
    assert count(table) == 2
    assert points(table) == [{"a": 1, "b": 30.0}, {"a": 2, "b": 40.0}]


@pytest.mark.parametrize("seed", [0, 1, 2**40])
def test_a_latin_hypercube_draws_once_from_each_part_of_each_range(seed: int) -> None:
    ranges = {"a": {"min": -5.0, "max": 5.0}, "b": {"min": 1.0, "max": 1e4, "scale": "log"}}
    table = StudyTable(method="latin-hypercube", parameters=ranges, samples=40, seed=seed)
    made = points(table)
    assert count(table) == len(made) == 40
    a, b = (np.array([point[key] for point in made], dtype=float) for key in "ab")
    assert sorted(np.floor((a + 5.0) / 10.0 * 40)) == list(range(40))
    assert sorted(np.floor(np.log10(b) / 4.0 * 40)) == list(range(40))
    # The two columns are independent.
    assert abs(np.corrcoef(a, np.log(b))[0, 1]) < 0.5
    assert points(table) == made
    other = StudyTable(method="latin-hypercube", parameters=ranges, samples=40, seed=seed + 1)
    assert points(other) != made


def test_a_point_is_its_values_however_they_are_written() -> None:
    assert identity({"a": 1, "b": "x"}) == identity({"b": "x", "a": 1.0})
    assert identity({"a": 1}) != identity({"a": "1"})
