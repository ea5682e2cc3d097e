"""The format of fields.vtkhdf: temperatures over time in one file that grows; ParaView and VTK open it.

VTKHDF 2.0 ImageData (VTK file formats documentation, "VTKHDF File Format") with cell data:

    /VTKHDF                       Version, Type, WholeExtent in points, Origin, Spacing, Direction; Size (ours)
    /VTKHDF/XCoordinates          only on graded grids: the planes between cells in m; the same for Y and Z
    /VTKHDF/CellData/temperature  (time, z, y, x) in K; this and the next and Values have the attribute units (ours)
    /VTKHDF/CellData/heat_flux    (time, z, y, x, component) in W/m², components along x, y, z; if requested
    /VTKHDF/CellData/material     (1, z, y, x), indices of its attribute Names; if there are several or void
    /VTKHDF/Steps                 NSteps, the number of times that count
    /VTKHDF/Steps/Values          the times in s
    /VTKHDF/Steps/CellDataOffsets/temperature  0, 1, 2, …; the same for heat_flux; for material 0, 0, 0, …

A graded grid is a RectilinearGrid of VTKHDF 2.8, which VTK reads from 9.7 on. Then /VTKHDF has Version, Type and
Dimensions in points; ours are Origin, Size, Graded (whether each axis has widths of its own) and Radial (whether x is
the radius of cells that are rings).

A time is written, then synced, then counted in NSteps. Times beyond NSteps, from a crash, are never read; after a
power cut all counted times are on the disk. The oldest file version of HDF5, which is h5py's default, does not mark a
file as open for writing, so the file opens after a crash.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, prod
from typing import Any

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from heatsim.counts import counted
from heatsim.grid import Grid
from heatsim.storage.hdf5_image import early_without_fill

ROOT = "VTKHDF"
TEMPERATURE = "CellData/temperature"
VALUES = "Steps/Values"
OFFSETS = "Steps/CellDataOffsets/temperature"
HEAT_FLUX = "CellData/heat_flux"
HEAT_FLUX_OFFSETS = "Steps/CellDataOffsets/heat_flux"
MATERIAL = "CellData/material"
MATERIAL_OFFSETS = "Steps/CellDataOffsets/material"
VOID = "void"
UNITS = {TEMPERATURE: "K", HEAT_FLUX: "W/m^2", VALUES: "s"}

_COORDINATES = ("XCoordinates", "YCoordinates", "ZCoordinates")

CHUNK_BYTES = 4 << 20
_SMALLEST, _LARGEST = 1e-15, 1e15  # m
_AGREE = 1e-6  # how far the sum of widths may differ from the size, as a part of it

Field = NDArray[np.floating[Any]]


def float_type(dtype: DTypeLike) -> np.dtype[Any]:
    """The NumPy type of the numbers in a file.

    Raises:
        ValueError: not float32 or float64.
    """
    found = np.dtype(dtype)
    if found not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype {found}; allowed are float32 and float64")
    return found


def offsets(root: h5py.Group) -> list[str]:
    """The names of the datasets with the index of each time in each array."""
    places = {TEMPERATURE: OFFSETS, HEAT_FLUX: HEAT_FLUX_OFFSETS, MATERIAL: MATERIAL_OFFSETS}
    return [place for name, place in places.items() if name in root]


def create_layout(
    file: h5py.File, grid: Grid, dtype: np.dtype[Any], room: int, heat_flux: bool, materials: Sequence[str]
) -> None:
    """Create all groups and datasets in an empty HDF5 file, with room for times and one entry in each list.

    Args:
        file: the file, open for writing.
        grid: the cells.
        dtype: float32 or float64.
        room: number of times that the arrays have room for.
        heat_flux: whether there are heat flux vectors.
        materials: names of the materials; if empty, there is no such array.
    """
    root = file.create_group(ROOT)
    _write_grid(root, grid)
    fields: list[tuple[str, tuple[int, ...], np.dtype[Any], bytes]] = [(TEMPERATURE, (), dtype, b"Scalars")]
    if heat_flux:
        fields.append((HEAT_FLUX, (3,), dtype, b"Vectors"))
    if materials:
        fields.append((MATERIAL, (), np.dtype(np.uint8), b""))
    for name, components, numbers, attribute in fields:
        field = root.create_dataset(
            name,
            shape=(0, *grid.shape, *components),
            maxshape=(None, *grid.shape, *components),
            chunks=(*_chunks(grid.shape, numbers.itemsize * prod(components)), *components),
            dtype=numbers,
            dcpl=early_without_fill(),
        )
        if attribute:
            field.attrs.create("Attribute", attribute, dtype=h5py.string_dtype("ascii", len(attribute)))
    if materials:
        root[MATERIAL].attrs["Names"] = list(materials)
    # One chunk for all times that there is room for; length 1, so that HDF5 allocates it at the start.
    rows = (max(512, room),)
    root.create_dataset(VALUES, shape=(1,), maxshape=(None,), chunks=rows, dtype="<f8")[:] = 0.0
    for name in offsets(root):
        root.create_dataset(name, shape=(1,), maxshape=(None,), chunks=rows, dtype="<i8")[:] = 0
    root["Steps"].attrs.create("NSteps", 0, dtype="<i8")
    for name, unit in UNITS.items():
        if name in root:
            root[name].attrs["units"] = unit
    for name, *_ in fields:
        root[name].resize(1 if name == MATERIAL else room, axis=0)


def _write_grid(root: h5py.Group, grid: Grid) -> None:
    """Write the cells of a file."""
    nx, ny, nz = grid.cells
    kind = b"ImageData" if grid.uniform else b"RectilinearGrid"
    root.attrs["Version"] = np.array([2, 0] if grid.uniform else [2, 8], np.int64)
    root.attrs.create("Type", kind, dtype=h5py.string_dtype("ascii", len(kind)))
    if grid.uniform:
        root.attrs["WholeExtent"] = np.array([0, nx, 0, ny, 0, nz], np.int64)
    else:
        root.attrs["Dimensions"] = np.array([nx + 1, ny + 1, nz + 1], np.int64)
    root.attrs["Origin"] = np.array(grid.origin, np.float64)
    if grid.uniform:
        root.attrs["Spacing"] = np.array(grid.spacing, np.float64)
        # Nine numbers in a row: with a matrix, VTK reads a mesh without arrays.
        root.attrs["Direction"] = np.eye(3).ravel()
    # The size of the box itself: spacing times cells may differ in the last digit.
    root.attrs["Size"] = np.array(grid.size, np.float64)
    if not grid.uniform:
        root.attrs["Graded"] = np.array([not axis.uniform for axis in grid.axes], np.uint8)
        root.attrs["Radial"] = np.uint8(grid.radial)
        for name, axis in zip(_COORDINATES, grid.axes, strict=True):
            root.create_dataset(name, data=axis.borders, dtype="<f8")


def _chunks(shape: tuple[int, int, int], itemsize: int) -> tuple[int, int, int, int]:
    """The shape of a chunk: one time with whole rows, or whole planes, of nearly equal bytes."""
    room = CHUNK_BYTES // itemsize
    lengths = []
    for n in reversed(shape):
        length = ceil(n / ceil(n / min(n, max(room, 1))))
        lengths.append(length)
        room //= length
    x, y, z = lengths
    return (1, z, y, x)


def read_grid(root: h5py.Group) -> Grid:
    """The grid of a file.

    Raises:
        ValueError: it is none.
    """
    length, width, height = (float(value) for value in root.attrs["Size"])
    x, y, z = (float(value) for value in root.attrs["Origin"])
    if root.attrs["Type"] == b"RectilinearGrid":
        nx, ny, nz = (int(value) - 1 for value in root.attrs["Dimensions"])
        places = [
            tuple(root[name][:].tolist()) if graded else ()
            for name, graded in zip(_COORDINATES, root.attrs["Graded"], strict=True)
        ]
        grid = Grid((nx, ny, nz), (length, width, height), (x, y, z), (places[0], places[1], places[2]))
        if root.attrs["Radial"]:
            grid = replace(grid, radial=True)
        starts = [0, 0, 0]
    else:
        *starts, nx, ny, nz = (int(value) for value in root.attrs["WholeExtent"][[0, 2, 4, 1, 3, 5]])
        grid = Grid((nx, ny, nz), (length, width, height), (x, y, z))
    if any(starts) or min(grid.cells) < 1:
        raise ValueError(f"{grid.cells} are no cells")
    if not all(abs(end) < _LARGEST for end in (*grid.origin, *grid.size)):
        raise ValueError(f"{grid.size} m is no size, or {grid.origin} m no origin")
    for axis, (n, found, start, size) in enumerate(zip(grid.cells, grid.borders, grid.origin, grid.size, strict=True)):
        ends = found or (start, start + size)
        widths = np.diff(found) if found else np.array([grid.mean_spacing[axis]])
        fits = len(found) in (0, n + 1) and abs(ends[0] - start) + abs(ends[-1] - start - size) <= _AGREE * size
        if not (fits and widths.min() > _SMALLEST and widths.max() < _LARGEST):
            raise ValueError(f"{counted(n, 'cell')} from {ends[0]} to {ends[-1]} m are no cells of {size} m")
    return grid


def check_shapes(
    root: h5py.Group, count: int, grid: Grid, times: NDArray[np.float64], materials: Sequence[str]
) -> None:
    """Check that a file has all values of a number of times.

    Raises:
        ValueError: an array has another shape or type, or is not on the disk; times do not rise.
    """
    if times.shape != (count,) or not np.isfinite(times).all() or not (np.diff(times) > 0.0).all():
        raise ValueError(f"{count} rising times are expected")
    floats = ("float32", "float64")
    arrays = [(TEMPERATURE, count, (), floats), (HEAT_FLUX, count, (3,), floats), (MATERIAL, 1, (), ("uint8",))]
    for name, least, components, types in arrays:
        if name not in root and name != TEMPERATURE:
            continue
        array = root[name]
        shape = (*grid.shape, *components)
        there = array.shape[1:] == shape and array.shape[0] >= least and array.dtype in types
        # heatsim does not compress: a small file cannot hold large arrays.
        if not there or array.id.get_storage_size() < least * prod(shape) * array.dtype.itemsize:
            raise ValueError(f"{name} has shape {array.shape}, and {shape} at {counted(least, 'time')} is expected")
    if not all(isinstance(name, str) and name.isprintable() for name in materials):
        raise ValueError("the names of materials are no texts")
