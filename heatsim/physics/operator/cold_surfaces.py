"""Surfaces that a given heat flux cools below 0 K, which no body has.

A surface with the temperature T of the cell behind it has a temperature below 0 K exactly where

    K·T + h·T∞ + ε·σ·T_sur⁴ + q < 0

with K of the half cell between both. So it cannot be colder than its cell by more than −q/K. What such a surface
exchanges has no meaning: the run is refused. A flux alone takes its heat as written, and only the temperature of its
surface has no meaning: a warning says so.
"""

from dataclasses import dataclass

from heatsim.errors import Mistake, ScenarioError
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.condition_terms import time_functions
from heatsim.physics.conditions.surface_balance import STEFAN_BOLTZMANN
from heatsim.physics.operator.steep_laws import HalfCellBehind, least_conductances
from heatsim.scenario.tables.boundaries import depends_on_surface


@dataclass(frozen=True)
class CooledSurface:
    """A condition whose flux takes heat out of the body at some time.

    Attributes:
        number: of the condition.
        flux: the lowest one into the body in W/m².
        exchanges: whether the surface exchanges heat too, by its own temperature.
        behind: the half cell that conducts least behind it.
    """

    number: int
    flux: float
    exchanges: bool
    behind: HalfCellBehind

    @property
    def drop(self) -> float:
        """By how many kelvins the surface can be colder than its cell."""
        return -self.flux / self.behind.conductance

    def reason(self, materials: CellTypes) -> str:
        """Why its surface is so much colder than its cell, and what to do."""
        return (
            f"{self.flux:.6g} W/m² makes a surface up to {self.drop:.6g} K colder than its cell, because half a cell "
            f"conducts {self.behind.conductance:.4g} W/(m² K) ({self.behind.cause(materials)}); check its sign and "
            f"unit, and if it is a short pulse use finer cells along {'xyz'[self.behind.axis]}"
        )


def cooled_surfaces(boundary: Boundary, materials: CellTypes) -> list[CooledSurface]:
    """The conditions whose given flux takes heat out of the body at some time. Collective."""
    end = boundary.scenario.time.end
    of = list(map(time_functions, boundary.conditions))
    lowest = {number: functions.flux.extremes(end)[0] for number, functions in enumerate(of)}
    cooled = {number: flux for number, flux in lowest.items() if flux < 0.0}
    if not cooled:
        return []
    behind = least_conductances(boundary, materials, cooled)
    return [CooledSurface(n, cooled[n], bool(of[n].exchanges), behind[n]) for n in cooled if n in behind]


def refuse_cold_surfaces(boundary: Boundary, materials: CellTypes, cooled: list[CooledSurface], hottest: float) -> None:
    """Check that no flux is certain to cool a surface below 0 K that exchanges heat.

    Args:
        boundary: the conditions.
        materials: the cell types.
        cooled: the conditions whose flux takes heat.
        hottest: the highest temperature in K that a cell can have.

    Raises:
        ScenarioError: some do, even on the hottest cell; names fluxes, temperatures, conductances.
    """
    end, mistakes = boundary.scenario.time.end, dict[str, Mistake]()
    for one in cooled:
        condition, of = boundary.conditions[one.number], time_functions(boundary.conditions[one.number])
        certain = one.exchanges and of.flux.foreseen  # a program may never set the lowest flux of its range
        if not certain or materials.varies or depends_on_surface(condition):
            continue
        film, ambient, emissivity, surroundings = (
            function.extremes(end)[1] for function in (of.film, of.ambient, of.emissivity, of.surroundings)
        )
        gained = film * ambient + STEFAN_BOLTZMANN * emissivity * surroundings**4
        if one.behind.conductance * hottest + gained + one.flux < 0.0:
            key, most = boundary.keys[one.number], boundary.scenario.output.temperature_unit.text(hottest)
            cells = f"cells have at most {most}, so their surface would be below 0 K"
            mistakes.setdefault(key, Mistake(key, f"a flux of {one.reason(materials)}; {cells}"))
    if mistakes:
        raise ScenarioError(boundary.scenario.path, list(mistakes.values()))
