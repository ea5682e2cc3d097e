"""Whether a body has a steady state: each connected part needs a surface whose heat flux depends on temperature.

If all surfaces of a part are insulated or have a given flux, its steady temperature does not exist or is not unique.
Each of several ranks searches its own slab. Neighbours send each other the cells of their outermost own planes that
are connected to such a surface, until no rank finds more.

A surface towards a node fixes the temperature of a part only if that of the node is fixed: by links and flows, or by
surfaces of other parts.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.parallel.slab import Slab
from heatsim.parallel.team import ALONE, Parcel, Team
from heatsim.physics.cells.cell_types import CELL_TYPE, CellTypes
from heatsim.physics.conditions.surface_balance import EMISSION, FILM
from heatsim.physics.operator.balance import Balance
from heatsim.physics.operator.surface_exchange import BalanceSurface
from heatsim.scenario import Scenario

Mask = NDArray[np.bool_]

_MOST_NAMES = 4
_UP, _DOWN = 0, 1  # marks of planes sent to the neighbour above and below


def refuse_floating(scenario: Scenario, balance: Balance, team: Team = ALONE) -> None:
    """Check that every connected part of a body has a steady temperature. Collective.

    Args:
        scenario: the scenario.
        balance: the balance of the body; with several ranks, of this rank's slab.
        team: the ranks.

    Raises:
        ScenarioError: some parts have none; the message names their regions.
    """
    floating = find_floating(balance, team)
    if floating is None:
        return
    counts = team.gathered(int(np.count_nonzero(floating)))
    network = balance.body.boundary.network
    reason = (
        "insulated, or has a given flux, on all sides at t = 0, so it has no steady temperature; give a part of its "
        "surface a temperature, convection or radiation"
        if network is None
        else "insulated, has a given flux, or exchanges heat only with nodes that nothing ties to a given temperature, "
        "on all sides at t = 0, so it has no steady temperature; give a node a link to an ambient, or a part of the "
        "surface a temperature or an ambient"
    )
    materials = balance.body.whole.materials
    of_ranks = team.gathered(_owners(balance, floating))
    names = _names(scenario, sorted(set().union(*of_ranks)))
    if not names:
        raise ScenarioError(scenario.path, [Mistake("boundaries", f"the body is {reason}")])
    shown = ", ".join(names[:_MOST_NAMES]) + (f" and {len(names) - _MOST_NAMES} more" if names[_MOST_NAMES:] else "")
    if sum(counts) == sum(materials.counts) - (0 if materials.void is None else materials.counts[materials.void]):
        raise ScenarioError(scenario.path, [Mistake("boundaries", f"the body ({shown}) is {reason}")])
    first = [tuple(int(index[0]) for index in np.nonzero(floating))] if floating.any() else []
    z, y, x = next(cell for cells in team.gathered([_in_grid(balance, cell) for cell in first]) for cell in cells)
    message = f"{shown}: a part that touches no other part of the body, with cell [{x}, {y}, {z}], is {reason}"
    raise ScenarioError(scenario.path, [Mistake("boundaries", message)])


def find_floating(balance: Balance, team: Team = ALONE) -> Mask | None:
    """The conducting own cells that are not connected to any surface that fixes their temperature. Collective.

    Returns:
        A mask of the own planes, shape (planes, ny, nx); None if there are no such cells on any rank.
    """
    materials, slab = balance.materials, balance.body.slab
    grounded = [surface for surface in balance.surfaces if surface.grounded]
    shape = (slab.count, *materials.grid.shape[1:])
    connected = balance.body.whole.materials.void is None or materials.uniform
    network = balance.body.boundary.network
    if connected and network is None:
        # The resistance between conducting neighbours is finite.
        return None if team.highest(bool(grounded)) else np.ones(shape, dtype=bool)
    reached = np.zeros(materials.grid.shape, dtype=bool)
    conducts = np.ones_like(reached) if connected else (materials.cells & CELL_TYPE) != materials.void
    faces = [*_faces(balance, grounded)]
    known: frozenset[int] = frozenset() if network is None else network.tied(frozenset())
    while True:
        for surface, place, given, nodes in faces:
            if given or known & nodes:
                _mark(surface, place, reached)
        _spread(reached, conducts, materials, balance.periodic)
        while team.highest(_told_by_neighbours(reached, slab, team)):
            _spread(reached, conducts, materials, balance.periodic)
        beside = [nodes for surface, place, _, nodes in faces if nodes and surface.of(reached)[place].any()]
        more = known.union(*beside, *team.gathered(sorted(frozenset().union(*beside))))
        if network is None or (more := network.tied(more)) == known:
            break
        known = more
    floating = np.asarray((conducts & ~reached)[slab.own])
    return floating if team.highest(bool(floating.any())) else None


def _faces(balance: Balance, grounded: Sequence[Any]) -> Iterator[tuple[Any, Any, bool, frozenset[int]]]:
    """Each surface, the places of cells of one condition, whether they exchange with a given temperature, and nodes."""
    boundary = balance.body.boundary
    rows = boundary.rows(np.zeros(1), balance.reference)[0]
    for surface in grounded:
        if not isinstance(surface, BalanceSurface):
            yield surface, slice(None), True, frozenset()
            continue
        for condition in surface.conditions:
            ends = zip(rows[condition.number, [FILM, EMISSION]], boundary.of_nodes.get(condition.number, (-1, -1)),
                       strict=True)  # fmt: skip
            found = {node for size, node in ends if size > 0.0}
            yield surface, condition.place, -1 in found, frozenset(found - {-1})


def _mark(surface: Any, place: Any, reached: Mask) -> None:
    """Enter some cells of a surface as reached."""
    holds = np.zeros(np.shape(surface.of(reached)), dtype=bool)
    holds[place] = True
    surface.add(holds & surface.holding, reached)


def _told_by_neighbours(reached: Mask, slab: Slab, team: Team) -> bool:
    """Receive the halo planes beside the own planes from the neighbours. Returns whether more cells are reached."""
    own, (below, above) = slab.own, slab.cut
    low, high = np.empty_like(reached[0]), np.empty_like(reached[0])
    peers = (team.rank - 1) % team.size, (team.rank + 1) % team.size
    sent = [Parcel(peers[1], _UP, np.ascontiguousarray(reached[own.stop - 1]))] * above
    sent += [Parcel(peers[0], _DOWN, np.ascontiguousarray(reached[own.start]))] * below
    received = [Parcel(peers[0], _UP, low)] * below + [Parcel(peers[1], _DOWN, high)] * above
    team.exchange(sent, received)
    changed = False
    for is_cut, place, told in ((below, own.start - 1, low), (above, own.stop, high)):
        if is_cut and (told & ~reached[place]).any():
            reached[place] |= told
            changed = True
    return changed


def _spread(reached: Mask, conducts: Mask, materials: CellTypes, periodic: tuple[bool, bool, bool]) -> None:
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


def _in_grid(balance: Balance, cell: tuple[int, ...]) -> tuple[int, int, int]:
    """The index (z, y, x) in the whole grid of a cell of the own planes."""
    return balance.body.slab.first + cell[0], cell[1], cell[2]


def _owners(balance: Balance, floating: Mask) -> set[int]:
    """The owners of own cells; empty if nothing is painted."""
    parts, slab = balance.body.parts, balance.body.slab
    if parts is None:
        return set()
    planes = np.flatnonzero(floating.any(axis=(1, 2)))
    owners = parts.owner[parts.held.local(slab.first + planes)]
    return set(np.unique(owners[floating[planes]]).tolist())


def _names(scenario: Scenario, owners: Sequence[int]) -> list[str]:
    """The names of regions by their numbers; the domain's material for cells that no region paints."""
    if not scenario.regions:
        return []
    return [
        f'region "{scenario.regions[owner - 1].name}"'
        if owner
        else f'the material "{scenario.palette[0][0]}" of the domain'
        for owner in owners
    ]
