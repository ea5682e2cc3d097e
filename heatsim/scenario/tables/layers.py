"""Layers: thin conductors without cells, such as copper on a circuit board."""

from math import pi
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, PlainValidator, field_validator

from heatsim.grid import AXES, Grid
from heatsim.scenario.messages import show
from heatsim.scenario.tables.fields import STRICT, Coordinate, Form, Length, Pair, Text, choice
from heatsim.scenario.tables.materials import NamesMaterial, read_material_name
from heatsim.scenario.tables.named import default_names
from heatsim.scenario.tables.patches import Rectangle, face_axes
from heatsim.scenario.tables.repeat import Repeat
from heatsim.scenario.values import units

# How far a plane may lie from the faces of cells, as a fraction of a cell: rounding of decimals is less.
TOLERANCE = 1e-6


class Plane(BaseModel):
    """A plane across an axis, or a rectangle of it."""

    model_config = STRICT

    axis: Annotated[Literal["x", "y", "z"], choice(*AXES)] = Field(
        examples=['axis = "z"'], description="The axis that the plane is normal to"
    )
    at: Coordinate = Field(
        examples=["at = 0.0016"],
        description="Coordinate of the plane along this axis: between two cells, or a face of the box",
    )
    rectangle: Rectangle | None = Field(
        default=None,
        examples=["rectangle = { min = [0.01, 0.01], max = [0.02, 0.03] }"],
        description="Covered part, along the two other axes in the order x, y, z; cells at its edges count with the "
        "part that it covers",
        json_schema_extra={"default": "the whole plane"},
    )

    @property
    def across(self) -> int:
        """The number of the axis that the plane is normal to: 0 = x, 1 = y, 2 = z."""
        return AXES.index(self.axis)

    @property
    def along(self) -> tuple[int, int]:
        """The numbers of the two axes that span the plane."""
        return face_axes(f"{self.axis}_min")

    def index(self, grid: Grid) -> float:
        """The number of cells below the plane; a whole number if the plane lies between two cells or on a face."""
        at = float(grid.axes[self.across].places(self.at))
        return float(round(at)) if abs(at - round(at)) <= TOLERANCE else at

    def corners(self, grid: Grid) -> tuple[Pair, Pair]:
        """The smallest and the largest coordinates of the covered part in m, along the two axes of the plane."""
        if self.rectangle is not None:
            return self.rectangle.min, self.rectangle.max
        u, v = self.along
        low = grid.origin[u], grid.origin[v]
        return low, (low[0] + grid.size[u], low[1] + grid.size[v])

    def area(self, grid: Grid) -> float:
        """The covered area in m²; of whole circles in an axial domain."""
        (u_low, v_low), (u_high, v_high) = self.corners(grid)
        area = (u_high - u_low) * (v_high - v_low)
        if grid.radial:  # the width of the domain along y is 1
            area *= 2.0 * pi * (self.at if self.across == 0 else (u_low + u_high) / 2.0)
        return area


class Layer(BaseModel):
    """A thin conducting layer in a plane; layers of one plane may overlap and then lie on each other."""

    model_config = STRICT

    name: Text = Field(description="Name", json_schema_extra={"default": "`layer 1`, …"})
    material: Annotated[
        str,
        PlainValidator(read_material_name),
        Form("a name of `[materials.NAME]`, or `library:NAME`"),
        NamesMaterial(),
    ] = Field(examples=['material = "copper"'], description="A name from `[materials]`, with constant properties")
    thickness: Length = Field(
        examples=['thickness = "35 um"'], description="Thickness, at most the cell size across the plane"
    )
    plane: Plane = Field(
        examples=['plane = { axis = "z", at = 0.0016, rectangle = { min = [0.01, 0.01], max = [0.02, 0.03] } }'],
        description="Where it lies",
    )

    repeat: Repeat | None = Field(
        default=None,
        examples=["repeat = { count = [10, 4, 1], step = [1e-3, 1e-3, 0.0] }"],
        description="Equal copies at equal distances, named `name[0]`, `name[1]`, …",
    )

    @field_validator("thickness", mode="before")
    @classmethod
    def _refuse_ounces(cls, value: object) -> object:
        """Refuse the weight of the copper, by which boards are ordered: 1 oz/ft² stands for 35 µm."""
        parts = units.split(value) if isinstance(value, str) else None
        if parts is not None and parts[1].replace(" ", "") in ("oz", "oz/ft^2"):
            copper = f"{35.0 * float(parts[0]):.4g} um"
            raise ValueError(f"got {show(value)}, which is a weight; write the thickness: for copper {show(copper)}")
        return value


Layers = Annotated[tuple[Layer, ...], default_names("layers")]


def side_of(cells: NDArray[np.bool_], below: NDArray[np.bool_], above: NDArray[np.bool_]) -> int:
    """The side of the cells that take layers that touch each other: 1 below their plane, −1 above it, 0 for neither.

    A side fits if its cells conduct wherever those of the other side do.

    Args:
        cells: of the plane that hold a part of a layer.
        below: the cells below the plane that conduct, and can take a layer.
        above: those above it.
    """
    if (below | ~above)[cells].all() and (below & cells).any():
        return 1
    return -1 if (above | ~below)[cells].all() and (above & cells).any() else 0
