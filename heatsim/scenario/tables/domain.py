"""The box and its cells."""

from pydantic import BaseModel, Field

from heatsim.scenario.tables.fields import STRICT, Cells, Point, Size
from heatsim.scenario.tables.materials import MaterialName


class Domain(BaseModel):
    """The box and its cells; vectors are (x, y, z), lengths in m.

    ``material`` is the material before regions are painted: the name of one of several materials, or "void"; None if
    the scenario has one material without a name.
    """

    model_config = STRICT

    size: Size = Field(examples=["size = [0.1, 0.1, 0.1]"], description="Edge lengths of the box")
    cells: Cells = Field(
        examples=["cells = [64, 64, 64]"],
        description="Cells along x, y, z; 1 along an axis with insulated faces makes the problem exactly 2-D or 1-D",
    )
    origin: Point = Field(default=(0.0, 0.0, 0.0), description="Corner of the box with the smallest coordinates")
    material: MaterialName | None = Field(
        default=None,
        examples=['material = "copper"'],
        description="Material before regions are painted; required with several materials",
    )
