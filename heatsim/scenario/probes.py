"""Probes: points, lines and regions whose temperatures are written down."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    ModelWrapValidatorHandler,
    ValidationInfo,
    field_validator,
    model_validator,
)

from heatsim.scenario.context import reading
from heatsim.scenario.fields import STRICT, Count, Point, Text, Vector, choice
from heatsim.scenario.messages import fault, refuse, validate_beside
from heatsim.scenario.sources import check_region

ROUNDING = 4e-16
Statistic = Annotated[Literal["mean", "max", "min"], choice("mean", "max", "min")]


def _check_inside(point: Vector, info: ValidationInfo) -> Vector:
    """See that a point lies inside the domain or on its surface."""
    size, origin = reading(info).size, reading(info).origin
    if size is None or origin is None:
        return point
    faults = [
        fault(f"got {at!r}; the domain reaches from {low!r} to {low + length!r} m along {axis}", (index,))
        for index, (axis, at, low, length) in enumerate(zip("xyz", point, origin, size, strict=True))
        # The far end is a rounded sum: a point written to lie on it may be an ulp beyond.
        if not low <= at <= low + length + ROUNDING * (abs(low) + length)
    ]
    if faults:
        refuse(faults)
    return point


InsidePoint = Annotated[Point, AfterValidator(_check_inside)]


class Line(BaseModel):
    """``count`` points evenly spread from one point to another, both included."""

    model_config = STRICT

    from_: InsidePoint = Field(alias="from", examples=["from = [0.0, 0.05, 0.05]"])
    to: InsidePoint = Field(examples=["to = [0.1, 0.05, 0.05]"])
    count: Count = Field(examples=["count = 11"])

    @property
    def points(self) -> tuple[Vector, ...]:
        """The points (x, y, z) in m."""
        last = self.count - 1
        return tuple(
            (
                self.from_[0] + (self.to[0] - self.from_[0]) * i / last,
                self.from_[1] + (self.to[1] - self.from_[1]) * i / last,
                self.from_[2] + (self.to[2] - self.from_[2]) * i / last,
            )
            for i in range(self.count)
        )

    def columns(self, name: str) -> tuple[str, ...]:
        """The names of the columns of a probe with this line."""
        return tuple(f"{name}[{index}]" for index in range(self.count))


class Probe(BaseModel):
    """A named place whose temperature is written: a point (x, y, z) in m, a line of points, or a region's statistic.

    Points lie inside the domain or on its surface.
    """

    model_config = STRICT

    name: Text = Field(examples=['name = "centre"'])
    point: InsidePoint | None = Field(default=None, examples=["point = [0.05, 0.05, 0.05]"])
    line: Line | None = Field(
        default=None, examples=["line = { from = [0.0, 0.05, 0.05], to = [0.1, 0.05, 0.05], count = 11 }"]
    )
    region: Text | None = Field(default=None, examples=['region = "die"'])
    statistic: Statistic | None = Field(default=None, examples=['statistic = "mean"'])

    @property
    def points(self) -> tuple[Vector, ...]:
        """Its points (x, y, z) in m; none for a region."""
        if self.line is not None:
            return self.line.points
        return () if self.point is None else (self.point,)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns in probes.csv: its own, or ``name[0]`` … for the points of a line."""
        if self.line is not None:
            return self.line.columns(self.name)
        return (self.name,)

    @field_validator("name", mode="after")
    @classmethod
    def _take_name(cls, name: str, info: ValidationInfo) -> str:
        if name == "time":
            raise ValueError('got "time"; this is the name of the first column in probes.csv: choose another')
        return reading(info).take(name, "probes")

    @field_validator("region", mode="after")
    @classmethod
    def _check_region(cls, region: str | None, info: ValidationInfo) -> str | None:
        return None if region is None else check_region(region, info)

    @field_validator("line", mode="after")
    @classmethod
    def _take_columns(cls, line: Line | None, info: ValidationInfo) -> Line | None:
        if line is not None and "name" in info.data:
            for column in line.columns(info.data["name"]):
                reading(info).take(column, "probes")
        return line

    @model_validator(mode="wrap")
    @classmethod
    def _check_place(cls, table: Any, validate: ModelWrapValidatorHandler["Probe"]) -> "Probe":
        faults = []
        if isinstance(table, Mapping):
            given = [key for key in ("point", "line", "region") if key in table]
            if not given:
                message = "missing; write for example point = [0.05, 0.05, 0.05], or a line or a region"
                faults.append(fault(message, ("point",)))
            if len(given) > 1:
                faults.append(fault(f"got {' and '.join(given)}; one of point, line, region is wanted"))
            if ("region" in table) != ("statistic" in table):
                message = 'region and statistic belong together, as in region = "die", statistic = "mean"'
                faults.append(fault(message, ("statistic",)))
        return validate_beside(faults, validate, table)
