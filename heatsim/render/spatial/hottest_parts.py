"""The hottest regions of a body, by name, to mark them in sections."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class PartOwners:
    """The names of the regions, and the number of each cell's region from 1, shape (nz, ny, nx); 0 without one."""

    names: Sequence[str]
    numbers: NDArray[np.uint8]


def hottest_parts(values: NDArray[np.floating], owners: PartOwners) -> list[tuple[int, float]]:
    """The numbers of the hottest regions, from 1, with their highest temperature in K, the hottest first.

    Args:
        values: temperatures in K, NaN in void, shape (nz, ny, nx).
        owners: the regions.
    """
    highest = np.full(len(owners.names) + 1, -np.inf)
    there = np.isfinite(values)
    np.maximum.at(highest, owners.numbers[there], values[there])
    numbers = [int(number) for number in np.argsort(-highest[1:], kind="stable") + 1 if np.isfinite(highest[number])]
    return [(number, float(highest[number])) for number in numbers] if len(numbers) > 1 else []


def hottest_places(
    values: NDArray[np.floating], numbers: NDArray[np.uint8], areas: NDArray[np.floating]
) -> dict[int, tuple[float, int, int]]:
    """The area, and the row and the column of the hottest cell, of each part in a section, by its number.

    A part that is hottest beside a hotter one, which only warms it, is left out.

    Args:
        values: temperatures in K, NaN in void.
        numbers: of the parts, of the same shape; 0 for none.
        areas: of the cells, of the same shape.
    """
    found = {}
    heat = np.where(np.isfinite(values), values, -np.inf)
    for number in np.unique(numbers[np.isfinite(values) & (numbers > 0)]).tolist():
        inside = numbers == number
        row, column = (int(at) for at in np.unravel_index(np.argmax(np.where(inside, heat, -np.inf)), heat.shape))
        around = (slice(max(row - 1, 0), row + 2), slice(max(column - 1, 0), column + 2))
        if heat[around].max() <= heat[row, column]:
            found[number] = float(areas[inside].sum()), row, column
    return found
