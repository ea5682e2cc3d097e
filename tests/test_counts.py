"""Numbers of things and time spans in texts."""

import pytest

from heatsim.counts import counted, duration


@pytest.mark.parametrize(
    ("count", "plural", "expected"),
    [(0, "", "0 rows"), (1, "", "1 row"), (2000, "", "2,000 rows"), (1, "entries", "1 row"), (2, "lines", "2 lines")],
)
def test_the_noun_after_one_is_singular(count: int, plural: str, expected: str) -> None:
    assert counted(count, "row", plural) == expected


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "less than 1 s"),
        (41.0, "about 41 s"),
        (2470.0, "about 41 min"),
        (9000.0, "about 2.5 h"),
        (1e6, "about 12 days"),
        (9.5e9, "about 301 years"),
    ],
)
def test_a_duration_has_the_unit_that_suits_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text
