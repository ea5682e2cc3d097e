"""Nodes: bodies without shape, such as the air of a room, that exchange heat with surfaces and with each other."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, Field, ModelWrapValidatorHandler, field_validator, model_validator

from heatsim.scenario.messages import faults_of_one, show, validate_beside
from heatsim.scenario.tables.fields import (
    STRICT,
    Conductance,
    Kelvin,
    KnownTemperature,
    MassFlow,
    NodeHeatCapacity,
    PowerInTime,
    SpecificHeat,
    Text,
)
from heatsim.scenario.values.timefunction import Constant, TimeFunction


def column_name(name: str) -> str:
    """A name whose column in nodes.csv is none of the others."""
    if name == "time":
        raise ValueError('got "time"; this is the name of the first column in nodes.csv: choose another')
    return name


class NodeLink(BaseModel):
    """Heat conducted between a node and another one, or between a node and a given temperature."""

    model_config = STRICT

    node: Text | None = Field(
        default=None,
        examples=['node = "attic"'],
        description="The other node",
        json_schema_extra={"default": "required, or `ambient`"},
    )
    ambient: KnownTemperature | None = Field(
        default=None,
        examples=['ambient = "-5 degC"'],
        description="Instead of `node`: a given temperature",
    )
    conductance: Conductance = Field(examples=["conductance = 12.0"], description="Heat flow per kelvin of difference")

    @model_validator(mode="wrap")
    @classmethod
    def _check_end(cls, table: Any, validate: ModelWrapValidatorHandler["NodeLink"]) -> "NodeLink":
        return validate_beside(
            faults_of_one(table, ("ambient", "node"), 'ambient = "-5 degC", or node = "attic"'), validate, table
        )


class NodeFlow(BaseModel):
    """A fluid that enters a node at a temperature and leaves at that of the node."""

    model_config = STRICT

    inlet: KnownTemperature | None = Field(
        default=None,
        examples=['inlet = "5 degC"'],
        description="Temperature at which the fluid enters",
        json_schema_extra={"default": "required, or `node`"},
    )
    node: Text | None = Field(
        default=None,
        examples=['node = "attic"'],
        description="Instead of `inlet`: the node that the fluid comes from, at its temperature",
    )
    mass_flow: MassFlow = Field(examples=["mass_flow = 0.02"], description="Mass flow")
    specific_heat: SpecificHeat = Field(examples=["specific_heat = 1006.0"], description="Specific heat of the fluid")

    @model_validator(mode="wrap")
    @classmethod
    def _check_end(cls, table: Any, validate: ModelWrapValidatorHandler["NodeFlow"]) -> "NodeFlow":
        return validate_beside(
            faults_of_one(table, ("inlet", "node"), 'inlet = "5 degC", or node = "attic"'), validate, table
        )

    @property
    def capacity_rate(self) -> float:
        """Mass flow times specific heat in W/K."""
        return self.mass_flow * self.specific_heat


class Node(BaseModel):
    """A node has one temperature.

        heat_capacity · dT/dt = power + Σ conductance · (T_other − T) + Σ mass_flow · specific_heat · (T_inlet − T)
                                + heat from the surfaces whose ``ambient`` or ``surroundings`` it is

    A node without a heat capacity takes the temperature at which all this adds up to 0.
    """

    model_config = STRICT

    name: Text = Field(examples=['name = "air"'], description="Name of the node")
    heat_capacity: NodeHeatCapacity = Field(
        default=0.0,
        examples=['heat_capacity = "60 kJ/K"'],
        description="Heat capacity; with 0 the node follows at once",
    )
    initial_temperature: Kelvin | None = Field(
        default=None,
        examples=['initial_temperature = "20 degC"'],
        description="Temperature at t = 0 of a node with a heat capacity",
        json_schema_extra={"default": "required with a `heat_capacity`"},
    )
    power: PowerInTime = Field(
        default=Constant(0.0), examples=["power = 40.0"], description="Heat set free in the node"
    )
    links: tuple[NodeLink, ...] = Field(
        default=(),
        examples=['links = [{ ambient = "-5 degC", conductance = 3.0 }]'],
        description="Conductances to other nodes and to given temperatures; one entry serves both of its nodes",
    )
    flows: tuple[NodeFlow, ...] = Field(
        default=(),
        examples=['flows = [{ inlet = "5 degC", mass_flow = 0.02, specific_heat = 1006.0 }]'],
        description="Fluids that enter; as much leaves the node, to other nodes or outside",
    )

    @property
    def functions_in_time(self) -> Iterator[tuple[str, TimeFunction]]:
        """The values that may change in time, with their keys."""
        yield "power", self.power
        yield from ((f"links.{n}.ambient", link.ambient) for n, link in enumerate(self.links) if link.ambient)
        yield from ((f"flows.{n}.inlet", flow.inlet) for n, flow in enumerate(self.flows) if flow.inlet)

    @property
    def known_temperatures(self) -> Iterator[TimeFunction]:
        """The temperatures that the scenario gives: of links and inlets, and the initial one."""
        given = (*(link.ambient for link in self.links), *(flow.inlet for flow in self.flows))
        yield from (function for function in given if function is not None)
        if self.initial_temperature is not None and self.heat_capacity > 0.0:
            yield Constant(self.initial_temperature)

    _check_name = field_validator("name")(column_name)

    @model_validator(mode="after")
    def _check_start(self) -> "Node":
        """A node with a heat capacity starts at a temperature; one without follows its surroundings."""
        start = self.initial_temperature
        if self.heat_capacity == 0.0 and start is not None:
            raise ValueError(
                f"got initial_temperature = {show(start)} without a heat_capacity; such a node follows its "
                "surroundings at once: remove the key, or give a heat_capacity"
            )
        return self
