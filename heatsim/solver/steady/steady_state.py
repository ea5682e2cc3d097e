"""The steady state of a run's field: found on the field's device, left in the field."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from heatsim.errors import NotConvergedError
from heatsim.grid import Grid
from heatsim.kernels.composite import surface_heat
from heatsim.kernels.cuda_graphs import record
from heatsim.kernels.multigrid import pairs
from heatsim.kernels.multigrid.cuda_sweeps import CudaSweeps
from heatsim.kernels.multigrid.cycle import STEPS
from heatsim.kernels.multigrid.operator import COARSEST, shapes_below
from heatsim.kernels.multigrid.rank_sweeps import FEW, RankSweeps
from heatsim.kernels.multigrid.sweeps import CpuSweeps, LevelSweeps
from heatsim.physics.operator.balance import Balance
from heatsim.physics.operator.heat_sums import SumLayout
from heatsim.physics.operator.steady_flows import Flows
from heatsim.physics.operator.surface_exchange import BalanceSurface
from heatsim.physics.problem import HeatProblem
from heatsim.physics.time.stage_times import StageTimes
from heatsim.physics.time.time_steps import INSTANT
from heatsim.scenario import is_linear
from heatsim.solver.field.field import Field
from heatsim.solver.field.plane_sums import PlaneSums
from heatsim.solver.steady.couplings import find_couplings, searches
from heatsim.solver.steady.newton import Convergence, solve
from heatsim.solver.steady.steady_equations import Equations, VaryingEquations

# What stands in the place of a kernel's name.
METHOD = "multigrid"
# Usual number of cycles of a search for a body of one material and of several materials, and the factor for nonlinear
# problems.
_FEW, _SEVERAL, _NEWTON = 8, 12, 3
_COUPLING = 1.4  # the cycles of a search for couplings over those of another one
# Arrays in float64 that a search takes at most: where surfaces radiate or heat depends on the temperature, and where
# conductivities vary. Three of them are for steps in time.
_RADIATING, _VARYING = 9, 43


@dataclass(frozen=True)
class SteadyState:
    """How a steady state was found, and where its heat flows.

    Attributes:
        progress: tolerance, cycles, equivalent applications.
        flows: heat in W through every surface and from every source; their sum is the imbalance that is left.
        couplings: the heat flow in W/K of each coupling of the scenario.
    """

    progress: Convergence
    flows: Flows
    couplings: tuple[float, ...] = ()


def find_steady_state(
    problem: HeatProblem, field: Field, cells: Any = None, stopped: Callable[[], bool] = lambda: False
) -> SteadyState:
    """Replace the field, which holds the first guess, by the steady state. Collective.

    Args:
        problem: of a scenario with ``method = "steady"``; with several ranks that of this rank's slab.
        field: the field; the work is done on its device.
        cells: the bytes ``problem.materials.cells`` on that device; copied there if not given.
        stopped: returns whether to stop early; the same on all ranks.

    Raises:
        NotConvergedError, NotFiniteError: no steady state exists, or none was found.
        Interrupted: ``stopped`` returned true.
    """
    device, materials = field.device, problem.materials
    balance = make_balance(problem, field, cells)
    guess = device.xp.zeros(field.deviation.shape)
    guess[field.slab.own] = field.degrees(field.own, slice(None))
    field.halo.exchange(guess)
    make = VaryingEquations if materials.by_halves else Equations
    sweeps = make_sweeps(field)
    equations = make(balance, problem.precision, guess, sweeps)
    if equations.nodes is not None:
        equations.nodes.begin(equations.nodes.network.given(StageTimes.of_steps(np.zeros(1), INSTANT)).at(0))
    progress = solve(equations, sweeps, problem.scenario.time.tolerance, stopped)
    if equations.gaps_fall():
        raise NotConvergedError(
            "the steady state that was found may be unstable: less heat passes a gap there where the temperatures of "
            "both sides differ more, so several states are possible. Follow the body in time with time.method = "
            '"implicit", or give the contact a conductance that changes over a wider range of temperatures'
        )
    T = equations.temperature
    flows = equations.flows()
    field.deviation[...] = balance.contents(T)
    field.halo.stale()
    field.changed()
    return SteadyState(progress, flows, find_couplings(balance, equations, sweeps, stopped))


def make_balance(
    problem: HeatProblem, field: Field, cells: Any, *, changing: bool = False, ledger: SumLayout | None = None
) -> Balance:
    """The balance of a body with arrays of a field's device; arguments as of :class:`Balance`. Collective."""
    return Balance(
        problem,
        field.reference,
        field.device.xp,
        cells,
        changing=changing,
        ledger=ledger,
        sums=PlaneSums(field),
        exchange=BalanceSurface.exchange if field.device.backend == "cpu" else surface_heat.exchange,
    )


def make_sweeps(field: Field) -> LevelSweeps:
    """What works on arrays like a field's buffers. Collective."""
    device, team = field.device, field.team
    sweeps = CpuSweeps(team) if device.backend == "cpu" else CudaSweeps(device, partial(record, device), team=team)
    return sweeps if field.slab.alone else RankSweeps(sweeps, device, field.halo)


def device_bytes(problem: HeatProblem) -> int:
    """Bytes beside the field: conductances and sources, the temperature in float64, four vectors, coarse levels.

    Where the balance is not linear, temporary arrays in float64 are added.
    """
    grid, item, single, double = problem.grid, np.dtype(problem.precision).itemsize, 4, 8
    finest = 5 * item + double + 4 * single
    if problem.materials.by_halves:
        finest += _VARYING * double
    elif problem.materials.heated.tables or not all(map(is_linear, problem.boundary.conditions)):
        finest += _RADIATING * double
    # Pivots of lines: of all levels and axes at most.
    lines = 0 if grid.uniform else item * sum(n > 1 for n in grid.cells)
    return (finest + lines) * grid.cell_count + (4 * item + 3 * single + lines) * coarse_cells(problem)


def coarse_cells(problem: HeatProblem) -> int:
    """Number of cells of all levels below the finest on one rank: its part of large ones, and all of small ones."""
    grid = problem.grid
    below = sum(prod(shape) for shape in level_shapes(grid)[1:])
    # A level has at most half of the cells of the level above, so those that are not divided have at most 2·FEW cells;
    # on graded grids 0.8 of them, so 5·FEW cells.
    return below if problem.slab.alone else below + (2 if grid.uniform else 5) * FEW


def level_shapes(grid: Grid) -> list[tuple[int, int, int]]:
    """The shapes of all levels of multigrid on a grid, the finest first, for a body of one material."""
    if not grid.uniform:
        return [grid.shape, *pairs.shapes_below([axis.widths for axis in grid.axes], COARSEST)]
    return [grid.shape, *shapes_below(grid.shape, [grid.cell_volume / d**2 for d in grid.spacing])]


def work_of_cycle(grid: Grid) -> float:
    """The work of a cycle in applications of the operator on the finest level, for a body of one material."""
    shapes = level_shapes(grid)
    return 1.0 + 2.0 * STEPS * sum(map(prod, shapes[:-1])) / grid.cell_count


def usual_cycles(problem: HeatProblem) -> int:
    """The usual number of cycles of a search, and of those for couplings."""
    linear = Balance(problem, 0.0).linear
    cycles = (_FEW if problem.materials.uniform else _SEVERAL) * (1 if linear else _NEWTON)
    return cycles + round(_COUPLING * cycles * searches(problem.scenario))
