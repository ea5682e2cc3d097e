"""Covering arrays have every pair of values, in few rows."""

from itertools import combinations, product

from covering import covering, pairwise


def test_every_pair_of_values_occurs_in_few_rows() -> None:
    factors = ("abcde", (1, 2, 3), (False, True), "xyz")
    rows = pairwise(*factors)
    for (i, first), (j, second) in combinations(enumerate(factors), 2):
        assert {(row[i], row[j]) for row in rows} == set(product(first, second))
    assert 15 <= len(rows) < 90 / 4  # 5·3 pairs of the two longest factors; the product has 90
    assert rows == pairwise(*factors)


def test_pairs_that_no_row_has_are_left_out() -> None:
    possible = [row for row in product("ab", (1, 2), "xy") if row[:2] != ("a", 2)]
    rows = covering(possible)
    assert set(rows) < set(possible)
    assert {row[:2] for row in rows} == {("a", 1), ("b", 1), ("b", 2)}
    assert {row[::2] for row in rows} == set(product("ab", "xy"))
