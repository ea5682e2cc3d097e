"""The conditions of a composite body's surfaces, and the state of the cells behind them."""

from typing import Any

from heatsim.kernels.cpu.composite_cells import state
from heatsim.kernels.cpu.lines import compiled
from heatsim.kernels.cpu.plan import behind, reals_at
from heatsim.kernels.cpu.surface_rises import CONDUCTANCE_AT, DEGREES_AT, SHARE_AT
from heatsim.physics.conditions.surface_balance import NUMBERS


@compiled
def enter_state(plan: Any, surface: Any, j: int, cell_type: int, conductance: Any, share: Any, held: bool) -> None:
    """Replace the content of a surface's cell by its temperature, and enter what follows from its conductivity."""
    degrees, conducting = state(plan, surface, cell_type, surface[DEGREES_AT + j])
    surface[DEGREES_AT + j] = degrees
    surface[CONDUCTANCE_AT + j] = conductance * conducting
    surface[SHARE_AT + j] = share if held else share * conducting


@compiled
def condition_of(plan: Any, T: Any, step: int, number: int) -> Any:
    """The six numbers of a condition."""
    return behind(reals_at(plan.conditions, T), step * plan.conditions_stride + NUMBERS * number)


@compiled
def held_potential(plan: Any, T: Any, step: int, number: int, cell_type: int) -> Any:
    """The potential of cells of a type at the temperature of a held surface."""
    return reals_at(plan.held, T)[step * plan.held_stride + number * plan.types + cell_type]
