"""The cells around the edges and corners of a surface, edges with the same cells together."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.observers.edges.edge_weights import CELLS, Pattern, correction
from heatsim.parallel.team import Team
from heatsim.physics.problem import HeatProblem

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(eq=False)
class LocalProblems:
    """Edges across two axes, or corners across three, whose local problems have one pattern.

    Attributes:
        axes: across which the surfaces lie.
        corner: the number of the corner of each.
        behind: the entry of the cell behind each.
        concave: which are concave.
        parts: of the weights of the corner's entries, those of the cells around each.
        pattern: the cells around.
        cells: those that conduct, by their place among the other cells of all ranks; shape (edges, cells).
    """

    axes: tuple[int, ...]
    corner: NDArray[np.intp]
    behind: NDArray[np.intp]
    concave: Mask
    parts: Array
    pattern: Pattern
    cells: Indices

    def correct(self, numbers: Array, others: Array, estimates: Array, more: Array) -> None:
        """Correct the estimates of entries, and add what a corner has more than their mean.

        Args:
            numbers: of all entries, see `SurfaceEdges.of`.
            others: the temperatures of the other cells of all ranks in K.
            estimates: of all entries in K.
            more: of all corners in K.
        """
        axes = np.array(self.axes)
        rises, losses = numbers[self.behind][:, 2:5].T, numbers[self.behind][:, 5:8].T
        if len(axes) == 3:
            product_term = sum(rises[a] * losses[b] * losses[c] for a, b, c in ((0, 1, 2), (1, 2, 0), (2, 0, 1))) / 3
            estimates[self.behind] += np.where(self.concave, product_term, 0.0)
        # Where nothing passes one of the planes, they make no convex edge.
        passed = (rises != 0.0) | (losses != 0.0)
        some = np.flatnonzero(self.concave | (passed[axes].all(axis=0) & (passed.sum(axis=0) == len(axes))))
        if len(some):
            entries = numbers[self.behind[some]]
            relative = others[self.cells[some]] - entries[:, 1, None]
            found = correction(self.pattern, losses[axes][:, some], relative, rises[axes][:, some])
            left = np.where(self.concave[some], entries[:, -1], 1.0)  # by surfaces across the third axis
            np.add.at(more, self.corner[some], found * self.parts[some] * left)


def patterns_around(
    problem: HeatProblem, axes: tuple[int, ...], behind: Indices, sides: Indices, team: Team
) -> Iterator[tuple[Pattern, NDArray[np.intp], Indices]]:
    """The different patterns around edges, the edges of each, and the cells that conduct around each. Collective.

    Insulated faces of the box are mirrors.

    Args:
        problem: the problem of the planes that this rank steps.
        axes: across which surfaces meet.
        behind: the cell behind each edge, by its index in the whole grid.
        sides: on which side of the edge it lies along x, y and z, shape (edges, 3): -1 or 1.
        team: the ranks.
    """
    grid = problem.whole.grid
    every = grid.cells
    exchanging = [problem.boundary.exchanging(face) for face in range(len(FACES))]
    mirrors = ~np.any(team.gathered(np.array(exchanging)), axis=0)
    steps = np.meshgrid(*[np.arange(1 - CELLS, CELLS + 1)] * len(axes), indexing="ij")
    shape = (len(behind), *steps[0].shape)
    places = [np.repeat(along[:, None], steps[0].size, axis=1) for along in np.unravel_index(behind, every[::-1])[::-1]]
    inside, of_axes = np.ones(places[0].shape, bool), list[Array]()
    for number_of_axis, (axis, step) in enumerate(zip(axes, steps, strict=True)):
        place, n = places[axis] - sides[:, axis, None] * step.reshape(-1), every[axis]
        if problem.whole.periodic[axis]:
            place = place % n
        if mirrors[2 * axis]:
            place = np.where(place < 0, -1 - place, place)
        if mirrors[2 * axis + 1]:
            place = np.where(place >= n, 2 * n - 1 - place, place)
        inside &= (place >= 0) & (place < n)
        places[axis] = np.clip(place, 0, n - 1)
        planes = np.moveaxis(places[axis].reshape(shape), 1 + number_of_axis, 1).reshape(*shape[:2], -1)
        of_axes.append(grid.axes[axis].widths[planes[:, :, 0]])
    x, y, z = places
    own = problem.slab.holds(z)
    types = np.full(z.shape, -1)
    types[own] = problem.materials.types_of(((z[own] - problem.slab.start) % problem.slab.planes, y[own], x[own]))
    types = np.where(inside, np.max(team.gathered(types), axis=0), -1)
    widths = np.stack(of_axes, axis=1)
    widths = (widths / widths.min(axis=(1, 2), keepdims=True)).round(9)
    both = np.column_stack((types, widths.reshape(len(widths), -1)))
    both, pattern = np.unique(both, axis=0, return_inverse=True)
    cells = np.ravel_multi_index((z, y, x), every[::-1])
    spacing = np.array(grid.mean_spacing)[list(axes)]
    for number, row in enumerate(both):
        of_cells, own_widths = row[: steps[0].size].astype(np.intp), row[steps[0].size :]
        k = spacing[:, None] / (2.0 * problem.materials.half[list(axes)][:, of_cells])
        k = (k / k[0, np.ravel_multi_index([CELLS - 1] * len(axes), steps[0].shape)]).round(9)
        k[:, of_cells < 0] = 0.0
        some = np.flatnonzero(pattern.reshape(-1) == number)
        yield Pattern(k.tobytes(), own_widths.tobytes(), len(axes)), some, cells[some][:, k[0] > 0.0]
