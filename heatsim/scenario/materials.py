"""Materials: their properties as numbers, or as functions of temperature."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import AfterValidator, BaseModel, Field, PlainValidator, ValidationInfo, model_validator

from heatsim.scenario import units
from heatsim.scenario.context import reading
from heatsim.scenario.expressions import Expression
from heatsim.scenario.fields import (
    STRICT,
    Density,
    Kelvin,
    LatentHeat,
    Pair,
    Vector,
    read_entries,
    read_vector,
)
from heatsim.scenario.problems import did_you_mean, fault, has_control_characters, key_faults, refuse, show
from heatsim.scenario.quantities import CONDUCTIVITY, SPECIFIC_HEAT, TEMPERATURE, Quantity
from heatsim.scenario.timefunction import read_column, slopes_are_finite

VOID = "void"
MAX_MATERIALS = 126
SAMPLES = 4096
# An expression in T that is nowhere positive between these (K) is a mistake, whatever the run.
TRIED = (1.0, 5000.0)

Array = NDArray[np.float64]
Value = TypeVar("Value")


class MaterialFunction:
    """A property of a material as a function of temperature: one of the two kinds below, never constant."""

    def at(self, temperatures: ArrayLike) -> Array:
        """Values at temperatures in K, of the same shape."""
        raise NotImplementedError

    def samples(self, low: float, high: float) -> Array:
        """Temperatures in [low, high] among which to look for the smallest and largest value, in ascending order."""
        raise NotImplementedError


@dataclass(frozen=True)
class MaterialTable(MaterialFunction):
    """Values at given temperatures: linear in between, held beyond the ends.

    Attributes:
        temperatures: ascending, in K.
        values: one for each temperature, positive.
    """

    temperatures: tuple[float, ...]
    values: tuple[float, ...]
    _nodes: Array = field(init=False, repr=False, compare=False)
    _heights: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_nodes", np.array(self.temperatures, dtype=np.float64))
        object.__setattr__(self, "_heights", np.array(self.values, dtype=np.float64))

    def at(self, temperatures: ArrayLike) -> Array:
        """Values interpolated in the table."""
        return np.asarray(
            np.interp(np.asarray(temperatures, dtype=np.float64), self._nodes, self._heights), dtype=np.float64
        )

    def samples(self, low: float, high: float) -> Array:
        """The table's own temperatures within [low, high], and the ends."""
        inside = self._nodes[(self._nodes > low) & (self._nodes < high)]
        return np.unique(np.concatenate(([low], inside, [high])))


@dataclass(frozen=True)
class MaterialFormula(MaterialFunction):
    """An expression in T (K). What it gives where the field never comes may be anything."""

    expression: Expression

    def at(self, temperatures: ArrayLike) -> Array:
        """Values of the expression; they can be infinite, NaN or negative: whoever uses them looks."""
        return self.expression.evaluate(T=temperatures)

    def samples(self, low: float, high: float) -> Array:
        """4,097 temperatures, evenly spread from ``low`` to ``high``."""
        return np.unique(np.linspace(low, high, SAMPLES + 1))


@dataclass(frozen=True)
class Named(Mapping[str, Value]):
    """A mapping from names that cannot be changed, in the order of the file."""

    items_in_order: tuple[tuple[str, Value], ...]

    @classmethod
    def of(cls, mapping: Mapping[str, Value]) -> "Named[Value]":
        """A frozen copy of a mapping."""
        return cls(tuple(mapping.items()))

    def __getitem__(self, name: str) -> Value:
        for other, value in self.items_in_order:
            if other == name:
                return value
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.items_in_order)

    def __len__(self) -> int:
        return len(self.items_in_order)


def _read_function(value: object, quantity: Quantity) -> float | MaterialFunction:
    """A property from TOML: number, text with a unit, expression in T, or table; a number where nothing varies."""
    if isinstance(value, MaterialFunction):
        return value
    if isinstance(value, Mapping):
        return _read_table(value, quantity)
    if isinstance(value, str) and units.split(value) is None:
        return _read_formula(value, quantity)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(
            f"got {show(value)}; {quantity.wanted}, as an expression in T or as {{ temperatures = […], values = […] }}"
        )
    return quantity.read(value)


def _read_formula(text: str, quantity: Quantity) -> float | MaterialFormula:
    try:
        formula = MaterialFormula(Expression(text, ("T",)))
    except ValueError as error:
        raise ValueError(f"got {show(text)}; {error}; {quantity.wanted}, or as an expression in T (in K)") from None
    tried = formula.samples(*TRIED) if formula.expression.used else np.array(TRIED[:1])
    faults = [quantity.range_fault(number) for number in formula.at(tried).tolist()]
    if None not in faults:
        when = f"at every temperature from {TRIED[0]!r} to {TRIED[1]!r} K" if formula.expression.used else "always"
        raise ValueError(f"got {show(text)}, which cannot be {when}; {faults[0]}")
    return formula if formula.expression.used else float(formula.at(TRIED[0]))


def _read_table(table: Mapping[str, object], quantity: Quantity) -> float | MaterialTable:
    faults = key_faults(
        table,
        {"temperatures": "temperatures = [300.0, 600.0]", "values": "values = [1.0, 2.0], one for each temperature"},
    )
    temperatures = read_column(table, "temperatures", TEMPERATURE, faults)
    values = read_column(table, "values", quantity, faults)
    for index in range(1, len(temperatures)):
        before, after = temperatures[index - 1 : index + 1]
        if after <= before:
            message = f"got {after!r} after {before!r}; temperatures must increase"
            faults.append(fault(message, ("temperatures", index)))
    if temperatures and values and len(temperatures) != len(values):
        faults.append(
            fault(f"got {len(temperatures)} temperatures and {len(values)} values; each temperature needs one value")
        )
    if not faults and not slopes_are_finite(temperatures, values):
        faults.append(fault(f"got {show(temperatures)}; temperatures lie too near to each other"))
    if faults:
        refuse(faults)
    return MaterialTable(tuple(temperatures), tuple(values)) if len(set(values)) > 1 else values[0]


def _read_conductivity(value: object) -> Vector | MaterialFunction:
    if isinstance(value, list | tuple):
        return read_vector(value, CONDUCTIVITY)
    conductivity = _read_function(value, CONDUCTIVITY)
    return conductivity if isinstance(conductivity, MaterialFunction) else (conductivity,) * 3


def _read_specific_heat(value: object) -> float | MaterialFunction:
    return _read_function(value, SPECIFIC_HEAT)


def _read_temperature_range(value: object) -> Pair:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"got {show(value)}; a list of two temperatures is wanted, the lower one first")
    low, high = read_entries(value, TEMPERATURE)
    if low >= high:
        raise ValueError(f"got {show(value)}; the second temperature must be above the first")
    return low, high


class Material(BaseModel):
    """A material.

    Conductivity in W/(m K): (kx, ky, kz), or one function of T for all axes. Density in kg/m³. Specific heat in
    J/(kg K): a number or a function of T. Latent heat in J/kg, taken up between solidus and liquidus (K). Expressions
    are followed within ``temperature_range`` (K) if one is given; beyond it their values at its ends hold.
    """

    model_config = STRICT

    conductivity: Annotated[Vector | MaterialFunction, PlainValidator(_read_conductivity)] = Field(
        examples=["conductivity = 237.0"]
    )
    density: Density = Field(examples=["density = 2700.0"])
    specific_heat: Annotated[float | MaterialFunction, PlainValidator(_read_specific_heat)] = Field(
        examples=["specific_heat = 900.0"]
    )
    latent_heat: LatentHeat | None = Field(default=None, examples=["latent_heat = 2e5"])
    solidus: Kelvin | None = Field(default=None, examples=["solidus = 300.0"])
    liquidus: Kelvin | None = Field(default=None, examples=["liquidus = 302.0"])
    temperature_range: Annotated[Pair, PlainValidator(_read_temperature_range)] | None = Field(
        default=None, examples=["temperature_range = [250.0, 1500.0]"]
    )

    @property
    def varies(self) -> bool:
        """Whether anything depends on temperature."""
        properties = (self.conductivity, self.specific_heat)
        return self.latent_heat is not None or any(isinstance(value, MaterialFunction) for value in properties)

    @property
    def formulas(self) -> tuple[tuple[str, MaterialFormula, Quantity], ...]:
        """The keys of the properties that are expressions in T, with these and what they are."""
        properties = (
            ("conductivity", self.conductivity, CONDUCTIVITY),
            ("specific_heat", self.specific_heat, SPECIFIC_HEAT),
        )
        return tuple(
            (key, value, quantity) for key, value, quantity in properties if isinstance(value, MaterialFormula)
        )

    @property
    def table_ends(self) -> tuple[tuple[str, float, float], ...]:
        """Between which temperatures (K) tables, and expressions with a temperature_range, say something: by key."""
        ends = []
        for key, function in (("conductivity", self.conductivity), ("specific_heat", self.specific_heat)):
            if isinstance(function, MaterialTable):
                ends.append((key, function.temperatures[0], function.temperatures[-1]))
            elif isinstance(function, MaterialFormula) and self.temperature_range is not None:
                ends.append((key, *self.temperature_range))
        return tuple(ends)

    def values(self, function: float | MaterialFunction, temperatures: ArrayLike) -> Array:
        """Values of one of the material's properties at temperatures in K, of the same shape."""
        if not isinstance(function, MaterialFunction):
            return np.full(np.shape(temperatures), function)
        if isinstance(function, MaterialFormula) and self.temperature_range is not None:
            temperatures = np.clip(np.asarray(temperatures, dtype=np.float64), *self.temperature_range)
        return function.at(temperatures)

    def conductivity_at(self, temperature: float) -> Vector:
        """(kx, ky, kz) in W/(m K) at a temperature in K."""
        if isinstance(self.conductivity, MaterialFunction):
            return (float(self.values(self.conductivity, temperature)),) * 3
        return self.conductivity

    def specific_heat_at(self, temperature: float) -> float:
        """Specific heat in J/(kg K) at a temperature in K, without latent heat."""
        return float(self.values(self.specific_heat, temperature))

    @model_validator(mode="after")
    def _check_melting(self) -> "Material":
        keys = ("latent_heat", "solidus", "liquidus")
        missing = [key for key in keys if getattr(self, key) is None]
        if 0 < len(missing) < 3:
            refuse([fault(f"missing; {', '.join(keys)} belong together: give all of them or none", (missing[0],))])
        if self.solidus is not None and self.liquidus is not None and self.solidus >= self.liquidus:
            message = f"got {self.liquidus!r} K; it must be above the solidus, which is {self.solidus!r} K"
            refuse([fault(message, ("liquidus",))])
        return self

    @model_validator(mode="after")
    def _check_temperature_range(self) -> "Material":
        if self.temperature_range is not None and not self.formulas:
            message = (
                f"got {show(list(self.temperature_range))}; it limits expressions in T, and there is none: leave it out"
            )
            refuse([fault(message, ("temperature_range",))])
        return self


def _check_new_name(name: str) -> str:
    if not name.strip() or has_control_characters(name):
        raise ValueError(f"got {show(name)}; a name on one line is wanted, as in [materials.copper]")
    if name == VOID:
        raise ValueError(f'got a material "{VOID}"; this name stands for cells that do not conduct: choose another')
    return name


def _freeze(materials: Mapping[str, Material]) -> Named[Material]:
    if len(materials) > MAX_MATERIALS:
        raise ValueError(f"got {len(materials)} materials; at most {MAX_MATERIALS} are allowed")
    return Named.of(materials)


Materials = Annotated[Mapping[Annotated[str, AfterValidator(_check_new_name)], Material], AfterValidator(_freeze)]


def check_material(name: str, info: ValidationInfo, void: bool) -> str:
    """A name that a key gives for a material, seen to be one.

    Args:
        name: what stands in the file.
        info: of the validation.
        void: whether "void" may be meant.

    Raises:
        ValueError: no such material; the message is the user's.
    """
    known = reading(info).material_names
    if name == VOID:
        if void:
            return name
        raise ValueError(f'got "{VOID}", which does not conduct; the name of a material is wanted')
    if known is None or name in known:
        return name
    if not known:
        raise ValueError(
            f"got {show(name)}; there are no materials with names: write [materials.{_bare(name)}] for each material, "
            "in place of [material]"
        )
    names = [*known, VOID] if void else list(known)
    shown = ", ".join(show(other) for other in names)
    raise ValueError(f"got {show(name)}; one of {shown} is wanted{did_you_mean(name, names)}")


def _bare(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else "NAME"


def read_material_name(value: Any) -> str:
    """A material's name as text."""
    if not isinstance(value, str):
        raise ValueError(f"got {show(value)}; the name of a material is wanted, in quotes")
    return value


def _read_name(value: object, info: ValidationInfo) -> str:
    return check_material(read_material_name(value), info, void=True)


MaterialName = Annotated[str, PlainValidator(_read_name)]
