"""Patches: rectangles on a face that have conditions of their own."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, ValidationInfo, field_validator, model_validator

from heatsim.grid import AXES, FACES, Grid
from heatsim.scenario.boundaries import Periodic, Surface, Temperature
from heatsim.scenario.context import reading
from heatsim.scenario.fields import STRICT, FaceName, FacePoint, Pair, Text
from heatsim.scenario.problems import fault, refuse, show

Array = NDArray[np.float64]

# Columns of energy.csv, where the heat through a patch has one of its own.
RESERVED = ("time", "stored", "sources", *FACES, "void", "residual")
OWN_KEYS = ("name", "face", "rectangle")
# Of a cell: what a coordinate written in decimals may miss by rounding.
TOLERANCE = 1e-9


def face_axes(face: str) -> tuple[int, int]:
    """The two axes (0 = x, 1 = y, 2 = z) that span a face, in the order x, y, z."""
    u, v = (axis for axis in range(3) if axis != AXES.index(face[0]))
    return u, v


class Rectangle(BaseModel):
    """A rectangle between two corners in m, along a face's two axes in the order x, y, z."""

    model_config = STRICT

    min: FacePoint = Field(examples=["min = [0.01, 0.01]"])
    max: FacePoint = Field(examples=["max = [0.02, 0.03]"])

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


class Patch(BaseModel):
    """A rectangle on a face with a condition of its own; in the file the condition's keys stand beside the others."""

    model_config = STRICT

    name: Text
    face: FaceName = Field(examples=['face = "z_max"'])
    rectangle: Rectangle = Field(examples=["rectangle = { min = [0.01, 0.01], max = [0.02, 0.03] }"])
    condition: Surface

    def coverage(self, grid: Grid) -> tuple[Array, Array]:
        """The fraction of the width of each cell that the patch covers, along the face's two axes in the order x, y, z.

        The fraction of a cell's face is the product of two. An edge that misses one of a cell by rounding lies on it.
        """
        u, v = (
            _covered(grid, axis, low, high)
            for axis, low, high in zip(face_axes(self.face), self.rectangle.min, self.rectangle.max, strict=True)
        )
        return u, v

    @property
    def area(self) -> float:
        """In m²."""
        (u_min, v_min), (u_max, v_max) = self.rectangle.min, self.rectangle.max
        return (u_max - u_min) * (v_max - v_min)

    def area_on_grid(self, grid: Grid) -> float:
        """In m², as the cells have it."""
        u, v = (
            float(covered.sum()) * grid.spacing[axis]
            for covered, axis in zip(self.coverage(grid), face_axes(self.face), strict=True)
        )
        return u * v

    @model_validator(mode="before")
    @classmethod
    def _gather_condition(cls, table: Any) -> Any:
        if not isinstance(table, Mapping) or "condition" in table:
            return table
        own = {key: value for key, value in table.items() if key in OWN_KEYS}
        return {**own, "condition": {key: value for key, value in table.items() if key not in OWN_KEYS}}

    @field_validator("name", mode="after")
    @classmethod
    def _take_name(cls, name: str, info: ValidationInfo) -> str:
        return reading(info).take(name, "patches", reserved=RESERVED)

    @field_validator("face", mode="after")
    @classmethod
    def _check_face(cls, face: str, info: ValidationInfo) -> str:
        boundaries = reading(info).boundaries
        if boundaries is not None and isinstance(boundaries.face(face), Periodic):
            raise ValueError(f"got {show(face)}; this face is periodic and has no surface for a patch")
        return face

    @field_validator("rectangle", mode="after")
    @classmethod
    def _check_rectangle(cls, rectangle: Rectangle, info: ValidationInfo) -> Rectangle:
        face = info.data.get("face")
        if face is not None:
            check_on_face(rectangle.min, face, info, ("min",))
            check_on_face(rectangle.max, face, info, ("max",))
        return rectangle

    @model_validator(mode="after")
    def _check_place(self, info: ValidationInfo) -> "Patch":
        context = reading(info)
        for other in context.patches:
            if other.face == self.face and _overlap(self.rectangle, other.rectangle):
                message = f"{show(self.name)} overlaps {show(other.name)}; patches on a face must not overlap"
                refuse([fault(message, ("rectangle",))])
        held = isinstance(self.condition, Temperature)
        if held and context.grid is not None and min(covered.sum() for covered in self.coverage(context.grid)) < 0.5:
            # What flows from it into the body would depend on the size of the cells.
            message = f"{show(self.name)} is held and narrower than half a cell; make it larger or the cells smaller"
            refuse([fault(message, ("rectangle",))])
        context.patches.append(self)
        return self


def check_on_face(point: Pair, face: str, info: ValidationInfo, at: tuple[str | int, ...]) -> None:
    """See that a point lies on a face.

    Raises:
        ValidationError: it does not; faults with their places under ``at``.
    """
    grid = reading(info).grid
    if grid is None:
        return
    faults = []
    for index, (axis, coordinate) in enumerate(zip(face_axes(face), point, strict=True)):
        low, length = grid.origin[axis], grid.size[axis]
        margin = TOLERANCE * grid.spacing[axis]
        if not low - margin <= coordinate <= low + length + margin:
            message = f"got {coordinate!r}; {face} reaches from {low!r} to {low + length!r} m along {AXES[axis]}"
            faults.append(fault(message, (*at, index)))
    if faults:
        refuse(faults)


def _covered(grid: Grid, axis: int, low: float, high: float) -> Array:
    n, length, origin = grid.cells[axis], grid.size[axis], grid.origin[axis]
    first, last = ((edge - origin) / length * n for edge in (low, high))
    first, last = (float(round(edge)) if abs(edge - round(edge)) <= TOLERANCE else edge for edge in (first, last))
    return np.diff(np.clip(np.arange(n + 1, dtype=np.float64), first, last))


def _overlap(one: Rectangle, other: Rectangle) -> bool:
    return all(
        low < other_high and other_low < high
        for low, high, other_low, other_high in zip(one.min, one.max, other.min, other.max, strict=True)
    )
