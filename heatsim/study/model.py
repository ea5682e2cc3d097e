"""The table [study] of a scenario file: the parameters, the method that combines their values, and the responses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeGuard

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    model_validator,
)

from heatsim.limits import Limits
from heatsim.scenario.documents.key_paths import KEY, PART, parts_of
from heatsim.scenario.messages import fault, missing_key, show, show_key, validate_beside
from heatsim.scenario.tables.fields import STRICT, Form, Kelvin, Text, choice
from heatsim.scenario.tables.named import Named
from heatsim.scenario.values.quantities import si_number

GRID, ZIP, LATIN_HYPERCUBE = METHODS = ("grid", "zip", "latin-hypercube")
FINAL, MAX, MIN, MEAN, TIME_ABOVE, TIME_BELOW = STATISTICS = ("final", "max", "min", "mean", "time_above", "time_below")
LINEAR, LOG = SCALES = ("linear", "log")
_MOST_VALUES = 6  # that are shown
MAX_RUNS = 100_000

LIST_EXAMPLE = "[100.0, 500.0]"
RANGE_EXAMPLE = "{ min = 100.0, max = 2500.0 }"
PARAMETERS_EXAMPLE = f'[study.parameters] with "material.density" = {LIST_EXAMPLE} below it'
LINKED_EXAMPLE = 'keys = ["boundaries.x_min.value", "boundaries.x_max.value"] and values = [300.0, 350.0]'


def _read_end(value: object) -> object:
    if si_number(value) is None:
        raise ValueError(f"got {show(value)}; a number or a text with a unit is expected")
    return value


End = Annotated[object, PlainValidator(_read_end), Form("a number, or text with a unit")]
# The unit is that of a probe, so that rules between tables read it.
ResponseLimit = Annotated[object, PlainValidator(_read_end), Form("number, or text with a unit of the response")]


class Range(BaseModel):
    """A continuous parameter between two ends, which are kept as the file has them.

    Values are drawn evenly; with the scale "log", their logarithms are.
    """

    model_config = STRICT

    min: End = Field(examples=[RANGE_EXAMPLE], description="Lower end")
    max: End = Field(examples=[RANGE_EXAMPLE], description="Upper end")
    scale: Annotated[Literal["linear", "log"], choice(*SCALES)] = Field(
        default="linear", description="Whether values or their logarithms are drawn evenly"
    )

    @property
    def ends(self) -> tuple[float, float]:
        """The two ends in SI units."""
        low, high = si_number(self.min), si_number(self.max)
        assert low is not None, "the field's validator has read it"
        assert high is not None, "the field's validator has read it"
        return low, high

    @model_validator(mode="after")
    def _check_ends(self) -> "Range":
        low, high = self.ends
        if not low < high:
            raise ValueError(f"min = {show(self.min)} is not below max = {show(self.max)}")
        if self.scale == LOG and low <= 0.0:
            raise ValueError(f'min = {show(self.min)}; scale "log" needs a min above 0')
        return self


def _read_values(value: object) -> tuple[object, ...] | Range:
    if isinstance(value, Range | tuple):
        return value
    if isinstance(value, Mapping):
        return Range.model_validate(value)
    if not isinstance(value, list):
        raise ValueError(
            f"got {show(value)}; a list of values such as {LIST_EXAMPLE} or a range such as {RANGE_EXAMPLE} is expected"
        )
    if not value:
        raise ValueError(f"got []; write at least one value, for example {LIST_EXAMPLE}")
    return tuple(value)


def _read_path(value: object) -> str:
    wanted = 'the path of a key of the scenario is expected, such as "boundaries.default.coefficient"'
    if not isinstance(value, str) or not KEY.fullmatch(value):
        raise ValueError(f"got {show(value)}; {wanted}")
    if parts_of(value)[0] == "study":
        raise ValueError(f"got {show(value)}; {wanted}, not one of the study itself")
    return value


def flatten(table: object) -> dict[str, object]:
    """One level of dotted keys; without quotes, TOML reads a dotted key as nested tables."""
    if not isinstance(table, Mapping):
        example = f'"material.density" = {LIST_EXAMPLE}'
        raise ValueError(f"got {show(table)}; write a table, for example {example} below its heading")
    flat: dict[str, object] = {}
    for key, value in table.items():
        if _holds_keys(value):
            names = (name if PART.fullmatch(name) or "'" in name else f"'{name}'" for name in value)
            below = flatten(dict(zip(names, value.values(), strict=True)))
            flat.update({f"{key}.{rest}": item for rest, item in below.items()})
        else:
            flat[key] = value
    return flat


def _holds_keys(value: object) -> TypeGuard[Mapping[str, object]]:
    """Whether a value below a part of a key is a table of further parts, and no range with two ends."""
    if not isinstance(value, Mapping) or not value:
        return False
    ends = {"min", "max"} & value.keys()
    return all(isinstance(value[end], Mapping) for end in ends)


def _check_not_empty(keys: tuple[str, ...]) -> tuple[str, ...]:
    if not keys:
        raise ValueError(f"got []; write for example {LINKED_EXAMPLE}")
    return keys


KeyPath = Annotated[str, PlainValidator(_read_path), Form("paths of keys")]
Values = Annotated[tuple[object, ...] | Range, PlainValidator(_read_values), Form("a list, or a range")]
Parameters = Annotated[
    Mapping[KeyPath, Values],
    BeforeValidator(flatten),
    AfterValidator(Named.of),
    Form("a list or a range for each key"),
]


class Linked(BaseModel):
    """Keys of the scenario that have the same value in each run, and the values."""

    model_config = STRICT

    keys: Annotated[tuple[KeyPath, ...], AfterValidator(_check_not_empty)] = Field(
        examples=[LINKED_EXAMPLE], description="Keys of the scenario that have the same value in each run"
    )
    values: Values = Field(examples=[LINKED_EXAMPLE], description="List of values, or a range")
    name: Text | None = Field(
        default=None, examples=['name = "sink height"'], description="Name of the parameter in tables and pictures"
    )


class Response(BaseModel):
    """A number computed for every run: a column of the results.

    It is a statistic of a probe's curve. "final", "max", "min" and "mean" have the unit of the probe. "time_above" and
    "time_below" are the time in s at which the curve first reaches ``threshold`` (K).
    """

    model_config = STRICT

    name: Text = Field(examples=['name = "hottest"'], description="Name of its column in the results")
    probe: Text = Field(examples=['probe = "centre"'], description="Column of `probes.csv`")
    statistic: Annotated[str, choice(*STATISTICS), Form(", ".join(f"`{name}`" for name in STATISTICS))] = Field(
        examples=['statistic = "max"'],
        description="Statistic of the curve; `time_above` and `time_below`: the time at which it first reaches the "
        "threshold (of a probe they are how long it stays beyond)",
    )
    threshold: Kelvin | None = Field(
        default=None,
        examples=['threshold = "60 degC"'],
        description="Threshold; only with `time_above` and `time_below`, and required there",
    )
    at_most: ResponseLimit | None = Field(
        default=None, examples=['at_most = "85 degC"'], description="Largest allowed value, in the unit of the response"
    )
    at_least: ResponseLimit | None = Field(
        default=None, examples=['at_least = "10 min"'], description="Smallest allowed value"
    )

    @property
    def is_time(self) -> bool:
        """Whether the number is a time in s; otherwise it has the unit of the probe."""
        return self.statistic in (TIME_ABOVE, TIME_BELOW)

    @property
    def limits(self) -> Limits:
        """Its limits, in SI units."""
        return Limits(si_number(self.at_most), si_number(self.at_least))

    @model_validator(mode="wrap")
    @classmethod
    def _check_threshold(cls, table: Any, validate: ModelWrapValidatorHandler["Response"]) -> "Response":
        faults = []
        if isinstance(table, Mapping) and table.get("statistic") in STATISTICS:
            statistic = table["statistic"]
            if statistic in (TIME_ABOVE, TIME_BELOW) and table.get("threshold") is None:
                faults.append(fault(missing_key('threshold = "60 degC"'), ("threshold",)))
            if statistic not in (TIME_ABOVE, TIME_BELOW) and table.get("threshold") is not None:
                message = f'got {show(table["threshold"])}; statistic "{statistic}" has no threshold: remove this key'
                faults.append(fault(message, ("threshold",)))
        return validate_beside(faults, validate, table)


@dataclass(frozen=True)
class StudyAxis:
    """One parameter of the study.

    Attributes:
        keys: the keys of the scenario that have the parameter's value.
        values: the values as the file has them, or a range.
        location: the key of the values in the file.
        name: of the parameter; None for one that its keys name.
    """

    keys: tuple[str, ...]
    values: tuple[object, ...] | Range
    location: str
    name: str | None = None


def _read_samples(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_RUNS:
        raise ValueError(f"got {show(value)}; a whole number of runs from 1 to {MAX_RUNS:,} is expected")
    return value


def _read_seed(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(f"got {show(value)}; a whole number from 0 is expected")
    return value


class StudyTable(BaseModel):
    """The table [study]."""

    model_config = STRICT

    method: Annotated[str, choice(*METHODS), Form(", ".join(f"`{name}`" for name in METHODS))] = Field(
        examples=['method = "grid", or "zip", or "latin-hypercube"'],
        description="`grid`: every combination; `zip`: lists side by side; `latin-hypercube`: values drawn from ranges",
    )
    samples: Annotated[int, PlainValidator(_read_samples), Form(f"1 to {MAX_RUNS:,}", (1, MAX_RUNS))] | None = Field(
        default=None, examples=["samples = 200"], description="Number of runs of `latin-hypercube`"
    )
    seed: Annotated[int, PlainValidator(_read_seed), Form("whole number from 0", (0, None))] = Field(
        default=0, description="Seed of the random numbers"
    )
    parameters: Parameters = Field(
        default=Named(()),
        examples=[PARAMETERS_EXAMPLE],
        validate_default=False,
        description='Values by key of the scenario, for example `"material.density" = [1000.0, 2000.0]`',
    )
    linked: tuple[Linked, ...] = Field(
        default=(),
        examples=[f"each list of keys under its own heading [[study.linked]], with {LINKED_EXAMPLE}"],
        description="Keys with common values",
    )
    responses: tuple[Response, ...] = Field(
        default=(),
        examples=[
            'each response under its own heading [[study.responses]], with name = "hottest", probe = "centre" and '
            'statistic = "max"'
        ],
        description="Columns of the results",
    )

    @property
    def axes(self) -> tuple[StudyAxis, ...]:
        """The parameters in the order of the file; those that could not be read are left out."""
        parameters = self.parameters or {}
        axes = [StudyAxis((key,), values, f"study.parameters.{show_key([key])}") for key, values in parameters.items()]
        for index, linked in enumerate(self.linked or ()):
            if linked is not None and linked.keys is not None:
                axes.append(StudyAxis(linked.keys, linked.values, f"study.linked.{index}.values", linked.name))
        return tuple(axis for axis in axes if axis.values is not None and None not in axis.keys)

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key that varies, in the order of the file."""
        return tuple(key for axis in self.axes for key in axis.keys)


class StudyFile(BaseModel):
    """The part of a scenario file that belongs to the study."""

    model_config = STRICT

    study: StudyTable


def shown_values(axis: StudyAxis) -> str:
    """The values of a parameter as the file has them; of many the first."""
    if isinstance(axis.values, Range):
        return f"{axis.values.min} to {axis.values.max}, {axis.values.scale}"
    shown = ", ".join(map(str, axis.values[:_MOST_VALUES]))
    return shown + (f", … ({len(axis.values)} values)" if len(axis.values) > _MOST_VALUES else "")
