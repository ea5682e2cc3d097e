"""What a scenario describes in space: the parts of its picture."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid

_Mask = NDArray[np.bool_]
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ShownSource:
    """A heat source: its text in the legend, and its cells, shape (nz, ny, nx)."""

    text: str
    cells: _Mask


@dataclass(frozen=True)
class ShownContact:
    """A resistance between two parts: its text in the legend, and the cells of both, shape (nz, ny, nx)."""

    text: str
    one: _Mask
    other: _Mask


@dataclass(frozen=True)
class Rectangle3D:
    """A patch on a face, or a layer in a plane: its text, the axis normal to it, and two corners (x, y, z) in m."""

    text: str
    normal: int
    low: tuple[float, float, float]
    high: tuple[float, float, float]


@dataclass(frozen=True)
class Path3D:
    """Points (x, y, z) in m with a text: a probe, or the path of a beam; shape (points, 3)."""

    text: str
    points: _Floats


@dataclass(frozen=True)
class Geometry:
    """What a scenario describes in space.

    Attributes:
        title: of the scenario.
        grid: its cells.
        materials: their names.
        labels: the number of each cell's material, shape (nz, ny, nx).
        sources: of heat, without beams.
        contacts: resistances between parts.
        rectangles: patches on faces, and layers in planes.
        beams: the paths of beams.
        probes: points and lines.
        remarks: texts on conditions, and on probes of regions.
    """

    title: str
    grid: Grid
    materials: Sequence[str]
    labels: NDArray[np.uint8]
    sources: Sequence[ShownSource]
    contacts: Sequence[ShownContact]
    rectangles: Sequence[Rectangle3D]
    beams: Sequence[Path3D]
    probes: Sequence[Path3D]
    remarks: Sequence[str]
