"""A 3-D view of isosurfaces, translucent and with the edges of the parts of a body."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.render.page.levels import Isotherm
from heatsim.render.page.material_colours import material_colour
from heatsim.render.page.samples import Samples
from heatsim.render.page.scales import Scale
from heatsim.render.spatial.scene import Scene
from heatsim.render.spatial.section_pictures import LayerLines
from heatsim.storage.vtkhdf import VOID

# Opacity of the largest isosurface. Smaller ones, which usually lie inside, are more opaque.
_OPACITY = 0.3
_DENSEST = 0.95
_EDGE_WIDTH = 1.6
_BODY_EDGE = "#37474f"
# Pieces of an isosurface with less than this part of the area of its largest piece are not drawn. Neither are several
# pieces of a cold one, such as the corners of a box, with less than this part of the area of the largest isosurface.
_SCRAP, _CORNERS = 0.05, 0.15

_Floats = NDArray[np.float64]


class IsosurfaceScene(Scene):
    """A scene of isosurfaces."""

    def isosurfaces(
        self,
        samples: Samples,
        scale: Scale,
        levels: Sequence[Isotherm],
        uniform: str,
        materials: Sequence[str] = (),
        layers: Sequence[LayerLines] = (),
    ) -> tuple[NDArray[np.uint8], Sequence[Isotherm]]:
        """Translucent surfaces of equal temperature; an RGB image (height, width, 3), and the levels that it shows.

        Args:
            samples: the temperatures.
            scale: converts them to drawn numbers.
            levels: of the surfaces; if empty, for a uniform field, the box itself is drawn. A field may have none of
                them, as at one time of an animation; then its edges are drawn.
            uniform: the colour of the box.
            materials: the names of the materials; the edges of the parts are drawn in their colours.
            layers: the edges of thin layers.
        """
        self._plotter.clear_actors()
        self._add_box()
        self._add_parts(samples, materials)
        self._add_layers(layers)
        if not levels:
            x, y, z = self._view.size
            self._plotter.add_mesh(
                self._pyvista.Box((0.0, x, 0.0, y, 0.0, z)), color=uniform, lighting=False, render=False
            )
            return self._image(), levels
        # Extend the outermost values to the faces of the box, so that surfaces reach them.
        coordinates = [
            length * np.concatenate([[0.0], axis.fractions(indices + 0.5), [1.0]])
            for indices, length, axis in zip(samples.indices, self._view.size, self._grid.axes, strict=True)
        ]
        mesh = self._pyvista.RectilinearGrid(*coordinates)
        mesh.point_data["drawn"] = np.pad(scale.drawn(samples.values), 1, mode="edge").reshape(-1)
        contours = [mesh.contour([level.value], scalars="drawn") for level in levels]
        largest = max((float(_areas(contour).sum()) for contour in contours if contour.n_cells), default=0.0)
        middle = 0.5 * sum(scale.limits)
        contours = [
            _without_scraps(contour, level.value < middle, largest)
            for contour, level in zip(contours, levels, strict=True)
        ]
        found = [(contour, level) for contour, level in zip(contours, levels, strict=True) if contour is not None]
        if found:
            surfaces, seen = zip(*found, strict=True)
            self._add_translucent(*_join(surfaces, [level.colour for level in seen]))
        return self._image(), [level for _, level in found] or levels

    def _add_translucent(
        self, points: _Floats, normals: _Floats, colours: NDArray[np.uint8], triangles: NDArray[np.intp]
    ) -> None:
        """Add triangles, the farthest first. Blending needs this order, and the GPU then needs no sorting."""
        distance = -(points @ self._view.camera.direction())
        triangles = triangles[np.argsort(-distance[triangles].mean(axis=1))]
        counts = np.full((len(triangles), 1), 3)
        surface = self._pyvista.PolyData(points, np.hstack([counts, triangles]).ravel())
        surface.point_data["colours"] = colours
        surface.point_data.active_normals = normals
        actor = self._plotter.add_mesh(
            surface,
            scalars="colours",
            rgb=True,
            show_scalar_bar=False,
            ambient=0.45,
            diffuse=0.65,
            specular=0.1,
            render=False,
        )
        actor.prop.interpolation = "Phong"

    def _add_parts(self, samples: Samples, materials: Sequence[str]) -> None:
        """Add the edges of a body in void, and of each material but the one with most cells, which surrounds others."""
        counts = {
            number: int(np.count_nonzero(samples.materials == number))
            for number, name in enumerate(materials)
            if name != VOID
        }
        mesh = self._mesh(samples.indices)
        solid = np.isfinite(samples.values).reshape(-1)
        if not solid.all():
            body = mesh.extract_cells(np.flatnonzero(solid)).extract_surface(algorithm="dataset_surface")
            self._add_edges(body, _BODY_EDGE, _EDGE_WIDTH)
        if len(counts) < 2:
            return
        for number in sorted(counts, key=lambda number: counts[number])[:-1]:
            cells = np.flatnonzero(samples.materials.reshape(-1) == number)
            if len(cells):
                surface = mesh.extract_cells(cells).extract_surface(algorithm="dataset_surface")
                self._add_edges(surface, material_colour(number, materials), _EDGE_WIDTH)


def _without_scraps(contour: Any, cold: bool, largest: float) -> Any:
    """An isosurface without its small pieces; None if it is empty, or if all of it is a few cold corners.

    Args:
        contour: the isosurface, of PyVista.
        cold: whether it belongs to the lower half of the scale.
        largest: the largest area of any isosurface.
    """
    if not contour.n_cells:
        return None
    pieces = contour.connectivity("all")
    numbers, sizes = np.asarray(pieces.cell_data["RegionId"]), _areas(pieces)
    areas = np.bincount(numbers, sizes)
    if not areas.any() or (cold and len(areas) > 1 and areas.sum() < _CORNERS * largest):
        return None
    kept = np.flatnonzero((areas[numbers] >= _SCRAP * areas.max()) & (sizes > 0.0))
    return pieces.extract_cells(kept).extract_surface(algorithm="dataset_surface")


def _areas(contour: Any) -> _Floats:
    """The areas of the triangles of an isosurface; 0 at void, where they have no place."""
    areas = np.asarray(contour.compute_cell_sizes(length=False, volume=False).cell_data["Area"], dtype=np.float64)
    return np.where(np.isfinite(areas) & (areas > 0.0), areas, 0.0)


def _join(
    surfaces: Sequence[Any], colours: Sequence[str]
) -> tuple[_Floats, _Floats, NDArray[np.uint8], NDArray[np.intp]]:
    """Points, normals, RGBA of the points, and triangles of several contours with points. Each has one colour."""
    from matplotlib.colors import to_rgba

    areas = [surface.area for surface in surfaces]
    opacities = [min(_DENSEST, _OPACITY * max(areas) / area) if area > 0.0 else _OPACITY for area in areas]
    starts = np.cumsum([0, *(surface.n_points for surface in surfaces)])
    parts = [
        (
            np.asarray(surface.points, dtype=np.float64),
            np.asarray(surface.point_normals, dtype=np.float64),
            np.tile(np.round(255.0 * np.array(to_rgba(colour, opacity))).astype(np.uint8), (surface.n_points, 1)),
            np.asarray(surface.faces, dtype=np.intp).reshape(-1, 4)[:, 1:] + start,
        )
        for surface, colour, opacity, start in zip(surfaces, colours, opacities, starts[:-1], strict=True)
    ]
    points, normals, rgba, triangles = (np.concatenate(part) for part in zip(*parts, strict=True))
    return points, normals, rgba, triangles
