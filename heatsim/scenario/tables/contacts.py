"""Contacts: thermal resistances, conductances and gaps between materials or regions."""

from math import inf
from typing import Annotated, Any

from pydantic import BaseModel, Field, ModelWrapValidatorHandler, PlainValidator, model_validator

from heatsim.scenario.messages import fault, faults_of_one, refuse, show, validate_beside
from heatsim.scenario.tables.fields import (
    STRICT,
    ConductanceOfContact,
    ContactResistance,
    Form,
    Length,
    Pair,
    TemperatureRange,
    read_entries,
)
from heatsim.scenario.tables.library import is_of_library, properties_of
from heatsim.scenario.tables.materials import read_material_name
from heatsim.scenario.values.materialfunction import MaterialFunction, read_material_function
from heatsim.scenario.values.quantities import CONDUCTIVITY, GAP_EMISSIVITY, LARGEST
from heatsim.scenario.values.surfacefunction import SurfaceFormula, SurfaceFunction, at_surface
from heatsim.scenario.values.timefunction import Constant, TimeFunction


def read_between(value: object) -> tuple[str, str]:
    """Two different names of materials or regions.

    Raises:
        ValueError: these are none; the message is for the user.
    """
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(
            f'got {show(value)}; the names of two materials or regions are expected, as in ["copper", "die"]'
        )
    faults = []
    for index, name in enumerate(value):
        try:
            read_material_name(name)
        except ValueError as error:
            faults.append(fault(str(error), (index,)))
    if faults:
        refuse(faults)
    one, other = value
    if one == other:
        raise ValueError(f"got {show(value)}; two different names are expected")
    return (one, other)


def _read_gap_conductivity(value: object) -> float | MaterialFunction:
    if not is_of_library(value):
        return read_material_function(value, CONDUCTIVITY)
    assert isinstance(value, str)
    try:
        given = properties_of(f"{value}(T)")["conductivity"]
    except ValueError:
        given = properties_of(value)["conductivity"]
    if isinstance(given, list) and len(set(given)) > 1:
        raise ValueError(f"got {show(value)}, which conducts differently along x, y and z; a number is expected")
    return read_material_function(given[0] if isinstance(given, list) else given, CONDUCTIVITY)


def _read_emissivities(value: object) -> Pair:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"got {show(value)}; the emissivities of both surfaces are expected, as in [0.8, 0.8]")
    one, other = read_entries(value, GAP_EMISSIVITY)
    return one, other


class Gap(BaseModel):
    """A gap of a width in m with a gas or a filling between two surfaces.

    It conducts k(T)/width for each kelvin, with T the mean temperature of both surfaces. With ``emissivities`` it also
    radiates σ·(T1⁴ − T2⁴)/(1/ε1 + 1/ε2 − 1).
    """

    model_config = STRICT

    width: Length = Field(examples=['width = "50 um"'], description="Distance of the surfaces")
    conductivity: Annotated[
        float | MaterialFunction,
        PlainValidator(_read_gap_conductivity),
        CONDUCTIVITY,
        Form("> 0; a number, a function of T, or `library:NAME`"),
    ] = Field(
        examples=['conductivity = "library:helium"'],
        description="Conductivity of what fills it, at the mean temperature T of both surfaces",
    )
    emissivities: (
        Annotated[Pair, PlainValidator(_read_emissivities), GAP_EMISSIVITY, Form("two numbers > 0, ≤ 1")] | None
    ) = Field(
        default=None,
        examples=["emissivities = [0.8, 0.8]"],
        description="Emissivities of both surfaces; without them nothing radiates across",
    )

    @property
    def exchange_factor(self) -> float:
        """1/(1/ε1 + 1/ε2 − 1); 0 if nothing radiates."""
        return 0.0 if self.emissivities is None else 1.0 / (sum(1.0 / each for each in self.emissivities) - 1.0)


class Contact(BaseModel):
    """What resists heat wherever two materials touch, two regions, or a material and a region.

    Either a ``resistance`` in m² K/W, a ``conductance`` in W/(m² K), which may depend on T, the mean temperature of
    both surfaces in K, and on t in s, or a ``gap``. Beyond ``temperature_range`` (K) expressions in T keep their values
    at its ends.
    """

    model_config = STRICT

    between: Annotated[tuple[str, str], PlainValidator(read_between), Form("two names of materials or regions")] = (
        Field(
            examples=['between = ["copper", "silicon"]'],
            description="What touches. A contact between regions prevails over one between materials",
        )
    )
    resistance: ContactResistance | None = Field(
        default=None, examples=["resistance = 1e-5"], description="Resistance wherever they touch"
    )
    conductance: ConductanceOfContact | None = Field(
        default=None,
        examples=["conductance = 5000.0"],
        description="Conductance wherever they touch; T is the mean temperature of both surfaces",
    )
    gap: Gap | None = Field(
        default=None,
        examples=['gap = { width = "50 um", conductivity = "library:helium", emissivities = [0.8, 0.8] }'],
        description="A gap that conducts and radiates",
    )
    temperature_range: TemperatureRange | None = Field(
        default=None,
        examples=["temperature_range = [250.0, 1500.0]"],
        description="Range in which expressions in T hold; beyond it they keep their values at its ends",
    )

    @model_validator(mode="wrap")
    @classmethod
    def _check_kind(cls, table: Any, validate: ModelWrapValidatorHandler["Contact"]) -> "Contact":
        example = "resistance = 1e-5, conductance = 5000.0 or gap = { width = 50e-6, conductivity = 0.15 }"
        faults = faults_of_one(table, ("resistance", "conductance", "gap"), example)
        return validate_beside(faults, validate, table)

    @model_validator(mode="after")
    def _check_temperature_range(self) -> "Contact":
        if self.temperature_range is not None and not self.has_formula:
            message = f"got {show(list(self.temperature_range))}; there is no expression in T to limit: remove this key"
            refuse([fault(message, ("temperature_range",))])
        return self

    @property
    def name(self) -> str:
        """Its name in tables: "copper to silicon"."""
        return " to ".join(self.between)

    @property
    def has_formula(self) -> bool:
        """Whether it has an expression in T."""
        return isinstance(self.law, SurfaceFormula)

    @property
    def law(self) -> TimeFunction | None:
        """Its conductance in W/(m² K), or the conductivity of what fills its gap in W/(m K); None if neither."""
        return self.conductance if self.gap is None else at_surface(self.gap.conductivity)

    @property
    def ends(self) -> tuple[float, float]:
        """The temperatures in K between which its law is known."""
        law = self.law
        return self.temperature_range or (law.ends if isinstance(law, SurfaceFunction) else (-inf, inf))

    @property
    def constant_resistance(self) -> float | None:
        """Its resistance in m² K/W if that never changes; None if it depends on temperatures or on time."""
        radiates = self.gap is not None and self.gap.emissivities is not None
        if radiates or not isinstance(law := self.law, Constant):
            return self.resistance
        return 1.0 / max(law.value / (1.0 if self.gap is None else self.gap.width), 1.0 / LARGEST)
