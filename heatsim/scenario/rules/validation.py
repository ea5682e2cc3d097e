"""Reading a table of a TOML document: its model validates it, then named checks compare its tables.

Mistakes of both kinds are reported together. Checks therefore also run on a model with mistakes: values that could not
be read are None there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, PlainValidator, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from heatsim.errors import Mistake
from heatsim.scenario.messages import did_you_mean, missing_key, show, show_key, unknown_key
from heatsim.scenario.rules.locations import Location, bare, entry_type, find, keys_of, order, tables_of, without_none

Model = TypeVar("Model", bound=BaseModel)
Table = TypeVar("Table", bound=BaseModel)

FACE_EXAMPLE = '{ type = "temperature", value = 300.0 }'


def read_model(
    model: type[Model],
    table: object,
    checks: Sequence[Callable[[Model], list[Mistake]]],
    folder: Path,
    complete: Callable[[object], object] = lambda table: table,
) -> tuple[Model | None, list[Mistake]]:
    """Read a table.

    Args:
        model: the table's model.
        table: the table as TOML has it.
        checks: the rules between its tables; each returns all of its mistakes.
        folder: where relative paths start.
        complete: what the model does to the whole table before it reads the fields.

    Returns:
        The model, or None if there are mistakes; and all mistakes in the order of the model's fields.
    """
    mistakes: list[Mistake] = []
    read: Model | None
    try:
        read = model.model_validate(table, context=folder)
    except ValidationError as error:
        mistakes = [_mistake(details, model) for details in error.errors()]
        read = _valid_fields(model, complete(table), folder, [details["loc"] for details in error.errors()])
    if read is not None:
        wrong = {mistake.key for mistake in mistakes}
        mistakes += [mistake for check in checks for mistake in check(read) if mistake.key not in wrong]
    mistakes.sort(key=lambda mistake: order(mistake.key, model))
    return (None if mistakes else read), mistakes


def known(*values: object) -> bool:
    """Whether all values could be read."""
    return all(value is not None for value in values)


def entries(tables: Sequence[Table]) -> list[tuple[int, Table]]:
    """The entries of a list of tables that could be read, with their numbers."""
    return [(index, table) for index, table in enumerate(tables) if known(table)] if known(tables) else []


def _valid_part(annotation: Any, value: Any, folder: Path, errors: Sequence[tuple[str | int, ...]]) -> Any:
    """The valid part of a value; None stands for the rest.

    Args:
        annotation: the type of the value; a table keeps its valid fields, a list its valid entries.
        value: the value as TOML has it.
        folder: where relative paths start.
        errors: the locations within the value at which its validation found errors.
    """
    if not errors:
        try:
            return _adapter(annotation).validate_python(value, context=folder)
        except ValidationError:
            return None
    annotation = without_none(annotation)
    if get_origin(annotation) is Annotated:
        annotation, *validators = get_args(annotation)
        if any(isinstance(validator, PlainValidator) for validator in validators):
            return None
        for validator in validators:
            if isinstance(validator, BeforeValidator):
                value = _call(validator, value)
    annotation = bare(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _valid_fields(annotation, value, folder, errors)
    if get_origin(annotation) is Mapping and isinstance(value, Mapping):
        entry = entry_type(annotation)
        return {name: _valid_part(entry, each, folder, _below(errors, name)) for name, each in value.items()}
    if get_origin(annotation) is tuple and entry_type(annotation) is not None and isinstance(value, list | tuple):
        entry = entry_type(annotation)
        return tuple(_valid_part(entry, each, folder, _below(errors, index)) for index, each in enumerate(value))
    return None


def _valid_fields(
    model: type[Model], table: object, folder: Path, errors: Sequence[tuple[str | int, ...]]
) -> Model | None:
    if not isinstance(table, Mapping):
        return None
    types = _types(model)
    values, given = {}, set()
    for name, info in model.model_fields.items():
        key = info.alias or name
        if key in table:
            given.add(name)
            below = _below(errors, key)
            values[key] = None if () in below else _valid_part(types[name], table[key], folder, below)
        else:
            values[key] = None if info.is_required() else info.get_default(call_default_factory=True)
    return model.model_construct(_fields_set=given, **values)


def _below(errors: Sequence[tuple[str | int, ...]], part: str | int) -> list[tuple[str | int, ...]]:
    return [error[1:] for error in errors if error[:1] == (part,)]


def _call(validator: BeforeValidator, value: object) -> object:
    function: Callable[[object], object] = validator.func  # type: ignore[assignment]
    try:
        return function(value)
    except ValueError:
        return None


@cache
def _adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation)


@cache
def _types(model: type[BaseModel]) -> dict[str, Any]:
    return get_type_hints(model, include_extras=True)


def _mistake(details: ErrorDetails, root: type[BaseModel]) -> Mistake:
    """One of pydantic's errors in the user's terms."""
    where = find(details["loc"], root)
    at, value = where.key, details["input"]
    match details["type"]:
        case "missing":
            message = missing_key(where.example)
        case "extra_forbidden":
            message = _unknown(where, value, root)
        case "union_tag_not_found":
            at = (*at, "type")
            message = f"{missing_key(FACE_EXAMPLE)}; the types are {_names(where.types)}"
        case "union_tag_invalid":
            at, given = (*at, "type"), value["type"]
            message = f"got {show(given)}; one of {_names(where.types)} is expected{did_you_mean(given, where.types)}"
        case "model_type" | "model_attributes_type" | "tuple_type" | "mapping_type" | "dict_type":
            message = f"got {show(value)}; {_expected_table(where, root)}"
        case "value_error":
            message = str(details["ctx"]["error"])
        case _:
            message = details["msg"]
    return Mistake(show_key(at), message)


def _unknown(where: Location, value: object, root: type[BaseModel]) -> str:
    if where.key == ("study",):
        return "this file describes a parameter study; run it with `heatsim study`, or remove this table"
    key = str(where.key[-1])
    message = unknown_key(key, value, where.keys)
    homes = [
        f'"{table}.{key}"'
        for table, model in tables_of(root).items()
        if model is not where.table and key in keys_of(model)
    ]
    return f"{message}; there is {' and '.join(homes)}" if homes else message


def _expected_table(where: Location, root: type[BaseModel]) -> str:
    if where.types:
        return f"write for example {FACE_EXAMPLE}"
    if len(where.key) == 1 and where.key[0] in tables_of(root):
        return f"write a table, with the heading [{where.key[0]}] and its keys below it"
    listed = isinstance(where.key[-1], int)
    return f"write for example {where.example}" if len(where.key) > 2 and not listed else f"write {where.example}"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
