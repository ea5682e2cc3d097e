"""Whether a body has a steady state: each part that hangs together needs a surface whose heat depends on temperature.

Where every surface of a part is insulated or has a given flux, its temperature either never settles or could be any.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.physics.cell_types import INTERIOR, Medium
from heatsim.physics.steady_balance import SteadyBalance
from heatsim.scenario import Scenario

_KIND = np.uint8(INTERIOR - 1)
_MOST_NAMES = 4


def refuse_floating(scenario: Scenario, balance: SteadyBalance) -> None:
    """See that every part of a body has a temperature to settle at.

    Raises:
        ScenarioError: names the regions of those that have none.
    """
    floating = find_floating(balance)
    if floating is None:
        return
    reason = (
        "insulated, or has a given flux, on all sides at t = 0, so it has no temperature to settle at; give some of "
        "its surface a temperature, convection or radiation"
    )
    names = list(_names(scenario, balance, floating))
    if not names:
        raise ScenarioError(scenario.path, [Mistake("boundaries", f"the body is {reason}")])
    shown = ", ".join(names[:_MOST_NAMES]) + (f" and {len(names) - _MOST_NAMES} more" if names[_MOST_NAMES:] else "")
    if floating.sum() == sum(balance.medium.counts) - (
        0 if balance.medium.void is None else balance.medium.counts[balance.medium.void]
    ):
        raise ScenarioError(scenario.path, [Mistake("boundaries", f"the body ({shown}) is {reason}")])
    z, y, x = (int(index[0]) for index in np.nonzero(floating))
    message = f"{shown}: a part of the body that nothing else touches, with cell [{x}, {y}, {z}], is {reason}"
    raise ScenarioError(scenario.path, [Mistake("boundaries", message)])


def find_floating(balance: SteadyBalance) -> NDArray[np.bool_] | None:
    """The cells that conduct but hang together with no surface that fixes their temperature.

    Returns:
        Of shape (nz, ny, nx); None if there are none.
    """
    medium = balance.medium
    grounded = [surface for surface in balance.surfaces if surface.grounded]
    if medium.void is None or medium.uniform:
        # Everything hangs together: between two materials that conduct no resistance is infinite.
        return None if grounded else np.ones(medium.grid.shape, dtype=bool)
    conducts = (medium.cells & _KIND) != medium.void
    reached = np.zeros(medium.grid.shape, dtype=bool)
    for surface in grounded:
        surface.put(True, reached)
    _spread(reached, conducts, medium, balance.periodic)
    floating = conducts & ~reached
    return floating if floating.any() else None


def _spread(
    reached: NDArray[np.bool_], conducts: NDArray[np.bool_], medium: Medium, periodic: tuple[bool, bool, bool]
) -> None:
    """Let what is reached spread to neighbours that conduct, in sweeps along the axes, until nothing changes."""
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
    """The regions that the cells belong to, in their order; the material for those that no region has painted."""
    parts = balance.body.parts
    if parts is None or not scenario.regions:
        return
    for owner in np.unique(parts.owner[floating]).tolist():
        if owner:
            yield f'region "{scenario.regions[owner - 1].name}"'
        else:
            yield f'the domain\'s own material "{scenario.palette[0][0]}"'
