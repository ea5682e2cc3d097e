"""Probes: points, lines and regions whose temperatures are recorded."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails

from heatsim.limits import Limits
from heatsim.scenario.context import folder_of
from heatsim.scenario.messages import fault, missing_key, show, validate_beside
from heatsim.scenario.tables.fields import (
    STRICT,
    AirInTime,
    Count,
    Form,
    HumidityInTime,
    Point,
    SurfaceName,
    Text,
    Vector,
    choice,
)
from heatsim.scenario.tables.limits import LimitValue, limit_mistakes, limit_quantity
from heatsim.scenario.tables.measured import MeasuredValues, read_measured
from heatsim.scenario.values.dew_point import dew_point
from heatsim.scenario.values.quantities import TEMPERATURE

TOWARDS_VOID = "void"
# The statistics that are temperatures, and the units of the others.
TEMPERATURES = ("mean", "max", "min")
LIQUID_FRACTION, TIME_ABOVE, TIME_BELOW = "liquid_fraction", "time_above", "time_below"
TEMPERATURE_FACTOR = "temperature_factor"
TIMES_BEYOND = (TIME_ABOVE, TIME_BELOW)
EXTENTS = ("extent_x", "extent_y", "extent_z")
UNITS = dict.fromkeys((LIQUID_FRACTION, TEMPERATURE_FACTOR), "1")
UNITS |= dict.fromkeys(EXTENTS, "m") | dict.fromkeys(TIMES_BEYOND, "s")
Statistic = Annotated[
    Literal["mean", "max", "min", "liquid_fraction", "temperature_factor"]
    | Literal["extent_x", "extent_y", "extent_z", "time_above", "time_below"],
    choice(*TEMPERATURES, *UNITS),
]


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


class DewPoint(BaseModel):
    """The temperature below which water condenses from air of a temperature and a relative humidity."""

    model_config = STRICT

    air: AirInTime = Field(examples=['air = "20 degC"'], description="Temperature of the air")
    humidity: HumidityInTime = Field(examples=["humidity = 0.6"], description="Relative humidity of the air")

    def at(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """The dew point in K at times in s."""
        return dew_point(self.air.at(times), self.humidity.at(times))

    def nodes(self, end: float) -> NDArray[np.float64]:
        """Times in s up to ``end`` between which it is smooth."""
        return np.union1d(self.air.nodes(end), self.humidity.nodes(end))


def _read_threshold(value: object, info: ValidationInfo) -> float | DewPoint:
    if isinstance(value, Mapping | DewPoint):
        return DewPoint.model_validate(value, context=info.context)
    return TEMPERATURE.read(value)


def _read_measured(value: object, info: ValidationInfo) -> MeasuredValues:
    unit = UNITS.get(info.data.get("statistic") or "")
    return read_measured(value, limit_quantity(unit), folder_of(info))


def _faults_of_factor(table: Mapping[str, Any]) -> list[InitErrorDetails]:
    """Faults of the keys that only a temperature factor has, or lacks."""
    if table.get("statistic") != TEMPERATURE_FACTOR:
        message = f"got {show(table.get('outside'))}; only the statistic {show(TEMPERATURE_FACTOR)} has an outside"
        return [fault(message, ("outside",))] if "outside" in table else []
    examples = {"surface": 'surface = "x_max"', "outside": 'outside = "x_min"'}
    return [fault(missing_key(example), (key,)) for key, example in examples.items() if key not in table]


def _threshold_faults(statistic: object, threshold: object) -> list[InitErrorDetails]:
    """Faults of a threshold beside a statistic that needs one, or that has none."""
    if statistic in TIMES_BEYOND and threshold is None:
        return [fault(missing_key('threshold = "60 degC"'), ("threshold",))]
    if threshold is not None and statistic not in (*TIMES_BEYOND, *EXTENTS):
        names = ", ".join(map(show, (*TIMES_BEYOND, *EXTENTS)))
        return [fault(f"got {show(threshold)}; only the statistics {names} have a threshold", ("threshold",))]
    if statistic in EXTENTS and isinstance(threshold, Mapping):
        message = f"got {show(threshold)}; the dew point is a threshold of {TIME_BELOW} and {TIME_ABOVE} only"
        return [fault(message, ("threshold",))]
    return []


class Probe(BaseModel):
    """A number that is recorded: the temperature at a point (x, y, z) in m or along a line, or a statistic.

    Points lie inside the domain or on its surface. A statistic is of the conducting cells of a region, or of all:

    - mean, max, min: temperatures.
    - liquid_fraction: the liquid part of the volume of materials that melt, from 0 to 1.
    - extent_x, extent_y, extent_z: the length in m, along an axis, of the box around all places that are hotter than
      ``threshold`` (K). Without a threshold: the melt pool, which is hotter than the liquidus of its material.
    - time_above: the time in s during which at least one cell, or the point, has been above ``threshold``.
    - time_below: the time in s during which at least one cell, or the point, has been below ``threshold``.
    - temperature_factor: the smallest (T_s − T_e)/(T_i − T_e) on a surface: T_i is the ambient temperature of the
      surface's condition, T_e that of ``outside`` (ISO 13788: f_Rsi).

    With ``surface`` the temperatures are those of the surface itself, not of the centres of its cells.
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
    surface: SurfaceName | None = Field(
        default=None,
        examples=['surface = "z_max"'],
        description="A face of the box, `void` for surfaces towards void, or a void region: surfaces towards it. The "
        "statistic is of temperatures of the surface; with `region`, only of the surface of that region",
    )
    statistic: Statistic | None = Field(
        default=None,
        examples=['statistic = "mean"'],
        description="Statistic of a region, or without `region` of the whole body: a temperature; the liquid part of "
        "the volume; the length of the part above `threshold`; the time for which any cell, or a `point`, was above or "
        "below `threshold`",
    )
    outside: Text | None = Field(
        default=None,
        examples=['outside = "x_min"'],
        description="Surroundings of `temperature_factor` with the temperature T_e, named as in [[couplings]]",
    )
    threshold: (
        Annotated[
            float | DewPoint,
            PlainValidator(_read_threshold),
            TEMPERATURE,
            Form("≥ 0, or a dew point `{ air = …, humidity = … }`"),
        ]
        | None
    ) = Field(
        default=None,
        examples=['threshold = "60 degC"'],
        description="Threshold of `time_above`, `time_below` and `extent_…`; without one, `extent_…` measures what is "
        "above the liquidus: the melt",
    )
    at_most: LimitValue | None = Field(
        default=None,
        examples=['at_most = "85 degC"'],
        description="Largest allowed value, in the unit of the probe; of a line, at each point. Reports say whether "
        "all rows keep it",
    )
    at_least: LimitValue | None = Field(
        default=None, examples=['at_least = "13 degC"'], description="Smallest allowed value"
    )
    measured: (
        Annotated[
            MeasuredValues,
            PlainValidator(_read_measured),
            Form('a table in time, `{ file = "….csv", time = "…", column = "…" }` or `{ times = […], values = […] }`'),
        ]
        | None
    ) = Field(
        default=None,
        examples=['measured = { file = "log.csv", time = "s", column = "T3", unit = "degC" }'],
        description="Measured values: points in pictures, and the deviation of the run (root mean square of computed "
        "less measured, at the measured times within the run; linear between rows)",
    )

    @property
    def limits(self) -> Limits:
        """Its limits, in SI units."""
        return Limits(self.at_most, self.at_least)

    @property
    def points(self) -> tuple[Vector, ...]:
        """The points (x, y, z) in m; none for a region."""
        if self.line is not None:
            return self.line.points
        return () if self.point is None else (self.point,)

    @property
    def has_place(self) -> bool:
        """Whether it records the place of its extreme. For the whole body, every run does so."""
        of_part = self.region is not None or self.surface is not None
        return of_part and self.statistic in ("max", "min", TEMPERATURE_FACTOR)

    @property
    def unit(self) -> str | None:
        """The unit of its numbers; None for temperatures."""
        return UNITS.get(self.statistic or "")

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
            statistic = table.get("statistic")
            if not given and statistic is None and "surface" not in table:
                message = "missing; write for example point = [0.05, 0.05, 0.05], or a line, a region or a statistic"
                faults.append(fault(message, ("point",)))
            if len(given) > 1:
                faults.append(fault(f"got {' and '.join(given)}; one of point, line, region is expected"))
            of_points = "line" in table or "point" in table
            if ("region" in table or "surface" in table) and statistic is None:
                what = "a surface" if "surface" in table else "a region"
                message = f'missing; {what} needs a statistic, as in statistic = "mean"'
                faults.append(fault(message, ("statistic",)))
            if statistic is not None and ("line" in table or ("point" in table and statistic not in TIMES_BEYOND)):
                message = (
                    f"got {show(statistic)} of points; a statistic is of a region, or of the whole body; only "
                    f"{TIME_ABOVE} and {TIME_BELOW} may be of a point"
                )
                faults.append(fault(message, ("statistic",)))
            if "line" in table and "measured" in table:
                message = "got measured values of a line; they are of one number: write a probe with a point for each"
                faults.append(fault(message, ("measured",)))
            if "surface" in table and of_points:
                faults.append(fault("got a surface beside a point or a line; remove one of them", ("surface",)))
            elif "surface" in table and statistic in (LIQUID_FRACTION, *EXTENTS):
                names = ", ".join(map(show, (*TEMPERATURES, *TIMES_BEYOND, TEMPERATURE_FACTOR)))
                faults.append(fault(f"got {show(statistic)} of a surface; one of {names} is expected", ("statistic",)))
            faults += _threshold_faults(statistic, table.get("threshold")) + _faults_of_factor(table)
            unit = next((unit for name, unit in UNITS.items() if name == statistic), None)
            if unit or statistic is None or statistic in TEMPERATURES:
                mistakes = limit_mistakes(table, limit_quantity(unit))
                faults += [fault(message, (key,)) for key, message in mistakes.items()]
        return validate_beside(faults, validate, table)
