"""What summary.json may say, as a model: a folder may come from someone else, with any content in its files.

Most keys depend on the run, so they are optional. Others are allowed: nothing reads them.
"""

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

# Numbers that fit into 64 bits.
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Number = Annotated[FiniteFloat, Field(ge=-1e100, le=1e100)]
Positive = Annotated[FiniteFloat, Field(ge=0.0, le=1e100)]
Three = Annotated[list[Number], Field(min_length=3, max_length=3)]
_NEEDED_WITH_STAGES = ("steps", "method", "rejected", "tolerance")
_NEEDED_WHEN_STEADY = ("newton_steps", "cycles", "tolerance")


class _Model(BaseModel):
    model_config = ConfigDict(defer_build=True, strict=True, extra="allow")


class _Extreme(_Model):
    """A highest or lowest temperature, with its time and place."""

    temperature: Number
    time: Positive
    point: Three
    material: str | None = None
    region: str | None = None


class _KeptLimit(_Model):
    """Whether a probe keeps a limit."""

    kept: bool


class _Deviations(_Model):
    """How far a probe is from its measured values; SI units."""

    probe: str
    unit: str
    rms: Positive
    lines: Positive = 0.0
    mean: Number
    largest: Number
    time: Positive
    compared: Count
    measured: Count
    times: list[Positive]
    values: list[Number]

    @model_validator(mode="after")
    def _has_a_value_for_each_time(self) -> "_Deviations":
        if not len(self.times) == len(self.values) > 0:
            raise ValueError("a value for each time is expected")
        return self


class _Ends(_Model):
    min: Number | None = None
    max: Number | None = None
    mean: Number | None = None


class _Coefficients(_Model):
    dt: Positive
    steps: Count
    c0: Number
    c1: Number
    c2: Number
    c3: Number
    c4: Number
    c5: Number
    c6: Number


class _ValueOfTwoGrids(_Model):
    """A value with its error: K for temperatures, else SI units."""

    name: str
    unit: str
    value: Number
    coarser: Number
    error: Positive


class _Bands(_Model):
    times: list[Positive]
    errors: dict[str, list[Positive]]

    @model_validator(mode="after")
    def _has_an_error_for_each_time(self) -> "_Bands":
        if any(len(errors) != len(self.times) for errors in self.errors.values()):
            raise ValueError("an error for each time is expected")
        return self


class _ErrorInSpace(_Model):
    """The errors of values in space, or why they are not known."""

    missing: str = ""
    cells: Annotated[list[Count], Field(min_length=3, max_length=3)] = [0, 0, 0]
    ratio: Positive = 0.0
    seconds: Positive = 0.0
    largest: str | None = None
    values: list[_ValueOfTwoGrids] = []
    bands: _Bands | None = None


class _Round(_Model):
    """A grid that was tried for an accuracy, and its error in K."""

    cells: Annotated[list[Count], Field(min_length=3, max_length=3)]
    error: Positive
    name: str


class _Refinement(_Model):
    """How the cells for an accuracy in K were found."""

    accuracy: Positive
    rounds: Annotated[list[_Round], Field(min_length=1)]
    missed: str = ""
    seconds: Positive = 0.0


class SummaryModel(_Model):
    """The keys of summary.json that heatsim reads again."""

    title: str = ""
    method: str = ""
    device: str = ""
    kernel: str = ""
    precision: str = ""
    cells: Annotated[list[Count], Field(min_length=3, max_length=3)] | None = None
    time: Positive | None = None
    reference_temperature: Number | None = None
    temperature: _Ends | None = None
    highest_temperature: _Extreme | None = None
    lowest_temperature: _Extreme | None = None
    probe_extremes: dict[str, _Extreme] | None = None
    wall_time: Positive = 0.0
    preparing_time: Positive = 0.0
    stepping_time: Positive = 0.0
    solving_time: Positive = 0.0
    observing_time: Positive = 0.0
    waiting_time: Positive = 0.0
    converge_time: Positive | None = None
    cells_per_second: Positive | None = None
    tolerance: Positive | None = None
    steps: Count = 0
    stages: Count | None = None
    rejected: Count | None = None
    newton_steps: Positive | None = None
    cycles: Positive | None = None
    equivalent_applications: Positive | None = None
    dt: list[Positive] | None = None
    dt_limit: Positive | None = None
    coefficients: list[_Coefficients] | None = None
    coefficients_of: str | None = None
    coefficients_cell: Annotated[list[Positive], Field(min_length=3, max_length=3)] | None = None
    end_state: str = ""
    energy: dict[str, Number | None] | None = None
    energy_bound: Number | None = None
    error_in_space: _ErrorInSpace | None = None
    refinement: _Refinement | None = None
    checksums: dict[str, Count] = Field(default_factory=dict)
    limits: list[_KeptLimit] = Field(default_factory=list)
    measured: list[_Deviations] = Field(default_factory=list)
    model: list[str] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _has_what_its_method_needs(self) -> "SummaryModel":
        needed: tuple[str, ...] = () if self.stages is None else _NEEDED_WITH_STAGES
        needed = _NEEDED_WHEN_STEADY if self.method == "steady" else needed
        missing = [name for name in needed if getattr(self, name) in (None, "")]
        if missing:
            raise ValueError(f"{', '.join(missing)} is missing")
        return self


def mistake_in(summary: Any) -> str | None:
    """What is wrong with the content of summary.json, in a few words; None if nothing is."""
    try:
        SummaryModel.model_validate(summary)
        json.dumps(summary, ensure_ascii=False).encode()
    except ValidationError as error:
        return first_mistake(error)
    except UnicodeEncodeError:
        return "it holds half a character"
    return None


def first_mistake(error: ValidationError) -> str:
    """The place and the text of the first mistake that a model has found."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    # A key of the file may be anything, so do not print it to a terminal.
    place = place if place.isascii() and place.isprintable() and len(place) < 80 else "a key"
    return f"{place}: {first['msg']}" if first["loc"] else first["msg"].removeprefix("Value error, ")
