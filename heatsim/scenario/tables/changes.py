"""Table [changes]: the values that a program or a recorded table may set during the run."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, PlainValidator

from heatsim.scenario.messages import show, show_key
from heatsim.scenario.tables.fields import STRICT, Duration, Form
from heatsim.scenario.tables.named import Named

_KEYS = frozenset({"range", "every", "recorded"})


def _flatten(table: object) -> object:
    """One level of dotted keys; without quotes, TOML reads a dotted key as nested tables."""
    if not isinstance(table, Mapping):
        return table
    flat: dict[str, object] = {}
    for key, value in table.items():
        if isinstance(value, Mapping) and value and not _KEYS & value.keys():
            below = _flatten(value)
            assert isinstance(below, Mapping)
            flat.update({f"{key}.{show_key([rest]) if rest in value else rest}": each for rest, each in below.items()})
        else:
            flat[key] = value
    return flat


def _read_range(value: object) -> tuple[object, object]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"got {show(value)}; two values are expected, the lower one first, as in [0, 100]")
    low, high = value
    return low, high


class Change(BaseModel):
    """What is known beforehand of a value that is set during the run.

    Steps, limits and tables hold for the whole ``range``. The value may change at t = 0 and at the multiples of
    ``every`` only. Between them it stays. ``heatsim.scenario.documents.changes`` reads range and
    record in the unit of the key.
    """

    model_config = STRICT

    range: Annotated[
        tuple[Any, Any], PlainValidator(_read_range), Form("two values that the key may have, the lower one first")
    ] = Field(examples=["range = [0, 100]"], description="Lowest and highest value")
    every: Duration = Field(examples=['every = "1 s"'], description="Time between moments at which it may change")
    recorded: Annotated[
        Any, PlainValidator(lambda value: value), Form("a table in time, columns of a CSV file, or an expression in t")
    ] = Field(
        default=None,
        description="Values to repeat, for a run without a program: what it says at a moment holds until the next one",
    )


Changes = Annotated[
    Mapping[str, Change],
    BeforeValidator(_flatten),
    AfterValidator(Named.of),
]
