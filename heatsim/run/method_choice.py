"""How much work the methods in time need for a run: counted from its numbers, never measured.

After a jump the field changes ever more slowly: its third derivative in time falls as 1/t³, so a step whose error C·h³
is the tolerance has a length h = θ·t with θ = 3.3·(tolerance/range)^(1/3). With s stages a step may be β₁·s²·dt_limit/2
long, with β₁ = 0.654. Summed over all steps of an interval of Δ s this gives

    stages = 2·√(2/(β₁·θ)) · √(Δ/dt_limit)

The factor 3.3 was measured: a cube of 64³ or 256³ cells takes 546 and 2,195 stages at a thousandth of the range. Other
bodies took from two thirds to twice the estimate, and melting ones from three to twelve times as many.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.boundary import Boundary, time_functions
from heatsim.physics.initial import InitialField
from heatsim.physics.jumps import Jumps, find_jumps, passing_times
from heatsim.physics.pace import Pace
from heatsim.physics.problem import HeatProblem
from heatsim.physics.temperature_range import span
from heatsim.solver.stabilized.controller import Tolerance
from heatsim.solver.stabilized.scheme import all_stages

Array = NDArray[np.float64]

_GROWTH = 3.3
_BETA = 0.654
# The fewest and the most stages in parts of the estimate; where latent heat is set free, fronts pass cell by cell.
_SMOOTH, _MELTING = (2.0 / 3.0, 2.0), (3.0, 12.0)
# Stages of another method are worth it from this gain on: a step has work beside its stages.
_GAIN = 3.0
_MOST_PLACES = 2**20  # of one beam
_RESOLUTION = 2**11  # of the times of changes, in parts of the end


@dataclass(frozen=True)
class WorkEstimate:
    """Sweeps over the grid that a run needs with each method.

    Attributes:
        euler: steps of the method "euler".
        stages: the fewest and the most stages of the method "stabilized" that are to be expected.
        jumps: the times at which its steps end.
        tolerance: the error that its steps may have at the start, in K.
    """

    euler: int
    stages: tuple[int, int]
    jumps: Jumps
    tolerance: float

    @property
    def stabilized_pays(self) -> bool:
        """Whether "stabilized" is to be preferred to "euler"."""
        return self.euler >= _GAIN * sqrt(self.stages[0] * self.stages[1])


def count_work(problem: HeatProblem) -> WorkEstimate:
    """Count the work of a run in which time passes.

    Raises:
        ScenarioError: too many jumps; the initial temperature cannot be read.
    """
    scenario, limit = problem.scenario, problem.limit.dt
    end, start = scenario.time.end, InitialField.from_scenario(scenario, problem.parts)
    whole = span(start, problem.boundary)
    tolerance = Tolerance(scenario.time.tolerance, whole, start.lowest, start.highest).kelvin
    jumps = find_jumps(problem.boundary, tolerance, whole)
    edges = np.unique(np.concatenate(([0.0, end], jumps.times)))
    changes = np.concatenate((np.zeros(0), *_changes(problem.boundary)))
    after = np.searchsorted(edges, changes).clip(1, len(edges) - 1)
    # Changes are known to within a sample; one beside a jump is the jump itself.
    apart = np.minimum(changes - edges[after - 1], edges[after] - changes) > end / _RESOLUTION
    edges = np.unique(np.concatenate((edges, changes[apart])))
    melts = any(material is not None and material.latent_heat is not None for _, material in scenario.palette)
    # If only sources make differences, their size is not known beforehand; the default is right then.
    fraction = tolerance / whole if whole > tolerance else 2e-4
    return WorkEstimate(
        euler=euler_steps(end, limit, 0.9),
        stages=stages_between(edges, limit, fraction, melts),
        jumps=jumps,
        tolerance=tolerance,
    )


def euler_steps(end: float, limit: float, safety: float) -> int:
    """Steps of ``safety``·``limit`` s to ``end`` (s)."""
    return 1 if limit == inf else ceil(end / (safety * limit))


def stages_between(edges: Array, limit: float, fraction: float, melts: bool) -> tuple[int, int]:
    """The fewest and the most stages to be expected.

    Args:
        edges: the start, the times at which the body is driven another way, the end; in s, ascending.
        limit: of an Euler step in s.
        fraction: the tolerance in parts of the range of temperatures.
        melts: whether latent heat is set free.
    """
    fewest = all_stages()[0].count
    theta = _GROWTH * min(fraction, 1e-2) ** (1.0 / 3.0)
    factor = 2.0 * sqrt(2.0 / (_BETA * theta))
    stages = np.maximum(factor * np.sqrt(np.diff(edges) / limit), fewest)
    expected = float(stages.sum())
    least, most = (ceil(part * expected) for part in (_MELTING if melts else _SMOOTH))
    return max(least, fewest), max(most, fewest)


def _changes(boundary: Boundary) -> Iterator[Array]:
    """Times in s between which expressions change by their range, and in which a beam moves by its radius."""
    scenario, end = boundary.scenario, boundary.scenario.time.end
    functions = [function for condition in boundary.conditions for function in time_functions(condition)]
    functions += [source.scale for source in scenario.sources]
    yield from (Pace.of_functions([function], end).edges() for function in dict.fromkeys(functions))
    for source in scenario.sources:
        if source.beam is not None and len(passing := passing_times(source.beam)) > 1:
            assert source.beam.speed is not None
            stop = min(float(passing[-1]), end)
            count = max(ceil((stop - passing[0]) * source.beam.speed / source.beam.radius), 0)
            yield np.linspace(passing[0], stop, min(count, _MOST_PLACES) + 1)[1:]
