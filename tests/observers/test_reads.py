"""What observers read: the field itself, or only the sums of a row."""

import pytest
from conftest import Simulate
from runs import TEXT

from heatsim.observers.energy import Energy
from heatsim.observers.observer import FIELD, SUMS, Observer
from heatsim.observers.watchdog import Watchdog


@pytest.mark.parametrize(("observer", "expected"), [(Observer(), FIELD), (Energy(), SUMS), (Watchdog(), SUMS)])
def test_an_observer_says_what_it_reads(observer: Observer, expected: object, simulate: Simulate) -> None:
    assert observer.reads(simulate(TEXT).state) == expected
