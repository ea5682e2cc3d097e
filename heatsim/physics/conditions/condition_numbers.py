"""The six numbers of a boundary condition.

                              film  ambient  flux  emission  surroundings  free
    held temperature            1   its value   0      0          0          0      free = 0 removes the right-hand side
    convection                  h      T∞       q     εσ        T_sur        1
    radiation                   0      0        q     εσ        T_sur        1
    given flux                  0      0        q      0          0          1
    insulated, periodic         0      0        0      0          0          1      the kernel wraps the index

They enter the balance of heat at the surface: :mod:`heatsim.physics.conditions.surface_balance`.
"""

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.conditions.condition_terms import NOTHING, Condition, Functions, ambient_of_law
from heatsim.physics.conditions.surface_balance import (
    AMBIENT,
    EMISSION,
    FILM,
    FLUX,
    FREE,
    NUMBERS,
    STEFAN_BOLTZMANN,
    SURROUNDINGS,
)
from heatsim.physics.time.stage_times import StageTimes
from heatsim.scenario import Constant
from heatsim.scenario.tables.boundaries import Temperature, depends_on_surface

Array = NDArray[np.float64]


def numbers_of(
    condition: Condition, functions: Functions, times: Array, means: StageTimes | None = None
) -> tuple[Array, NDArray[np.bool_]]:
    """The six numbers at some times, shape (times, 6), temperatures in K; and whether they are finite and physical.

    Args:
        condition: the condition. All fluxes of a law are in its table, so only its ambient temperature is used.
        functions: its terms.
        times: in s.
        means: stages over whose intervals a given flux is averaged; None to take its values at ``times``.
    """
    row = np.zeros((len(times), NUMBERS))
    if depends_on_surface(condition):
        functions = Functions(film=Constant(1.0), ambient=ambient_of_law(functions))
    film, ambient, flux, emissivity, surroundings = (
        function.value if isinstance(function, Constant) else function.at(times) for function in functions
    )
    row[:, FREE] = not isinstance(condition, Temperature)
    row[:, FILM] = film
    row[:, AMBIENT] = np.where(film > 0.0, ambient, surroundings)
    row[:, FLUX] = flux
    if means is not None and functions.flux != NOTHING:
        row[:, FLUX] = means.means(functions.flux.mean)
    row[:, EMISSION] = emissivity * STEFAN_BOLTZMANN
    row[:, SURROUNDINGS] = surroundings
    physical: NDArray[np.bool_] = np.asarray(np.isfinite(row).all(axis=1))
    for value in (film, ambient, emissivity, surroundings):
        physical &= np.greater_equal(value, 0.0)
    return row, physical


def largest_film(condition: Condition, functions: Functions, end: float) -> float:
    """The largest h between 0 and ``end`` (s) in W/(m² K); infinite for held temperatures, radiation and laws."""
    film, emissivity = functions.film, functions.emissivity
    if depends_on_surface(condition) or isinstance(condition, Temperature):
        return float(np.inf)
    return float(np.inf) if emissivity.extremes(end)[1] > 0.0 else film.extremes(end)[1]


def largest_radiating_film(functions: Functions, end: float, hottest: float) -> float:
    """The largest h + 4·εσ·T_s³ between 0 and ``end`` (s) in W/(m² K), on surfaces up to ``hottest`` K."""
    radiating = 4.0 * functions.emissivity.extremes(end)[1] * STEFAN_BOLTZMANN * hottest**3
    return functions.film.extremes(end)[1] + radiating
