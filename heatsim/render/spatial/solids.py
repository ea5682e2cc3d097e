"""A 3-D view of the parts of a body: the material around them is translucent, and heat sources are outlined."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.render.page.material_colours import material_colour
from heatsim.render.page.samples import MOST_IN_SURFACES, spread
from heatsim.render.spatial.scene import Scene
from heatsim.storage.vtkhdf import VOID

SOURCE_COLOUR = "#d50000"
_TRANSLUCENT = 0.18
_LINE = 1.6


class SolidScene(Scene):
    """A scene of parts instead of temperatures."""

    def solids(
        self, labels: NDArray[np.uint8], materials: Sequence[str], sources: Sequence[NDArray[np.bool_]]
    ) -> NDArray[np.uint8]:
        """The parts of each material, and the outlines of sources; an RGB image (height, width, 3).

        Args:
            labels: the number of each cell's material, shape (nz, ny, nx).
            materials: their names; one whose box holds all others is translucent.
            sources: the cells of each source, shape (nz, ny, nx).
        """
        self._plotter.clear_actors()
        self._add_box()
        indices = [spread(n, MOST_IN_SURFACES) for n in reversed(labels.shape)]
        chosen = np.ix_(*reversed(indices))
        seen = labels[chosen]
        there = [number for number, name in enumerate(materials) if name != VOID and (seen == number).any()]
        mesh = self._mesh(indices)
        around_all = surrounding(seen, there)
        for number in reversed(there):
            around = number == around_all
            surface = self._surface(mesh, seen == number)
            self._plotter.add_mesh(
                surface,
                color=material_colour(number, materials),
                opacity=_TRANSLUCENT if around else 1.0,
                ambient=0.5,
                diffuse=0.55,
                render=False,
            )
            self._add_edges(surface, "#37474f", 1.0)
        for cells in sources:
            if cells[chosen].any() and not cells[chosen].all():
                self._add_edges(self._surface(mesh, cells[chosen]), SOURCE_COLOUR, _LINE)
        return self._image()

    def _surface(self, mesh: Any, cells: NDArray[np.bool_]) -> Any:
        return mesh.extract_cells(np.flatnonzero(cells.reshape(-1))).extract_surface(algorithm="dataset_surface")


def surrounding(labels: NDArray[np.uint8], numbers: Sequence[int]) -> int | None:
    """The first material whose bounding box contains those of all others; None if no box does."""
    boxes = {}
    for number in numbers:
        places = [np.flatnonzero((labels == number).any(axis=axes)) for axes in ((1, 2), (0, 2), (0, 1))]
        boxes[number] = [(int(there[0]), int(there[-1])) for there in places]
    for number, box in boxes.items():
        if len(boxes) > 1 and all(
            low <= start and end <= high
            for other in boxes.values()
            for (low, high), (start, end) in zip(box, other, strict=True)
        ):
            return number
    return None
