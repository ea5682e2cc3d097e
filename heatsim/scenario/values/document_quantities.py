"""The physical quantities of the values in a document, as TOML has them.

The models keep numbers in SI units; a rule about how a number was written, and a table that says the unit of a key,
need the document.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import isclass
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from heatsim.scenario.values.quantities import TEMPERATURE, Quantity

Key = tuple[str | int, ...]
# In a table with these two keys, the first has the temperatures at which the second has values of a quantity.
_TEMPERATURES, _VALUES = "temperatures", "values"
_ENTRIES = (_VALUES, "range")


@dataclass(frozen=True)
class Found:
    """A value of a document.

    Attributes:
        key: its path.
        value: as TOML has it: a number, a text, a list or a table.
        quantity: what it is a value of.
    """

    key: Key
    value: object
    quantity: Quantity


def quantities(document: object, model: type[BaseModel], at: Key = ()) -> Iterator[Found]:
    """Every value of a document whose model says of which quantity it is.

    Args:
        document: the tables of the document; what does not fit the model is passed over.
        model: the model of the document.
        at: the path of the document.
    """
    if not isinstance(document, Mapping):
        return
    for name, key, field in _fields(model):
        if name == "condition":
            # The keys of a condition stand in the table itself.
            yield from _below(field, document, at)
        elif key in document:
            yield from _below(field, document[key], (*at, key))


def quantity_of(key: str, document: object, model: type[BaseModel]) -> Quantity | None:
    """The quantity of the value at a key path such as ``"domain.size.0"``; None if it has none."""
    for found in quantities(document, model):
        keys = [found.key, *(single for single, _ in single_values(found))]
        if any(".".join(map(str, each)) == key for each in keys):
            return found.quantity
    return None


def single_values(found: Found) -> Iterator[tuple[Key, object]]:
    """The numbers and texts of a value, with their paths: of a list each entry, of a table its values."""
    yield from _single(found.key, found.value)


def parts(info: FieldInfo) -> list[Any]:
    """All parts of a field's annotation: types and their annotations, outermost first."""
    return [*info.metadata, *_within(info.annotation)]


def _within(annotation: Any) -> Iterator[Any]:
    yield annotation
    if get_origin(annotation) is Annotated:
        yield from annotation.__metadata__
        yield from _within(annotation.__origin__)
    elif get_origin(annotation) is not Literal:
        for argument in get_args(annotation):
            yield from _within(argument)


class _Field(NamedTuple):
    """What a field of a model may hold.

    Attributes:
        quantity: the quantity of its value; None if it has none.
        models: the models of the tables in it.
        named: whether these tables have names.
    """

    quantity: Quantity | None
    models: Sequence[type[BaseModel]]
    named: bool

    @classmethod
    def of(cls, info: FieldInfo) -> "_Field":
        """Read the annotation of a field."""
        of_field = parts(info)
        quantity = next((part for part in of_field if isinstance(part, Quantity)), None)
        models = [part for part in of_field if isclass(part) and issubclass(part, BaseModel)]
        return cls(quantity, models, any(get_origin(part) is Mapping for part in of_field))


@cache
def _fields(model: type[BaseModel]) -> list[tuple[str, str, _Field]]:
    """The fields of a model that hold quantities or tables: their names, keys and contents."""
    found = [(name, info.alias or name, _Field.of(info)) for name, info in model.model_fields.items()]
    return [each for each in found if each[2].quantity is not None or each[2].models]


def _below(field: _Field, value: object, at: Key) -> Iterator[Found]:
    if field.quantity is not None:
        yield Found(at, value, field.quantity)
        if isinstance(value, Mapping) and _TEMPERATURES in value:
            yield Found((*at, _TEMPERATURES), value[_TEMPERATURES], TEMPERATURE)
        return
    tables: list[tuple[Key, object]] = [(at, value)]
    if isinstance(value, list | tuple):
        tables = [((*at, index), table) for index, table in enumerate(value)]
    elif field.named and isinstance(value, Mapping):
        tables = [((*at, name), table) for name, table in value.items()]
    for key, table in tables:
        chosen = field.models[0] if len(field.models) == 1 else _by_type(field.models, table)
        if chosen is not None:
            yield from quantities(table, chosen, key)


def _by_type(models: Sequence[type[BaseModel]], table: object) -> type[BaseModel] | None:
    """The model that a table's key ``type`` chooses."""
    given = table.get("type") if isinstance(table, Mapping) else None
    chosen = (model for model in models if "type" in model.model_fields and model.model_fields["type"].default == given)
    return next(chosen, None)


def _single(key: Key, value: object) -> Iterator[tuple[Key, object]]:
    if isinstance(value, list | tuple):
        for index, entry in enumerate(value):
            yield from _single((*key, index), entry)
    elif isinstance(value, Mapping):
        for name in _ENTRIES:
            if name in value:
                yield from _single((*key, name), value[name])
    else:
        yield key, value
