"""Surfaces: conditions where a region borders on void."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

from heatsim.scenario.tables.boundaries import Surface
from heatsim.scenario.tables.fields import STRICT, Text

OWN_KEYS = ("of",)


class RegionSurface(BaseModel):
    """The condition on the surface of a region towards void; in the file, its keys are in the table of the surface."""

    model_config = STRICT

    of: Text = Field(examples=['of = "die"'], description="Region whose surface towards void has the condition")
    condition: Surface = Field(
        description="Type and keys of a condition, not `periodic`, beside `of`", json_schema_extra={"key": "type"}
    )


def gather_condition(own_keys: tuple[str, ...]) -> BeforeValidator:
    """Moves the keys of a condition below ``condition``; ``own_keys`` are the other keys of the table."""

    def gather(table: object) -> object:
        if not isinstance(table, Mapping) or "condition" in table:
            return table
        own = {key: value for key, value in table.items() if key in own_keys}
        return {**own, "condition": {key: value for key, value in table.items() if key not in own_keys}}

    return BeforeValidator(gather)


Surfaces = tuple[Annotated[RegionSurface, gather_condition(OWN_KEYS)], ...]
