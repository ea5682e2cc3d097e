"""Covering arrays: a few of many rows, in which any two values that are together in one of them are together again.

Attributes:
    SLOW: whether slow tests run, which do all rows.
"""

import os
from collections.abc import Hashable, Iterable
from itertools import combinations, product
from typing import TypeVar

SLOW = os.environ.get("HEATSIM_SLOW") == "1"
Row = TypeVar("Row", bound=tuple[Hashable, ...])


def covering(rows: Iterable[Row]) -> list[Row]:
    """Some of the rows, in their order, with every pair of values (in their places) that any row has.

    Greedy: the first row of those that add most pairs comes next. The choice depends on the rows alone.
    """
    pairs = {row: set(combinations(enumerate(row), 2)) for row in rows}
    missing, chosen = set().union(*pairs.values()), set()
    while missing:
        row = max(pairs, key=lambda row: len(pairs[row] & missing))
        missing -= pairs[row]
        chosen.add(row)
    return [row for row in pairs if row in chosen]


def pairwise(*factors: Iterable[Hashable]) -> list[tuple[Hashable, ...]]:
    """A covering array of a product."""
    return covering(product(*factors))
