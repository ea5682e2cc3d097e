"""The conditions on the faces of the box."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field, ModelWrapValidatorHandler, ValidationInfo, field_validator, model_validator

from heatsim.grid import FACES
from heatsim.scenario.messages import fault, missing_key, validate_beside
from heatsim.scenario.tables.fields import (
    STRICT,
    AmbientInTime,
    CoefficientAtSurface,
    EmissivityAtSurface,
    FluxInTime,
    PowerInTime,
    TemperatureInTime,
)
from heatsim.scenario.values.surfacefunction import SurfaceFunction
from heatsim.scenario.values.timefunction import Constant

# The default of a key whose value comes from another key.
UNNAMED: Any = None


class Temperature(BaseModel):
    """A face held at a temperature in K."""

    model_config = STRICT

    type: Literal["temperature"] = Field(default="temperature", description="Surface held at a temperature")
    value: TemperatureInTime = Field(examples=["value = 300.0"], description="Temperature of the surface")


class Flux(BaseModel):
    """A surface with a heat flux in W/m², or with a power in W, spread evenly over it; both positive into the body."""

    model_config = STRICT

    type: Literal["flux"] = Field(default="flux", description="Given heat flux")
    value: FluxInTime | None = Field(
        default=None,
        examples=["value = 2000.0"],
        description="Heat flux into the body",
        json_schema_extra={"default": "required, or `power`"},
    )
    power: PowerInTime | None = Field(
        default=None,
        examples=["power = 5.0"],
        description="Instead of `value`: heat into the body through the whole surface, exact on any grid",
    )

    @model_validator(mode="wrap")
    @classmethod
    def _check_amount(cls, table: Any, validate: ModelWrapValidatorHandler["Flux"]) -> "Flux":
        faults = []
        if isinstance(table, Mapping):
            if "value" not in table and "power" not in table:
                faults.append(fault(missing_key("value = 2000.0, or power = 5.0"), ("value",)))
            elif "value" in table and "power" in table:
                faults.append(fault("got value and power; write one of them"))
        return validate_beside(faults, validate, table)


_FLUX_BESIDE: Any = Field(
    default=Constant(0.0), description="Heat flux into the body beside this exchange, such as absorbed sunlight"
)


class Convection(BaseModel):
    """A face with the heat flux coefficient · (ambient − surface) in W/m²; coefficient in W/(m² K), ambient in K.

    With an emissivity it also radiates to ``surroundings`` (K), whose default is the ambient temperature. ``flux`` in
    W/m² acts beside both.
    """

    model_config = STRICT

    type: Literal["convection"] = Field(
        default="convection", description="Exchange with a fluid: coefficient · (ambient − surface)"
    )
    coefficient: CoefficientAtSurface = Field(examples=["coefficient = 500.0"], description="Heat transfer coefficient")
    ambient: AmbientInTime = Field(examples=['ambient = "20 degC"'], description="Temperature of the fluid")
    emissivity: EmissivityAtSurface = Field(
        default=Constant(0.0), description="If not 0, the surface also radiates to `surroundings`"
    )
    surroundings: AmbientInTime = Field(
        default=UNNAMED,
        description="Temperature of the surroundings that radiate",
        json_schema_extra={"default": "`ambient`"},
    )
    flux: FluxInTime = _FLUX_BESIDE

    @field_validator("surroundings", mode="before")
    @classmethod
    def _use_ambient(cls, value: object, info: ValidationInfo) -> object:
        return info.data.get("ambient", Constant(0.0)) if value is None else value


class Radiation(BaseModel):
    """A face with the heat flux emissivity · σ · (ambient⁴ − surface⁴) + flux in W/m², ambient in K."""

    model_config = STRICT

    type: Literal["radiation"] = Field(
        default="radiation", description="Radiation: emissivity · σ · (ambient⁴ − surface⁴)"
    )
    emissivity: EmissivityAtSurface = Field(examples=["emissivity = 0.8"], description="Emissivity")
    ambient: AmbientInTime = Field(examples=['ambient = "20 degC"'], description="Temperature of the surroundings")
    flux: FluxInTime = _FLUX_BESIDE


class Insulated(BaseModel):
    """A face without heat flux."""

    model_config = STRICT

    type: Literal["insulated"] = Field(default="insulated", description="No heat flux")


class Periodic(BaseModel):
    """A face that is connected to the opposite face."""

    model_config = STRICT

    type: Literal["periodic"] = Field(
        default="periodic", description="The body continues at the opposite face; both faces of an axis need this type"
    )


_OnSurface = Temperature | Flux | Convection | Radiation | Insulated
_OnFace = _OnSurface | Periodic
# The condition of a patch, or of a surface towards void; and of a face of the box.
Surface = Annotated[_OnSurface, Field(discriminator="type")]
Face = Annotated[_OnFace, Field(discriminator="type")]
# The models by their `type`.
FACE_TYPES: dict[str, type[BaseModel]] = {model.model_fields["type"].default: model for model in get_args(_OnFace)}


def radiates(condition: Face) -> bool:
    """Whether a condition radiates, at any time."""
    return isinstance(condition, Radiation) or (
        isinstance(condition, Convection) and condition.emissivity != Constant(0.0)
    )


def depends_on_surface(condition: Face) -> bool:
    """Whether a film coefficient or an emissivity depends on the temperature of the surface."""
    return any(isinstance(value, SurfaceFunction) for value in vars(condition).values())


def is_linear(condition: Face) -> bool:
    """Whether the heat flux is a linear function of the temperature of the surface."""
    return not radiates(condition) and not depends_on_surface(condition)


class Boundaries(BaseModel):
    """The conditions on the six faces; ``default`` is the condition of every face that the file does not name.

    ``void`` is the condition on every surface between a conducting cell and a void cell.
    """

    model_config = STRICT

    default: Face = Field(
        default=Insulated(),
        description="Condition of every face that has no key",
        json_schema_extra={"default": "insulated"},
    )
    x_min: Face = Field(
        default=UNNAMED, description="Condition of the face", json_schema_extra={"default": "`default`"}
    )
    x_max: Face = Field(
        default=UNNAMED, description="Condition of the face", json_schema_extra={"default": "`default`"}
    )
    y_min: Face = Field(
        default=UNNAMED, description="Condition of the face", json_schema_extra={"default": "`default`"}
    )
    y_max: Face = Field(
        default=UNNAMED, description="Condition of the face", json_schema_extra={"default": "`default`"}
    )
    z_min: Face = Field(
        default=UNNAMED, description="Condition of the face", json_schema_extra={"default": "`default`"}
    )
    z_max: Face = Field(
        default=UNNAMED, description="Condition of the face", json_schema_extra={"default": "`default`"}
    )
    void: Surface = Field(
        default=Insulated(),
        description="Condition of every surface between a conducting cell and a void cell; not `periodic`",
        json_schema_extra={"default": "insulated"},
    )

    def face(self, name: str) -> Face:
        """The condition on a face, ``"x_min"`` to ``"z_max"``."""
        if name not in FACES:
            raise KeyError(name)
        condition: Face = getattr(self, name)
        return condition

    @field_validator(*FACES, mode="before")
    @classmethod
    def _use_default(cls, value: object, info: ValidationInfo) -> object:
        return info.data.get("default", Insulated()) if value is None else value

    @field_validator("x_max", "y_max", "z_max", mode="after")
    @classmethod
    def _pair_periodic(cls, upper: Face, info: ValidationInfo) -> Face:
        opposite = str(info.field_name).replace("max", "min")
        lower = info.data.get(opposite)
        # If `default` has a mistake, the condition of a face without its own key is unknown.
        if lower is not None and "default" in info.data and (lower.type == "periodic") != (upper.type == "periodic"):
            raise ValueError(
                f'got type "{upper.type}" while boundaries.{opposite} has type "{lower.type}"; '
                'both faces of an axis must be "periodic", or neither'
            )
        return upper
