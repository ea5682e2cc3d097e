"""The reference of all keys: ``python -m heatsim.scenario.documents.reference`` writes it to the README.

Each key has a row with its description, unit, default and allowed values. They come from the field: its description,
its default, and the quantity or form in its annotation.
"""

import re
from collections.abc import Mapping, Sequence
from inspect import isclass
from pathlib import Path
from typing import Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from heatsim.scenario.messages import show
from heatsim.scenario.tables.boundaries import FACE_TYPES, Boundaries
from heatsim.scenario.tables.changes import Change
from heatsim.scenario.tables.channels import Channel
from heatsim.scenario.tables.contacts import Contact, Gap
from heatsim.scenario.tables.couplings import Bridge, Coupling, Wall
from heatsim.scenario.tables.domain import AxisCells, Domain, Interval
from heatsim.scenario.tables.fields import Form
from heatsim.scenario.tables.labels import Labels
from heatsim.scenario.tables.layers import Layer, Plane
from heatsim.scenario.tables.materials import Material
from heatsim.scenario.tables.model import Initial, Scenario
from heatsim.scenario.tables.named import Named
from heatsim.scenario.tables.nodes import Node, NodeFlow, NodeLink
from heatsim.scenario.tables.output import Output
from heatsim.scenario.tables.patches import Patch, Rectangle
from heatsim.scenario.tables.probes import DewPoint, Line, Probe
from heatsim.scenario.tables.regions import Box, Cylinder, Region, Sphere, Stl
from heatsim.scenario.tables.repeat import Repeat
from heatsim.scenario.tables.solver import Solver
from heatsim.scenario.tables.sources import Beam, Source
from heatsim.scenario.tables.surfaces import RegionSurface
from heatsim.scenario.tables.time import Time
from heatsim.scenario.values.document_quantities import parts
from heatsim.scenario.values.quantities import COEFFICIENT, EMISSIVITY, FLUX, LARGEST, TEMPERATURE, Quantity
from heatsim.scenario.values.surfacefunction import AtSurface
from heatsim.scenario.values.timefunction import Constant, TimeFunction

PAGE = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- keys: made from the models, do not edit -->\n", "<!-- end of keys -->\n"
CONDITIONS = "conditions"
# Values of conditions may be expressions in x, y, z and t.
IN_SPACE = (TEMPERATURE, FLUX, COEFFICIENT, EMISSIVITY)
SECTIONS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("Top level", Scenario),
    ("[domain]", Domain),
    ("[domain.x], [domain.y], [domain.z]", AxisCells),
    ("intervals", Interval),
    ("[material], [materials.NAME]", Material),
    ("[[regions]]", Region),
    ("box", Box),
    ("sphere", Sphere),
    ("cylinder", Cylinder),
    ("stl", Stl),
    ("labels", Labels),
    ("repeat", Repeat),
    ("[[contacts]]", Contact),
    ("gap", Gap),
    ("[[layers]]", Layer),
    ("plane", Plane),
    ("[initial]", Initial),
    ("[boundaries]", Boundaries),
    ("[[patches]]", Patch),
    ("rectangle", Rectangle),
    ("[[surfaces]]", RegionSurface),
    ("[[nodes]]", Node),
    ("[[channels]]", Channel),
    ("links", NodeLink),
    ("flows", NodeFlow),
    ("[[sources]]", Source),
    ("beam", Beam),
    ("[changes]", Change),
    ("[time]", Time),
    ("[solver]", Solver),
    ("[output]", Output),
    ("[[probes]]", Probe),
    ("line", Line),
    ("threshold", DewPoint),
    ("[[couplings]]", Coupling),
    ("walls", Wall),
    ("bridges", Bridge),
)
_HEAD = "| key | meaning | unit | default | allowed |\n|---|---|---|---|---|\n"
_POWERS = str.maketrans("23", "²³")


def keys() -> str:
    """The reference of all keys of a scenario, as Markdown."""
    return sections(SECTIONS) + "\n" + _conditions()


def sections(of: Sequence[tuple[str, type[BaseModel]]]) -> str:
    """A heading and a table of keys for each model, as Markdown."""
    headings = {model: heading for heading, model in of}
    return "\n".join(f"### {heading}\n\n{_HEAD}{_rows(model, headings)}" for heading, model in of)


def insert(page: str, text: str) -> str:
    """The page with the text between its two marks replaced."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + "\n" + text + "\n" + END + rest.split(END)[1]


def _rows(model: type[BaseModel], headings: Mapping[type[BaseModel], str]) -> str:
    return "".join(f"| {' | '.join(_row(name, info, headings))} |\n" for name, info in model.model_fields.items())


def _row(name: str, info: FieldInfo, headings: Mapping[type[BaseModel], str]) -> tuple[str, ...]:
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    quantity = next((part for part in parts(info) if isinstance(part, Quantity)), None)
    unit = "" if quantity is None else re.sub(r"\^(\d)", lambda power: power[1].translate(_POWERS), quantity.unit)
    default = str(extra["default"]) if "default" in extra else _default(info)
    return (
        f"`{extra.get('key', info.alias or name)}`",
        info.description or "",
        unit,
        default,
        _allowed(info, headings),
    )


def _conditions() -> str:
    text = f"### {CONDITIONS.capitalize()}\n\n| type {_HEAD.replace('---|', '---|---|', 1)}"
    for condition, model in FACE_TYPES.items():
        text += f"| `{condition}` | | {model.model_fields['type'].description} | | | |\n"
        for name, info in model.model_fields.items():
            if name != "type":
                text += f"| | {' | '.join(_row(name, info, {}))} |\n"
    return text


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    default = info.get_default(call_default_factory=True, validated_data={})
    if default is None or default == () or default == Named(()):
        return "none"
    return f"`{show(default.value if isinstance(default, Constant) else default)}`"


def _allowed(info: FieldInfo, headings: Mapping[type[BaseModel], str]) -> str:
    of_field = parts(info)
    models = [part for part in of_field if isclass(part) and issubclass(part, BaseModel)]
    form = next((part.allowed for part in of_field if isinstance(part, Form)), None)
    quantity = next((part for part in of_field if isinstance(part, Quantity)), None)
    choices = next((get_args(part) for part in of_field if get_origin(part) is Literal), ())
    if form is not None:
        return form
    if len(models) == 1 and models[0] in headings:
        heading = headings[models[0]]
        return f"[`{heading}`](#{_anchor(heading)})"
    if models:
        assert set(models) <= set(FACE_TYPES.values()), f"SECTIONS has no heading for {models}"
        return f"[a condition](#{CONDITIONS})"
    if choices:
        return ", ".join(f"`{name}`" for name in choices)
    assert quantity is not None, "a field has a form, a model, choices or a quantity"
    changes = {True: "; may change in time and space", False: "; may change in time"}[quantity in IN_SPACE]
    at_surface = any(isinstance(part, AtSurface) for part in of_field)
    changes += ", or with the surface's temperature" if at_surface else ""
    return _range(quantity) + (changes if TimeFunction in of_field else "")


def _range(quantity: Quantity) -> str:
    lowest = f"> {quantity.above:g}" if quantity.above is not None else ""
    if quantity.at_least is not None:
        lowest = f"≥ {quantity.at_least:g}"
    highest = f"≤ {quantity.at_most:g}" if quantity.at_most < LARGEST else ""
    return ", ".join(part for part in (lowest, highest) if part) or "any number"


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


if __name__ == "__main__":
    PAGE.write_text(insert(PAGE.read_text(encoding="utf-8"), keys()), encoding="utf-8")
