"""Powers of surfaces as fluxes: a condition with ``power`` has the flux power/area, with the area on the grid.

Only cells that conduct count. Surfaces towards void count with their smooth area, by which kernels weight them. So the
whole power enters the body, to rounding.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.condition_terms import Condition
from heatsim.physics.operator.boundary_faces import areas
from heatsim.scenario import Flux, TimeFunction
from heatsim.scenario.values.function_of_time import Mapped

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scaled(Mapped):
    """A function of time, times a constant positive factor."""

    factor: float

    def of(self, values: Array) -> Array:
        """The product."""
        return self.factor * values

    def jumps(self, end: float, error: float = 0.0) -> Array | None:
        """The jumps of the function."""
        return self.function.jumps(end, error / self.factor)


def with_areas(boundary: Boundary, materials: CellTypes) -> Boundary:
    """The conditions of a body, with powers as fluxes in W/m².

    Raises:
        ScenarioError: a surface with a power has no cell that conducts.
    """
    conditions = list(boundary.conditions)
    powers = [number for number, condition in enumerate(conditions) if _power(condition) is not None]
    if not powers:
        return boundary
    # A power belongs to all surfaces of its owner.
    owners = np.array(boundary.owners)
    of_conditions, problems = np.bincount(owners, areas(boundary, materials))[owners], []
    for number in powers:
        power = _power(conditions[number])
        assert power is not None, "found above"
        if of_conditions[number] > 0.0:
            # The key keeps its name for messages.
            owner = conditions[boundary.owners[number]]
            conditions[number] = (
                owner.model_copy(update={"power": Scaled(power, 1.0 / of_conditions[number])})
                if number == boundary.owners[number]
                else owner
            )
        elif number == boundary.owners[number]:
            message = "no cell that conducts has this surface: nothing takes the power"
            problems.append(Mistake(f"{boundary.keys[number]}.power", message))
    if problems:
        raise ScenarioError(boundary.scenario.path, problems)
    return replace(boundary, conditions=tuple(conditions))


def _power(condition: Condition) -> TimeFunction | None:
    return condition.power if isinstance(condition, Flux) else None
