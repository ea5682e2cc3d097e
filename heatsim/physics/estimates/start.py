"""How far an initial field is from what it tends to.

A jump of R kelvins is forgotten as 1/t. At the time t heat has gone some way ℓ = √(D·t) with the diffusivity D, so

- within the body R is what the initial field changes within 2·ℓ: at most the largest difference between neighbours,
  times 2·ℓ/d along each axis, and at most all of its range;
- at a surface R is the distance of the cells behind it from the temperature that the surface tends to. A film h passes
  on at most 2·h·t/(C·ℓ) of it. In a body thinner than ℓ, the thickness stands for ℓ. At edges and corners what the
  surfaces of different axes pass on adds up.
"""

from itertools import product
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.condition_terms import Condition, time_functions
from heatsim.physics.conditions.surface_balance import STEFAN_BOLTZMANN
from heatsim.physics.drives.drives import Driven
from heatsim.physics.estimates.initial import InitialField
from heatsim.scenario import Temperature, TimeFunction
from heatsim.scenario.tables.boundaries import depends_on_surface
from heatsim.scenario.values.nodetemperature import NodeTemperature

Array = NDArray[np.float64]

_REACH = 2.0  # of ℓ, within which the initial field counts, and of the heat that a film passes on
# What a jump excites behind a held face, and where few modes share it, in multiples of that in a body of many cells.
OF_HELD_FACE, OF_FEW_CELLS = 1.9, 2.5
_FEW_CELLS = 64


class Start:
    """How far an initial field is from what it tends to. Collective.

    Args:
        problem: its conditions and cell types.
        field: the initial field.

    Attributes:
        multiple: by which all jumps count.
    """

    def __init__(self, problem: Driven, field: InitialField) -> None:
        conditions, materials = problem.boundary.conditions, problem.sources.materials
        self.multiple = OF_FEW_CELLS if materials.grid.cell_count <= _FEW_CELLS else 1.0
        self._range = field.highest - field.lowest
        self._spacing = np.array(materials.grid.mean_spacing)
        self._size = self._spacing * materials.grid.cells
        self._steps, self._slopes, faces = field.unevenness()
        self._capacity, self._diffusivity = _diffusivities(materials)
        places: list[list[tuple[int | None, Any]]] = [[] for _ in conditions]
        for face in range(6):
            for number in problem.boundary.on_face(face):
                places[number].append((face // 2, faces[face]))
        self._surfaces = [
            (axis, condition, *_towards(condition, *extremes))
            for condition, some in zip(conditions, places, strict=True)
            for axis, extremes in some or [(None, (field.lowest, field.highest))]
        ]

    @property
    def step(self) -> float:
        """The largest difference between neighbouring cells in K."""
        return float(self._steps.max())

    def jump(self, time: float) -> float:
        """R in K at a time in s, with the multiples with which held faces, thin bodies and few cells count."""
        reach = np.sqrt(self._diffusivity * time)  # of each axis and cell type
        within = float(np.maximum(self._slopes * (_REACH * reach.max(axis=1) / self._spacing), self._steps).sum())
        largest, of_axes = 0.0, np.zeros(4)  # the last of surfaces that are not those of the box
        for axis, condition, jump, film in self._surfaces:
            multiple, place = self.multiple, 3 if axis is None else axis
            if isinstance(condition, Temperature):
                multiple = max(multiple, OF_HELD_FACE)
            if axis is not None and reach[axis].max() > self._size[axis]:
                multiple = OF_FEW_CELLS
            largest = max(largest, multiple * jump)
            passed = float(self._passed(axis, _REACH * film, np.array([time]))[0])
            of_axes[place] = max(of_axes[place], multiple * jump * passed)
        return max(self.multiple * min(within, self._range), min(float(of_axes.sum()), largest))

    def followed(self, function: TimeFunction, times: Array) -> Array:
        """The part of a change of the temperature around surfaces that they follow within times in s, or more."""
        parts = [
            self._passed(axis, film, times)
            for axis, condition, _, film in self._surfaces
            if any(temperature is function for _, temperature in time_functions(condition).exchanges)
        ]
        return np.asarray(np.max(parts, axis=0)) if parts else np.zeros(len(times))

    def _passed(self, axis: int | None, film: float, times: Array) -> Array:
        """The part that a film passes on within times in s: film·t/(C·ℓ), at most 1."""
        if axis is None:
            return np.ones(len(times))
        thin = np.minimum(np.sqrt(np.multiply.outer(times, self._diffusivity[axis])), self._size[axis])
        return np.asarray(np.minimum((film * times[:, None] / (self._capacity * thin)).max(axis=1), 1.0))


def _diffusivities(materials: CellTypes) -> tuple[Array, Array]:
    """Heat capacities in J/(m³ K), and diffusivities along x, y, z in m²/s, of the cell types that are not void."""
    some = materials.heat_capacity > 0.0
    capacity, half = materials.heat_capacity[some], materials.half[:, some]
    with np.errstate(divide="ignore"):  # a layer at a surface leaves no resistance to it
        return capacity, np.array(materials.grid.mean_spacing)[:, None] / (2.0 * half) / capacity


def _towards(condition: Condition, low: float, high: float) -> tuple[float, float]:
    """How far in K cells between two temperatures in K are from what their surface tends to, and its film in W/(m² K).

    The film is infinite where it is not known before the run.
    """
    functions, start = time_functions(condition), np.zeros(1)
    temperatures = [T for _, temperature in functions.exchanges for T in _at_start(temperature)]
    if not temperatures:
        return 0.0, 0.0
    if isinstance(condition, Temperature) or depends_on_surface(condition):
        return max(abs(T - of) for T in temperatures for of in (low, high)), inf
    found = []
    around_it = product(_at_start(functions.ambient), _at_start(functions.surroundings))
    for of, (ambient, around) in product((low, high), around_it):
        film, emissivity = (float(each.at(start)[0]) for each in (functions.film, functions.emissivity))
        radiation = emissivity * STEFAN_BOLTZMANN * (of**2 + around**2) * (of + around)
        both = film + radiation
        found.append((abs(film * (ambient - of) + radiation * (around - of)) / both if both else 0.0, both))
    return max(jump for jump, _ in found), max(both for _, both in found)


def _at_start(temperature: TimeFunction) -> tuple[float, ...]:
    """The values in K that it may have at t = 0: that of a node lies between the known temperatures of its network."""
    return temperature.bounds if isinstance(temperature, NodeTemperature) else (float(temperature.at(np.zeros(1))[0]),)
