"""Where in a scenario file something stands that pydantic names by a location."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from heatsim.scenario.boundaries import FACE_TYPES, Periodic
from heatsim.scenario.model import Scenario
from heatsim.scenario.patches import OWN_KEYS, Patch


@dataclass(frozen=True)
class Location:
    """A place in the file.

    Attributes:
        key: its path in the file.
        table: the model of the table that holds it.
        keys: the keys that this table may have.
        example: how it may be written.
        types: the types that a condition may have there; none where no condition stands.
    """

    key: tuple[str | int, ...]
    table: type[BaseModel]
    keys: tuple[str, ...]
    example: str
    types: tuple[str, ...]


def keys_of(model: type[BaseModel]) -> tuple[str, ...]:
    """The keys of a model's table as they stand in the file."""
    return tuple(info.alias or name for name, info in model.model_fields.items() if name != "condition")


def find(location: Sequence[str | int]) -> Location:
    """The place of one of pydantic's locations.

    These name more than the file: the type of a condition after the condition, ``condition`` for the keys of a patch
    that belong to its condition, and ``[key]`` after a name that is wrong.
    """
    key: list[str | int] = []
    table: type[BaseModel] = Scenario
    keys, example = keys_of(Scenario), ""
    kind: Any = Scenario
    for part in (part for part in location if part != "[key]"):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            table = kind
            within = keys_of(Patch)[: len(OWN_KEYS)] if table in FACE_TYPES.values() and key[:1] == ["patches"] else ()
            keys = (*within, *keys_of(kind))
            fields = {info.alias or name: info for name, info in kind.model_fields.items()}
            info = fields.get(str(part))
            kind = None if info is None else _bare(info.annotation)
            example = str((info.examples or [part])[0]) if info is not None else str(part)
            if part != "condition":
                key.append(part)
        elif _is_condition(kind) and part in FACE_TYPES:
            kind = FACE_TYPES[str(part)]
        else:
            kind = _item(kind)
            key.append(part)
    types = tuple(FACE_TYPES) if _is_condition(kind) else ()
    if types and Periodic not in get_args(kind):
        types = tuple(name for name in types if FACE_TYPES[name] is not Periodic)
    return Location(tuple(key), table, keys, example, types)


def _bare(annotation: Any) -> Any:
    """A type without what is said about it, and without None."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
        if len(kinds) == 1:
            return _bare(kinds[0])
    return annotation


def _is_condition(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType) and set(get_args(kind)) <= set(FACE_TYPES.values())


def _item(kind: Any) -> Any:
    """The type of the entries of a list or of a table with free names."""
    arguments = get_args(kind)
    if get_origin(kind) is tuple and arguments[1:] == (...,):
        return _bare(arguments[0])
    return _bare(arguments[1]) if get_origin(kind) is Mapping else None


TABLES: dict[str, type[BaseModel]] = {
    name: kind
    for name, info in Scenario.model_fields.items()
    if isinstance(kind := _bare(info.annotation), type) and issubclass(kind, BaseModel)
}
