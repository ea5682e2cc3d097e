"""The JSON Schemas of single values: numbers, texts, and the tables that TOML may have in their place."""

from collections.abc import Sequence
from inspect import isclass
from typing import Any

from pydantic.fields import FieldInfo

from heatsim.scenario.files import InputFile
from heatsim.scenario.tables.initial import ArrayFile, ImageFile
from heatsim.scenario.tables.labels import LabelFile
from heatsim.scenario.tables.measured import MeasuredValues
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.materialfunction import MaterialFunction
from heatsim.scenario.values.quantities import LARGEST, Quantity
from heatsim.scenario.values.timefunction import Constant, TimeFunction

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
_NUMBERS: Schema = {"type": "array", "items": {"type": ["number", "string"]}, "minItems": 2}
_TABLE_IN_TIME: Schema = {
    "type": "object",
    "description": "Values over time, linear in between",
    "properties": {"times": _NUMBERS, "values": _NUMBERS, "repeat": {"type": "boolean"}},
    "required": ["times", "values"],
    "additionalProperties": False,
}
_CSV_IN_TIME: Schema = {
    "type": "object",
    "description": "Two columns of a CSV file",
    "properties": {
        **dict.fromkeys(("file", "time", "time_unit", "column", "unit", "delimiter", "decimal"), TEXT),
        "repeat": {"type": "boolean"},
    },
    "required": ["file", "time", "column"],
    "additionalProperties": False,
}
TABLE_IN_TEMPERATURE: Schema = {
    "type": "object",
    "description": "Values over temperature, linear in between",
    "properties": {
        "temperatures": _NUMBERS,
        # Three numbers along x, y and z for each temperature are a conductivity.
        "values": {"type": "array", "items": {"type": ["number", "string", "array"]}, "minItems": 2},
    },
    "required": ["temperatures", "values"],
    "additionalProperties": False,
}
_ARRAY_FILE: Schema = {
    "type": "object",
    "properties": {"file": TEXT, "time": {"type": ["number", "string"]}},
    "required": ["file"],
    "additionalProperties": False,
}
_IMAGE_FILE: Schema = {
    "type": "object",
    "properties": {"image": TEXT, "range": _NUMBERS},
    "required": ["image", "range"],
    "additionalProperties": False,
}
_MEASURED, _MEASURED_IN_FILE = (
    {**table, "properties": {key: kind for key, kind in table["properties"].items() if key != "repeat"}}
    for table in (_TABLE_IN_TIME, _CSV_IN_TIME)
)
# What TOML may have in the place of a value of these types, beside numbers.
_READ_FROM: dict[Any, tuple[Schema, ...]] = {
    TimeFunction: (TEXT, _TABLE_IN_TIME, _CSV_IN_TIME),
    MaterialFunction: (TEXT, TABLE_IN_TEMPERATURE),
    Expression: (TEXT,),
    ArrayFile: (_ARRAY_FILE,),
    ImageFile: (_IMAGE_FILE,),
    MeasuredValues: (_MEASURED, _MEASURED_IN_FILE),
}


def leaf(annotation: Any, quantity: Quantity | None) -> list[Schema]:
    """The schemas of a type that is no table and no list."""
    if annotation in _READ_FROM:
        with_numbers = annotation in (TimeFunction, MaterialFunction)
        return [*(_number(quantity) if with_numbers else ()), *_READ_FROM[annotation]]
    if annotation is bool:
        return [{"type": "boolean"}]
    if annotation is int:
        return [{"type": "integer"}]
    if annotation is float:
        return [*_number(quantity), *([TEXT] if quantity is not None and quantity.unit else [])]
    if annotation is str or (isclass(annotation) and issubclass(annotation, InputFile | LabelFile)):
        return [TEXT]
    return [{}]


def table_of(keys: Sequence[str]) -> Schema:
    """The schema of a table with some keys, of which the first is required."""
    values = {key: {"type": ["number", "string"]} for key in keys}
    return {"type": "object", "properties": values, "required": [keys[0]], "additionalProperties": False}


def limited(kind: Schema, limits: tuple[int | None, int | None]) -> Schema:
    """The schema of whole numbers, or of a list of them, with their limits; other schemas as they are."""
    if kind.get("type") == "array":
        return kind | {"items": limited(kind["items"], limits)}
    ends = zip(("minimum", "maximum"), limits, strict=True) if kind.get("type") == "integer" else ()
    return kind | {name: end for name, end in ends if end is not None}


def _number(quantity: Quantity | None) -> list[Schema]:
    """The schema of a plain number, with the range of its quantity."""
    schema: Schema = {"type": "number"}
    if quantity is not None:
        if quantity.above is not None:
            schema["exclusiveMinimum"] = quantity.above
        if quantity.at_least is not None:
            schema["minimum"] = quantity.at_least
        if quantity.at_most < LARGEST:
            schema["maximum"] = quantity.at_most
    return [schema]


def default_of(info: FieldInfo) -> Schema:
    """The default of a key, if it is a number, a text or a truth value."""
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    if info.is_required() or "default" in extra:
        return {}
    default = info.get_default(call_default_factory=True, validated_data={})
    default = default.value if isinstance(default, Constant) else default
    return {"default": default} if isinstance(default, bool | int | float | str) else {}
