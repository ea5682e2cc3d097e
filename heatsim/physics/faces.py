"""Boundary conditions: what a face exchanges with the cells behind it.

Every condition is written with three numbers, which may vary in time. The heat that flows through a face into the
body is, per area, with the spacing d and the conductivity k normal to the face,

    q_in = (k/d) · β · (T∞ − T) + q                      T: the cell at the face, d/2 behind it

        outside | cell                    held temperature   β = 2                     T∞ its value
          T∞  ──┼──●  T                   convection         β = h / (k/d + h/2)       T∞ the ambient
           q  ──►                         flux               β = 0                     q given
                |←→| d/2                  insulated          β = 0                     q = 0

β puts the half cell between the face and the cell's centre in series with the film coefficient h (Incropera,
*Fundamentals of Heat and Mass Transfer*, §3.1). In one step of the explicit scheme the cell gains f − g·T with
g = c·β and f = c·(β·T∞ + q·d/k), c = α·dt/d². Periodic faces exchange nothing: the kernel wraps the index instead.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.scenario import Convection, Face, Flux, Insulated, Periodic, Scenario, Temperature

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Exchange:
    """One face at n times.

    Attributes:
        beta: β of the formula above, dimensionless, shape (n,).
        ambient: T∞ in K, shape (n,); 0 where β is 0.
        flux: q in W/m² into the body, shape (n,).
    """

    beta: Array
    ambient: Array
    flux: Array


def _held(condition: Temperature, times: Array, k_over_d: float, dt: float) -> Exchange:
    return Exchange(np.full_like(times, 2.0), condition.value.at(times), np.zeros_like(times))


def _convection(condition: Convection, times: Array, k_over_d: float, dt: float) -> Exchange:
    h = condition.coefficient.at(times)
    return Exchange(h / (k_over_d + h / 2.0), condition.ambient.at(times), np.zeros_like(times))


def _flux(condition: Flux, times: Array, k_over_d: float, dt: float) -> Exchange:
    value = condition.value.mean(times, dt) if dt > 0.0 else condition.value.at(times)
    return Exchange(np.zeros_like(times), np.zeros_like(times), value)


def _nothing(condition: Insulated | Periodic, times: Array, k_over_d: float, dt: float) -> Exchange:
    return Exchange(np.zeros_like(times), np.zeros_like(times), np.zeros_like(times))


_EXCHANGES: dict[type, Callable[..., Exchange]] = {
    Temperature: _held,
    Convection: _convection,
    Flux: _flux,
    Insulated: _nothing,
    Periodic: _nothing,
}


@dataclass(frozen=True)
class Faces:
    """The six faces of a scenario's box, in the order of :data:`heatsim.grid.FACES`."""

    conditions: tuple[Face, ...]
    spacing: tuple[float, float, float]
    conductivity: tuple[float, float, float]

    @classmethod
    def from_scenario(cls, scenario: Scenario, temperature: float = 0.0) -> "Faces":
        """The faces of a scenario; of a material that changes, with its conductivity at a temperature in K."""
        conditions = tuple(scenario.boundaries.face(name) for name in FACES)
        return cls(conditions, scenario.grid.spacing, scenario.base_material.conductivity_at(temperature))

    def exchange(self, face: int, times: Array, dt: float = 0.0) -> Exchange:
        """What face number ``face`` exchanges at ``times`` (s, shape (n,)).

        In steps of ``dt`` seconds from there a given flux counts with its mean over the step, everything else with its
        value at the start.
        """
        axis = face // 2
        condition = self.conditions[face]
        return _EXCHANGES[type(condition)](condition, times, self.conductivity[axis] / self.spacing[axis], dt)

    def periodic(self, axis: int) -> bool:
        """Whether the two faces of an axis are joined."""
        return isinstance(self.conditions[2 * axis], Periodic)

    def exchanging(self, face: int) -> bool:
        """Whether heat can pass the face to or from outside the box."""
        return not isinstance(self.conditions[face], Insulated | Periodic)

    def constant(self) -> bool:
        """Whether no face changes in time."""
        for condition in self.conditions:
            values = (
                getattr(condition, name) for name in ("value", "coefficient", "ambient") if hasattr(condition, name)
            )
            if not all(value.constant for value in values):
                return False
        return True

    def largest_betas(self, end: float) -> tuple[float, ...]:
        """The largest β of each face between 0 and ``end`` (s), looked for where a table or expression can have it."""
        betas = []
        for face, condition in enumerate(self.conditions):
            times = condition.coefficient.samples(end) if isinstance(condition, Convection) else np.zeros(1)
            betas.append(float(self.exchange(face, times).beta.max()))
        return tuple(betas)

    def surface(self, face: int, time: float) -> tuple[float, float]:
        """Weights (a, b) of a face's own temperature at ``time``: T_surface = a·T_cell + b (K).

        Half a cell of conduction carries q_in from the face to the cell's centre: T_surface = T + q_in·d/(2k).
        """
        axis = face // 2
        exchange = self.exchange(face, np.array([time]))
        beta, ambient, flux = (float(values[0]) for values in (exchange.beta, exchange.ambient, exchange.flux))
        d_over_k = self.spacing[axis] / self.conductivity[axis]
        return 1.0 - beta / 2.0, (beta * ambient + flux * d_over_k) / 2.0
