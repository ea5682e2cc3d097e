"""Whether a body has a steady state: each connected part needs a surface whose heat flux depends on temperature.

If all surfaces of a part are insulated or have a given flux, its steady temperature does not exist or is not unique.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.physics.cell_types import CELL_TYPE, CellTypes
from heatsim.physics.steady_balance import SteadyBalance
from heatsim.scenario import Scenario

_MOST_NAMES = 4


def refuse_floating(scenario: Scenario, balance: SteadyBalance) -> None:
    """Check that every connected part of a body has a steady temperature.

    Raises:
        ScenarioError: some parts have none; the message names their regions.
    """
    floating = find_floating(balance)
    if floating is None:
        return
    reason = (
        "insulated, or has a given flux, on all sides at t = 0, so it has no steady temperature; give a part of its "
        "surface a temperature, convection or radiation"
    )
    names = list(_names(scenario, balance, floating))
    if not names:
        raise ScenarioError(scenario.path, [Mistake("boundaries", f"the body is {reason}")])
    shown = ", ".join(names[:_MOST_NAMES]) + (f" and {len(names) - _MOST_NAMES} more" if names[_MOST_NAMES:] else "")
    if floating.sum() == sum(balance.materials.counts) - (
        0 if balance.materials.void is None else balance.materials.counts[balance.materials.void]
    ):
        raise ScenarioError(scenario.path, [Mistake("boundaries", f"the body ({shown}) is {reason}")])
    z, y, x = (int(index[0]) for index in np.nonzero(floating))
    message = f"{shown}: a part that touches no other part of the body, with cell [{x}, {y}, {z}], is {reason}"
    raise ScenarioError(scenario.path, [Mistake("boundaries", message)])


def find_floating(balance: SteadyBalance) -> NDArray[np.bool_] | None:
    """The conducting cells that are not connected to any surface that fixes their temperature.

    Returns:
        A mask of shape (nz, ny, nx); None if there are no such cells.
    """
    materials = balance.materials
    grounded = [surface for surface in balance.surfaces if surface.grounded]
    if materials.void is None or materials.uniform:
        # The body is connected: the resistance between conducting neighbours is finite.
        return None if grounded else np.ones(materials.grid.shape, dtype=bool)
    conducts = (materials.cells & CELL_TYPE) != materials.void
    reached = np.zeros(materials.grid.shape, dtype=bool)
    for surface in grounded:
        surface.add(surface.holding, reached)
    _spread(reached, conducts, materials, balance.periodic)
    floating = conducts & ~reached
    return floating if floating.any() else None


def _spread(
    reached: NDArray[np.bool_], conducts: NDArray[np.bool_], materials: CellTypes, periodic: tuple[bool, bool, bool]
) -> None:
    """Add conducting neighbours of reached cells to ``reached``, in sweeps along the axes, until nothing changes."""
    count = -1
    while count != (count := int(np.count_nonzero(reached))):
        for axis in range(3):
            here, may = np.moveaxis(reached, 2 - axis, 0), np.moveaxis(conducts, 2 - axis, 0)
            n = len(here)
            for i in range(0 if periodic[axis] else 1, n):
                here[i] |= here[i - 1] & may[i]
            for i in range(n - 1 if periodic[axis] else n - 2, -1, -1):
                here[i] |= here[(i + 1) % n] & may[i]


def _names(scenario: Scenario, balance: SteadyBalance, floating: NDArray[np.bool_]) -> Iterator[str]:
    """The regions of the cells, in order; the domain's material for cells that no region paints."""
    parts = balance.body.parts
    if parts is None or not scenario.regions:
        return
    for owner in np.unique(parts.owner[floating]).tolist():
        if owner:
            yield f'region "{scenario.regions[owner - 1].name}"'
        else:
            yield f'the material "{scenario.palette[0][0]}" of the domain'
