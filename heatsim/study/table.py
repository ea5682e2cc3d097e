"""What the table [study] of a scenario file says: what varies, how, and what is asked of each run."""

from dataclasses import dataclass

GRID, ZIP, LATIN_HYPERCUBE = METHODS = ("grid", "zip", "latin-hypercube")
FINAL, MAX, MIN, MEAN, TIME_ABOVE, TIME_BELOW = STATISTICS = ("final", "max", "min", "mean", "time_above", "time_below")
SCALES = ("linear", "log")
MAXIMUM_RUNS = 100_000


@dataclass(frozen=True)
class Range:
    """A continuous parameter.

    Attributes:
        low, high: its ends in SI units.
        ends: the ends as the file has them.
        scale: "linear" or "log": evenly in the value or in its logarithm.
    """

    low: float
    high: float
    ends: tuple[object, object]
    scale: str


@dataclass(frozen=True)
class Axis:
    """One thing that varies: the keys that have the same value in each run, and the values.

    Attributes:
        keys: dotted paths into the scenario.
        values: as the file has them, or a range.
        place: where the values stand in the file.
    """

    keys: tuple[str, ...]
    values: tuple[object, ...] | Range
    place: str


@dataclass(frozen=True)
class Response:
    """One number asked of each run.

    Attributes:
        name: a column of the results.
        probe: the probe it is taken from.
        statistic: "final", "max", "min", "mean" in K; "time_above" and "time_below" in s: when the threshold is first
            passed.
        threshold: in K, where the statistic has one.
    """

    name: str
    probe: str
    statistic: str
    threshold: float | None = None


@dataclass(frozen=True)
class StudyTable:
    """A study's settings, checked as far as they can be without its scenario."""

    method: str
    axes: tuple[Axis, ...]
    responses: tuple[Response, ...]
    samples: int = 0
    seed: int = 0

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key that varies, in the file's order."""
        return tuple(key for axis in self.axes for key in axis.keys)
