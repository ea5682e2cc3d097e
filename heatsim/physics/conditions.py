"""Conditions that the kernels evaluate themselves: on faces, patches and surfaces towards void.

A condition is six numbers, which may vary in time. With the conductance K = 2k/d of the half cell behind the surface,
the surface's temperature T_s is where

    h·(T∞ − T_s) + q + εσ·(T_sur⁴ − T_s⁴) = K·(T_s − T)

A held temperature is h = 1 without the right-hand side. For conditions without radiation this is the formula of
:mod:`heatsim.physics.faces`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.grid import FACES
from heatsim.physics.mixed_cells import MIXED, Maps, MixedCells, lay_out, place_of
from heatsim.scenario import (
    Constant,
    Convection,
    Flux,
    Insulated,
    Periodic,
    Radiation,
    Scenario,
    Temperature,
    TimeFunction,
)

Array = NDArray[np.float64]
Condition = Temperature | Flux | Convection | Radiation | Insulated | Periodic

STEFAN_BOLTZMANN = 5.670374419e-8  # W/(m² K⁴), CODATA 2018
# The numbers of a condition, in the order of struct Condition.
FILM, AMBIENT, FLUX, EMISSION, SURROUNDINGS, FREE = range(6)
# A byte holds a condition's number on a face with patches; one number says that several conditions share a cell.
MAXIMUM_PATCHES = 248
_NONE = Constant(0.0)
NEWTON_STEPS = 16  # at the most
# A change that is smaller, relative to the rise, leaves an error whose square is below rounding.
TOLERANCES = {"float32": 1e-4, "float64": 1e-8}


@dataclass(frozen=True)
class Conditions:
    """All conditions of a scenario.

    Attributes:
        scenario: whose they are.
        keys: where each stands in the scenario.
        conditions: of the six faces in the order of FACES, of the patches, of surfaces towards void.
        maps: for each face the number of each cell's condition, of the ledger's shape, MIXED where several share the
            cell; empty where there is no patch.
        mixed: the cells that several conditions share.
    """

    scenario: Scenario
    keys: tuple[str, ...]
    conditions: tuple[Condition, ...]
    maps: Maps
    mixed: MixedCells

    @classmethod
    def from_scenario(cls, scenario: Scenario) -> "Conditions":
        """The conditions of a scenario.

        Raises:
            ScenarioError: more patches than can be told apart.
        """
        if len(scenario.patches) > MAXIMUM_PATCHES:
            message = f"got {len(scenario.patches)} patches; at most {MAXIMUM_PATCHES} are allowed"
            raise ScenarioError(scenario.path, [Mistake("patches", message)])
        maps, mixed = lay_out(scenario)
        return cls(
            scenario=scenario,
            keys=(
                *(f"boundaries.{name}" for name in FACES),
                *(f"patches.{number}" for number in range(len(scenario.patches))),
                "boundaries.void",
            ),
            conditions=(
                *(scenario.boundaries.face(name) for name in FACES),
                *(patch.condition for patch in scenario.patches),
                scenario.boundaries.void,
            ),
            maps=maps,
            mixed=mixed,
        )

    @property
    def void(self) -> int | None:
        """The number of the condition on surfaces towards void; None where they let nothing through."""
        return None if isinstance(self.conditions[-1], Insulated) else len(self.conditions) - 1

    @property
    def constant(self) -> bool:
        """Whether none varies in time."""
        return all(function.constant for condition in self.conditions for function in time_functions(condition))

    def on_face(self, face: int) -> list[int]:
        """The numbers of the conditions on a face."""
        if not self.maps[face].size:
            return [face]
        parts, _ = self.mixed.on_face(face)
        numbers = np.concatenate((np.unique(self.maps[face]), self.mixed.numbers[parts]))
        return [int(number) for number in np.unique(numbers[numbers != MIXED])]

    def shares(
        self, face: int, v: NDArray[np.integer], u: NDArray[np.integer]
    ) -> Iterator[tuple[NDArray[np.intp], Array]]:
        """The conditions of cells of a face, with the fractions of the cells' faces that they have.

        Args:
            face: its number.
            v: rows of the cells in the face's map.
            u: their columns, of a shape that can be broadcast.

        Yields:
            Pairs of arrays; the fractions of a cell sum to 1.
        """
        v, u = np.broadcast_arrays(v, u)
        if not self.maps[face].size:
            yield np.full(v.shape, face), np.ones(v.shape)
            return
        numbers = self.maps[face][v, u].astype(np.intp)
        mixed = numbers == MIXED
        if not mixed.any():
            yield numbers, np.ones(v.shape)
            return
        places = place_of(face, 0) + v * self.maps[face].shape[1] + u
        entry = np.minimum(np.searchsorted(self.mixed.places, places), len(self.mixed.places) - 1)
        first, end = self.mixed.first[entry], self.mixed.first[entry + 1]
        for n in range(int((end - first)[mixed].max())):
            has = mixed & (first + n < end)
            part = np.where(has, first + n, 0)
            others, fractions = (numbers, 1.0) if n == 0 else (np.full(v.shape, face), 0.0)
            yield np.where(has, self.mixed.numbers[part], others), np.where(has, self.mixed.fractions[part], fractions)

    def exchanging(self, face: int) -> bool:
        """Whether heat can pass a face to or from outside the box."""
        return any(not isinstance(self.conditions[number], Insulated | Periodic) for number in self.on_face(face))

    def rows(self, times: Array, reference: float, dt: float = 0.0) -> Array:
        """The six numbers of every condition at times in s, shape (times, conditions, 6).

        Temperatures are deviations from ``reference`` (K). In steps of ``dt`` seconds from these times a given flux
        counts with its mean over the step, everything else with its value at the start.

        Raises:
            ScenarioError: a value is not finite, or no temperature.
        """
        rows = np.zeros((len(times), len(self.conditions), 6))
        for number, condition in enumerate(self.conditions):
            row = rows[:, number]
            film, ambient, flux, emissivity, surroundings = (
                function.at(times) for function in time_functions(condition)
            )
            row[:, FREE] = not isinstance(condition, Temperature)
            row[:, FILM] = film
            row[:, AMBIENT] = np.where(film > 0.0, ambient, surroundings) - reference
            row[:, FLUX] = condition.value.mean(times, dt) if isinstance(condition, Flux) and dt > 0.0 else flux
            row[:, EMISSION] = emissivity * STEFAN_BOLTZMANN
            row[:, SURROUNDINGS] = surroundings - reference
            physical = np.isfinite(row).all(axis=1) & (ambient >= 0.0) & (surroundings >= 0.0)
            physical &= (film >= 0.0) & (emissivity >= 0.0)
            if not physical.all():
                time = float(times[int(np.argmin(physical))])
                message = f"is not a finite, physical value at t = {time!r} s"
                raise ScenarioError(self.scenario.path, [Mistake(self.keys[number], message)])
        return rows

    def largest_films(self, end: float) -> Array:
        """The largest h of each condition between 0 and ``end`` (s) in W/(m² K); infinite for held and radiating ones.

        Radiation's own h grows with the temperature; the half cell in series with it bounds what a surface takes.
        """
        films = np.zeros(len(self.conditions))
        for number, condition in enumerate(self.conditions):
            film, _, _, emissivity, _ = time_functions(condition)
            films[number] = float(film.at(film.samples(end)).max())
            if isinstance(condition, Temperature) or emissivity.at(emissivity.samples(end)).max() > 0.0:
                films[number] = np.inf
        return films


def time_functions(condition: Condition) -> Sequence[TimeFunction]:
    """Film conductance, ambient, flux, emissivity and surroundings of a condition."""
    match condition:
        case Temperature():
            return Constant(1.0), condition.value, _NONE, _NONE, _NONE
        case Flux():
            return _NONE, _NONE, condition.value, _NONE, _NONE
        case Convection():
            return condition.coefficient, condition.ambient, _NONE, condition.emissivity, condition.surroundings
        case Radiation():
            return _NONE, _NONE, _NONE, condition.emissivity, condition.ambient
        case _:
            return (_NONE,) * 5


def surface_rise(row: Any, conductance: Any, reference: Any, T: Any, beam: Any = 0.0, xp: Any = np) -> Any:
    """Surface minus cell in K, as the kernels find it; see composite/composite.cuh.

    Args:
        row: the six numbers of the condition; each may be an array of the cells' shape.
        conductance: 2k/d of the cells in W/(m² K).
        reference: the temperature in K from which T and the row's temperatures count.
        T: deviations of the cells in K.
        beam: flux of a beam in W/m².
        xp: NumPy, or CuPy, of whose arrays ``T`` and what has its shape are; of the row only numbers with CuPy.
    """
    film, ambient, flux, emission, surroundings, free = row
    number = T.dtype.type
    zero, four, six = number(0.0), number(4.0), number(6.0)
    to_ambient, flux = ambient - T, free * (flux + beam)
    linear = film * to_ambient + flux
    losses = free * conductance + film
    radiating = emission > zero
    if not np.any(radiating):
        return xp.asarray(linear / losses)

    to_surroundings, a, b = surroundings - T, T + reference, surroundings + reference
    tolerance = number(TOLERANCES[T.dtype.name])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        exchange = emission * ((a + b) * (a * a + b * b))
        driving = exchange * to_surroundings + linear
        slope = four * emission * (a * a * a) + losses
        step = driving / slope
        second = emission * step * (step * (four * a + step) + six * a * a) / slope
        settled = ~radiating | ((xp.abs(second) <= tolerance) & (xp.minimum(a, a + step) > zero))
        hottest = xp.sqrt(xp.sqrt((b * b) * (b * b) + xp.maximum(flux, zero) / emission)) - reference
        most = xp.where(radiating, xp.maximum(xp.maximum(to_ambient, zero), hottest - T), number(xp.inf))
        rise = xp.where(settled, step - step * second, xp.minimum(driving / (losses + exchange), most))
    for _ in range(NEWTON_STEPS):
        a = xp.maximum(T + rise + reference, zero)
        exchange = emission * ((a + b) * (a * a + b * b))
        excess = exchange * (to_surroundings - rise) + (linear - losses * rise)
        change = excess / (four * emission * (a * a * a) + losses)
        rise = xp.where(settled, rise, xp.minimum(rise + change, most))
        settled |= xp.abs(change) <= tolerance * xp.abs(rise)
        if settled.all():
            break
    return xp.asarray(rise)
