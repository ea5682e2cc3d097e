"""Conduction where conductivities, or conductances of gaps, depend on temperature, linearised for Newton's method.

Within a material heat is driven by Kirchhoff's potential, φ = 1/k ∫ k(T) dT (matter/enthalpy.py), and between
two materials by the temperatures, through half cells with the conductivities at their centres. Newton's matrix is
not symmetric then. A symmetric one replaces it, with the unknown v of

    δφ = w·v,      w: the mean of k(T)/k over all cells of the material

Within a material it is exact. Between two, the heat changes by α_a·v_a − α_b·v_b; the matrix has √|α_a·α_b| for both.
Across a gap (gap_links.py)
it has the mean of both: for cells of equal heat capacity Newton's method then converges as with both.
The residual is exact, so the solution is exact too. Each step leaves a part of the error, which is large where α_a and
α_b differ much; heatsim/solver/steady/anderson.py reduces it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from heatsim.physics.cells.cell_types import CELL_TYPE, CellTypes
from heatsim.physics.matter.enthalpy import EnthalpyTable
from heatsim.physics.operator.cell_sums import CellSums

# Difference of temperatures in K by which derivatives are taken.
SMALL = 1e-4
# A conductance between two materials is at least this part of the one without k'(T): no cell loses its neighbours.
_LEAST = 0.01
_NO_AREA = 1e-300  # m², instead of 0 at the axis of axial bodies, through which no heat passes


# What passes gaps along an axis, from k(T)/k and k'(T)/k(T) of all cells: see `GapFaces.of`.
Across = Callable[[int, Any, Any], tuple[Any, Any, Any, Any, Any] | None]


@dataclass(frozen=True, eq=False)
class Linearised:
    """Conduction near some temperatures; device arrays of shape (nz, ny, nx).

    Attributes:
        gain: what each cell gains from its neighbours, in W.
        links: conductances for v between each cell and the one before it along x, y, z, in W/K.
        potential: φ in K.
        weight: w.
        conducting: k(T)/k.
        falling: whether less heat passes a gap here where the temperatures beside it differ more.
    """

    gain: Any
    links: tuple[Any, Any, Any]
    potential: Any
    weight: Any
    conducting: Any
    falling: bool = False


def linearise(
    xp: Any,
    materials: CellTypes,
    types: Any,
    periodic: tuple[bool, bool, bool],
    T: Any,
    sums: CellSums,
    across: Across | None = None,
) -> Linearised:
    """Look at conduction at temperatures T, as deviations in K from those that the enthalpies are tabulated from.

    Args:
        xp: NumPy, or CuPy.
        materials: the cell types.
        types: the bytes of its cells, on the device; not read if the body is uniform.
        periodic: which axes wrap.
        T: float64, on the device.
        sums: gives sums over the cells.
        across: what passes gaps; None if there are none.
    """
    cell_types = _cell_types(xp, materials, types, T.shape)
    potential = materials.by_enthalpy(EnthalpyTable.potential_at, cell_types, T, xp)
    conducting = materials.by_enthalpy(EnthalpyTable.conductivity_at, cell_types, T, xp)
    owners = np.array([cell_type.material for cell_type in materials.types], dtype=np.uint8)
    material, weight = xp.asarray(owners)[cell_types], xp.zeros(T.shape)
    # k'(T)/k(T) in 1/K.
    bend = materials.by_enthalpy(EnthalpyTable.conductivity_at, cell_types, T + SMALL, xp)
    bend = (bend - conducting) / (SMALL * conducting)
    counts = np.bincount(owners, materials.counts)
    present = np.flatnonzero(counts).tolist()
    totals = sums.of_arrays((material == owner) * conducting for owner in present)
    for owner, total in zip(present, totals, strict=True):
        weight += (material == owner) * (total / counts[owner])
    gain, links, grid, falling = xp.zeros(T.shape), [], materials.grid, False
    for axis, of in enumerate(grid.axes):
        dimension, area = 2 - axis, grid.mean_volume / of.spacing
        own, beyond, spread, face = 1.0, 1.0, 1.0, area
        if not grid.uniform:
            halves = of.half_factors[:, 0], of.beyond_factors[:, 0], of.gain_factors[:, 0]
            own, beyond, spread = (xp.asarray(grid.along(axis, factors)) for factors in halves)
            for number, other in enumerate(grid.axes):
                spread = spread * xp.asarray(grid.along(number, other.volume_factors))
            face = xp.maximum(area * spread, _NO_AREA)

        def before(values: Any, dimension: int = dimension) -> Any:
            return xp.roll(values, 1, dimension)

        alike, pair = (
            material == before(material),
            before(cell_types).astype(np.uint16) * np.uint16(len(materials.types)) + cell_types,
        )
        inner = xp.asarray(materials.link[axis].reshape(-1) * area)[pair] * (spread * (2.0 / (own + beyond)))
        plain = xp.asarray(materials.half[axis])[cell_types] / conducting
        half, facing = plain * own, before(plain) * beyond
        contact = xp.asarray(materials.resistance.reshape(-1))[pair]
        with np.errstate(divide="ignore", invalid="ignore"):
            resistance = xp.where(contact > 0.0, contact / _ratios(xp, materials, axis), 0.0)
        outer = area * spread / (half + facing + resistance)
        if not periodic[axis] or T.shape[dimension] == 1:
            for values in (inner, outer):
                xp.moveaxis(values, dimension, 0)[0] = 0.0
        flow = xp.where(alike, inner * (before(potential) - potential), outer * (before(T) - T))
        # outer changes by the part outer/area·half·k'(T)/k(T) for each kelvin of one cell.
        falls, falls_before = (xp.where(xp.isfinite(one), one, 0.0) for one in (half, facing))
        drop = (before(T) - T) * outer / face
        here = xp.maximum(abs(1.0 - drop * (falls * bend)), _LEAST)
        there = xp.maximum(abs(1.0 + drop * (falls_before * before(bend))), _LEAST)
        changes = here * there * weight / conducting * before(weight / conducting)
        link = xp.where(alike, inner * weight, outer * xp.sqrt(changes))
        passing = None if across is None else across(axis, conducting.reshape(-1), bend.reshape(-1))
        if passing is not None:
            here, below, q, of_below, of_here = passing
            area_here = xp.broadcast_to(xp.asarray(face), T.shape).reshape(-1)[here]
            falling = falling or bool((of_below < 0.0).any() | (of_here < 0.0).any())
            scale = (weight / conducting).reshape(-1)
            flow.reshape(-1)[here] = q * area_here
            mean = 0.5 * (abs(of_below) * scale[below] + abs(of_here) * scale[here])
            link.reshape(-1)[here] = mean * area_here
        gain += flow - xp.roll(flow, -1, dimension)
        links.append(link)
    return Linearised(gain, (links[0], links[1], links[2]), potential, weight, conducting, falling)


def moved(xp: Any, materials: CellTypes, types: Any, linearised: Linearised, v: Any) -> Any:
    """T where the potentials have changed by w·v, as deviations in K; arguments as for :func:`linearise`."""
    cell_types = _cell_types(xp, materials, types, v.shape)
    return materials.by_enthalpy(
        EnthalpyTable.temperature_at, cell_types, linearised.potential + linearised.weight * v, xp
    )


def contents(xp: Any, materials: CellTypes, types: Any, T: Any) -> Any:
    """What a field holds at temperatures T, as deviations in K; arguments as for :func:`linearise`."""
    return materials.by_enthalpy(EnthalpyTable.content_at, _cell_types(xp, materials, types, T.shape), T, xp)


def temperatures(xp: Any, materials: CellTypes, types: Any, held: Any) -> Any:
    """T as deviations in K where the field holds these contents; arguments as for :func:`linearise`."""
    return materials.by_enthalpy(EnthalpyTable.temperature_of, _cell_types(xp, materials, types, held.shape), held, xp)


def content_slopes(xp: Any, materials: CellTypes, types: Any, T: Any) -> Any:
    """dθ/dT at temperatures T, as deviations in K; arguments as for :func:`linearise`."""
    return materials.by_enthalpy(EnthalpyTable.content_slope_at, _cell_types(xp, materials, types, T.shape), T, xp)


def _cell_types(xp: Any, materials: CellTypes, types: Any, shape: tuple[int, int, int]) -> Any:
    return xp.zeros(shape, dtype=np.uint8) if materials.uniform else types & CELL_TYPE


def _ratios(xp: Any, materials: CellTypes, axis: int) -> Any:
    """Smooth over voxel area of each cell's face towards the cell before it; 1 where nothing is weighted.

    It is 0 at a contact without a smooth surface, which lets no heat through.
    """
    surfaces = materials.weighted_surfaces
    if not surfaces.contacts:
        return 1.0
    ratios = xp.ones(materials.grid.shape)
    ratios.reshape(-1)[xp.asarray(surfaces.cells)] = xp.asarray(surfaces.area[:, 2 * axis])
    return ratios
