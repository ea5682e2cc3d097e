"""The table [time]: the method in time, the end, and what decides the length of the steps."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    ValidationInfo,
    field_validator,
    model_validator,
)

from heatsim.scenario.messages import fault, missing_key, show, validate_beside
from heatsim.scenario.tables.fields import STRICT, Form, Fraction, Method, TemperatureRate, TimeStep, Tolerance
from heatsim.scenario.values.csv_columns import date_of
from heatsim.scenario.values.quantities import DURATION

# The keys of [time] that set the length of steps. Only "euler" has them, and one of them makes it the default.
KEYS_OF_EULER = ("dt", "safety")
# The methods whose steps follow a tolerance.
ADAPTIVE = ("stabilized", "implicit")
_END_EXAMPLE = "end = 60.0"


def not_given() -> Any:
    """None, the default of a key that only some methods need; the key's validator reports if it is missing."""
    return None


def _read_end(value: object, info: ValidationInfo) -> float:
    """The end in s; 0 for a steady state."""
    steady = (info.data or {}).get("method") == "steady"
    if steady and (value is None or value == 0.0):
        return 0.0
    if value is None:
        raise ValueError(missing_key(_END_EXAMPLE))
    end = DURATION.read(value)
    return 0.0 if steady else end


def read_start(value: object) -> str:
    """A date as ISO text, from such a text or a date of TOML."""
    text = value.isoformat() if isinstance(value, date) else value
    found = date_of(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f'got {show(value)}; a date is expected, as in start = "2024-01-31T00:00"')
    return found.isoformat()


class Time(BaseModel):
    """The method in time, the duration in s, and what decides the length of the steps.

    - "auto": "euler", unless "stabilized" or "implicit" needs less than a third of its work; see
      heatsim/physics/estimates/method_choice.py. It is the default unless ``dt`` or ``safety`` is set.
    - "euler": explicit steps of ``dt`` s; with "auto", ``safety`` is the fraction of the stability limit that they use.
    - "stabilized": steps far above that limit. Their lengths follow ``tolerance``, the error of the run in K.
    - "implicit": the same, with steps that no limit bounds: each solves systems of equations.
    - "steady": no time passes. The temperatures at which nothing changes are found to ``tolerance`` in K.

    The run ends before ``end`` when no cell changes faster than ``stop_below`` in K/s.
    """

    model_config = STRICT

    method: Method = Field(
        default="auto",
        description="`auto`: `euler`, unless one of the next two needs less than a third of its work; `euler`: "
        "explicit steps; `stabilized`: long steps whose error is controlled; `implicit`: the same by solving "
        "equations, for thin layers and long times; `steady`: the steady state alone",
        json_schema_extra={"default": "`auto`; with `dt` or `safety`: `euler`"},
    )
    end: Annotated[float, PlainValidator(_read_end), DURATION] = Field(
        default_factory=not_given,
        examples=[_END_EXAMPLE],
        description="End of the run; a steady state has none",
        json_schema_extra={"default": "required except with `steady`"},
    )
    tolerance: Tolerance | None = Field(
        default=None,
        description="With `auto`, `stabilized` and `implicit` the error of the run in time, by default 0.02 % of "
        "the range of temperatures, at least 1 mK or less where the range of the whole run is small; with `steady` "
        "the largest error, by default 0.01 % of the range found, or what rounding leaves",
    )
    dt: TimeStep = Field(
        default="auto", description="Time step of `euler`; it must divide each interval between output times"
    )
    safety: Fraction = Field(
        default=0.9, description='Fraction of the stability limit that `euler` takes with `dt = "auto"`'
    )
    stop_below: TemperatureRate | None = Field(
        default=None, description="End the run early when no cell and no node changes faster than this between two rows"
    )

    start: Annotated[str, PlainValidator(read_start), Form('a date, such as `"2024-01-31T00:00"`')] | None = Field(
        default=None,
        description="Date of t = 0: pictures show dates, and dates in CSV files count from it",
        json_schema_extra={"default": "none; dates in a CSV file count from its first row"},
    )

    @field_validator("start", mode="after")
    @classmethod
    def _check_start(cls, start: str | None, info: ValidationInfo) -> str | None:
        end = (info.data or {}).get("end") or 0.0
        if (
            start is not None
            and end >= (datetime.max - datetime.fromisoformat(start).replace(tzinfo=None)).total_seconds()
        ):
            raise ValueError(f"got {show(start)}; the run would end after the year {datetime.max.year}")
        return start

    @property
    def start_date(self) -> datetime | None:
        """The date of t = 0."""
        return None if self.start is None else datetime.fromisoformat(self.start)

    @field_validator("tolerance", mode="after")
    @classmethod
    def _check_tolerance(cls, tolerance: float | None, info: ValidationInfo) -> float | None:
        if tolerance is not None and (info.data or {}).get("method") == "euler":
            message = (
                'with method = "euler", whose steps have a fixed length; leave it out, or write method = "auto", '
                '"stabilized", "implicit" or "steady", without dt and safety'
            )
            raise ValueError(f"got {tolerance!r} {message}")
        return tolerance

    @model_validator(mode="wrap")
    @classmethod
    def _check_keys_of_euler(cls, table: Any, validate: ModelWrapValidatorHandler["Time"]) -> "Time":
        """Choose "euler" where the length of its steps is set.

        Refuse a length if the method chooses it itself, and two keys that both set it.
        """
        faults = []
        if isinstance(table, Mapping) and "method" not in table and any(key in table for key in KEYS_OF_EULER):
            table = {**table, "method": "euler"}
        method = table.get("method") if isinstance(table, Mapping) else None
        if method in ("auto", *ADAPTIVE):
            faults = [
                fault(
                    f'got {show(table[key])} with method = "{method}", whose steps follow time.tolerance; leave '
                    f'{key} out, or write method = "euler"',
                    (key,),
                )
                for key in KEYS_OF_EULER
                if key in table
            ]
        elif isinstance(table, Mapping) and "safety" in table and table.get("dt", "auto") != "auto":
            message = f'got {show(table["safety"])} beside dt = {show(table["dt"])}; leave it out, or write dt = "auto"'
            faults = [fault(message, ("safety",))]
        return validate_beside(faults, validate, table)

    def with_method(self, method: str) -> "Time":
        """The same times with another method; "euler" has no tolerance, other methods have nothing of its steps."""
        own = type(self).model_fields
        unused = ("tolerance",) if method == "euler" else KEYS_OF_EULER
        defaults = {key: own[key].get_default() for key in unused} if method != self.method else {}
        return self.model_copy(update={"method": method, **defaults})
