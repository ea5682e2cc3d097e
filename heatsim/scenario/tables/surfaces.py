"""Surfaces: conditions where a region borders on void, or where conducting parts border on a void region, a room."""

from collections.abc import Container, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ModelWrapValidatorHandler, PlainValidator, model_validator

from heatsim.scenario.messages import faults_of_one, validate_beside
from heatsim.scenario.tables.boundaries import Surface
from heatsim.scenario.tables.contacts import read_between
from heatsim.scenario.tables.fields import STRICT, Form, Text

OWN_KEYS = ("of", "between")


class RegionSurface(BaseModel):
    """The condition on a surface towards void; in the file, its keys are in the table of the surface.

    A room is a void region. With ``of``, the surface is that of a region towards all void, or that of all conducting
    cells towards a room. With ``between``, it is that of a material or region towards a room.
    """

    model_config = STRICT

    of: Text | None = Field(
        default=None,
        examples=['of = "die"'],
        description="Region whose surface towards void has the condition; or a void region, a room: all surfaces "
        "towards it",
        json_schema_extra={"default": "required, or `between`"},
    )
    between: (
        Annotated[
            tuple[str, str], PlainValidator(read_between), Form("a name of a material or region, and one of a room")
        ]
        | None
    ) = Field(
        default=None,
        examples=['between = ["plaster", "room"]'],
        description="Instead of `of`: the surface of a material or region towards a room",
    )
    condition: Surface = Field(
        description="Type and keys of a condition, not `periodic`, beside `of` or `between`",
        json_schema_extra={"key": "type"},
    )

    @property
    def key(self) -> str:
        """The key that has its names."""
        return "of" if self.between is None else "between"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of materials and regions in ``of`` or ``between``."""
        return self.between or (() if self.of is None else (self.of,))

    @property
    def name(self) -> str:
        """Its name in tables: that of its region or room, or "plaster to room"."""
        return " to ".join(self.names)

    def room(self, rooms: Container[str]) -> str | None:
        """The room that it borders on, of the scenario's ``rooms``; None for the surface of a region towards all."""
        return next((name for name in self.names if name in rooms), None)

    def part(self, rooms: Container[str]) -> str | None:
        """The conducting material or region whose surface it is; None for all that borders on its room."""
        return next((name for name in self.names if name not in rooms), None)

    @model_validator(mode="wrap")
    @classmethod
    def _check_names(cls, table: Any, validate: ModelWrapValidatorHandler["RegionSurface"]) -> "RegionSurface":
        faults = faults_of_one(table, OWN_KEYS, 'of = "die", or between = ["plaster", "room"]')
        return validate_beside(faults, validate, table)


def gather_condition(own_keys: tuple[str, ...]) -> BeforeValidator:
    """Moves the keys of a condition below ``condition``; ``own_keys`` are the other keys of the table."""

    def gather(table: object) -> object:
        if not isinstance(table, Mapping) or "condition" in table:
            return table
        own = {key: value for key, value in table.items() if key in own_keys}
        return {**own, "condition": {key: value for key, value in table.items() if key not in own_keys}}

    return BeforeValidator(gather)


Surfaces = tuple[Annotated[RegionSurface, gather_condition(OWN_KEYS)], ...]
