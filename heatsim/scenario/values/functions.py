"""Find the values of a scenario that may change in time."""

from collections.abc import Iterator
from functools import cache
from typing import get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from heatsim.scenario.values.quantities import Quantity
from heatsim.scenario.values.timefunction import Formula, TimeFunction

_PLAIN = (int, float, str, type(None))


@cache
def _fields(model: type[BaseModel]) -> tuple[tuple[str, FieldInfo], ...]:
    """The fields of a model by name, kept because pydantic looks them up slowly."""
    return tuple(model.model_fields.items())


@cache
def quantity_of_field(model: type[BaseModel], name: str) -> Quantity:
    """The quantity of a field, even if the field may be None."""
    info = model.model_fields[name]
    parts = [*info.metadata, *(part for each in get_args(info.annotation) for part in get_args(each))]
    (quantity,) = (part for part in parts if isinstance(part, Quantity))
    return quantity


def functions_in_time(table: BaseModel) -> Iterator[tuple[str, TimeFunction, Quantity]]:
    """Every value of a table that may change in time: its key, the function and its quantity."""
    for name, _ in _fields(type(table)):
        value = getattr(table, name)
        if isinstance(value, TimeFunction):
            yield name, value, quantity_of_field(type(table), name)


def all_functions_in_time(
    table: BaseModel, at: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], TimeFunction, Quantity]]:
    """Every value that may change in time in a table and the tables below it: its key, the function, its quantity."""
    for key, owner, name in places_in_time(table, at):
        yield key, getattr(owner, name), quantity_of_field(type(owner), name)


def places_in_time(
    table: BaseModel, at: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], BaseModel, str]]:
    """Where these values stand: the key, the model that has the value, and the name of its field."""
    for name, info in _fields(type(table)):
        value = getattr(table, name)
        if isinstance(value, _PLAIN):
            continue
        key = at if name == "condition" else (*at, info.alias or name)
        if isinstance(value, TimeFunction):
            yield key, table, name
        elif isinstance(value, BaseModel):
            yield from places_in_time(value, key)
        elif isinstance(value, tuple):
            for index, entry in enumerate(value):
                if isinstance(entry, BaseModel):
                    yield from places_in_time(entry, (*key, index))


def formulas_in_time(table: BaseModel) -> Iterator[tuple[tuple[str | int, ...], Formula, Quantity]]:
    """Every expression in t in a table and the tables below it: its key, the expression and its quantity."""
    for key, function, quantity in all_functions_in_time(table):
        if isinstance(function, Formula):
            yield key, function, quantity
