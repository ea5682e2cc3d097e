"""Probes: points, lines and regions whose temperatures are recorded."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    Field,
    ModelWrapValidatorHandler,
    field_validator,
    model_validator,
)

from heatsim.scenario.fields import STRICT, Count, Point, Text, Vector, choice
from heatsim.scenario.messages import fault, validate_beside

Statistic = Annotated[Literal["mean", "max", "min"], choice("mean", "max", "min")]


class Line(BaseModel):
    """``count`` points at equal distances, including both ends."""

    model_config = STRICT

    from_: Point = Field(alias="from", examples=["from = [0.0, 0.05, 0.05]"], description="First point")
    to: Point = Field(examples=["to = [0.1, 0.05, 0.05]"], description="Last point")
    count: Count = Field(
        examples=["count = 11"], description="Number of points at equal distances, including both ends"
    )

    @cached_property
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
    """A temperature that is recorded: at a point (x, y, z) in m, along a line, or a statistic of a region.

    Points lie inside the domain or on its surface.
    """

    model_config = STRICT

    name: Text = Field(
        examples=['name = "centre"'], description="Name of its column; a line has the columns `name[0]`, `name[1]`, …"
    )
    point: Point | None = Field(
        default=None, examples=["point = [0.05, 0.05, 0.05]"], description="Point in the domain or on its surface"
    )
    line: Line | None = Field(
        default=None,
        examples=["line = { from = [0.0, 0.05, 0.05], to = [0.1, 0.05, 0.05], count = 11 }"],
        description="Points on a line",
    )
    region: Text | None = Field(default=None, examples=['region = "die"'], description="Region; needs `statistic`")
    statistic: Statistic | None = Field(
        default=None, examples=['statistic = "mean"'], description="Statistic of the region's temperatures"
    )

    @property
    def points(self) -> tuple[Vector, ...]:
        """The points (x, y, z) in m; none for a region."""
        if self.line is not None:
            return self.line.points
        return () if self.point is None else (self.point,)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns in probes.csv: ``name``, or ``name[0]``, ``name[1]`` … for the points of a line."""
        if self.line is not None:
            return self.line.columns(self.name)
        return (self.name,)

    @field_validator("name", mode="after")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if name == "time":
            raise ValueError('got "time"; this is the name of the first column in probes.csv: choose another')
        return name

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
                faults.append(fault(f"got {' and '.join(given)}; one of point, line, region is expected"))
            if ("region" in table) != ("statistic" in table):
                message = 'region and statistic belong together, as in region = "die", statistic = "mean"'
                faults.append(fault(message, ("statistic",)))
        return validate_beside(faults, validate, table)
