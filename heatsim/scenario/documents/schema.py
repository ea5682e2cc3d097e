"""A JSON Schema of the scenario, made from the models, with which editors complete and check the keys of a TOML file.

It knows every key with its meaning, its unit and the kind of its value; numbers are checked against their range. Texts
such as "5 mm" or expressions are accepted as texts, and rules between keys are left to heatsim. So a file that heatsim
accepts fits the schema, but not the other way round.
"""

from collections.abc import Mapping, Sequence
from inspect import isclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from heatsim.scenario.documents.schema_values import (
    TABLE_IN_TEMPERATURE,
    TEXT,
    Schema,
    default_of,
    leaf,
    limited,
    table_of,
)
from heatsim.scenario.tables.boundaries import FACE_TYPES
from heatsim.scenario.tables.fields import Form, OneOf, OrName, OrTable
from heatsim.scenario.tables.library import PREFIX, library_names
from heatsim.scenario.tables.materials import Material, NamesMaterial
from heatsim.scenario.tables.named import Named
from heatsim.scenario.values.document_quantities import parts
from heatsim.scenario.values.quantities import Quantity
from heatsim.scenario.values.surfacefunction import AtSurface

DRAFT = "http://json-schema.org/draft-07/schema#"
DEFINITIONS = "definitions"
_LIBRARY = "MaterialOfTheLibrary"


class SchemaMaker:
    """Makes the schemas of models; tables that occur in several places are made once.

    Attributes:
        definitions: the schemas of tables by name.
    """

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}

    def table(self, model: type[BaseModel], optional: tuple[str, ...] = ()) -> Schema:
        """The schema of a table.

        Args:
            model: its model.
            optional: keys that may be left out although the model requires them.
        """
        properties, required = {}, []
        for name, info in model.model_fields.items():
            if name == "condition":
                continue
            key = info.alias or name
            properties[key] = self._field(info)
            given = info.is_required() and not {"default", "fewest"} & _extra(info).keys() and key not in optional
            if given or key == "type":
                required.append(key)
        schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        return schema | ({"required": required} if required else {})

    def _reference(self, model: type[BaseModel]) -> Schema:
        """A reference to the schema of a table."""
        if model.__name__ not in self.definitions:
            self.definitions[model.__name__] = {}  # it may contain itself
            self.definitions[model.__name__] = self._with_condition(model)
        return {"$ref": f"#/{DEFINITIONS}/{model.__name__}"}

    def _of_library(self) -> Schema:
        """A reference to the schema of a name of the library."""
        self.definitions[_LIBRARY] = {"enum": library_names()}
        return {"$ref": f"#/{DEFINITIONS}/{_LIBRARY}"}

    def _condition(self, models: Sequence[type[BaseModel]]) -> Schema:
        """A reference to the schema of a condition of one of several types."""
        name = f"Condition{len(models)}"
        if name not in self.definitions:
            self.definitions[name] = self._by_type(models)
        return {"$ref": f"#/{DEFINITIONS}/{name}"}

    def _with_condition(self, model: type[BaseModel]) -> Schema:
        """The schema of a table; if it has a condition, one for each type, with the keys of both."""
        own = self.table(model)
        if "condition" not in model.model_fields:
            return own
        found = parts(model.model_fields["condition"])
        return self._by_type([part for part in found if isclass(part) and issubclass(part, BaseModel)], own)

    def _by_type(self, models: Sequence[type[BaseModel]], own: Schema | None = None) -> Schema:
        """The schema of a table whose key `type` chooses one of several models, beside the keys of ``own``.

        An editor that has not seen the type yet completes the keys of all types. Each type then allows its own keys, so
        that a message names the wrong key.
        """
        own = own or {"properties": {}}
        tables = {str(model.model_fields["type"].default): self.table(model) for model in models}
        properties: dict[str, Schema] = dict(own["properties"])
        for table in tables.values():
            for key, schema in table["properties"].items():
                same = properties.setdefault(key, schema) == schema
                properties[key] = schema if same else {"description": schema["description"]}
        properties["type"] = {"enum": list(tables), "description": "Which condition it is"}
        cases = []
        for name, table in tables.items():
            # What the table itself says of a key need not be said again.
            keys = {key: schema if schema != properties.get(key) else {} for key, schema in table["properties"].items()}
            allowed = {key: {} for key in own["properties"]} | keys
            then = {"properties": allowed, "required": table["required"], "additionalProperties": False}
            cases.append({"if": {"properties": {"type": {"const": name}}, "required": ["type"]}, "then": then})
        required = [*own.get("required", ()), "type"]
        return {"type": "object", "properties": properties, "required": required, "allOf": cases}

    def _field(self, info: FieldInfo) -> Schema:
        """The schema of a key's value, with its description, unit and default."""
        of_field = parts(info)
        quantity = next((part for part in of_field if isinstance(part, Quantity)), None)
        form = next((part for part in of_field if isinstance(part, Form)), None)
        names = next((part.names for part in of_field if isinstance(part, OneOf)), None)
        kinds = self._kinds(info.annotation, quantity) if names is None else [{"enum": list(names)}]
        if any(isinstance(part, NamesMaterial) for part in of_field):
            kinds = [self._of_library(), TEXT | {"not": {"pattern": f"^{PREFIX}"}}]
        if any(isinstance(part, AtSurface) for part in of_field):
            kinds = [*kinds, TABLE_IN_TEMPERATURE]
        kinds = [*kinds, *(table_of(part.keys) for part in of_field if isinstance(part, OrTable))]
        kinds = kinds if form is None else [limited(kind, form.whole) for kind in kinds]
        if "fewest" in _extra(info):
            kinds = [kind | ({"minItems": _extra(info)["fewest"]} if "minItems" in kind else {}) for kind in kinds]
        schema: Schema = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
        about = [info.description or ""]
        if quantity is not None and quantity.unit:
            about.append(f"in {quantity.unit}")
        if form is not None:
            about.append(form.allowed)
        # Beside a reference, draft 7 ignores all other keys.
        described = {"allOf": [schema]} if "$ref" in schema else schema
        return {**described, "description": "; ".join(part for part in about if part), **default_of(info)}

    def _kinds(self, annotation: Any, quantity: Quantity | None) -> list[Schema]:
        """The schemas of everything that TOML may have for a type."""
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            names = [TEXT] if any(isinstance(part, OrName) for part in arguments[1:]) else []
            return [*names, *self._kinds(arguments[0], quantity)]
        if annotation is Material:
            return [self._reference(Material), self._of_library()]
        if origin in (Union, UnionType):
            if set(arguments) <= set(FACE_TYPES.values()):
                return [self._condition(arguments)]
            found = [kind for each in arguments for kind in self._kinds(each, quantity)]
            found = [kind for number, kind in enumerate(found) if kind not in found[:number]]
            return found
        if origin is Literal:
            return [{"enum": list(arguments)}]
        if origin is tuple:
            return self._tuple(arguments, quantity)
        if origin is Mapping or origin is Named:
            return [self._mapping(arguments[-1])]
        if annotation is NoneType:
            return []
        if isclass(annotation) and issubclass(annotation, BaseModel):
            # The name of an STL file alone is short for its table.
            short = [TEXT] if annotation.__name__ == "Stl" else []
            return [*short, self._reference(annotation)]
        return leaf(annotation, quantity)

    def _tuple(self, arguments: tuple[Any, ...], quantity: Quantity | None) -> list[Schema]:
        """The schemas of a list."""
        entry, *others = arguments
        kinds = self._kinds(entry, quantity)
        # Of a conductivity, a number stands for three; the range of lists is left to heatsim.
        items = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
        length = {} if others == [...] else {"minItems": len(arguments), "maxItems": len(arguments)}
        return [{"type": "array", "items": items, **length}]

    def _mapping(self, entry: Any) -> Schema:
        """The schema of a table of names."""
        kinds = self._kinds(entry, None)
        if any("$ref" in kind for kind in kinds) and Material not in (entry, *get_args(entry)):
            # TOML reads a dotted key without quotes as nested tables.
            kinds = [*kinds, {"type": "object"}]
        schema: Schema = {"type": "object", "additionalProperties": {"anyOf": kinds}}
        if Material in (entry, *get_args(entry)):
            # A table of a library's material replaces single values.
            changes = {key: value for key, value in self.table(Material).items() if key != "required"}
            schema["patternProperties"] = {f"^{PREFIX}": changes}
        return schema


def _extra(info: FieldInfo) -> dict[str, Any]:
    """What a field says to the schema beside its type: a default in words; the fewest entries of a list."""
    return dict(info.json_schema_extra) if isinstance(info.json_schema_extra, dict) else {}


def schema_of(
    model: type[BaseModel],
    title: str,
    optional: tuple[str, ...] = (),
    more: Mapping[str, type[BaseModel]] | None = None,
) -> Schema:
    """The JSON Schema (draft 7) of a TOML document.

    Args:
        model: of the document.
        title: of the schema.
        optional: keys of the document that may be left out although the model requires them.
        more: models of further tables of the document, by key.
    """
    maker = SchemaMaker()
    schema = maker.table(model, optional)
    for key, table in (more or {}).items():
        schema["properties"][key] = maker.table(table) | {"description": table.__doc__ or ""}
    return {"$schema": DRAFT, "title": title, **schema, DEFINITIONS: maker.definitions}
