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
    ) -> NDArray[np.uint8]:
        """Translucent surfaces of equal temperature; an RGB image (height, width, 3).

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
            return self._image()
        # Extend the outermost values to the faces of the box, so that surfaces reach them.
        coordinates = [
            length * np.concatenate([[0.0], axis.fractions(indices + 0.5), [1.0]])
            for indices, length, axis in zip(samples.indices, self._view.size, self._grid.axes, strict=True)
        ]
        mesh = self._pyvista.RectilinearGrid(*coordinates)
        mesh.point_data["drawn"] = np.pad(scale.drawn(samples.values), 1, mode="edge").reshape(-1)
        contours = [(mesh.contour([level.value], scalars="drawn"), level.colour) for level in levels]
        surfaces = [(contour, colour) for contour, colour in contours if contour.n_points]
        if surfaces:
            self._add_translucent(*_join(*zip(*surfaces, strict=True)))
        return self._image()

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
        """Add the edges of the parts of each material, except the one with most cells, which surrounds the others."""
        counts = {
            number: int(np.count_nonzero(samples.materials == number))
            for number, name in enumerate(materials)
            if name != VOID
        }
        if len(counts) < 2:
            return
        mesh = self._mesh(samples.indices)
        for number in sorted(counts, key=lambda number: counts[number])[:-1]:
            cells = np.flatnonzero(samples.materials.reshape(-1) == number)
            if len(cells):
                surface = mesh.extract_cells(cells).extract_surface(algorithm="dataset_surface")
                self._add_edges(surface, material_colour(number, materials), _EDGE_WIDTH)


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
