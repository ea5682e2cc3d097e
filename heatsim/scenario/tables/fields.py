"""The field types of the models: each reads one kind of value and reports its mistakes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, PlainValidator, ValidationInfo

from heatsim.grid import FACES
from heatsim.scenario.context import folder_of
from heatsim.scenario.messages import did_you_mean, fault, refuse, refuse_control_characters, show
from heatsim.scenario.tables.initial import ArrayFile, ImageFile, read_initial
from heatsim.scenario.values import units
from heatsim.scenario.values.densities import read_density, read_distribution
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.materialfunction import MaterialFunction
from heatsim.scenario.values.nodetemperature import AT, NODE, NodeTemperature
from heatsim.scenario.values.quantities import (
    ABSORPTIVITY,
    AIR,
    AREA,
    COEFFICIENT,
    CONDUCTANCE,
    CONTACT_CONDUCTANCE,
    CONTACT_RESISTANCE,
    COORDINATE,
    DENSITY,
    DURATION,
    EMISSIVITY,
    ENLARGEMENT,
    FACTOR,
    FLUX,
    FRACTION,
    LATENT_HEAT,
    LENGTH,
    LINEAR_TRANSMITTANCE,
    MASS_FLOW,
    MOMENT,
    NODE_HEAT_CAPACITY,
    POWER,
    POWER_DENSITY,
    SPECIFIC_HEAT,
    SPEED,
    TEMPERATURE,
    TEMPERATURE_RATE,
    TOLERANCE,
    TRANSMITTANCE,
    Quantity,
)
from heatsim.scenario.values.surfacefunction import AtSurface, read_surface_value
from heatsim.scenario.values.timefunction import SpaceFormula, TimeFunction, read_time_function

MAX_CELLS = 2**40
MAX_COUNT = 10_000
AUTO = (0, 0, 0)  # the cells of a domain that leaves them to heatsim, until they are found
STRICT = ConfigDict(defer_build=True, frozen=True, extra="forbid", validate_default=True)

Vector = tuple[float, float, float]
Pair = tuple[float, float]


@dataclass(frozen=True)
class Form:
    """The values that a field type allows, as text for the reference of keys; without one, its quantity has a range."""

    allowed: str
    # For the schema, the least and the largest of whole numbers.
    whole: tuple[int | None, int | None] = (None, None)


@dataclass(frozen=True)
class OrTable:
    """Marks a field type whose value may also be a table with these keys; the first one is required."""

    keys: tuple[str, ...]


class OrName:
    """Marks a list of names in whose place a single name may stand."""


def _number(quantity: Quantity) -> PlainValidator:
    return PlainValidator(quantity.read)


def _vector(quantity: Quantity) -> PlainValidator:
    def read(value: object) -> Vector:
        return read_vector(value, quantity)

    return PlainValidator(read)


def read_vector(value: object, quantity: Quantity) -> Vector:
    """Three values of a quantity: along x, y and z."""
    x, y, z = read_entries(_three(value, f"of {quantity.unit}"), quantity)
    return (x, y, z)


def read_entries(entries: Sequence[object], quantity: Quantity) -> list[float]:
    """The values of a list's entries; reports the mistakes of all entries together."""
    faults, numbers = [], []
    for index, entry in enumerate(entries):
        try:
            numbers.append(quantity.read(entry))
        except ValueError as error:
            faults.append(fault(str(error), (index,)))
    if faults:
        refuse(faults)
    return numbers


def read_pair(value: object) -> Pair:
    """Two coordinates in m on a face."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(
            f"got {show(value)}; a list of two coordinates in m is expected, along the face's axes in the order x, y, z"
        )
    u, v = read_entries(value, COORDINATE)
    return (u, v)


def _three(value: object, what: str) -> Sequence[object]:
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise ValueError(f"got {show(value)}; a list of three numbers {what} is expected, along x, y, z")
    return value


def _read_cells(value: object) -> tuple[int, int, int]:
    if value == "auto" or value == AUTO:
        return AUTO
    if isinstance(value, str):
        raise ValueError(f'got {show(value)}; "auto", or a list of three numbers of cells is expected, along x, y, z')
    entries = _three(value, "of cells")
    faults = [
        fault(f"got {show(entry)}; a whole number of cells from 1 is expected", (index,))
        for index, entry in enumerate(entries)
        if isinstance(entry, bool) or not isinstance(entry, int) or entry < 1
    ]
    if faults:
        refuse(faults)
    nx, ny, nz = (entry for entry in entries if isinstance(entry, int))
    if nx * ny * nz > MAX_CELLS:
        raise ValueError(f"got {show(value)}, {show(nx * ny * nz)} cells in all; at most 2^40 are allowed")
    return (nx, ny, nz)


def _in_time(quantity: Quantity, in_space: bool = False) -> PlainValidator:
    def read(value: object, info: ValidationInfo) -> TimeFunction:
        return read_time_function(value, quantity, folder_of(info), in_space)

    return PlainValidator(read)


def _read_ambient(value: object, info: ValidationInfo) -> TimeFunction:
    """A temperature that may vary, or that of a node."""
    if not isinstance(value, Mapping) or NODE not in value:
        return read_time_function(value, TEMPERATURE, folder_of(info), True)
    faults = [
        fault(f"unknown key{did_you_mean(str(key), (NODE, AT))}; a node has the keys {NODE} and {AT} here", (str(key),))
        for key in value
        if key not in (NODE, AT)
    ]
    found: dict[str, Any] = {}
    for key, read in ((NODE, read_text), (AT, TEMPERATURE.read)):
        try:
            found[key] = read(value[key]) if key in value else None
        except ValueError as error:
            faults.append(fault(str(error), (key,)))
    if faults:
        refuse(faults)
    return NodeTemperature(found[NODE], found[AT])


def _at_surface(quantity: Quantity, *, of_contact: bool = False) -> PlainValidator:
    def read(value: object, info: ValidationInfo) -> TimeFunction:
        return read_surface_value(value, quantity, folder_of(info), of_contact=of_contact)

    return PlainValidator(read)


def _read_initial(value: object, info: ValidationInfo) -> float | Expression | ArrayFile | ImageFile:
    return read_initial(value, folder_of(info))


@dataclass(frozen=True)
class OneOf(PlainValidator):
    """The field type for one of several names."""

    names: tuple[str, ...] = ()


def choice(*names: str, respell: Callable[[str], str | None] = lambda text: None) -> OneOf:
    """The field type for one of ``names``; ``respell`` finds the name that another spelling means."""

    def read(value: object) -> str:
        if value not in names:
            allowed = ", ".join(f'"{name}"' for name in names)
            spelled = respell(value) if isinstance(value, str) else None
            near = did_you_mean(value, names) if spelled not in names else f"; did you mean {show(spelled)}?"
            raise ValueError(f"got {show(value)}; one of {allowed} is expected{near}")
        return str(value)

    return OneOf(read, names=names)


def _read_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"got {show(value)}; true or false is expected, without quotes")
    return value


def _read_count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 2 <= value <= MAX_COUNT:
        raise ValueError(f"got {show(value)}; a whole number from 2 to {MAX_COUNT} is expected")
    return value


def _read_dt(value: object) -> float | Literal["auto"]:
    if value == "auto":
        return "auto"
    try:
        return DURATION.read(value)
    except ValueError as error:
        raise ValueError(f'{error}, or "auto"{did_you_mean(value, ["auto"])}') from None


def read_tolerance(value: object) -> float:
    """A temperature difference in K.

    Raises:
        ValueError: the value is none, such as "20 degC".
    """
    parts = units.split(value) if isinstance(value, str) else None
    if (parts is not None and "deg" in parts[1].lower()) or (isinstance(value, str) and "°" in value):
        raise ValueError(f"got {show(value)}, a temperature on a scale; {TOLERANCE.expected}")
    return TOLERANCE.read(value)


def _read_temperature_range(value: object) -> Pair:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"got {show(value)}; a list of two temperatures is expected, the lower one first")
    low, high = read_entries(value, TEMPERATURE)
    if low >= high:
        raise ValueError(f"got {show(value)}; the second temperature must be above the first")
    return low, high


def read_text(value: object) -> str:
    """A text on one line.

    Raises:
        ValueError: it is none, or empty.
    """
    if not isinstance(value, str) or not value.strip() or "\n" in value:
        raise ValueError(f"got {show(value)}; a text in quotes is expected, on one line and not empty")
    refuse_control_characters(value)
    return value


Text = Annotated[str, PlainValidator(read_text), Form("text on one line")]
SurfaceName = Annotated[
    str,
    PlainValidator(read_text),
    Form(", ".join(f"`{name}`" for name in (*FACES, "void")) + ", or the name of a void region"),
]
Flag = Annotated[bool, PlainValidator(_read_flag), Form("`true`, `false`")]
Duration = Annotated[float, _number(DURATION), DURATION]
Density = Annotated[float, _number(DENSITY), DENSITY]
Fraction = Annotated[float, _number(FRACTION), FRACTION]
Kelvin = Annotated[float, _number(TEMPERATURE), TEMPERATURE]
TemperatureRange = Annotated[
    Pair, PlainValidator(_read_temperature_range), TEMPERATURE, Form("two numbers ≥ 0, the lower one first")
]
LatentHeat = Annotated[float, _number(LATENT_HEAT), LATENT_HEAT]
ContactResistance = Annotated[float, _number(CONTACT_RESISTANCE), CONTACT_RESISTANCE]
ConductanceOfContact = Annotated[
    TimeFunction, _at_surface(CONTACT_CONDUCTANCE, of_contact=True), CONTACT_CONDUCTANCE, AtSurface()
]
Power = Annotated[float, _number(POWER), POWER]
PowerInTime = Annotated[TimeFunction, _in_time(POWER), POWER]
PowerDensity = Annotated[
    float | SpaceFormula | MaterialFunction,
    PlainValidator(read_density),
    POWER_DENSITY,
    Form("any number; an expression in x, y, z and t, or a function of T, the temperature of the cell"),
]
Distribution = Annotated[
    SpaceFormula, PlainValidator(read_distribution), FACTOR, Form("an expression in x, y and z, at least 0")
]
Absorptivity = Annotated[float, _number(ABSORPTIVITY), ABSORPTIVITY]
Length = Annotated[float, _number(LENGTH), LENGTH]
Area = Annotated[float, _number(AREA), AREA]
UValue = Annotated[float, _number(TRANSMITTANCE), TRANSMITTANCE]
PsiValue = Annotated[float, _number(LINEAR_TRANSMITTANCE), LINEAR_TRANSMITTANCE]
Coordinate = Annotated[float, _number(COORDINATE), COORDINATE]
Speed = Annotated[float, _number(SPEED), SPEED]
Moment = Annotated[float, _number(MOMENT), MOMENT]
Tolerance = Annotated[float, PlainValidator(read_tolerance), TOLERANCE]
TemperatureRate = Annotated[float, _number(TEMPERATURE_RATE), TEMPERATURE_RATE]
Enlargement = Annotated[float, _number(ENLARGEMENT), ENLARGEMENT]
Count = Annotated[int, PlainValidator(_read_count), Form(f"2 to {MAX_COUNT:,}", (2, MAX_COUNT))]
Size = Annotated[Vector, _vector(LENGTH), LENGTH, Form("three numbers > 0, along x, y, z")]
Point = Annotated[Vector, _vector(COORDINATE), COORDINATE, Form("three numbers, along x, y, z")]
FacePoint = Annotated[Pair, PlainValidator(read_pair), COORDINATE, Form("two numbers, along the axes of the face")]
FaceName = Annotated[str, choice(*FACES), Form(", ".join(f"`{name}`" for name in FACES))]
Cells = Annotated[
    tuple[int, int, int],
    PlainValidator(_read_cells),
    Form("three whole numbers from 1; at most 2⁴⁰ cells in total", (1, None)),
]
TimeStep = Annotated[float | Literal["auto"], PlainValidator(_read_dt), DURATION, Form("> 0, or `auto`")]
Device = Annotated[Literal["auto", "cuda", "cpu"], choice("auto", "cuda", "cpu")]
Precision = Annotated[Literal["auto", "float32", "float64"], choice("auto", "float32", "float64")]
Method = Annotated[
    Literal["auto", "euler", "stabilized", "implicit", "steady"],
    choice("auto", "euler", "stabilized", "implicit", "steady"),
]
ErrorName = Annotated[Literal["auto", "none"], choice("auto", "none")]
TemperatureName = Annotated[
    Literal["K", "degC", "degF"], choice("K", "degC", "degF", respell=partial(units.respell_unit, target="K"))
]
ShownTemperature = Annotated[
    Literal["auto", "K", "degC", "degF"],
    choice("auto", "K", "degC", "degF", respell=partial(units.respell_unit, target="K")),
]
# The check of expressions over the time of the run, and the reference of keys, find the quantity in the annotation.
TemperatureInTime = Annotated[TimeFunction, _in_time(TEMPERATURE, in_space=True), TEMPERATURE]
_IN_TIME = Form("≥ 0; may change in time")  # at no place
KnownTemperature = Annotated[TimeFunction, _in_time(TEMPERATURE), TEMPERATURE, _IN_TIME]
AmbientInTime = Annotated[
    TimeFunction, PlainValidator(_read_ambient), TEMPERATURE, OrTable((NODE, AT)), Form('≥ 0, or `{ node = "air" }`')
]
Conductance = Annotated[float, _number(CONDUCTANCE), CONDUCTANCE]
CoefficientInTime = Annotated[TimeFunction, _in_time(COEFFICIENT), COEFFICIENT, _IN_TIME]
MassFlow = Annotated[float, _number(MASS_FLOW), MASS_FLOW]
SpecificHeat = Annotated[float, _number(SPECIFIC_HEAT), SPECIFIC_HEAT]
NodeHeatCapacity = Annotated[float, _number(NODE_HEAT_CAPACITY), NODE_HEAT_CAPACITY]
FluxInTime = Annotated[TimeFunction, _in_time(FLUX, in_space=True), FLUX]
CoefficientAtSurface = Annotated[TimeFunction, _at_surface(COEFFICIENT), COEFFICIENT, AtSurface()]
EmissivityAtSurface = Annotated[TimeFunction, _at_surface(EMISSIVITY), EMISSIVITY, AtSurface()]
AirInTime = Annotated[TimeFunction, _in_time(AIR), AIR]
HumidityInTime = Annotated[TimeFunction, _in_time(FRACTION), FRACTION]
FactorInTime = Annotated[TimeFunction, _in_time(FACTOR), FACTOR]
InitialTemperature = Annotated[
    float | Expression | ArrayFile | ImageFile,
    PlainValidator(_read_initial),
    TEMPERATURE,
    Form("≥ 0; an expression in x, y, z; or a file, see above"),
]
