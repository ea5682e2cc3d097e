"""The key `repeat` of regions, sources and layers: equal parts at equal distances."""

from math import prod
from typing import Annotated

from pydantic import BaseModel, Field, PlainValidator, model_validator

from heatsim.grid import AXES
from heatsim.scenario.messages import fault, refuse, show
from heatsim.scenario.tables.fields import STRICT, Form, Point

MOST_COPIES = 4096


def _read_counts(value: object) -> tuple[int, int, int]:
    wanted = f"three whole numbers from 1 are expected, along x, y, z, with at most {MOST_COPIES:,} copies in all"
    numbers = list(value) if isinstance(value, list | tuple) else []
    whole = all(isinstance(each, int) and not isinstance(each, bool) and each >= 1 for each in numbers)
    if len(numbers) != len(AXES) or not whole or prod(numbers) > MOST_COPIES:
        raise ValueError(f"got {show(value)}; {wanted}")
    nx, ny, nz = numbers
    return nx, ny, nz


class Repeat(BaseModel):
    """How often a part is repeated along x, y, z, and the distance in m from one copy to the next along each axis."""

    model_config = STRICT

    count: Annotated[tuple[int, int, int], PlainValidator(_read_counts), Form("three whole numbers from 1")] = Field(
        examples=["count = [10, 4, 1]"], description="Number of copies along x, y, z, the first one included"
    )
    step: Point = Field(
        examples=["step = [1e-3, 1e-3, 0.0]"], description="Distance from one copy to the next along x, y, z"
    )

    @model_validator(mode="after")
    def _check_steps(self) -> "Repeat":
        faults = [
            fault(
                f"got {step!r}, but there are {count} copies along {axis}: they would lie on each other",
                ("step", index),
            )
            for index, (axis, count, step) in enumerate(zip(AXES, self.count, self.step, strict=True))
            if count > 1 and step == 0.0
        ]
        if faults:
            refuse(faults)
        return self
