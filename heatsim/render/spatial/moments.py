"""Choose the fields to draw: those at which something happens, and no two that look alike."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Two pictures look alike if no place differs by more than this part of the scale.
_ALIKE = 0.1
_AS_HOT = 0.01  # part of the range of all temperatures
_MOST_CANDIDATES = 48


def candidates(count: int) -> list[int]:
    """The numbers of the fields to choose from, of ``count`` fields: all, or many early ones and some of all times.

    Half of many candidates are evenly spaced, the others in their logarithm, as a warm-up changes.
    """
    if count <= _MOST_CANDIDATES:
        return list(range(count))
    half = _MOST_CANDIDATES // 2
    evenly, early = np.linspace(0, count - 1, half), np.geomspace(1, count - 1, half)
    return [int(index) for index in np.unique(np.concatenate([evenly, early]).round())]


def telling(shown: NDArray[np.floating], highest: Sequence[float], most: int) -> list[int]:
    """Which fields to draw, in ascending order: the hottest, the last, then each time the one that differs most.

    A field that looks like one that was chosen before is not drawn.

    Args:
        shown: of each field, the places in its colour scale of some cells, 0 to 1; shape (fields, cells).
        highest: the highest temperature of each field.
        most: how many to draw at most.
    """
    span = max(highest) - min(highest)
    hottest = max(index for index, high in enumerate(highest) if high >= max(highest) - _AS_HOT * span)
    chosen, apart = [hottest], _apart(shown, hottest)
    while len(chosen) < most and apart.any():
        other = len(shown) - 1 if apart[-1] and len(chosen) == 1 else int(np.argmax(apart))
        chosen.append(other)
        apart = np.minimum(apart, _apart(shown, other))
    return sorted(chosen)


def _apart(shown: NDArray[np.floating], index: int) -> NDArray[np.floating]:
    """How far each field looks from one of them: the mean of the largest and the root mean square difference."""
    difference = np.abs(np.nan_to_num(shown) - np.nan_to_num(shown[index]))
    largest = difference.max(axis=1)
    return np.asarray(np.where(largest > _ALIKE, 0.5 * (largest + np.sqrt((difference**2).mean(axis=1))) + _ALIKE, 0.0))
