"""Materials: their properties as numbers, or as functions of temperature."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    PlainValidator,
    ValidationError,
    model_validator,
)

from heatsim.scenario.messages import fault, refuse, refuse_control_characters, show
from heatsim.scenario.tables.fields import (
    STRICT,
    Density,
    Form,
    Kelvin,
    LatentHeat,
    TemperatureRange,
    Vector,
    read_vector,
)
from heatsim.scenario.tables.library import read_table
from heatsim.scenario.tables.named import Named
from heatsim.scenario.values import units
from heatsim.scenario.values.materialfunction import (
    Array,
    MaterialFormula,
    MaterialFunction,
    MaterialTable,
    Orthotropic,
    read_material_function,
)
from heatsim.scenario.values.quantities import CONDUCTIVITY, SPECIFIC_HEAT, Quantity

VOID = "void"
MAX_MATERIALS = 126


def _read_conductivity(value: object) -> Vector | MaterialFunction:
    if isinstance(value, Mapping) and _is_table_of_vectors(value):
        columns = zip(*value["values"], strict=True)
        value = [{**value, "values": list(column)} for column in columns]
    if isinstance(value, list | tuple):
        return _read_axes(value)
    conductivity = read_material_function(value, CONDUCTIVITY)
    return conductivity if isinstance(conductivity, MaterialFunction) else (conductivity,) * 3


def _is_table_of_vectors(table: Mapping[str, Any]) -> bool:
    """Whether a table has three values for each temperature."""
    values = table.get("values")
    return isinstance(values, list | tuple) and all(isinstance(row, list | tuple) and len(row) == 3 for row in values)


def _read_axes(value: Sequence[object]) -> Vector | Orthotropic:
    """Conductivities along x, y and z: numbers or functions of T."""
    if len(value) != 3 or not any(isinstance(axis, Mapping) or _is_expression(axis) for axis in value):
        return read_vector(value, CONDUCTIVITY)
    axes, faults = [], []
    for index, axis in enumerate(value):
        try:
            axes.append(read_material_function(axis, CONDUCTIVITY))
        except ValidationError as error:
            faults += [fault(details["msg"], (index, *details["loc"])) for details in error.errors()]
        except ValueError as error:
            faults.append(fault(str(error), (index,)))
    if faults:
        refuse(faults)
    x, y, z = axes
    if not any(isinstance(axis, MaterialFunction) for axis in axes):
        return tuple(float(axis) for axis in axes)  # type: ignore[return-value,arg-type]
    try:
        return Orthotropic((x, y, z))
    except ValueError as error:
        raise ValueError(f"got {show(value)}; {error}") from None


def _is_expression(value: object) -> bool:
    return isinstance(value, MaterialFunction) or (isinstance(value, str) and units.split(value) is None)


def _read_specific_heat(value: object) -> float | MaterialFunction:
    return read_material_function(value, SPECIFIC_HEAT)


def largest(function: object) -> object:
    """The function along the axis with the largest conductivity; any other value unchanged."""
    return function.largest if isinstance(function, Orthotropic) else function


class Material(BaseModel):
    """A material.

    Conductivity in W/(m K): (kx, ky, kz), one function of T, or functions of T with constant ratios. Density in kg/m³.
    Specific heat in J/(kg K): a number or a function of T. Latent heat in J/kg, absorbed between solidus and liquidus
    (K). Beyond ``temperature_range`` (K) expressions keep their values at its ends.
    """

    model_config = STRICT

    conductivity: Annotated[
        Vector | MaterialFunction,
        PlainValidator(_read_conductivity),
        CONDUCTIVITY,
        Form("> 0; a number, a function of T, or [kx, ky, kz] of either with constant ratios"),
    ] = Field(examples=["conductivity = 237.0"], description="Conductivity")
    density: Density = Field(examples=["density = 2700.0"], description="Density")
    specific_heat: Annotated[
        float | MaterialFunction,
        PlainValidator(_read_specific_heat),
        SPECIFIC_HEAT,
        Form("> 0; a number or a function of T"),
    ] = Field(examples=["specific_heat = 900.0"], description="Specific heat, without latent heat")
    latent_heat: LatentHeat | None = Field(
        default=None, examples=["latent_heat = 2e5"], description="Heat absorbed between solidus and liquidus"
    )
    solidus: Kelvin | None = Field(
        default=None,
        examples=["solidus = 300.0"],
        description="Temperature at which melting starts; required with `latent_heat`",
    )
    liquidus: Kelvin | None = Field(
        default=None,
        examples=["liquidus = 302.0"],
        description="Temperature at which melting ends, above the solidus; required with `latent_heat`",
    )
    temperature_range: TemperatureRange | None = Field(
        default=None,
        examples=["temperature_range = [250.0, 1500.0]"],
        description="Range in which the expressions hold; beyond it they keep their values at its ends",
    )

    @property
    def varies(self) -> bool:
        """Whether anything depends on temperature."""
        properties = (self.conductivity, self.specific_heat)
        return self.latent_heat is not None or any(isinstance(value, MaterialFunction) for value in properties)

    @property
    def formulas(self) -> tuple[tuple[str, MaterialFormula, Quantity], ...]:
        """The properties that are expressions in T: key, expression and quantity."""
        properties = (
            ("conductivity", self.conductivity, CONDUCTIVITY),
            ("specific_heat", self.specific_heat, SPECIFIC_HEAT),
        )
        return tuple(
            (key, function, quantity)
            for key, value, quantity in properties
            if isinstance(function := largest(value), MaterialFormula)
        )

    @property
    def table_ends(self) -> tuple[tuple[str, float, float], ...]:
        """The range (K) of each property that is a table or has a temperature_range: (key, lowest, highest)."""
        ends = []
        for key, function in (("conductivity", self.conductivity), ("specific_heat", self.specific_heat)):
            if isinstance(table := largest(function), MaterialTable):
                ends.append((key, table.temperatures[0], table.temperatures[-1]))
            elif isinstance(largest(function), MaterialFormula) and self.temperature_range is not None:
                ends.append((key, *self.temperature_range))
        return tuple(ends)

    def values(self, function: float | MaterialFunction, temperatures: ArrayLike) -> Array:
        """Values of one of the material's properties at temperatures in K, of the same shape."""
        if not isinstance(function, MaterialFunction):
            return np.full(np.shape(temperatures), function)
        if isinstance(largest(function), MaterialFormula) and self.temperature_range is not None:
            temperatures = np.clip(np.asarray(temperatures, dtype=np.float64), *self.temperature_range)
        return function.at(temperatures)

    def conductivity_at(self, temperature: float) -> Vector:
        """(kx, ky, kz) in W/(m K) at a temperature in K."""
        if not isinstance(self.conductivity, MaterialFunction):
            return self.conductivity
        k = float(self.values(self.conductivity, temperature))
        x, y, z = self.conductivity.ratios if isinstance(self.conductivity, Orthotropic) else (1.0, 1.0, 1.0)
        return k * x, k * y, k * z

    def in_steady_state(self) -> "Material":
        """The material without latent heat and with a constant specific heat, which do not affect a steady state."""
        cp = 1000.0 if isinstance(self.specific_heat, MaterialFunction) else self.specific_heat
        without = {"latent_heat": None, "solidus": None, "liquidus": None, "specific_heat": cp}
        return self.model_copy(update=without)

    def specific_heat_at(self, temperature: float) -> float:
        """Specific heat in J/(kg K) at a temperature in K, without latent heat."""
        return float(self.values(self.specific_heat, temperature))

    @model_validator(mode="after")
    def _check_melting(self) -> "Material":
        keys = ("latent_heat", "solidus", "liquidus")
        missing = [key for key in keys if getattr(self, key) is None]
        if 0 < len(missing) < 3:
            refuse([fault(f"missing; {', '.join(keys)} belong together: write all of them or none", (missing[0],))])
        if self.solidus is not None and self.liquidus is not None and self.solidus >= self.liquidus:
            message = f"got {self.liquidus!r} K; it must be above the solidus, which is {self.solidus!r} K"
            refuse([fault(message, ("liquidus",))])
        return self

    @model_validator(mode="after")
    def _check_temperature_range(self) -> "Material":
        if self.temperature_range is not None and not self.formulas:
            message = f"got {show(list(self.temperature_range))}; there is no expression in T to limit: remove this key"
            refuse([fault(message, ("temperature_range",))])
        return self


def _check_new_name(name: str) -> str:
    if not name.strip() or "\n" in name:
        raise ValueError(f"got {show(name)}; a name on one line is expected, as in [materials.copper]")
    refuse_control_characters(name)
    if name == VOID:
        raise ValueError(f'got a material "{VOID}"; this name means cells that do not conduct: choose another name')
    return name


def _freeze(materials: Mapping[str, Material]) -> Named[Material]:
    if len(materials) > MAX_MATERIALS:
        raise ValueError(f"got {len(materials)} materials; at most {MAX_MATERIALS} are allowed")
    return Named.of(materials)


# The table of a material, or the name of one of the library.
MaterialTableOrName = Annotated[Material, BeforeValidator(read_table)]
Materials = Annotated[
    Mapping[Annotated[str, AfterValidator(_check_new_name)], MaterialTableOrName], AfterValidator(_freeze)
]


def read_material_name(value: Any) -> str:
    """A material's name as text.

    Raises:
        ValueError: it is not text; the message is for the user.
    """
    if not isinstance(value, str):
        raise ValueError(f"got {show(value)}; the name of a material is expected, in quotes")
    return value


@dataclass(frozen=True)
class NamesMaterial:
    """Marks a field whose value is the name of a material: of the scenario, or of the library."""


MaterialName = Annotated[
    str,
    PlainValidator(read_material_name),
    Form("a name of `[materials.NAME]`, `library:NAME`, or `void`"),
    NamesMaterial(),
]
