"""Each material of a scenario on its grid: its stability limit and its c0…c6."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from heatsim.physics.matter.enthalpy import EnthalpyTable
from heatsim.physics.matter.material_numbers import MaterialNumbers
from heatsim.scenario import MaterialFunction, Scenario

# Properties that vary are evaluated at this temperature in K if the initial temperature is not a number.
_ROOM_TEMPERATURE = 300.0


@dataclass(frozen=True)
class MaterialCoefficients:
    """One material, in cells with six neighbours of the same material.

    Attributes:
        name: its name in the scenario.
        conductivity: (kx, ky, kz) in W/(m K).
        density: in kg/m³.
        specific_heat: in J/(kg K).
        at: the temperature in K of conductivity and specific heat; None if they do not vary.
        rates: α/d² along x, y, z in 1/s, 0 along an axis of one cell; the largest values if the material varies.
        enthalpy: its enthalpy table; None if it does not vary, or if the table is not known yet.
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
        """c0…c6 for a time step of ``dt`` seconds at the largest diffusivity."""
        x, y, z = (rate * dt for rate in self.rates)
        return (1.0 - 2.0 * (x + y + z), x, x, y, y, z, z)

    def least_coefficients(self, dt: float) -> tuple[float, ...]:
        """c0…c6 for a time step of ``dt`` seconds at the smallest diffusivity."""
        share = 1.0 if self.enthalpy is None else self.enthalpy.least_driving / self.enthalpy.driving
        x, y, z = self.rates
        return replace(self, rates=(x * share, y * share, z * share)).coefficients(dt)


def material_coefficients(
    scenario: Scenario, palette: Sequence[MaterialNumbers] = (), reference: float | None = None
) -> tuple[MaterialCoefficients, ...]:
    """Every conducting material of the palette, in the order of the palette.

    Args:
        scenario: the scenario with the materials.
        palette: the materials as numbers, with the enthalpy tables of materials that vary.
        reference: the temperature in K at which content and potential are 0.
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
            for along, d, n in zip(conductivity, grid.mean_spacing, grid.cells, strict=True)
        )
        varies = isinstance(k, MaterialFunction) or isinstance(cp, MaterialFunction)
        found.append(
            MaterialCoefficients(
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
