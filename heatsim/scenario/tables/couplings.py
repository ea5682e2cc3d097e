"""Couplings: thermal conductances between surroundings, and what walls leave of them to a thermal bridge."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field, ModelWrapValidatorHandler, PlainValidator, model_validator

from heatsim.scenario.messages import fault, show, validate_beside
from heatsim.scenario.tables.fields import STRICT, Area, Form, Length, OrName, PsiValue, Text, UValue, read_text

# Surroundings: everything with one of these names.
Environment = Annotated[tuple[str, ...], OrName()]


def _read_between(value: object) -> tuple[Environment, Environment]:
    ends = value if isinstance(value, list | tuple) else ()
    lists = [tuple(names) if isinstance(names, list | tuple) else (names,) for names in ends]
    if len(lists) != 2 or not all(lists):
        raise ValueError(
            f'got {show(value)}; two surroundings are expected, as in ["room", "x_max"]; several names that are one of '
            'them stand in a list, as in ["room", ["x_max", "y_max"]]'
        )
    one, other = (tuple(map(read_text, names)) for names in lists)
    return one, other


class Wall(BaseModel):
    """A part of the envelope whose heat is not that of the bridge: U·length of a section, or U·area."""

    model_config = STRICT

    U: UValue = Field(examples=["U = 0.24"], description="Thermal transmittance")
    length: Length | None = Field(default=None, description="Length in the section, if the coupling has a length")
    area: Area | None = Field(default=None, description="Area, if the coupling has no length")


class Bridge(BaseModel):
    """A linear thermal bridge whose heat is not that of the point: psi·length."""

    model_config = STRICT

    psi: PsiValue = Field(examples=["psi = 0.05"], description="Linear thermal transmittance")
    length: Length = Field(examples=["length = 2.4"], description="Length of the bridge")


class Coupling(BaseModel):
    """The thermal coupling of two surroundings: the heat flow in W for each kelvin between them.

    Its columns in ``probes.csv`` are, with a length, `NAME L2D` in W/(m K) and with walls `NAME psi`, which is
    ψ = L2D − Σ U·length; without one `NAME L3D` in W/K and with walls or bridges `NAME chi`, which is
    χ = L3D − Σ U·area − Σ psi·length. It belongs to a linear steady state.
    """

    model_config = STRICT

    name: Text = Field(examples=['name = "reveal"'], description="Begins the names of its columns in `probes.csv`")
    between: Annotated[
        tuple[Environment, Environment],
        PlainValidator(_read_between),
        Form("two names; a list of names in the place of one is one of the two surroundings"),
    ] = Field(
        examples=['between = ["room", "x_max"]'],
        description="Two surroundings: faces, patches, regions of [[surfaces]], or `void`",
    )
    length: Length | None = Field(
        default=None, description="Length of the bridge, across the section; without it L3D of the whole domain"
    )
    walls: tuple[Wall, ...] = Field(default=(), description="Walls whose heat is not that of the bridge")
    bridges: tuple[Bridge, ...] = Field(default=(), description="Linear bridges beside a point, without `length`")

    def values(self, conductance: float) -> list[float]:
        """The numbers of its columns, for the heat flow in W/K."""
        losses = [wall.U * (wall.length or wall.area or 0.0) for wall in self.walls]
        losses += [bridge.psi * bridge.length for bridge in self.bridges]
        found = conductance / (self.length or 1.0)
        return [found, found - sum(losses)][: 2 if losses else 1]

    @property
    def columns(self) -> dict[str, str]:
        """The names and units of its columns."""
        return coupling_columns({**vars(self), "walls": self.walls or self.bridges})

    @model_validator(mode="wrap")
    @classmethod
    def _check_walls(cls, table: Any, validate: ModelWrapValidatorHandler["Coupling"]) -> "Coupling":
        walls = table.get("walls") if isinstance(table, Mapping) else None
        faults, long = [], isinstance(table, Mapping) and table.get("length") is not None
        key, other = ("length", "area") if long else ("area", "length")
        for number, wall in enumerate(walls if isinstance(walls, list | tuple) else ()):
            if isinstance(wall, Mapping) and (other in wall or key not in wall):
                message = f"got {show(wall)}; with{'' if long else 'out'} length of the coupling it has U and {key}"
                faults.append(fault(message, ("walls", number)))
        if long and table.get("bridges"):
            message = "beside length; linear bridges are subtracted from a coupling without length: remove one"
            faults.append(fault(message, ("bridges",)))
        return validate_beside(faults, validate, table)


def coupling_columns(table: Mapping[str, Any]) -> dict[str, str]:
    """The columns of a coupling, with their units, from its table."""
    name, long = str(table.get("name")), table.get("length") is not None
    unit, kinds = ("W/(m K)", ("L2D", "psi")) if long else ("W/K", ("L3D", "chi"))
    return {f"{name} {kind}": unit for kind in kinds[: 2 if table.get("walls") or table.get("bridges") else 1]}
