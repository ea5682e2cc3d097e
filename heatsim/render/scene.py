"""3-D views, rendered by PyVista without a display: slices in their box, and isosurfaces.

PyVista draws the bodies only. Axes, titles and colour bars are drawn over its image by matplotlib, in the
same fonts as every other picture: in a parallel projection ``View.project`` tells where a point has come to lie.
"""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import InputError
from heatsim.grid import AXES, Grid
from heatsim.render.scales import TemperatureScale
from heatsim.render.sections import MOST_IN_SLICES, Samples, Section, spread, wide_axes
from heatsim.storage.pyvista import import_pyvista

# An edge is drawn with at least this fraction of the longest one, so that gradients across a thin plate are visible.
_THINNEST = 1.0 / 8.0

# Images are rendered larger by this factor and averaged: this gives smooth edges with every OpenGL.
_OVERSAMPLING = 2

# Opacity of the largest isosurface. Smaller ones, which usually lie inside, are more opaque.
_OPACITY = 0.3
_DENSEST = 0.95

_AZIMUTH = np.radians(-57.0)
_ELEVATION = np.radians(26.0)
_SURROUNDING_LINE = "#555555"

_Floats = NDArray[np.float64]

# A broken driver may hang instead of failing; a slow machine needs a few seconds.
_TRIAL_SECONDS = 120.0
_TRIAL = """
import pyvista
plotter = pyvista.Plotter(off_screen=True, window_size=(16, 16))
plotter.add_mesh(pyvista.Cube())
plotter.screenshot(return_img=True)
"""


def drawn_size(grid: Grid) -> tuple[float, float, float]:
    """Edge lengths of the box as drawn along x, y, z; the longest is 1, and thin ones are stretched.

    An axis of one cell is not drawn where others have more, and does not count then.
    """
    longest = max(grid.size[axis] for axis in wide_axes(grid) or range(3))
    x, y, z = (max(length / longest, _THINNEST) for length in grid.size)
    return x, y, z


def describe_stretch(grid: Grid) -> str:
    """A remark about stretched edges, such as ``"z is drawn 6.3 times as long"``; empty if none is stretched."""
    longest = max(grid.size[axis] for axis in wide_axes(grid) or range(3))
    ratios = {AXES[axis]: drawn_size(grid)[axis] * longest / grid.size[axis] for axis in wide_axes(grid)}
    parts = [f"{axis} is drawn {ratio:.3g} times as long" for axis, ratio in ratios.items() if ratio > 1.0 + 1e-9]
    return f"Not to scale: {', '.join(parts)}." if parts else ""


def start_trial() -> subprocess.Popen[bytes]:
    """Start a test, in a separate process, of whether this machine can render; other work continues meanwhile.

    Without EGL, OSMesa and a display, VTK ends the whole process with a segmentation fault.
    """
    if sys.platform.startswith("linux") and not os.environ.get("DISPLAY"):
        # Otherwise VTK tries an X server first and writes an error to stderr.
        os.environ.setdefault("VTK_DEFAULT_OPENGL_WINDOW", "vtkEGLRenderWindow")
    # -P: do not import modules from the current folder, which may be untrusted.
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _TRIAL], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def finish_trial(trial: "subprocess.Popen[bytes]") -> None:
    """Wait for the result of the test.

    Raises:
        InputError: PyVista is missing, or rendering does not work on this machine.
    """
    import_pyvista()
    try:
        output, _ = trial.communicate(timeout=_TRIAL_SECONDS)
    except subprocess.TimeoutExpired:
        trial.kill()
        output, _ = trial.communicate()
    if trial.returncode != 0:
        # VTK writes "time (…) [thread] file:line WARN| message", in colours.
        lines = re.sub(r"\x1b\[[0-9;]*m", "", output.decode(errors="replace")).strip().splitlines()
        raise InputError(
            "3-D views need OpenGL, which does not work on this machine"
            + (f" ({lines[-1].split('| ')[-1].strip()})" if lines else "")
            + "; install EGL (Debian, Ubuntu: apt install libegl1 libgl1; Fedora: dnf install mesa-libEGL), "
            "or copy the folder to a machine with OpenGL, and run `heatsim render` there"
        )


@dataclass(frozen=True)
class View:
    """A parallel projection of the box from its corner x_max, y_min, z_max onto an image of ``width`` × ``height``.

    Attributes:
        width: of the image in pixels.
        height: of the image in pixels.
        size: of the box as drawn, along x, y, z; its corner is the origin.
        scale: pixels per unit of ``size``.
        middle: the middle of the box's outline, in units of ``size`` along the image's right and up.
    """

    width: int
    height: int
    size: tuple[float, float, float]
    scale: float
    middle: tuple[float, float]

    @classmethod
    def fitting(cls, width: int, height: int, margin: int, size: tuple[float, float, float]) -> "View":
        """The view that fills an image except for ``margin`` pixels on every side."""
        corners = np.array([[x, y, z] for x in (0.0, size[0]) for y in (0.0, size[1]) for z in (0.0, size[2])])
        outline = corners @ _screen_axes().T
        low, high = outline.min(axis=0), outline.max(axis=0)
        extent = high - low
        scale = min((width - 2 * margin) / extent[0], (height - 2 * margin) / extent[1])
        middle = 0.5 * (low + high)
        return cls(width, height, size, float(scale), (float(middle[0]), float(middle[1])))

    def project(self, points: _Floats) -> _Floats:
        """The positions of points (n, 3) in the image: (n, 2), in pixels from its lower left corner."""
        centred = points @ _screen_axes().T - np.array(self.middle)
        pixels: _Floats = centred * self.scale + np.array([0.5 * self.width, 0.5 * self.height])
        return pixels


def _to_camera() -> _Floats:
    return np.array([np.cos(_ELEVATION) * np.cos(_AZIMUTH), np.cos(_ELEVATION) * np.sin(_AZIMUTH), np.sin(_ELEVATION)])


def _screen_axes() -> _Floats:
    """The image's right and up as unit vectors in space, shape (2, 3)."""
    right = np.array([-np.sin(_AZIMUTH), np.cos(_AZIMUTH), 0.0])
    return np.stack([right, np.cross(_to_camera(), right)])


def _join(
    surfaces: Sequence[Any], colours: Sequence[str]
) -> tuple[_Floats, _Floats, NDArray[np.uint8], NDArray[np.intp]]:
    """Points, normals, RGBA of the points, and triangles of several contours, one colour each."""
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
        if surface.n_points
    ]
    points, normals, rgba, triangles = (np.concatenate(part) for part in zip(*parts, strict=True))
    return points, normals, rgba, triangles


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
        right, up = _screen_axes()
        focus = view.middle[0] * right + view.middle[1] * up
        camera = self._plotter.camera
        camera.parallel_projection = True
        camera.focal_point = tuple(focus)
        camera.position = tuple(focus + 10.0 * _to_camera())
        camera.up = (0.0, 0.0, 1.0)
        camera.parallel_scale = 0.5 * view.height / view.scale
        camera.clipping_range = (1.0, 20.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._plotter.close()

    def slices(self, sections: Sequence[Section], scale: TemperatureScale) -> NDArray[np.uint8]:
        """Planes normal to x, y and z in their box, without void; an RGB image (height, width, 3)."""
        self._plotter.clear_actors()
        self._add_box()
        for axis, section in enumerate(sections):
            across = [other for other in range(3) if other != axis]
            rows, columns = (spread(n, MOST_IN_SLICES) for n in section.values.shape)
            edges = [np.array([section.place * length]) for length in self._view.size]
            for other, count in zip(across, (len(columns), len(rows)), strict=True):
                edges[other] = np.linspace(0.0, self._view.size[other], count + 1)
            self._add_cells(edges, section.values[np.ix_(rows, columns)], scale)
            self._add_frame(axis, across, section.place)
        return self._image()

    def surface(self, samples: Samples, scale: TemperatureScale) -> NDArray[np.uint8]:
        """The surface of all cells that are not void, in their colours; an RGB image (height, width, 3)."""
        self._plotter.clear_actors()
        self._add_box()
        edges = [
            np.linspace(0.0, length, len(indices) + 1)
            for indices, length in zip(samples.indices, self._view.size, strict=True)
        ]
        self._add_cells(edges, samples.values, scale, shaded=True)
        return self._image()

    def _add_cells(
        self, edges: Sequence[_Floats], values: _Floats, scale: TemperatureScale, shaded: bool = False
    ) -> None:
        """Add cells between ``edges`` along x, y, z in the colours of their values, in K; none where they are NaN."""
        flat = values.reshape(-1)
        there = np.flatnonzero(np.isfinite(flat))
        if not len(there):
            return
        mesh = self._pyvista.RectilinearGrid(*edges).extract_cells(there)
        mesh.cell_data["colours"] = scale.colours(flat[there])
        surface = mesh.extract_surface(algorithm="dataset_surface")
        light = {"ambient": 0.55, "diffuse": 0.5} if shaded else {"lighting": False}
        self._plotter.add_mesh(surface, scalars="colours", rgb=True, show_scalar_bar=False, render=False, **light)

    def isosurfaces(
        self, samples: Samples, scale: TemperatureScale, levels: Sequence[float], colours: Sequence[str]
    ) -> NDArray[np.uint8]:
        """Translucent surfaces of equal temperature; an RGB image (height, width, 3).

        Args:
            samples: the temperatures.
            scale: turns them into the numbers drawn.
            levels: as numbers drawn; none for a uniform field, of which the box itself is shown.
            colours: one a level, or the one of the box.
        """
        self._plotter.clear_actors()
        self._add_box()
        if not levels:
            x, y, z = self._view.size
            self._plotter.add_mesh(
                self._pyvista.Box((0.0, x, 0.0, y, 0.0, z)), color=colours[0], lighting=False, render=False
            )
            return self._image()
        # Extend the outermost values to the faces of the box, so that surfaces reach them.
        coordinates = [
            np.concatenate([[0.0], (indices + 0.5) * (length / n), [length]])
            for indices, length, n in zip(samples.indices, self._view.size, self._grid.cells, strict=True)
        ]
        mesh = self._pyvista.RectilinearGrid(*coordinates)
        mesh.point_data["drawn"] = np.pad(scale.drawn(samples.values), 1, mode="edge").reshape(-1)
        surfaces = [mesh.contour([level], scalars="drawn") for level in levels]
        self._add_translucent(*_join(surfaces, colours))
        return self._image()

    def _add_translucent(
        self, points: _Floats, normals: _Floats, colours: NDArray[np.uint8], triangles: NDArray[np.intp]
    ) -> None:
        """Add triangles, the farthest first: this order is correct for blending, without sorting on the GPU."""
        distance = -(points @ _to_camera())
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

    def _add_box(self) -> None:
        x, y, z = self._view.size
        box = self._pyvista.Box((0.0, x, 0.0, y, 0.0, z)).extract_all_edges()
        self._plotter.add_mesh(
            box, color=_SURROUNDING_LINE, line_width=1.5 * _OVERSAMPLING, lighting=False, render=False
        )

    def _add_frame(self, axis: int, across: list[int], place: float) -> None:
        corners = np.full((4, 3), place * self._view.size[axis])
        corners[:, across[0]] = np.array([0.0, 1.0, 1.0, 0.0]) * self._view.size[across[0]]
        corners[:, across[1]] = np.array([0.0, 0.0, 1.0, 1.0]) * self._view.size[across[1]]
        frame = self._pyvista.lines_from_points(corners, close=True)
        self._plotter.add_mesh(frame, color="black", line_width=1.0 * _OVERSAMPLING, lighting=False, render=False)

    def _image(self) -> NDArray[np.uint8]:
        self._plotter.render()
        large = np.asarray(self._plotter.screenshot(return_img=True))[..., :3]
        total = np.zeros((self._view.height, self._view.width, 3), dtype=np.uint16)
        for row in range(_OVERSAMPLING):
            for column in range(_OVERSAMPLING):
                total += large[row::_OVERSAMPLING, column::_OVERSAMPLING]
        return (total // _OVERSAMPLING**2).astype(np.uint8)
