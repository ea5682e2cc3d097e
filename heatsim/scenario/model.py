"""The scenario: frozen models of the tables of a TOML file, everything in SI."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, PrivateAttr, ValidationInfo, field_validator

from heatsim.grid import Grid
from heatsim.scenario.boundaries import Boundaries
from heatsim.scenario.context import reading
from heatsim.scenario.fields import (
    NOTED,
    STRICT,
    Cells,
    Conductivity,
    Density,
    Device,
    Duration,
    Flag,
    Fraction,
    InitialTemperature,
    Point,
    Precision,
    Rounding,
    Size,
    SpecificHeat,
    Text,
    TimeStep,
    Vector,
)
from heatsim.scenario.initial import ArrayFile, ImageFile
from heatsim.scenario.problems import fault, refuse, show

NEVER = float("inf")
ROUNDING = 4e-16


class Domain(BaseModel):
    """The box and its cells; vectors are (x, y, z), lengths in m."""

    model_config = STRICT

    size: Annotated[Size, NOTED] = Field(examples=["size = [0.1, 0.1, 0.1]"])
    cells: Annotated[Cells, NOTED] = Field(examples=["cells = [64, 64, 64]"])
    origin: Annotated[Point, NOTED] = (0.0, 0.0, 0.0)


class Material(BaseModel):
    """The material: conductivity along x, y, z in W/(m K), density in kg/m³, specific heat in J/(kg K)."""

    model_config = STRICT

    conductivity: Conductivity = Field(examples=["conductivity = 237.0"])
    density: Density = Field(examples=["density = 2700.0"])
    specific_heat: SpecificHeat = Field(examples=["specific_heat = 900.0"])


class Initial(BaseModel):
    """The field at t = 0: a number in K, an expression in x, y, z, or a file."""

    model_config = STRICT

    temperature: InitialTemperature = Field(examples=["temperature = 300.0"])


class Time(BaseModel):
    """Duration and time step in s; ``safety`` is the fraction of the stability limit that "auto" uses."""

    model_config = STRICT

    end: Annotated[Duration, NOTED] = Field(examples=["end = 60.0"])
    dt: TimeStep = "auto"
    safety: Fraction = 0.9


class Solver(BaseModel):
    """Where and how it is calculated; ``kernel`` is any text here, its name is looked up where kernels are known."""

    model_config = STRICT

    device: Device = "auto"
    kernel: Text = "auto"
    precision: Precision = "float32"
    rounding: Rounding = "nearest"


class Output(BaseModel):
    """What is written when; s of simulated time, ``checkpoint_wall`` in s of wall-clock time."""

    model_config = STRICT

    every: Duration = Field(default=NEVER, validate_default=False)
    probe_every: Duration = Field(default=NEVER, validate_default=False)
    checkpoint_wall: Duration = 60.0
    fields: Flag = True
    energy: Flag = True
    figures: Flag = True


class Probe(BaseModel):
    """A named point (x, y, z) in m, inside the domain or on its surface."""

    model_config = STRICT

    name: Text = Field(examples=['name = "centre"'])
    point: Point = Field(examples=["point = [0.05, 0.05, 0.05]"])

    @field_validator("name", mode="after")
    @classmethod
    def _check_name(cls, name: str, info: ValidationInfo) -> str:
        names = reading(info).probe_names
        if name == "time":
            raise ValueError('got "time"; this is the name of the first column in probes.csv: choose another')
        if name in names:
            raise ValueError(f"got {show(name)} a second time; each probe needs a name of its own")
        names.add(name)
        return name

    @field_validator("point", mode="after")
    @classmethod
    def _check_point(cls, point: Vector, info: ValidationInfo) -> Vector:
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


class Scenario(BaseModel):
    """One scenario, complete and checked; made by ``load`` or ``parse``.

    Tables are validated in this order; what a later one is checked against stands in an earlier one. Scenarios are
    equal when all of their settings are, wherever their files are.
    """

    model_config = STRICT

    title: Text
    domain: Domain = Field(examples=["[domain] with size = [0.1, 0.1, 0.1] and cells = [64, 64, 64]"])
    material: Material = Field(
        examples=["[material] with conductivity = 237.0, density = 2700.0 and specific_heat = 900.0"]
    )
    time: Time = Field(examples=["[time] with end = 60.0"])
    initial: Initial = Field(examples=["[initial] with temperature = 300.0"])
    boundaries: Boundaries = Field(default_factory=Boundaries)
    solver: Solver = Solver()
    output: Output = Output()
    probes: tuple[Probe, ...] = ()
    _path: Path = PrivateAttr(default_factory=Path)

    @property
    def path(self) -> Path:
        """The file that the scenario came from."""
        return self._path

    @property
    def grid(self) -> Grid:
        """The cells of the domain."""
        return Grid(self.domain.cells, self.domain.size, self.domain.origin)

    @property
    def input_files(self) -> tuple[Path, ...]:
        """The files that the scenario reads, apart from its own."""
        match self.initial.temperature:
            case ArrayFile(file=path) | ImageFile(image=path):
                return (path,)
            case _:
                return ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and all(
            getattr(self, name) == getattr(other, name) for name in type(self).model_fields
        )

    @field_validator("output", mode="after")
    @classmethod
    def _write_at_end(cls, output: Output, info: ValidationInfo) -> Output:
        """Without ``every`` fields are written at 0 and at the end; without ``probe_every`` rows come with fields."""
        if "time" not in info.data:
            return output
        every = info.data["time"].end if output.every == NEVER else output.every
        probe_every = every if output.probe_every == NEVER else output.probe_every
        return output.model_copy(update={"every": every, "probe_every": probe_every})
