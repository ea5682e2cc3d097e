"""The stages of one step, and which polynomial a step of a given length needs."""

import json
from bisect import bisect_left
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from math import fsum

from heatsim.solver.stabilized.polynomials import FILE, VERSION, pair

# Rounding grows with the stages. In float32 scenarios/cube.toml with 512³ cells and a tolerance of 0.1 K takes 24 steps
# with up to 418 stages, and its energy closes to 3e-7 of the stored heat; with up to 450 or 482 it takes 26 steps.
MOST_STAGES = {"float32": 418, "float64": 514}


@dataclass(frozen=True)
class Substep:
    """One Euler substep of a step of length h from t: T' = T + δ·h·F(T).

    Face values are taken at t + start·h, and sources and given fluxes on the straight line of the step. Beams are
    averaged from t + start·h to t + end·h. Its ledger entries count δ·h times the flow.
    """

    delta: float
    start: float
    end: float


@dataclass(frozen=True)
class Pair:
    """The two stages that make the order 2: Z = T + (b/a)·h·F(T), then T' = T + a·h·F(Z).

    The first has its face values and sources at t + start·h, and its beams averaged from there to t + middle·h. The
    second has its face values and sources at t + middle·h, and its beams averaged from t + start·h to t + end·h. The
    second alone enters the ledger, with a·h times the flow.

    Attributes:
        after: number of substeps that come before the pair.
    """

    after: int
    a: float
    b: float
    start: float
    middle: float
    end: float


@dataclass(frozen=True)
class Stages:
    """All stages of a step.

    The intervals of the substeps and of the pair tile the step without gaps: each ``end`` is the next ``start``, the
    first is 0, the last 1.

    Attributes:
        beta: a step is stable up to h = β·dt_limit/2.
        deltas: the lengths of the substeps, as fractions of the step.
        before_pair: number of substeps that come before the pair.
    """

    beta: float
    deltas: tuple[float, ...]
    before_pair: int

    @property
    def count(self) -> int:
        """Number of stages s: the substeps and the two of the pair."""
        return len(self.deltas) + 2

    @property
    def substeps(self) -> tuple[Substep, ...]:
        """The substeps in the order in which they are done; ``pair.after`` of them come before the pair."""
        return self._parts[0]

    @property
    def pair(self) -> Pair:
        """The two other stages."""
        return self._parts[1]

    def longest(self, dt_limit: float) -> float:
        """The longest stable step in s, from the limit of an Euler step in s."""
        return self.beta * dt_limit / 2

    @cached_property
    def _parts(self) -> tuple[tuple[Substep, ...], Pair]:
        """A run uses a few of all polynomials, so each calculates its stages when they are first needed."""
        a, b = pair(self.deltas)
        lengths = [*self.deltas[: self.before_pair], a, *self.deltas[self.before_pair :]]
        edges = [*(fsum(lengths[:i]) for i in range(len(lengths))), 1.0]
        intervals = [*pairwise(edges)]
        start, end = intervals.pop(self.before_pair)
        substeps = (Substep(delta, *interval) for delta, interval in zip(self.deltas, intervals, strict=True))
        return tuple(substeps), Pair(self.before_pair, a, b, start, start + b / a, end)


@cache
def all_stages() -> tuple[Stages, ...]:
    """The stages of all polynomials, the fewest first."""
    content = json.loads(FILE.read_text(encoding="utf-8"))
    assert content["version"] == VERSION, f"{FILE}: run python -m heatsim.solver.stabilized.polynomials"
    return tuple(Stages(table["beta"], tuple(table["deltas"]), table["before_pair"]) for table in content["tables"])


def choose(h: float, dt_limit: float) -> Stages:
    """The fewest stages with which a step of h s is stable.

    Args:
        h: at most :func:`longest_step`.
        dt_limit: the limit of an Euler step in s. No rate of the body is above 2/dt_limit.

    Raises:
        ValueError: the step is too long for all polynomials.
    """
    stages = all_stages()
    found = bisect_left(stages, h, key=lambda some: some.longest(dt_limit))
    if found == len(stages):
        raise ValueError(f"a step of {h!r} s is longer than the longest stable one, {longest_step(dt_limit)!r} s")
    return stages[found]


def longest_step(dt_limit: float, most: int = MOST_STAGES["float64"]) -> float:
    """The longest step in s that the polynomials allow, of those with at most ``most`` stages."""
    return next(stages for stages in reversed(all_stages()) if stages.count <= most).longest(dt_limit)
