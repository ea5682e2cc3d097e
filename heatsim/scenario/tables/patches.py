"""Patches: rectangles on a face, each with a condition."""

from math import pi
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, ValidationInfo, field_validator

from heatsim.grid import AXES, FACES, Grid
from heatsim.scenario.messages import fault, refuse, show
from heatsim.scenario.tables.boundaries import Surface
from heatsim.scenario.tables.fields import STRICT, FaceName, FacePoint, Pair, Text
from heatsim.scenario.tables.named import default_names
from heatsim.scenario.tables.surfaces import gather_condition
from heatsim.storage.tables import GROSS, PARTS, SOURCE

Array = NDArray[np.float64]

# Columns of energy.csv, which also has a column for every patch.
RESERVED = ("time", "stored", "sources", *FACES, "void", "residual", "imbalance")
OWN_KEYS = ("name", "face", "rectangle")
# The largest rounding error of a coordinate in decimals, as a fraction of a cell.
TOLERANCE = 1e-9


def face_axes(face: str) -> tuple[int, int]:
    """The two axes (0 = x, 1 = y, 2 = z) that span a face, in the order x, y, z."""
    u, v = (axis for axis in range(3) if axis != AXES.index(face[0]))
    return u, v


class Rectangle(BaseModel):
    """A rectangle between two corners in m, along a face's two axes in the order x, y, z."""

    model_config = STRICT

    min: FacePoint = Field(examples=["min = [0.01, 0.01]"], description="Corner with the smallest coordinates")
    max: FacePoint = Field(
        examples=["max = [0.02, 0.03]"], description="Opposite corner, greater than `min` along both axes"
    )

    @field_validator("max", mode="after")
    @classmethod
    def _check_order(cls, upper: Pair, info: ValidationInfo) -> Pair:
        lower = info.data.get("min")
        if lower is not None:
            faults = [
                fault(f"got {high!r}; it must be greater than min, which is {low!r} m", (index,))
                for index, (low, high) in enumerate(zip(lower, upper, strict=True))
                if low >= high
            ]
            if faults:
                refuse(faults)
        return upper

    def overlaps(self, other: "Rectangle") -> bool:
        """Whether two rectangles share an area."""
        edges = zip(self.min, self.max, other.min, other.max, strict=True)
        return all(low < other_high and other_low < high for low, high, other_low, other_high in edges)


class Patch(BaseModel):
    """A rectangle on a face with a condition; in the file, the keys of the condition are in the table of the patch."""

    model_config = STRICT

    name: Text = Field(
        description="Name, also of its column in `energy.csv`", json_schema_extra={"default": "`patch 1`, …"}
    )
    face: FaceName = Field(examples=['face = "z_max"'], description="Face of the box")
    rectangle: Rectangle = Field(
        examples=["rectangle = { min = [0.01, 0.01], max = [0.02, 0.03] }"],
        description="Part of the face with the condition; cells at its edges count with the part that it covers",
    )
    condition: Surface = Field(
        description="Type and keys of a condition, not `periodic`, beside the other keys of the patch",
        json_schema_extra={"key": "type"},
    )

    def coverage(self, grid: Grid) -> tuple[Array, Array]:
        """The covered fraction of the width of each cell, along the face's two axes in the order x, y, z.

        Of rings it is the fraction of their area. The covered fraction of a cell's face is the product of both. An edge
        of the patch that differs from an edge of a cell only by rounding counts as equal.
        """
        u, v = (
            _covered(grid, axis, low, high)
            for axis, low, high in zip(face_axes(self.face), self.rectangle.min, self.rectangle.max, strict=True)
        )
        return u, v

    def area(self, grid: Grid) -> float:
        """The area in m² of the rectangle, or of the ring that it is in an axial domain."""
        (u_min, v_min), (u_max, v_max) = self.rectangle.min, self.rectangle.max
        if not grid.radial:
            return (u_max - u_min) * (v_max - v_min)
        return pi * (u_max**2 - u_min**2) if self.face[0] == "z" else self._around(grid) * (v_max - v_min)

    def area_on_grid(self, grid: Grid) -> float:
        """The area in m² on the grid: the sum over the covered parts of the cells."""
        u, v = (
            float(covered.sum()) * axis.spacing if axis.uniform else float((covered * axis.measures).sum())
            for covered, axis in zip(self.coverage(grid), (grid.axes[at] for at in face_axes(self.face)), strict=True)
        )
        return self._around(grid) * u * v

    def _around(self, grid: Grid) -> float:
        """The circumference in m of an axial face across x; 1 for other faces."""
        if not grid.radial or self.face[0] != "x":
            return 1.0
        return 2.0 * pi * float(grid.axes[0].borders[-1 if self.face == "x_max" else 0])

    @field_validator("name", mode="after")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if name in RESERVED or name.startswith((SOURCE, *PARTS, *GROSS)):
            raise ValueError(f"got {show(name)}; energy.csv has a column of this name: choose another name")
        return name


Patches = Annotated[tuple[Annotated[Patch, gather_condition(OWN_KEYS)], ...], default_names("patches")]


def off_face(point: Pair, face: str, grid: Grid) -> list[tuple[int, str]]:
    """The coordinates of a point that lie outside a face: their indices, and messages for the user."""
    outside = []
    for index, (axis, coordinate) in enumerate(zip(face_axes(face), point, strict=True)):
        low, length = grid.origin[axis], grid.size[axis]
        margin = TOLERANCE * grid.axes[axis].spacing
        if not low - margin <= coordinate <= low + length + margin:
            message = f"got {coordinate!r}; {face} reaches from {low!r} to {low + length!r} m along {AXES[axis]}"
            outside.append((index, message))
    return outside


def _covered(grid: Grid, axis: int, low: float, high: float) -> Array:
    n, length, origin = grid.cells[axis], grid.size[axis], grid.origin[axis]
    if grid.axes[axis].uniform:
        first, last = ((edge - origin) / length * n for edge in (low, high))
    else:
        first, last = (float(grid.axes[axis].places(edge)) for edge in (low, high))
    first, last = (float(round(edge)) if abs(edge - round(edge)) <= TOLERANCE else edge for edge in (first, last))
    covered = np.diff(np.clip(np.arange(n + 1, dtype=np.float64), first, last))
    if grid.radial and axis == 0:
        # The mean radius of the covered part over that of the ring.
        ends = [np.clip(edge - np.arange(n), 0.0, 1.0) for edge in (first, last)]
        twice, widths = 2.0 * grid.axes[0].borders[:-1], grid.axes[0].widths
        covered *= (twice + widths * (ends[0] + ends[1])) / (twice + widths)
    return np.asarray(covered)
