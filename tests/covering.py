"""Some of many rows: covering arrays, in which any two values that are together in a row are together again.

Attributes:
    SLOW: whether slow tests run, which do all rows.
"""

import os
from collections.abc import Hashable, Iterable
from itertools import combinations, product
from typing import Any, TypeVar

import pytest

SLOW = os.environ.get("HEATSIM_SLOW") == "1"
Row = TypeVar("Row", bound=tuple[Hashable, ...])


def covering(rows: Iterable[Row], strength: int = 2) -> list[Row]:
    """Some of the rows, in their order, with every pair of values (in their places) that any row has.

    Greedy: the first row of those that add most pairs comes next. The choice depends on the rows alone. With strength 1
    every value is in one of the rows, whatever is beside it.
    """
    pairs = {row: set(combinations(enumerate(row), strength)) for row in rows}
    missing, chosen = set().union(*pairs.values()), set()
    while missing:
        row = max(pairs, key=lambda row: len(pairs[row] & missing))
        missing -= pairs[row]
        chosen.add(row)
    return [row for row in pairs if row in chosen]


def pairwise(*factors: Iterable[Hashable]) -> list[tuple[Hashable, ...]]:
    """A covering array of a product."""
    return covering(product(*factors))


def mostly_slow(rows: Iterable[Any], *fast: Any) -> list[Any]:
    """The rows as parameters of a test, each slow unless it is among ``fast``."""
    rows = list(rows)
    assert all(row in rows for row in fast), "no such row"
    return [
        row if row in fast else pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=pytest.mark.slow)
        for row in rows
    ]
