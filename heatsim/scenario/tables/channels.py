"""Channels: void regions through which a fluid flows and takes up heat on its way."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field, PlainValidator, ValidationInfo, field_validator

from heatsim.scenario.context import folder_of
from heatsim.scenario.messages import did_you_mean, fault, refuse
from heatsim.scenario.tables.fields import (
    STRICT,
    CoefficientInTime,
    FaceName,
    Form,
    MassFlow,
    OrTable,
    SpecificHeat,
    Text,
    read_text,
)
from heatsim.scenario.tables.nodes import column_name
from heatsim.scenario.values.nodetemperature import NodeTemperature
from heatsim.scenario.values.quantities import TEMPERATURE
from heatsim.scenario.values.timefunction import TimeFunction, read_time_function

_CHANNEL = "channel"


@dataclass(frozen=True)
class ChannelOutlet(NodeTemperature):
    """The temperature at which the fluid leaves another channel, whose name ``node`` is."""


def _read_inlet(value: object, info: ValidationInfo) -> TimeFunction:
    unknown = [key for key in value if key != _CHANNEL] if isinstance(value, Mapping) else []
    if not isinstance(value, Mapping) or not (
        _CHANNEL in value or any(did_you_mean(str(key), (_CHANNEL,)) for key in unknown)
    ):
        return read_time_function(value, TEMPERATURE, folder_of(info))
    if unknown:
        refuse([fault(f"unknown key{did_you_mean(str(key), (_CHANNEL,))}", (str(key),)) for key in unknown])
    try:
        return ChannelOutlet(read_text(value[_CHANNEL]))
    except ValueError as error:
        refuse([fault(str(error), (_CHANNEL,))])


class Channel(BaseModel):
    """A fluid that flows straight through a void region, from one face of the box towards the opposite one.

    Each plane of cells across the way has its own fluid temperature. Over a plane whose wall has one temperature T_w,
    the fluid approaches it as exp(−h·A/(ṁ·c)).
    """

    model_config = STRICT

    name: Text = Field(examples=['name = "cold plate"'], description="Name of the channel")
    region: Text = Field(examples=['region = "slot"'], description="Void region through which the fluid flows")
    from_: FaceName = Field(
        alias="from",
        examples=['from = "x_min"'],
        description="Side on which the fluid enters; it flows towards the opposite one",
    )
    inlet: Annotated[
        TimeFunction,
        PlainValidator(_read_inlet),
        TEMPERATURE,
        OrTable((_CHANNEL,)),
        Form('≥ 0; may change in time; or `{ channel = "first" }`'),
    ] = Field(examples=['inlet = "25 degC"'], description="Temperature at which it enters, or the channel before")
    mass_flow: MassFlow = Field(examples=["mass_flow = 0.02"], description="Mass flow")
    specific_heat: SpecificHeat = Field(examples=["specific_heat = 4180.0"], description="Specific heat of the fluid")
    coefficient: CoefficientInTime = Field(
        examples=["coefficient = 5000.0"], description="Heat transfer coefficient between the fluid and the walls"
    )

    _check_name = field_validator("name")(column_name)

    @property
    def capacity_rate(self) -> float:
        """Mass flow times specific heat in W/K."""
        return self.mass_flow * self.specific_heat

    @property
    def before(self) -> str | None:
        """The name of the channel from which the fluid comes, if it comes from one."""
        return self.inlet.node if isinstance(self.inlet, ChannelOutlet) else None


def outlet_document(outlet: ChannelOutlet) -> dict[str, Any]:
    """The inlet as TOML has it."""
    return {_CHANNEL: outlet.node}
