"""Regions: parts of the domain of another material, and the contacts between materials."""

from collections.abc import Mapping
from math import dist
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    ValidationInfo,
    field_validator,
    model_validator,
)

from heatsim.scenario.context import Reading, reading
from heatsim.scenario.fields import STRICT, ContactResistance, Enlargement, Flag, Kelvin, Length, Point, Text, Vector
from heatsim.scenario.files import InputFile, existing
from heatsim.scenario.labels import SUFFIXES, load_labels
from heatsim.scenario.materials import (
    MaterialName,
    Named,
    check_material,
    read_material_name,
)
from heatsim.scenario.messages import fault, missing_key, refuse, show, validate_beside
from heatsim.scenario.quantities import SMALLEST

MAX_REGIONS = 255
SLAB = 1 << 24


class Box(BaseModel):
    """A box between two corners (x, y, z) in m."""

    model_config = STRICT

    min: Point = Field(examples=["min = [0.0, 0.0, 0.0]"])
    max: Point = Field(examples=["max = [0.01, 0.01, 0.01]"])

    @field_validator("max", mode="after")
    @classmethod
    def _check_order(cls, upper: Vector, info: ValidationInfo) -> Vector:
        lower = info.data.get("min")
        if lower is not None:
            faults = [
                fault(f"got {high!r}; it must be greater than min, which is {low!r} m along {axis}", (index,))
                for index, (axis, low, high) in enumerate(zip("xyz", lower, upper, strict=True))
                if low >= high
            ]
            if faults:
                refuse(faults)
        return upper


class Sphere(BaseModel):
    """A sphere; lengths in m."""

    model_config = STRICT

    centre: Point = Field(examples=["centre = [0.05, 0.05, 0.05]"])
    radius: Length = Field(examples=["radius = 0.01"])


class Cylinder(BaseModel):
    """A cylinder with flat ends around an axis from one point to another; lengths in m."""

    model_config = STRICT

    from_: Point = Field(alias="from", examples=["from = [0.05, 0.05, 0.0]"])
    to: Point = Field(examples=["to = [0.05, 0.05, 0.1]"])
    radius: Length = Field(examples=["radius = 0.01"])

    @field_validator("to", mode="after")
    @classmethod
    def _check_length(cls, to: Vector, info: ValidationInfo) -> Vector:
        start = info.data.get("from_")
        if start is not None and dist(start, to) < SMALLEST:
            raise ValueError(f"got {show(to)}, which is also where the axis starts; the two ends must differ")
        return to


def _read_surface(value: object, info: ValidationInfo) -> InputFile:
    return value if isinstance(value, InputFile) else InputFile(existing(value, reading(info).folder, (".stl",)))


class Stl(BaseModel):
    """The inside of a closed surface of triangles from an STL file: first scaled, then moved by ``translate`` (m)."""

    model_config = STRICT

    file: Annotated[InputFile, PlainValidator(_read_surface)] = Field(examples=['file = "part.stl"'])
    scale: Enlargement = 1.0
    translate: Point = (0.0, 0.0, 0.0)


def _read_label_file(value: object, info: ValidationInfo) -> InputFile:
    if isinstance(value, InputFile):
        return value
    path = existing(value, reading(info).folder, SUFFIXES, folders=True)
    try:
        found = load_labels(path)
        grid = reading(info).grid
        if grid is not None and found.shape != grid.shape:
            raise ValueError(f"has shape {found.shape}; domain.cells needs (nz, ny, nx) = {grid.shape}")
    except ValueError as error:
        raise ValueError(f"got {show(value)}, which {error}") from None
    return InputFile(path)


def _read_label_materials(value: object, info: ValidationInfo) -> Named[str]:
    if isinstance(value, Named):
        return value
    if not isinstance(value, Mapping) or not value:
        raise ValueError(
            f'got {show(value)}; a material for each label is wanted, as in {{ "1" = "bone", "2" = "void" }}'
        )
    faults, names = [], {}
    for label, name in value.items():
        number = _whole(label)
        if number is None or str(number) in names:
            faults.append(fault(f"got {show(label)}; labels are whole numbers in quotes, each of them once", (label,)))
            continue
        try:
            names[str(number)] = check_material(read_material_name(name), info, void=True)
        except ValueError as error:
            faults.append(fault(str(error), (label,)))
    if faults:
        refuse(faults)
    return Named.of(names)


def _whole(label: object) -> int | None:
    text = str(label)
    return int(text) if text.removeprefix("-").isdecimal() and text.isascii() and len(text) < 20 else None


class Labels(BaseModel):
    """Materials by a label image of the grid's own size; cells whose label ``materials`` leaves out keep theirs."""

    model_config = STRICT

    file: Annotated[InputFile, PlainValidator(_read_label_file)] = Field(examples=['file = "ct.npy"'])
    materials: Annotated[Named[str], PlainValidator(_read_label_materials)] = Field(
        examples=['materials = { "1" = "bone", "2" = "void" }']
    )

    @field_validator("materials", mode="after")
    @classmethod
    def _check_present(cls, materials: Named[str], info: ValidationInfo) -> Named[str]:
        file = info.data.get("file")
        if file is not None and isinstance(info.context, Reading):
            present = _labels_in(load_labels(file.path))
            absent = [label for label in materials if int(label) not in present]
            if absent:
                shown = ", ".join(map(str, sorted(present)[:12])) + (" …" if len(present) > 12 else "")
                refuse([fault(f"is not a label of the file, which holds {shown}", (label,)) for label in absent])
        return materials


def _labels_in(array: NDArray[Any]) -> set[int]:
    planes = max(1, SLAB // max(1, array[0].size))
    present: set[int] = set()
    for first in range(0, len(array), planes):
        present.update(np.unique(array[first : first + planes]).tolist())
    return present


def _read_stl_shape(value: object) -> object:
    """A bare file name stands for the whole table."""
    return {"file": value} if isinstance(value, str) else value


Shape = Box | Sphere | Cylinder | Stl
SHAPES = ("box", "sphere", "cylinder", "stl")
PLACES = (*SHAPES, "labels", "everywhere")


class Shaped(BaseModel):
    """What has a name and may be bounded by a shape, one of the keys of ``SHAPES``."""

    model_config = STRICT

    name: Text = Field(examples=['name = "die"'])
    box: Box | None = Field(default=None, examples=["box = { min = [0.0, 0.0, 0.0], max = [0.01, 0.01, 0.01] }"])
    sphere: Sphere | None = Field(default=None, examples=["sphere = { centre = [0.05, 0.05, 0.05], radius = 0.01 }"])
    cylinder: Cylinder | None = Field(
        default=None, examples=["cylinder = { from = [0.05, 0.05, 0.0], to = [0.05, 0.05, 0.1], radius = 0.01 }"]
    )
    stl: Annotated[Stl | None, BeforeValidator(_read_stl_shape)] = Field(default=None, examples=['stl = "part.stl"'])

    @property
    def shape(self) -> Shape | None:
        """The shape that is given."""
        return self.box or self.sphere or self.cylinder or self.stl


class Region(Shaped):
    """A part of the domain; regions are painted in order, and later ones win.

    A cell belongs to a shape when its centre lies in it, or on its surface. ``labels`` brings the materials with it.
    """

    material: MaterialName | None = Field(default=None, examples=['material = "silicon"'])
    labels: Labels | None = Field(
        default=None, examples=['labels = { file = "ct.npy", materials = { "1" = "bone", "2" = "void" } }']
    )
    everywhere: Flag | None = Field(default=None, examples=["everywhere = true"])
    initial_temperature: Kelvin | None = None

    @property
    def materials(self) -> tuple[str, ...]:
        """The names of the materials that it may paint, "void" among them."""
        if self.labels is not None:
            return tuple(dict.fromkeys(self.labels.materials.values()))
        return () if self.material is None else (self.material,)

    @field_validator("name", mode="after")
    @classmethod
    def _take_name(cls, name: str, info: ValidationInfo) -> str:
        return reading(info).take(name, "regions")

    @field_validator("everywhere", mode="after")
    @classmethod
    def _check_everywhere(cls, everywhere: bool | None) -> bool | None:
        if everywhere is False:
            raise ValueError("got false; write everywhere = true, or leave it out")
        return everywhere

    @model_validator(mode="wrap")
    @classmethod
    def _check_place(cls, table: Any, validate: ModelWrapValidatorHandler["Region"]) -> "Region":
        faults = []
        if isinstance(table, Mapping):
            places, allowed = [key for key in PLACES if key in table], ", ".join(PLACES)
            if not places:
                faults.append(fault(f"says nowhere what belongs to it; one of {allowed} is wanted"))
            if len(places) > 1:
                faults.append(fault(f"got {' and '.join(places)}; one of {allowed} is wanted"))
            if "material" not in table and "labels" not in table:
                message = missing_key('material = "silicon", or material = "void"')
                faults.append(fault(message, ("material",)))
            if "material" in table and "labels" in table:
                message = f"got {show(table['material'])}; labels bring their materials with them: leave it out"
                faults.append(fault(message, ("material",)))
        return validate_beside(faults, validate, table)


def _check_count(regions: tuple[Region, ...]) -> tuple[Region, ...]:
    if len(regions) > MAX_REGIONS:
        raise ValueError(f"got {len(regions)} regions; at most {MAX_REGIONS} are allowed")
    return regions


Regions = Annotated[tuple[Region, ...], AfterValidator(_check_count)]


def _read_between(value: object, info: ValidationInfo) -> tuple[str, str]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f'got {show(value)}; the names of two materials are wanted, as in ["copper", "silicon"]')
    faults = []
    for index, name in enumerate(value):
        try:
            check_material(read_material_name(name), info, void=False)
        except ValueError as error:
            faults.append(fault(str(error), (index,)))
    if faults:
        refuse(faults)
    one, other = value
    if one == other:
        raise ValueError(f"got {show(value)}; two different materials are wanted")
    pairs = reading(info).contacts
    if frozenset(value) in pairs:
        raise ValueError(f"got {show(value)}; there is a contact between these two already")
    pairs.add(frozenset(value))
    return (one, other)


class Contact(BaseModel):
    """A resistance in m² K/W wherever two materials touch."""

    model_config = STRICT

    between: Annotated[tuple[str, str], PlainValidator(_read_between)] = Field(
        examples=['between = ["copper", "silicon"]']
    )
    resistance: ContactResistance = Field(examples=["resistance = 1e-5"])
