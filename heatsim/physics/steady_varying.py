"""Conduction where conductivities depend on temperature, linearised for Newton's method.

Within a material heat is driven by Kirchhoff's potential, φ = 1/k ∫ k(T) dT (heatsim/physics/enthalpy.py), and between
two materials by the temperatures, through half cells with the conductivities of their own centres. Newton's matrix is
not symmetric then, so a symmetric one takes its place, with the unknown v of

    δφ = w·v,      w: the mean of k(T)/k over all cells of the material

Within a material that is exact. Between two, and at surfaces, δT = (w·k/k(T))·v is taken for v, so that constants stay
constants. The residual is exact, so the solution is, and each step leaves a part of the error that is as large as k(T)
is uneven along an interface.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.cell_types import INTERIOR, Medium
from heatsim.physics.enthalpy import EnthalpyTable

Array = NDArray[np.float64]
_KIND = np.uint8(INTERIOR - 1)


@dataclass(frozen=True, eq=False)
class Linearised:
    """Conduction near some temperatures; arrays of shape (nz, ny, nx).

    Attributes:
        gain: what each cell gains from its neighbours, in W.
        links: conductances for v between each cell and the one before it along x, y, z, in W/K.
        potential: φ in K.
        weight: w.
        conducting: k(T)/k.
    """

    gain: Array
    links: tuple[Array, Array, Array]
    potential: Array
    weight: Array
    conducting: Array


def linearise(medium: Medium, periodic: tuple[bool, bool, bool], T: Array) -> Linearised:
    """Look at conduction at temperatures T, as deviations in K from those that the enthalpies are tabulated from."""
    kinds = np.zeros(T.shape, dtype=np.uint8) if medium.uniform else medium.cells & _KIND
    potential = medium.by_enthalpy(EnthalpyTable.potential_at, kinds, T)
    conducting = medium.by_enthalpy(EnthalpyTable.conductivity_at, kinds, T)
    material = np.array([kind.material for kind in medium.kinds])
    cells = np.bincount(material[kinds].ravel())
    means = np.bincount(material[kinds].ravel(), conducting.ravel()) / np.maximum(cells, 1)
    weight = means[material[kinds]]
    gain, links = np.zeros(T.shape), []
    for axis, d in enumerate(medium.grid.spacing):
        area, dimension = medium.grid.cell_volume / d, 2 - axis

        def before(values: NDArray[Any], dimension: int = dimension) -> NDArray[Any]:
            return np.roll(values, 1, dimension)

        alike = material[kinds] == material[before(kinds)]
        half = medium.half[axis, kinds] / conducting
        inner = medium.link[axis, before(kinds), kinds] * area
        with np.errstate(divide="ignore", invalid="ignore"):
            resistance = medium.resistance[before(kinds), kinds] / _ratios(medium, axis)
        outer = area / (half + before(half) + np.where(resistance > 0.0, resistance, 0.0))
        if not periodic[axis] or T.shape[dimension] == 1:
            for values in (inner, outer):
                np.moveaxis(values, dimension, 0)[0] = 0.0
        flow = np.where(alike, inner * (before(potential) - potential), outer * (before(T) - T))
        gain += flow - np.roll(flow, -1, dimension)
        links.append(np.where(alike, inner * weight, outer))
    return Linearised(gain, (links[0], links[1], links[2]), potential, weight, conducting)


def _ratios(medium: Medium, axis: int) -> Array:
    """Smooth over voxel area of each cell's face towards the cell before it, 1 where nothing is weighted."""
    ratios = np.ones(medium.grid.cell_count)
    if medium.exposure is not None and medium.exposure.contacts:
        ratios[medium.exposure.cells] = medium.exposure.area[:, 2 * axis]
    return ratios.reshape(medium.grid.shape)


def moved(medium: Medium, linearised: Linearised, v: Array) -> Array:
    """T where the potentials have changed by w·v, as deviations in K."""
    kinds = np.zeros(v.shape, dtype=np.uint8) if medium.uniform else medium.cells & _KIND
    return medium.by_enthalpy(EnthalpyTable.temperature_at, kinds, linearised.potential + linearised.weight * v)
