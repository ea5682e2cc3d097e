"""Powers of surfaces as fluxes: a condition with ``power`` has the flux power/area, with the area on the grid.

Only cells that conduct count. Surfaces towards void count with their smooth area, by which kernels weight them. So the
whole power enters the body, to rounding.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.cells.link_weights import sides_towards_void, types_around
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.condition_terms import Condition
from heatsim.scenario import Flux, TimeFunction
from heatsim.scenario.values.function_of_time import Length

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scaled(TimeFunction):
    """A function of time, times a constant positive factor."""

    function: TimeFunction
    factor: float

    @property
    def constant(self) -> bool:
        """Whether the function is constant."""
        return self.function.constant

    def at(self, times: Array) -> Array:
        """Values at times in s."""
        return self.factor * self.function.at(times)

    def jumps(self, end: float, error: float = 0.0) -> Array | None:
        """The jumps of the function."""
        return self.function.jumps(end, error / self.factor)

    def mean(self, times: Array, dt: Length) -> Array:
        """Means over steps."""
        return self.factor * self.function.mean(times, dt)

    def nodes(self, end: float) -> Array:
        """The nodes of the function."""
        return self.function.nodes(end)

    def last_change(self, end: float) -> float:
        """The last change of the function."""
        return self.function.last_change(end)

    def extremes(self, end: float) -> tuple[float, float]:
        """The extremes of the function, times the factor."""
        low, high = self.function.extremes(end)
        return self.factor * low, self.factor * high


def with_areas(boundary: Boundary, materials: CellTypes) -> Boundary:
    """The conditions of a body, with powers as fluxes in W/m².

    Raises:
        ScenarioError: a surface with a power has no cell that conducts.
    """
    conditions = list(boundary.conditions)
    powers = [number for number, condition in enumerate(conditions) if _power(condition) is not None]
    if not powers:
        return boundary
    areas, problems = _areas(boundary, materials), []
    for number in powers:
        power = _power(conditions[number])
        assert power is not None, "found above"
        if areas[number] > 0.0:
            # The key keeps its name for messages.
            conditions[number] = conditions[number].model_copy(update={"power": Scaled(power, 1.0 / areas[number])})
        else:
            message = "no cell that conducts has this surface: nothing takes the power"
            problems.append(Mistake(f"{boundary.keys[number]}.power", message))
    if problems:
        raise ScenarioError(boundary.scenario.path, problems)
    return replace(boundary, conditions=tuple(conditions))


def _power(condition: Condition) -> TimeFunction | None:
    return condition.power if isinstance(condition, Flux) else None


def _areas(boundary: Boundary, materials: CellTypes) -> Array:
    """The area in m² of each condition: on cells of the grid that conduct, and smooth towards void."""
    found = np.zeros(len(boundary.conditions))
    grid = materials.grid
    for face in range(6):
        v, u = (np.arange(n) for n in grid.face_shape(face))
        conducts = materials.types_on_face(face) != (-1 if materials.void is None else materials.void)
        area = grid.cell_volume / grid.spacing[face // 2]
        for numbers, fractions in boundary.shares(face, v[:, None], u[None, :]):
            np.add.at(found, numbers[conducts], area * fractions[conducts])
    towards_void = list(_towards_void(materials, boundary.periodic))
    if towards_void:
        planes, conditions, areas = (np.concatenate(arrays) for arrays in zip(*towards_void, strict=True))
        for condition, of_condition in materials.held.sums(planes, conditions, areas).items():
            found[condition] += of_condition
    return found


def _towards_void(
    materials: CellTypes, periodic: tuple[bool, bool, bool]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32], Array]]:
    """The planes, conditions and smooth areas in m² of all surfaces towards void."""
    surfaces, grid = materials.weighted_surfaces, materials.grid
    own, _ = types_around(materials, surfaces.cells)
    for side, places in sides_towards_void(materials, periodic):
        area = grid.cell_volume / grid.spacing[side // 2]
        planes = surfaces.cells[places] // (grid.cells[0] * grid.cells[1])
        yield planes, materials.void_conditions[own[places]], area * surfaces.area[places, side]
