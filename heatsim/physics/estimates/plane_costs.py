"""The cost of a sweep over each plane of a grid, so that ranks can share the planes evenly.

The cost must be known before a rank knows its planes. So each rank paints a part of the grid, a few planes at a time,
counts what costs time there, and discards the painted planes.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.parallel.slab import Slab
from heatsim.parallel.team import Team
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.estimates.kernel_costs import PLANES, varies
from heatsim.physics.geometry.division import Division
from heatsim.physics.geometry.painted_planes import PaintedPlanes
from heatsim.physics.geometry.painting import paint_planes
from heatsim.physics.geometry.regions import Parts, are_painted, source_mask
from heatsim.scenario import Scenario, Source

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

_CELLS_AT_ONCE = 2**25


@dataclass(frozen=True)
class PlaneContents:
    """What costs time in each plane of a grid, in addition to its cells.

    Attributes:
        faces: number of faces between two kinds of cells, with those to the plane above; shape (planes,).
        surfaces: number of those faces that lie towards void and let heat through.
        heated: number of cells that sources heat individually; a cell counts once for each such source.
    """

    faces: Counts
    surfaces: Counts
    heated: Counts

    def costs(self, scenario: Scenario, backend: str) -> Array:
        """The cost of a sweep over each plane, in the unit of :mod:`heatsim.physics.estimates.kernel_costs`.

        Args:
            scenario: the scenario.
            backend: "cpu" or "cuda".
        """
        nx, ny, _ = scenario.grid.cells
        cost = PLANES[backend][varies(scenario)]
        cell = cost.step if scenario.time.method in ("euler", "auto") else cost.stage
        odd = self.faces * cost.face + self.surfaces * cost.surface + self.heated * cost.heated
        return np.asarray(nx * ny * cell + odd)


def plane_contents(scenario: Scenario, boundary: Boundary, share: Slab, team: Team) -> PlaneContents | None:
    """Count what each plane contains; None if all planes contain the same. Collective.

    Mistakes in shapes are ignored here; painting reports them.

    Args:
        scenario: the scenario.
        boundary: its conditions.
        share: the planes that this rank counts. Together the ranks count all planes, in their order.
        team: the ranks.
    """
    uneven = [source for source in scenario.sources if source.beam is None and not source.even]
    if not are_painted(scenario):
        return None
    found = np.concatenate(list(_counted(scenario, boundary, share, uneven)), axis=1)
    return PlaneContents(*np.concatenate(team.gathered(found), axis=1))


def _counted(scenario: Scenario, boundary: Boundary, share: Slab, uneven: list[Source]) -> Iterator[Counts]:
    """The counts of some planes at a time, shape (3, planes)."""
    division, void = Division.of(scenario), None
    if scenario.uses_void and boundary.exposes:
        void = len(division.kinds) - 1
    planes = max(1, _CELLS_AT_ONCE // (scenario.grid.cells[0] * scenario.grid.cells[1]))
    for first in range(share.first, share.last, planes):
        last = min(first + planes, share.last)
        held = PaintedPlanes(Slab(share.planes, first, last, 0, int(last < share.planes)))
        painted = paint_planes(scenario, held)
        parts = Parts(painted.material, painted.owner, (), (), held)
        found = np.zeros((3, last - first), dtype=np.int64)
        found[:2] = _faces(division.cells(parts), void, last - first)
        with suppress(ValueError):  # an open surface
            for source in uneven:
                heated = source_mask(source, scenario, parts)[: last - first]
                found[2] += np.count_nonzero(heated, axis=(1, 2))
        yield found


def _faces(kinds: NDArray[np.uint8], void: int | None, planes: int) -> Counts:
    """The faces between different kinds, and those towards void; shape (2, planes).

    Args:
        kinds: the kind of each cell, with the plane above if there is one.
        void: the kind of void if its surfaces let heat through, else None.
        planes: the number of planes without the one above.
    """
    found = np.zeros((2, planes), dtype=np.int64)
    for row, values in enumerate((kinds, None if void is None else kinds == void)):
        if values is None:
            continue
        own = values[:planes]
        found[row] += np.count_nonzero(own[:, :, 1:] != own[:, :, :-1], axis=(1, 2))
        found[row] += np.count_nonzero(own[:, 1:] != own[:, :-1], axis=(1, 2))
        above = np.count_nonzero(values[1:] != values[:-1], axis=(1, 2))[:planes]
        found[row, : len(above)] += above
    return found
