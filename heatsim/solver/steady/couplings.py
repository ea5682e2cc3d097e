"""The thermal couplings of a linear steady state, from unit differences of temperature.

    L_ij: the heat in W that leaves into surroundings i if surroundings j are 1 K hotter than all others, L_ij = L_ji

Each search has the operator of the steady state. Its right-hand side is that of surroundings j alone: sources and given
fluxes are left out. The couplings of N surroundings need N − 1 searches, because L is symmetric and, if the N are all,
its rows add up to 0.

Source: ISO 10211, Thermal bridges in building construction: thermal coupling coefficients.
"""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

from heatsim.kernels.multigrid.sweeps import LevelSweeps
from heatsim.physics.operator.balance import Balance
from heatsim.physics.operator.surface_exchange import BalanceSurface, ExchangingCells
from heatsim.scenario import Scenario
from heatsim.solver.steady.newton import NewtonSolver
from heatsim.solver.steady.steady_equations import Equations

# The error in K that is allowed for a difference of 1 K.
_TOLERANCE = 1e-7


def find_couplings(
    balance: Balance, equations: Equations, sweeps: LevelSweeps, stopped: Callable[[], bool]
) -> tuple[float, ...]:
    """The heat flow in W/K of each coupling of the scenario. Collective.

    Args:
        balance: of a body in a linear steady state.
        equations: of this balance; their temperatures and right-hand side are overwritten.
        sweeps: work on arrays of the equations' device.
        stopped: returns whether to stop early.

    Raises:
        NotConvergedError, NotFiniteError: a solution was not found.
        Interrupted: ``stopped`` returned true.
    """
    boundary = balance.body.boundary
    pairs = _pairs(boundary.scenario)
    flows = {hot: unit_flows(balance, equations, sweeps, boundary.of_surroundings(hot), stopped) for hot in dict(pairs)}
    colds = [boundary.of_surroundings(cold) for _, cold in pairs]
    return tuple(
        sum(flows[hot].get(number, 0.0) for number in sorted(cold)) for (hot, _), cold in zip(pairs, colds, strict=True)
    )


def searches(scenario: Scenario) -> int:
    """The number of searches for the couplings of a scenario."""
    return len(dict(_pairs(scenario)))


def _pairs(scenario: Scenario) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The names of both surroundings of each coupling, in the same order for both orders of the file."""
    ends = [[tuple(sorted(names)) for names in each.between] for each in scenario.couplings]
    return [(min(pair), max(pair)) for pair in ends]


def unit_flows(
    balance: Balance, equations: Equations, sweeps: LevelSweeps, hot: AbstractSet[int], stopped: Callable[[], bool]
) -> dict[int, float]:
    """The heat in W that leaves the body at each condition, if the surroundings ``hot`` are at 1 K, others at 0 K.

    Arguments and errors are those of :func:`find_couplings`.
    """
    kelvins = [_kelvins(surface, hot) for surface in balance.surfaces]
    equations.hold(kelvins)
    NewtonSolver(equations, sweeps, stopped).solve(_TOLERANCE)
    T, heats, leaving = equations.temperature, list[tuple[ExchangingCells, Any]](), dict[int, float]()
    for surface, ambient in zip(balance.surfaces, kelvins, strict=True):
        if isinstance(surface, BalanceSurface):
            heats.append((surface, surface.linear_terms()[1] * (surface.of(T) - ambient)))
    for (_, number), heat in sorted(balance.sums.of_conditions(heats).items()):
        leaving[number] = leaving.get(number, 0.0) + heat
    return leaving


def _kelvins(surface: Any, hot: AbstractSet[int]) -> Any:
    """1 for the cells of a surface whose surroundings are hot, else 0; one number if they have one condition."""
    if not isinstance(surface, BalanceSurface):
        return 0.0
    found = [float(condition.number in hot) for condition in surface.conditions]
    return found[0] if surface.which is None else surface.xp.asarray(found)[surface.which]
