"""The terms of boundary conditions as functions of time."""

from typing import NamedTuple

from heatsim.scenario import Constant, TimeFunction
from heatsim.scenario.tables.boundaries import Convection, Face, Flux, Insulated, Periodic, Radiation, Temperature

Condition = Face  # of patches and surfaces towards void too

NOTHING = Constant(0.0)


class Functions(NamedTuple):
    """The terms of a condition as functions of time; a term that it does not have is 0.

    Attributes:
        film: conductance in W/(m² K) between the surface and ``ambient``.
        ambient: in K.
        flux: into the body in W/m².
        emissivity: of the surface, which radiates to ``surroundings``.
        surroundings: in K.
    """

    film: TimeFunction = NOTHING
    ambient: TimeFunction = NOTHING
    flux: TimeFunction = NOTHING
    emissivity: TimeFunction = NOTHING
    surroundings: TimeFunction = NOTHING

    @property
    def exchanges(self) -> list[tuple[TimeFunction, TimeFunction]]:
        """The film coefficient and the emissivity, if not 0, each with the temperature with which it exchanges heat."""
        both = (self.film, self.ambient), (self.emissivity, self.surroundings)
        return [(exchange, temperature) for exchange, temperature in both if exchange != NOTHING]


def ambient_of_law(functions: Functions) -> TimeFunction:
    """The ambient temperature from which a law's table counts: that of the fluid or, without one, the surroundings."""
    return functions.surroundings if functions.film == NOTHING else functions.ambient


def time_functions(condition: Condition) -> Functions:
    """The terms of a condition; kernels, time steps, temperature ranges and the energy bound use nothing else of it."""
    match condition:
        case Temperature():
            return Functions(film=Constant(1.0), ambient=condition.value)
        case Flux():
            # A power, whose area is not known yet, as if the area were 1 m².
            return Functions(flux=condition.value or condition.power or NOTHING)
        case Convection():
            return Functions(
                film=condition.coefficient,
                ambient=condition.ambient,
                flux=condition.flux,
                emissivity=condition.emissivity,
                surroundings=condition.surroundings,
            )
        case Radiation():
            return Functions(flux=condition.flux, emissivity=condition.emissivity, surroundings=condition.ambient)
        case Insulated() | Periodic():
            return Functions()
