"""Conversion of pydantic's locations of errors to keys of the file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from heatsim.scenario.messages import split_key
from heatsim.scenario.tables.boundaries import FACE_TYPES, Periodic
from heatsim.scenario.tables.patches import OWN_KEYS as OF_PATCHES
from heatsim.scenario.tables.surfaces import OWN_KEYS as OF_SURFACES

# The keys that stand beside those of a condition, by the table.
OWN_KEYS = {"patches": OF_PATCHES, "surfaces": OF_SURFACES}


@dataclass(frozen=True)
class Location:
    """A location in the file.

    Attributes:
        key: its path in the file.
        table: the model of the table that holds it.
        keys: the keys allowed in that table.
        example: an example of it in TOML.
        types: the condition types allowed there; empty for other keys.
    """

    key: tuple[str | int, ...]
    table: type[BaseModel]
    keys: tuple[str, ...]
    example: str
    types: tuple[str, ...]


def keys_of(model: type[BaseModel]) -> tuple[str, ...]:
    """The keys of a model's table, as written in the file."""
    return tuple(info.alias or name for name, info in model.model_fields.items() if name != "condition")


def tables_of(root: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """The names and models of the tables directly below a model."""
    annotations = {name: bare(info.annotation) for name, info in root.model_fields.items()}
    return {name: annotation for name, annotation in annotations.items() if _is_model(annotation)}


def find(location: Sequence[str | int], root: type[BaseModel]) -> Location:
    """The location in the file for one of pydantic's locations below the model ``root``.

    Pydantic's location has parts that the file does not have: a condition's type after the condition, ``condition``
    before a patch's condition keys, and ``[key]`` after a wrong name.
    """
    key: list[str | int] = []
    table, keys, example = root, keys_of(root), ""
    annotation: Any = root
    for part in (part for part in location if part != "[key]"):
        if _is_model(annotation):
            table = annotation
            beside = OWN_KEYS.get(str(key[0]), ()) if table in FACE_TYPES.values() and key else ()
            keys = (*beside, *keys_of(annotation))
            fields = {info.alias or name: info for name, info in annotation.model_fields.items()}
            info = fields.get(str(part))
            annotation = None if info is None else bare(info.annotation)
            example = str((info.examples or [part])[0]) if info is not None else str(part)
            if part != "condition":
                key.append(part)
        elif _is_condition(annotation) and part in FACE_TYPES:
            annotation = FACE_TYPES[str(part)]
        else:
            annotation = bare(entry_type(annotation))
            key.append(part)
    types = tuple(FACE_TYPES) if _is_condition(annotation) else ()
    if types and Periodic not in get_args(annotation):
        types = tuple(name for name in types if FACE_TYPES[name] is not Periodic)
    return Location(tuple(key), table, keys, example, types)


def order(key: str, root: type[BaseModel]) -> tuple[int, ...]:
    """The sort key of a key: fields in the order of the models, unknown keys last, entries of lists by number."""
    places: list[int] = []
    annotation: Any = root
    for part in split_key(key):
        if _is_model(annotation):
            fields = {info.alias or name: info for name, info in annotation.model_fields.items()}
            places.append([*fields, part].index(part))
            annotation = bare(fields[part].annotation) if part in fields else None
        elif get_origin(annotation) is tuple and part.isdecimal():
            places.append(int(part))
            annotation = bare(entry_type(annotation))
        else:
            break
    return tuple(places)


def bare(annotation: Any) -> Any:
    """A type without annotations and without None; for a union, its only model."""
    if get_origin(annotation) is Annotated:
        return bare(get_args(annotation)[0])
    if without_none(annotation) is not annotation:
        return bare(without_none(annotation))
    models = [each for each in get_args(annotation) if _is_model(each)] if _is_union(annotation) else []
    return models[0] if len(models) == 1 else annotation


def without_none(annotation: Any) -> Any:
    """X for the type ``X | None``; any other type unchanged."""
    annotations = [each for each in get_args(annotation) if each is not NoneType] if _is_union(annotation) else []
    return annotations[0] if len(annotations) == 1 else annotation


def entry_type(annotation: Any) -> Any:
    """The type of the entries of ``tuple[X, ...]`` or ``Mapping[str, X]``; None for other types."""
    arguments = get_args(annotation)
    if get_origin(annotation) is tuple and arguments[1:] == (...,):
        return arguments[0]
    return arguments[1] if get_origin(annotation) is Mapping else None


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, UnionType)


def _is_condition(annotation: Any) -> bool:
    return _is_union(annotation) and set(get_args(annotation)) <= set(FACE_TYPES.values())
