"""The times of pictures: the hottest moment, the end, and those that look most different."""

import numpy as np
import pytest

from heatsim.render.spatial.moments import candidates, telling


def test_a_pulse_is_drawn_when_it_is_hottest_and_equal_ends_once() -> None:
    highest = np.array([0.0, 0.0, 0.3, 1.0, 0.6, 0.02, 0.0, 0.0, 0.0])
    assert telling(highest[:, None], highest.tolist(), 4) == [2, 3, 4, 8]


def test_a_warm_up_is_drawn_early_and_not_again_when_it_is_over() -> None:
    times = np.arange(1.0, 101.0)
    field = (1.0 - np.exp(-times / 3.0))[:, None] * np.array([0.5, 1.0])
    chosen = telling(field, field.max(axis=1).tolist(), 4)
    assert len(chosen) == 4
    assert chosen[-1] == 99
    assert chosen[2] < 10


def test_a_moving_spot_differs_though_its_temperature_does_not() -> None:
    assert telling(np.eye(12, 40), [1.0] * 12, 4)[-1] == 11
    assert len(telling(np.eye(12, 40), [1.0] * 12, 4)) == 4


@pytest.mark.parametrize("seed", range(20))
def test_no_two_pictures_look_alike(seed: int) -> None:
    random = np.random.default_rng(seed)
    shown = random.random((random.integers(1, 30), 50)) * random.choice([0.05, 0.5, 1.0])
    shown[random.random(len(shown)) < 0.3] = shown[0]
    shown[:, random.integers(50)] = np.nan
    chosen = telling(shown, np.nanmax(shown, axis=1).tolist(), 5)
    assert chosen == sorted(set(chosen))
    assert 1 <= len(chosen) <= 5
    for number, one in enumerate(chosen):
        for other in chosen[number + 1 :]:
            assert np.nanmax(np.abs(shown[one] - shown[other])) > 0.1


def test_many_fields_have_few_candidates_most_of_them_early() -> None:
    assert candidates(5) == [0, 1, 2, 3, 4]
    found = candidates(100_000)
    assert len(found) <= 48
    assert (found[0], found[-1]) == (0, 99_999)
    assert sum(index < 1000 for index in found) > 12
