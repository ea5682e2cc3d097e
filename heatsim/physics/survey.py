"""What each material of a scenario means on its grid: the time step that it allows, and its c0…c6."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from heatsim.physics.cell_types import Substance
from heatsim.physics.enthalpy import EnthalpyTable
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
        rates: α/d² of the three axes in 1/s, 0 along an axis of one cell; the largest of a material that changes.
        enthalpy: how it changes with temperature, where that is known; else None.
    """

    name: str
    conductivity: tuple[float, float, float]
    density: float
    specific_heat: float
    at: float | None
    rates: tuple[float, float, float]
    enthalpy: EnthalpyTable | None = None

    @property
    def limit(self) -> float:
        """The largest stable time step in s: 1/(2·Σ α/d²)."""
        total = sum(self.rates)
        return 1.0 / (2.0 * total) if total > 0.0 else inf

    def coefficients(self, dt: float) -> tuple[float, ...]:
        """c0…c6 for a time step of ``dt`` seconds, where diffusivity is largest."""
        x, y, z = (rate * dt for rate in self.rates)
        return (1.0 - 2.0 * (x + y + z), x, x, y, y, z, z)

    def least_coefficients(self, dt: float) -> tuple[float, ...]:
        """The same where diffusivity is smallest."""
        share = 1.0 if self.enthalpy is None else self.enthalpy.least_driving / self.enthalpy.driving
        x, y, z = self.rates
        return replace(self, rates=(x * share, y * share, z * share)).coefficients(dt)


def survey(scenario: Scenario, palette: Sequence[Substance] = (), reference: float | None = None) -> tuple[Survey, ...]:
    """Every material of the palette that conducts, in its order.

    Args:
        scenario: whose materials they are.
        palette: the same as numbers, from which the enthalpies of those that change are taken.
        reference: the temperature in K that the enthalpies begin at.
    """
    enthalpies = {substance.name: substance.enthalpy for substance in palette}
    grid, initial = scenario.grid, scenario.initial.temperature
    temperature = initial if isinstance(initial, float) else _ROOM_TEMPERATURE
    if any(enthalpies.values()) and reference is not None:
        temperature = reference
    found = []
    for name, material in scenario.palette:
        if material is None:
            continue
        enthalpy = enthalpies.get(name)
        k, cp = material.conductivity, material.specific_heat
        conductivity, specific_heat = material.conductivity_at(temperature), material.specific_heat_at(temperature)
        if enthalpy is not None:
            conductivity, specific_heat = enthalpy.conductivity, enthalpy.heat_capacity / material.density
        heat_capacity = material.density * specific_heat / (enthalpy.driving if enthalpy is not None else 1.0)
        rx, ry, rz = (
            along / heat_capacity / d**2 if n > 1 else 0.0
            for along, d, n in zip(conductivity, grid.spacing, grid.cells, strict=True)
        )
        varies = isinstance(k, MaterialFunction) or isinstance(cp, MaterialFunction)
        found.append(
            Survey(
                name,
                conductivity,
                material.density,
                specific_heat,
                temperature if varies else None,
                (rx, ry, rz),
                enthalpy,
            )
        )
    return tuple(found)
