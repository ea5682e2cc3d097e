"""3-D views, rendered by PyVista without a display: slices in their box, and surfaces.

PyVista draws only the bodies. Matplotlib draws axes, titles and colour bars over its image, in the same fonts as in
every other picture. The projection is parallel, so ``View.project`` gives the position of a point in the image.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.render.page.material_colours import material_colour
from heatsim.render.page.samples import MOST_IN_SLICES, Samples, sample_borders, spread
from heatsim.render.page.scales import Scale
from heatsim.render.page.view import View
from heatsim.render.spatial.outlines import find_outlines
from heatsim.render.spatial.section_pictures import LayerLines
from heatsim.render.spatial.sections import Section
from heatsim.storage.pyvista import import_pyvista
from heatsim.storage.vtkhdf import VOID

# Images are rendered larger by this factor and averaged: this gives smooth edges with every OpenGL.
_OVERSAMPLING = 2

_SURROUNDING_LINE = "#555555"
# Lines are moved towards the camera, so that the faces that they bound do not hide parts of them. In a parallel
# projection they keep their place in the image. Outlines of materials lie in front of the frames of sections.
_NEARER, _NEAREST = 0.004, 0.006

_Floats = NDArray[np.float64]


class Scene:
    """One PyVista plotter, used for all views of a box; a context manager."""

    def __init__(self, grid: Grid, view: View) -> None:
        self._pyvista = import_pyvista()
        self._grid = grid
        self._view = view
        self._plotter = self._pyvista.Plotter(
            off_screen=True,
            window_size=(view.width * _OVERSAMPLING, view.height * _OVERSAMPLING),
            lighting="light kit",
        )
        # No multisampling: averaging smooths the edges, and multisampling is slow in software.
        self._plotter.render_window.SetMultiSamples(0)
        self._plotter.set_background("white")
        right, up = view.camera.screen_axes()
        focus = view.middle[0] * right + view.middle[1] * up
        camera = self._plotter.camera
        camera.parallel_projection = True
        camera.focal_point = tuple(focus)
        camera.position = tuple(focus + 10.0 * view.camera.direction())
        camera.up = tuple(up)
        camera.parallel_scale = 0.5 * view.height / view.scale
        camera.clipping_range = (1.0, 20.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._plotter.close()

    def slices(
        self,
        sections: Sequence[Section],
        scale: Scale,
        materials: Sequence[str] = (),
        layers: Sequence[Sequence[LayerLines]] = (),
    ) -> NDArray[np.uint8]:
        """Planes normal to x, y and z in their box, without void; an RGB image (height, width, 3).

        Args:
            sections: normal to x, y and z.
            scale: of the temperatures.
            materials: their names; outlines of several materials are drawn.
            layers: thin layers on each section.
        """
        self._plotter.clear_actors()
        self._add_box()
        for axis, section in enumerate(sections):
            across = [other for other in range(3) if other != axis]
            rows, columns = (spread(n, MOST_IN_SLICES) for n in section.values.shape)
            edges = [np.array([section.place * length]) for length in self._view.size]
            for other, indices in zip(across, (columns, rows), strict=True):
                edges[other] = self._borders(other, indices)
            self._add_cells(self._pyvista.RectilinearGrid(*edges), section.values[np.ix_(rows, columns)], scale)
            self._add_frame(axis, across, section.place)
        self._add_outlines(sections, materials)
        self._add_layers([layer for of_section in layers for layer in of_section])
        return self._image()

    def surface(
        self, samples: Samples, scale: Scale, materials: Sequence[str] = (), layers: Sequence[LayerLines] = ()
    ) -> NDArray[np.uint8]:
        """The surface of all cells that are not void, in their colours; an RGB image (height, width, 3)."""
        self._plotter.clear_actors()
        self._add_box()
        mesh = self._mesh(samples.indices)
        self._add_cells(mesh, samples.values, scale, shaded=True)
        self._add_borders(mesh, samples.materials, materials)
        self._add_layers(layers)
        return self._image()

    def _add_cells(self, mesh: Any, values: _Floats, scale: Scale, shaded: bool = False) -> None:
        """Add cells in the colours of their values, in K; none where they are NaN."""
        flat = values.reshape(-1)
        there = np.flatnonzero(np.isfinite(flat))
        if not len(there):
            return
        mesh = mesh.extract_cells(there)
        mesh.cell_data["colours"] = scale.colours(flat[there])
        surface = mesh.extract_surface(algorithm="dataset_surface")
        # Little shading: a dark side must not look colder.
        light = {"ambient": 0.82, "diffuse": 0.2} if shaded else {"lighting": False}
        self._plotter.add_mesh(surface, scalars="colours", rgb=True, show_scalar_bar=False, render=False, **light)

    def _add_box(self) -> None:
        x, y, z = self._view.size
        box = self._pyvista.Box((0.0, x, 0.0, y, 0.0, z)).extract_all_edges()
        self._plotter.add_mesh(
            box, color=_SURROUNDING_LINE, line_width=1.5 * _OVERSAMPLING, lighting=False, render=False
        )

    def _add_outlines(self, sections: Sequence[Section], materials: Sequence[str]) -> None:
        """Add the borders of the materials on sections normal to x, y and z, in their colours."""
        solid = [name for name in materials if name != VOID]
        if len(solid) < 2:
            return
        for axis, section in enumerate(sections):
            level, upright = (other for other in range(3) if other != axis)
            # The material with the highest number was painted over those with lower ones.
            for number, outline in find_outlines(section.materials).items():
                if materials[number] == VOID:
                    continue
                points = np.full((2 * len(outline.segments), 3), section.place * self._view.size[axis])
                for number_of_end, along in enumerate((level, upright)):
                    places = self._grid.axes[along].fractions(outline.segments[..., number_of_end])
                    points[:, along] = self._view.size[along] * places.reshape(-1)
                self._add_lines(points, material_colour(number, materials))

    def _mesh(self, indices: Sequence[NDArray[np.intp]]) -> Any:
        """The sampled cells, which fill the box."""
        return self._pyvista.RectilinearGrid(*(self._borders(axis, index) for axis, index in enumerate(indices)))

    def _borders(self, axis: int, indices: NDArray[np.intp]) -> _Floats:
        """The borders of sampled cells along an axis of the drawn box."""
        return self._view.size[axis] * sample_borders(self._grid.axes[axis], indices)

    def _add_edges(self, surface: Any, colour: str, width: float) -> None:
        """Add the edges of a surface of cells, where its direction changes."""
        edges = surface.extract_feature_edges(
            feature_angle=60.0, boundary_edges=False, non_manifold_edges=False, manifold_edges=False
        )
        if edges.n_cells:
            self._plotter.add_mesh(edges, color=colour, line_width=width * _OVERSAMPLING, lighting=False, render=False)

    def _add_borders(self, mesh: Any, labels: NDArray[np.uint8], materials: Sequence[str]) -> None:
        """Add the borders between materials on the surface of a body."""
        if sum(name != VOID for name in materials) < 2:
            return
        solid = np.array([name != VOID for name in materials])
        flat = labels.reshape(-1)
        there = np.flatnonzero(solid[flat])
        mesh = mesh.extract_cells(there)
        mesh.cell_data["material"] = flat[there]
        surface = mesh.extract_surface(algorithm="dataset_surface")
        numbers = np.asarray(surface.cell_data["material"])
        for number in np.unique(numbers).tolist():
            part = surface.extract_cells(np.flatnonzero(numbers == number)).extract_surface(algorithm="dataset_surface")
            lines = part.extract_feature_edges(
                boundary_edges=True, feature_edges=False, manifold_edges=False, non_manifold_edges=False
            )
            if lines.n_cells:
                self._plotter.add_mesh(
                    lines.translate(_NEARER * self._view.camera.direction()),
                    color=material_colour(int(number), materials),
                    line_width=1.6 * _OVERSAMPLING,
                    lighting=False,
                    render=False,
                )

    def _add_layers(self, layers: Sequence[LayerLines]) -> None:
        """Add the lines of thin layers in the colours of their materials."""
        to_view = np.array(self._view.size) / np.array(self._grid.size)
        for layer in layers:
            self._add_lines((layer.lines.reshape(-1, 3) - np.array(self._grid.origin)) * to_view, layer.colour)

    def _add_lines(self, points: _Floats, colour: str) -> None:
        """Add lines between each two points, shape (2 · lines, 3)."""
        lines = self._pyvista.line_segments_from_points(points + _NEAREST * self._view.camera.direction())
        self._plotter.add_mesh(lines, color=colour, line_width=1.6 * _OVERSAMPLING, lighting=False, render=False)

    def _add_frame(self, axis: int, across: list[int], place: float) -> None:
        corners = np.full((4, 3), place * self._view.size[axis])
        corners[:, across[0]] = np.array([0.0, 1.0, 1.0, 0.0]) * self._view.size[across[0]]
        corners[:, across[1]] = np.array([0.0, 0.0, 1.0, 1.0]) * self._view.size[across[1]]
        frame = self._pyvista.lines_from_points(corners + _NEARER * self._view.camera.direction(), close=True)
        self._plotter.add_mesh(frame, color="black", line_width=1.0 * _OVERSAMPLING, lighting=False, render=False)

    def _image(self) -> NDArray[np.uint8]:
        """Render, and average the pixels of the larger image."""
        from vtkmodules.util.numpy_support import vtk_to_numpy
        from vtkmodules.vtkCommonCore import vtkUnsignedCharArray

        window, factor = self._plotter.render_window, _OVERSAMPLING
        width, height = self._view.width * factor, self._view.height * factor
        window.Render()
        pixels = vtkUnsignedCharArray()
        # Of the buffer in front, as in PyVista's screenshots, which take four times as long.
        window.GetPixelData(0, 0, width - 1, height - 1, 1, pixels, 0)
        # The lowest row comes first.
        values: NDArray[np.uint8] = vtk_to_numpy(pixels)  # type: ignore[no-untyped-call]
        large = values.reshape(height, width, 3)[::-1]
        rows = _sum([large[first::factor] for first in range(factor)])
        total = _sum([rows[:, first::factor] for first in range(factor)])
        return (total // factor**2).astype(np.uint8)


def _sum(arrays: Sequence[NDArray[Any]]) -> NDArray[np.uint16]:
    """The sum of a few images; it stays below 2^16."""
    total = arrays[0].astype(np.uint16)
    for other in arrays[1:]:
        total += other
    return total
