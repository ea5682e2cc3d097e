"""Regions: parts of the domain with other materials, and the shapes that bound them."""

from collections.abc import Mapping
from math import dist
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from heatsim.grid import AXES
from heatsim.scenario.context import folder_of
from heatsim.scenario.files import InputFile, input_file
from heatsim.scenario.messages import fault, missing_key, refuse, show, validate_beside
from heatsim.scenario.tables.fields import STRICT, Enlargement, Flag, Form, Kelvin, Length, Point, Text, Vector
from heatsim.scenario.tables.labels import Labels
from heatsim.scenario.tables.materials import VOID, MaterialName
from heatsim.scenario.tables.repeat import Repeat
from heatsim.scenario.values.quantities import SMALLEST

MAX_REGIONS = 255
# How far the sections of turned shapes reach along y, in m: an axial domain reaches from -0.5 to 0.5.
_BEYOND = 1.0


class Box(BaseModel):
    """A box between two corners (x, y, z) in m."""

    model_config = STRICT

    min: Point = Field(examples=["min = [0.0, 0.0, 0.0]"], description="Corner with the smallest coordinates")
    max: Point = Field(
        examples=["max = [0.01, 0.01, 0.01]"], description="Opposite corner, greater than `min` along each axis"
    )

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

    centre: Point = Field(examples=["centre = [0.05, 0.05, 0.05]"], description="Centre")
    radius: Length = Field(examples=["radius = 0.01"], description="Radius")


class Cylinder(BaseModel):
    """A cylinder with flat ends around an axis from one point to another; lengths in m."""

    model_config = STRICT

    from_: Point = Field(alias="from", examples=["from = [0.05, 0.05, 0.0]"], description="One end of the axis")
    to: Point = Field(examples=["to = [0.05, 0.05, 0.1]"], description="Other end of the axis")
    radius: Length = Field(examples=["radius = 0.01"], description="Radius")

    @field_validator("to", mode="after")
    @classmethod
    def _check_length(cls, to: Vector, info: ValidationInfo) -> Vector:
        start = info.data.get("from_")
        if start is not None and dist(start, to) < SMALLEST:
            raise ValueError(f"got {show(to)}, which is also the start of the axis; the two ends must differ")
        return to


def _read_stl_file(value: object, info: ValidationInfo) -> InputFile:
    return value if isinstance(value, InputFile) else input_file(value, folder_of(info), (".stl",))


class Stl(BaseModel):
    """The inside of a closed surface of triangles from an STL file, first scaled, then moved by ``translate`` (m)."""

    model_config = STRICT

    file: Annotated[InputFile, PlainValidator(_read_stl_file), Form("path of an `.stl` file")] = Field(
        examples=['file = "part.stl"'],
        description="File with closed surfaces of triangles, as text or binary",
    )
    scale: Enlargement = Field(default=1.0, description="Factor for the coordinates of the file")
    translate: Point = Field(default=(0.0, 0.0, 0.0), description="Shift after scaling")


def _read_stl_shape(value: object) -> object:
    """A table; a file name alone is short for it."""
    return {"file": value} if isinstance(value, str) else value


Shape = Box | Sphere | Cylinder | Stl
SHAPES = ("box", "sphere", "cylinder", "stl")
PLACES = (*SHAPES, "labels", "everywhere")


class Shaped(BaseModel):
    """A table with a name and, optionally, one shape: one of the keys in ``SHAPES``."""

    model_config = STRICT

    name: Text = Field(examples=['name = "die"'], description="Name")
    box: Box | None = Field(
        default=None, examples=["box = { min = [0.0, 0.0, 0.0], max = [0.01, 0.01, 0.01] }"], description="Box"
    )
    sphere: Sphere | None = Field(
        default=None, examples=["sphere = { centre = [0.05, 0.05, 0.05], radius = 0.01 }"], description="Sphere"
    )
    cylinder: Cylinder | None = Field(
        default=None,
        examples=["cylinder = { from = [0.05, 0.05, 0.0], to = [0.05, 0.05, 0.1], radius = 0.01 }"],
        description="Cylinder",
    )
    stl: Annotated[Stl | None, BeforeValidator(_read_stl_shape)] = Field(
        default=None,
        examples=['stl = "part.stl"'],
        description="Inside of an STL surface; a file name alone is short for `{ file = … }`",
    )

    repeat: Repeat | None = Field(
        default=None,
        examples=["repeat = { count = [10, 4, 1], step = [1e-3, 1e-3, 0.0] }"],
        description="Equal copies at equal distances, named `name[0]`, `name[1]`, … along x, then y, then z",
    )

    _turned: Box | Cylinder | None = PrivateAttr(default=None)

    @property
    def given_shape(self) -> Shape | None:
        """The shape as the scenario writes it, or None."""
        return self.box or self.sphere or self.cylinder or self.stl

    @property
    def shape(self) -> Shape | None:
        """The shape in the cells of the domain, or None: in an axial domain its section, see :meth:`turn`."""
        return self._turned or self.given_shape

    def turn(self) -> None:
        """Take the section of the shape through the axis of an axial domain, which reaches over all of y.

        A sphere around a point of the axis gets a cylinder along y, a cylinder along the axis gets a box. What a box
        has for y does not matter.
        """
        match self.given_shape:
            case Box(min=(inner, _, low), max=(outer, _, high)):
                self._turned = Box.model_construct(min=(inner, -_BEYOND, low), max=(outer, _BEYOND, high))
            case Sphere(centre=(_, _, z), radius=radius):
                self._turned = Cylinder.model_construct(from_=(0.0, -_BEYOND, z), to=(0.0, _BEYOND, z), radius=radius)
            case Cylinder(from_=(_, _, one), to=(_, _, other), radius=radius):
                low, high = sorted((one, other))
                self._turned = Box.model_construct(min=(-radius, -_BEYOND, low), max=(radius, _BEYOND, high))


def _read_axes(value: object) -> tuple[str, str, str]:
    if not isinstance(value, list | tuple) or len(value) != 3 or sorted(map(str, value)) != list(AXES):
        raise ValueError(f'got {show(value)}; "x", "y" and "z" are expected in any order, as in ["y", "x", "z"]')
    x, y, z = value
    return (x, y, z)


class Region(Shaped):
    """A part of the domain with a material; regions are painted in order, so later ones win.

    A cell belongs to a shape if its centre lies in it or on its surface. ``labels`` has names of materials itself.
    """

    material: MaterialName | None = Field(
        default=None, examples=['material = "silicon"'], description="Material of the region; not with `labels`"
    )
    labels: Labels | None = Field(
        default=None,
        examples=['labels = { file = "ct.npy", materials = { "1" = "bone", "2" = "void" } }'],
        description="Materials from a label image",
    )
    everywhere: Flag | None = Field(
        default=None, examples=["everywhere = true"], description="`true` for the whole domain"
    )
    axes: Annotated[tuple[str, str, str], PlainValidator(_read_axes), Form('`["y", "x", "z"]` for example')] | None = (
        Field(
            default=None,
            examples=['axes = ["y", "x", "z"]'],
            description="Axes of the domain along which x, y and z of the material lie; by default the same",
        )
    )
    initial_temperature: Kelvin | None = Field(
        default=None, description="Temperature of the region at t = 0, instead of the one of `[initial]`"
    )

    @property
    def materials(self) -> tuple[str, ...]:
        """The names of the materials that it paints, including "void"."""
        if self.labels is not None:
            return tuple(dict.fromkeys(self.labels.materials.values()))
        return () if self.material is None else (self.material,)

    @property
    def is_void(self) -> bool:
        """Whether it paints void alone; False if its materials could not be read."""
        named = self.labels.materials if self.labels is not None else {"": self.material}
        return bool(named) and set(named.values()) == {VOID}

    @field_validator("everywhere", mode="after")
    @classmethod
    def _check_everywhere(cls, everywhere: bool | None) -> bool | None:
        if everywhere is False:
            raise ValueError("got false; write everywhere = true, or remove this key")
        return everywhere

    @model_validator(mode="wrap")
    @classmethod
    def _check_place(cls, table: Any, validate: ModelWrapValidatorHandler["Region"]) -> "Region":
        faults = []
        if isinstance(table, Mapping):
            places, allowed = [key for key in PLACES if key in table], ", ".join(PLACES)
            if not places:
                faults.append(fault(f"the region has no extent; one of {allowed} is expected"))
            if len(places) > 1:
                faults.append(fault(f"got {' and '.join(places)}; one of {allowed} is expected"))
            if "material" not in table and "labels" not in table:
                message = missing_key('material = "silicon", or material = "void"')
                faults.append(fault(message, ("material",)))
            if "material" in table and "labels" in table:
                message = f"got {show(table['material'])}; the label image has its own materials: remove this key"
                faults.append(fault(message, ("material",)))
        return validate_beside(faults, validate, table)


def _check_count(regions: tuple[Region, ...]) -> tuple[Region, ...]:
    if len(regions) > MAX_REGIONS:
        raise ValueError(f"got {len(regions)} regions; at most {MAX_REGIONS} are allowed")
    return regions


Regions = Annotated[tuple[Region, ...], AfterValidator(_check_count)]
