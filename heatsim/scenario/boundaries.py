"""The conditions on the faces of the box."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationInfo, field_validator

from heatsim.grid import FACES
from heatsim.scenario.fields import STRICT, CoefficientInTime, FluxInTime, TemperatureInTime


class Temperature(BaseModel):
    """A face held at a temperature in K."""

    model_config = STRICT

    type: Literal["temperature"] = "temperature"
    value: TemperatureInTime = Field(examples=["value = 300.0"])


class Flux(BaseModel):
    """A face with a heat flux in W/m², positive into the body."""

    model_config = STRICT

    type: Literal["flux"] = "flux"
    value: FluxInTime = Field(examples=["value = 2000.0"])


class Convection(BaseModel):
    """A face that exchanges coefficient · (ambient − surface) in W/m²; coefficient in W/(m² K), ambient in K."""

    model_config = STRICT

    type: Literal["convection"] = "convection"
    coefficient: CoefficientInTime = Field(examples=["coefficient = 500.0"])
    ambient: TemperatureInTime = Field(examples=['ambient = "20 degC"'])


class Insulated(BaseModel):
    """A face that lets no heat through."""

    model_config = STRICT

    type: Literal["insulated"] = "insulated"


class Periodic(BaseModel):
    """A face that continues at the opposite one."""

    model_config = STRICT

    type: Literal["periodic"] = "periodic"


FACE_TYPES: dict[str, type[BaseModel]] = {
    "temperature": Temperature,
    "flux": Flux,
    "convection": Convection,
    "insulated": Insulated,
    "periodic": Periodic,
}
Face = Annotated[Temperature | Flux | Convection | Insulated | Periodic, Field(discriminator="type")]
# Stands for `default` until that is known.
UNNAMED: Any = None


class Boundaries(BaseModel):
    """The conditions on the six faces; a face that the file does not name has the condition ``default``."""

    model_config = STRICT

    default: Face = Insulated()
    x_min: Face = UNNAMED
    x_max: Face = UNNAMED
    y_min: Face = UNNAMED
    y_max: Face = UNNAMED
    z_min: Face = UNNAMED
    z_max: Face = UNNAMED

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
        # Where `default` is wrong, what it stands for on this face is not known.
        if lower is not None and "default" in info.data and (lower.type == "periodic") != (upper.type == "periodic"):
            raise ValueError(
                f'got type "{upper.type}" while boundaries.{opposite} has type "{lower.type}"; '
                'both faces of an axis must be "periodic", or neither'
            )
        return upper
