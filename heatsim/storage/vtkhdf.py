"""The format of fields.vtkhdf: temperatures over time in one file that grows; ParaView and VTK open it.

VTKHDF 2.0 ImageData (VTK file formats documentation, "VTKHDF File Format") with cell data:

    /VTKHDF                       Version, Type, WholeExtent in points, Origin, Spacing, Direction; Size (ours)
    /VTKHDF/CellData/temperature  (time, z, y, x) in K; this and the next and Values have the attribute units (ours)
    /VTKHDF/CellData/heat_flux    (time, z, y, x, component) in W/m², components along x, y, z; if requested
    /VTKHDF/CellData/material     (1, z, y, x), indices of its attribute Names; if there are several or void
    /VTKHDF/Steps                 NSteps, the number of times that count
    /VTKHDF/Steps/Values          the times in s
    /VTKHDF/Steps/CellDataOffsets/temperature  0, 1, 2, …; the same for heat_flux; for material 0, 0, 0, …

A time is written, then synced, then counted in NSteps. Times beyond NSteps, from a crash, are never read; after a
power cut all counted times are on the disk. The oldest file version of HDF5, which is h5py's default, does not mark a
file as open for writing, so the file opens after a crash.
"""

from collections.abc import Sequence
from math import ceil, prod
from typing import Any

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

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

CHUNK_BYTES = 4 << 20

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
    nx, ny, nz = grid.cells
    root = file.create_group(ROOT)
    root.attrs["Version"] = np.array([2, 0], np.int64)
    root.attrs.create("Type", b"ImageData", dtype=h5py.string_dtype("ascii", len("ImageData")))
    root.attrs["WholeExtent"] = np.array([0, nx, 0, ny, 0, nz], np.int64)
    root.attrs["Origin"] = np.array(grid.origin, np.float64)
    root.attrs["Spacing"] = np.array(grid.spacing, np.float64)
    # Nine numbers in a row: with a matrix, VTK reads a mesh without arrays.
    root.attrs["Direction"] = np.eye(3).ravel()
    # The size of the box itself: spacing times cells may differ in the last digit.
    root.attrs["Size"] = np.array(grid.size, np.float64)
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
    """The grid of a file."""
    extent = [int(value) for value in root.attrs["WholeExtent"]]
    size = [float(value) for value in root.attrs["Size"]]
    origin = [float(value) for value in root.attrs["Origin"]]
    return Grid((extent[1], extent[3], extent[5]), (size[0], size[1], size[2]), (origin[0], origin[1], origin[2]))
