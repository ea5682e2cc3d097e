"""Contacts: thermal resistances between materials or regions."""

from typing import Annotated

from pydantic import BaseModel, Field, PlainValidator

from heatsim.scenario.messages import fault, refuse, show
from heatsim.scenario.tables.fields import STRICT, ContactResistance, Form
from heatsim.scenario.tables.materials import read_material_name


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


class Contact(BaseModel):
    """A resistance in m² K/W wherever two materials touch, two regions, or a material and a region."""

    model_config = STRICT

    between: Annotated[tuple[str, str], PlainValidator(read_between), Form("two names of materials or regions")] = (
        Field(
            examples=['between = ["copper", "silicon"]'],
            description="What touches. A contact between regions prevails over one between materials",
        )
    )
    resistance: ContactResistance = Field(examples=["resistance = 1e-5"], description="Resistance wherever they touch")

    @property
    def name(self) -> str:
        """Its name in tables: "copper to silicon"."""
        return " to ".join(self.between)
