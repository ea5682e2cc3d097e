"""What each material of a scenario means on its grid: the time step that it allows, and its c0…c6."""

from dataclasses import dataclass
from math import inf

import numpy as np

from heatsim.scenario import MaterialFunction, Scenario

# A property given by an expression is looked at here where the initial temperature is no single number.
_ROOM_TEMPERATURE = 300.0


@dataclass(frozen=True)
class Survey:
    """One material, inside of it, away from other materials and from faces.

    Attributes:
        name: what the scenario calls it.
        conductivity: (kx, ky, kz) in W/(m K).
        density: in kg/m³.
        specific_heat: in J/(kg K).
        at: the temperature in K that conductivity and specific heat are given for; None where they do not vary.
        rates: α/d² of the three axes in 1/s, 0 along an axis of one cell.
    """

    name: str
    conductivity: tuple[float, float, float]
    density: float
    specific_heat: float
    at: float | None
    rates: tuple[float, float, float]

    @property
    def limit(self) -> float:
        """The largest stable time step in s: 1/(2·Σ α/d²)."""
        total = sum(self.rates)
        return 1.0 / (2.0 * total) if total > 0.0 else inf

    def coefficients(self, dt: float) -> tuple[float, ...]:
        """c0…c6 for a time step of ``dt`` seconds."""
        x, y, z = (rate * dt for rate in self.rates)
        return (1.0 - 2.0 * (x + y + z), x, x, y, y, z, z)


def survey(scenario: Scenario) -> tuple[Survey, ...]:
    """Every material of the palette that conducts, in its order."""
    grid, initial = scenario.grid, scenario.initial.temperature
    temperature = initial if isinstance(initial, float) else _ROOM_TEMPERATURE
    found = []
    for name, material in scenario.palette:
        if material is None:
            continue
        k, cp = material.conductivity, material.specific_heat
        conductivity = (_value(k, temperature),) * 3 if isinstance(k, MaterialFunction) else k
        specific_heat = _value(cp, temperature) if isinstance(cp, MaterialFunction) else cp
        heat_capacity = material.density * specific_heat
        rx, ry, rz = (
            along / heat_capacity / d**2 if n > 1 else 0.0
            for along, d, n in zip(conductivity, grid.spacing, grid.cells, strict=True)
        )
        varies = isinstance(k, MaterialFunction) or isinstance(cp, MaterialFunction)
        found.append(
            Survey(name, conductivity, material.density, specific_heat, temperature if varies else None, (rx, ry, rz))
        )
    return tuple(found)


def _value(function: MaterialFunction, temperature: float) -> float:
    return float(function.at(np.float64(temperature)))
