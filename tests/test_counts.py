"""Numbers of things in texts."""

import pytest

from heatsim.counts import counted


@pytest.mark.parametrize(
    ("count", "plural", "expected"),
    [(0, "", "0 rows"), (1, "", "1 row"), (2000, "", "2,000 rows"), (1, "entries", "1 row"), (2, "lines", "2 lines")],
)
def test_the_noun_after_one_is_singular(count: int, plural: str, expected: str) -> None:
    assert counted(count, "row", plural) == expected
