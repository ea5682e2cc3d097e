"""Closed surfaces from STL files, and the cells inside them, found by VTK."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import InputError
from heatsim.grid import Grid
from heatsim.scenario import Stl
from heatsim.scenario.messages import show
from heatsim.scenario.quantities import LARGEST

# Fraction of the part's size: corners nearer than this are merged if the surface is open. Programs that write
# coordinates as text may round the same corner differently in different triangles.
_MERGED = 1e-6


@dataclass(frozen=True)
class Surface:
    """A closed surface.

    Attributes:
        points: corners (x, y, z) in m, shape (n, 3), float64.
        triangles: indices of three corners each, shape (m, 3).
    """

    points: NDArray[np.float64]
    triangles: NDArray[np.int64]

    @classmethod
    def from_stl(cls, stl: Stl) -> "Surface":
        """Read, scale and move a part.

        Raises:
            ValueError: the file has no triangles, or its surface is open; the message is for the user.
            InputError: VTK is not installed.
        """
        points, triangles = _read(stl.file.path)
        if open_edges(triangles):
            size = float(np.ptp(points, axis=0).max())
            merged, index = np.unique(np.round(points / (_MERGED * size)), axis=0, return_inverse=True)
            corners = index.reshape(-1)[triangles]
            # A triangle with two merged corners is a line.
            corners = corners[(corners != np.roll(corners, 1, axis=1)).all(axis=1)]
            count = open_edges(corners)
            if count:
                raise ValueError(
                    f"{show(stl.file.path.name)} is open: {count} edges belong to one triangle only; close the holes "
                    "in the program that made the file"
                )
            points, triangles = merged * (_MERGED * size), corners
        with np.errstate(over="ignore"):
            placed = points * stl.scale + np.array(stl.translate)
        if not (abs(placed) <= LARGEST).all():
            raise ValueError(f"{show(stl.file.path.name)} reaches beyond {LARGEST!r} m with this scale")
        return cls(placed, triangles)

    @property
    def bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The smallest and the largest coordinates (x, y, z) in m."""
        return tuple(self.points.min(axis=0).tolist()), tuple(self.points.max(axis=0).tolist())

    def inside(self, grid: Grid, block: tuple[slice, slice, slice]) -> NDArray[np.bool_]:
        """Whether the centres of a block of cells (slices along z, y, x) lie inside; in the shape of the block.

        A centre on the surface counts as inside on one side of the part only, so that two parts in contact share no
        cell.
        """
        vtk = _import_vtk()
        # In units of cells: VTK's tolerances suit numbers of this size.
        scale = np.array(grid.cells) / np.array(grid.size)
        surface = self._poly_data(vtk, (self.points - np.array(grid.origin)) * scale - 0.5)
        z, y, x = block
        stencil = vtk.vtkPolyDataToImageStencil()
        stencil.SetInputData(surface)
        stencil.SetTolerance(0.0)
        stencil.SetOutputOrigin(0.0, 0.0, 0.0)
        stencil.SetOutputSpacing(1.0, 1.0, 1.0)
        stencil.SetOutputWholeExtent(x.start, x.stop - 1, y.start, y.stop - 1, z.start, z.stop - 1)
        picture = vtk.vtkImageStencilToImage()
        picture.SetInputConnection(stencil.GetOutputPort())
        picture.SetInsideValue(1)
        picture.SetOutsideValue(0)
        picture.SetOutputScalarTypeToUnsignedChar()
        picture.Update()
        flags = vtk.vtk_to_numpy(picture.GetOutput().GetPointData().GetScalars())
        shape = (z.stop - z.start, y.stop - y.start, x.stop - x.start)
        return np.asarray(flags.reshape(shape) != 0)

    def contains(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether points (x, y, z) in m, shape (n, 3), lie inside; shape (n,)."""
        vtk = _import_vtk()
        low, high = (np.array(corner) for corner in self.bounds)
        scale = 100.0 / float((high - low).max())  # VTK's tolerances suit numbers of this size
        asked, places = vtk.vtkPolyData(), vtk.vtkPoints()
        places.SetData(vtk.numpy_to_vtk((points - low) * scale, deep=True))
        asked.SetPoints(places)
        enclosed = vtk.vtkSelectEnclosedPoints()
        enclosed.SetInputData(asked)
        enclosed.SetSurfaceData(self._poly_data(vtk, (self.points - low) * scale))
        enclosed.SetTolerance(1e-9)
        enclosed.Update()
        flags = vtk.vtk_to_numpy(enclosed.GetOutput().GetPointData().GetArray("SelectedPoints"))
        return np.asarray(flags != 0)

    def _poly_data(self, vtk: SimpleNamespace, corners: NDArray[np.float64]) -> Any:
        """The surface for VTK, with other coordinates of its corners."""
        points, cells, surface = vtk.vtkPoints(), vtk.vtkCellArray(), vtk.vtkPolyData()
        points.SetData(vtk.numpy_to_vtk(corners, deep=True))
        offsets = np.arange(0, 3 * len(self.triangles) + 1, 3, dtype=np.int64)
        connectivity = np.ascontiguousarray(self.triangles.reshape(-1), dtype=np.int64)
        cells.SetData(
            vtk.numpy_to_vtkIdTypeArray(offsets, deep=True), vtk.numpy_to_vtkIdTypeArray(connectivity, deep=True)
        )
        surface.SetPoints(points)
        surface.SetPolys(cells)
        return surface


def open_edges(triangles: NDArray[np.int64]) -> int:
    """The number of edges that belong to an odd number of triangles."""
    edges = np.sort(triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    _, counts = np.unique(edges, axis=0, return_counts=True)
    return int((counts % 2).sum())


def bounds_of(stl: Stl) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The smallest and the largest coordinates (x, y, z) in m of a part, faster than with its surface.

    Raises:
        ValueError: the file has no triangles.
        InputError: VTK is not installed.
    """
    points, triangles = _read(stl.file.path, merge=False)
    return Surface(points * stl.scale + np.array(stl.translate), triangles).bounds


def _read(path: Path, merge: bool = True) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Points and triangles of an STL file; with ``merge`` equal corners are one point."""
    vtk = _import_vtk()
    reader = vtk.vtkSTLReader()
    reader.SetMerging(merge)
    reader.SetFileName(str(path))
    messages: list[str] = []
    for event in ("ErrorEvent", "WarningEvent"):
        # Without observers VTK writes to stderr.
        for origin in (reader, reader.GetExecutive()):
            origin.AddObserver(event, lambda *_: messages.append("wrong"))
    reader.Update()
    surface = reader.GetOutput()
    if messages or not surface.GetNumberOfPolys():
        raise ValueError(f"{show(path.name)} cannot be read as an STL file, or has no triangles")
    points = vtk.vtk_to_numpy(surface.GetPoints().GetData()).astype(np.float64)
    triangles = vtk.vtk_to_numpy(surface.GetPolys().GetConnectivityArray()).reshape(-1, 3).astype(np.int64)
    if not np.isfinite(points).all():
        raise ValueError(f"{show(path.name)} has coordinates that are not finite")
    return points, triangles


def _import_vtk() -> SimpleNamespace:
    """The classes and functions of VTK that this module uses."""
    try:
        from vtkmodules.util import numpy_support
        from vtkmodules.vtkCommonCore import vtkPoints
        from vtkmodules.vtkCommonDataModel import vtkCellArray, vtkPolyData
        from vtkmodules.vtkFiltersModeling import vtkSelectEnclosedPoints
        from vtkmodules.vtkImagingStencil import vtkImageStencilToImage, vtkPolyDataToImageStencil
        from vtkmodules.vtkIOGeometry import vtkSTLReader
    except ImportError as error:
        raise InputError(f"VTK, which reads STL files, cannot be imported ({error}); pip install pyvista") from error
    return SimpleNamespace(
        numpy_to_vtk=numpy_support.numpy_to_vtk,
        numpy_to_vtkIdTypeArray=numpy_support.numpy_to_vtkIdTypeArray,
        vtk_to_numpy=numpy_support.vtk_to_numpy,
        vtkCellArray=vtkCellArray,
        vtkImageStencilToImage=vtkImageStencilToImage,
        vtkPoints=vtkPoints,
        vtkPolyData=vtkPolyData,
        vtkPolyDataToImageStencil=vtkPolyDataToImageStencil,
        vtkSelectEnclosedPoints=vtkSelectEnclosedPoints,
        vtkSTLReader=vtkSTLReader,
    )
