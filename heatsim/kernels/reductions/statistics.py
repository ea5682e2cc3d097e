"""Statistics of the values in sections, and of all sections combined.

Each section is summed in a fixed order. Then :func:`math.fsum` adds the sums of all sections exactly. So the result
does not depend on which process sums which section.
"""

from collections.abc import Sequence
from math import fsum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# struct Statistics of fused.cu: the results for one part of one section.
STATISTICS = np.dtype(
    [
        (name, np.float64)
        for name in ("total", "magnitude", "lowest", "highest", "change", "not_finite", "degrees", "liquid")
    ]
)

NUMBERS = 8  # in STATISTICS
TOTAL, MAGNITUDE, LOWEST, HIGHEST, CHANGE, NOT_FINITE, DEGREES, LIQUID = range(NUMBERS)

# Sums of magnitudes below this stay finite when a few of them are added.
_FAR_FROM_OVERFLOW = 1e300

# STATISTICS of sections, shape (sections, parts).
Partials = NDArray[Any]


class Statistics(NamedTuple):
    """Statistics of values.

    Attributes:
        total: the sum; not finite if any value is not finite.
        absolute_total: the sum of the magnitudes.
        lowest, highest: the extremes, without NaN; inf and −inf if there is no number.
        not_finite: the number of values that are NaN or infinite.
        largest_change: the largest magnitude of the difference from a second array, without NaN; 0 if there is no
            second array.
        degrees: the sum of T − T_ref in K, if requested.
        liquid: the sum of the liquid parts of the cells, if requested.
    """

    total: float
    absolute_total: float
    lowest: float
    highest: float
    not_finite: int
    largest_change: float = 0.0
    degrees: float = 0.0
    liquid: float = 0.0

    @classmethod
    def joined(cls, some: "Sequence[Statistics]") -> "Statistics":
        """The statistics of several sets of values together."""
        if len(some) == 1:
            return some[0]
        return cls(
            total=exact_sum([each.total for each in some]),
            absolute_total=exact_sum([each.absolute_total for each in some]),
            lowest=min((each.lowest for each in some), default=np.inf),
            highest=max((each.highest for each in some), default=-np.inf),
            not_finite=sum(each.not_finite for each in some),
            largest_change=max((each.largest_change for each in some), default=0.0),
            degrees=exact_sum([each.degrees for each in some]),
            liquid=exact_sum([each.liquid for each in some]),
        )


def combined(partials: Partials) -> list[Statistics]:
    """The statistics of each part, from those of all sections, in any order.

    Args:
        partials: STATISTICS, shape (sections, parts), for each process.
    """
    sections, parts = partials.shape
    if not sections:
        return [Statistics.joined([])] * parts
    columns = np.ascontiguousarray(partials).view(np.float64).reshape(sections, parts, NUMBERS)
    least, most = columns.min(axis=0), columns.max(axis=0)
    lowest, highest, change = least[:, LOWEST].tolist(), most[:, HIGHEST].tolist(), most[:, CHANGE].tolist()
    used = ((least != 0.0) | (most != 0.0)).any(axis=0).tolist()
    total, magnitude, not_finite, degrees, liquid = (
        list(map(exact_sum, columns[..., column].T.tolist())) if used[column] else [0.0] * parts
        for column in (TOTAL, MAGNITUDE, NOT_FINITE, DEGREES, LIQUID)
    )
    return [
        Statistics(total[n], magnitude[n], lowest[n], highest[n], int(not_finite[n]), change[n], degrees[n], liquid[n])
        for n in range(parts)
    ]


class FieldReduction(NamedTuple):
    """What observers read of a field at every due time; the rest follows from ``partials``.

    Attributes:
        partials: STATISTICS of all sections, shape (sections, parts).
        sums: TOTAL and MAGNITUDE of each section and part, shape (sections, parts, 2).
        lowest, highest: the extremes of each part, as :class:`Statistics` has them.
        finite: whether the sum of all values is finite for certain; otherwise add it up exactly.
    """

    partials: Partials
    sums: NDArray[np.float64]
    lowest: list[float]
    highest: list[float]
    finite: bool

    @classmethod
    def of_each(cls, partials: NDArray[Any]) -> "list[FieldReduction]":
        """The reductions of several fields with equal sections and parts, together.

        Args:
            partials: STATISTICS of each field, shape (fields, sections, parts).
        """
        columns = np.ascontiguousarray(partials).view(np.float64).reshape(*partials.shape, NUMBERS)
        sums = np.ascontiguousarray(columns[..., [TOTAL, MAGNITUDE]])
        lowest = columns[..., LOWEST].min(axis=1, initial=np.inf).tolist()
        highest = columns[..., HIGHEST].max(axis=1, initial=-np.inf).tolist()
        # A sum of magnitudes is an upper bound of every partial sum. It cannot overflow below this limit.
        finite = (sums[..., 1].max(axis=(1, 2), initial=0.0) < _FAR_FROM_OVERFLOW).tolist()
        return [cls(*each) for each in zip(partials, sums, lowest, highest, finite, strict=True)]


def exact_sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """:func:`exact_sum` of each row of an array, that is, along its last axis, with the same bits.

    The rows are added in extended precision, if the machine has it, with a bound of the error. Where the bound leaves
    open to which number the exact sum is rounded, :func:`exact_sum` finds it.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        extended = values.astype(np.longdouble).sum(axis=-1)
        found: NDArray[np.float64] = extended.astype(np.float64)
        magnitude = np.abs(values).sum(axis=-1)
        # The spacing of numbers that are sums of two float64 has no lower bound; that of others is 2⁻⁶³ or more.
        epsilon = max(float(np.finfo(np.longdouble).eps), 2.0**-63)
        error = (0.51 * values.shape[-1] * epsilon) * magnitude
        # Certain if the exact sum is closer to the found number than half of the way to its nearest neighbour.
        sizes = np.abs(found)
        certain = np.abs((extended - found).astype(np.float64)) + error < 0.499 * (sizes - np.nextafter(sizes, 0.0))
    zeros = magnitude == 0.0
    found[zeros] = 0.0
    certain |= zeros
    for place in np.argwhere(~certain):
        found[tuple(place)] = exact_sum(values[tuple(place)].tolist())
    return found


def exact_sum(numbers: Sequence[float]) -> float:
    """The sum, rounded once; not finite if a number is not."""
    try:
        return fsum(numbers)
    except (OverflowError, ValueError):  # beyond float64, or infinities of both signs
        with np.errstate(invalid="ignore", over="ignore"):
            return float(np.sum(numbers))
