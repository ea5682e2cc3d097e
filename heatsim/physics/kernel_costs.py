"""The time that kernels need for a sweep over cells of different kinds: fixed weights, never measured in a run.

The weights of cells are ns of one CPU core. Measured there on 36 to 2 million cells, for a cell: an Euler step 0.5 in
plain bodies, 1.8 to 6 where materials vary, 0.9 to 2.3 in others; a stage 1.4, 3.6 to 9, 1.9 to 4; an application 10,
45 to 60, 10 to 13. On a GPU a stage costs little more than a step, but an application as much as 3 to 60 stages: its
weight lies in between. What counted as a gain of three was 2 to 5 in time on the CPU.

The weights of planes are for dividing a grid among ranks. They differ between devices. Measured with 370,000 cells on
one CPU core, in ns, and with 14 million cells on an H200, in ps, for bodies of fins and pins of 4 to 16 cells. Void
cells cost as much as others. Not measured yet on a GPU, but estimated: materials that vary, and heated cells.
"""

from dataclasses import dataclass
from typing import NamedTuple

from heatsim.scenario import Scenario


class SweepCost(NamedTuple):
    """The cost of one sweep over the grid.

    Attributes:
        call: of the call.
        plain: of a cell of a body of one constant material whose faces are linear.
        varying: of a cell of a body in which a material varies with temperature.
        other: of a cell of any other body.
    """

    call: float
    plain: float
    other: float
    varying: float


EULER = SweepCost(1e3, 0.6, 1.2, 2.5)
STAGE = SweepCost(1e4, 1.5, 2.2, 4.2)
APPLICATION = SweepCost(1e5, 20.0, 20.0, 50.0)


@dataclass(frozen=True)
class PlaneCost:
    """The cost of what a plane can contain, in any unit.

    Attributes:
        step, stage: of a cell in a step of "euler", or in a stage of other methods.
        face: of a face between two kinds of cells, in addition.
        surface: of a face towards void that lets heat through, in addition.
        heated: of a cell that a source heats by a value of its own, in addition.
    """

    step: float
    stage: float
    face: float
    surface: float
    heated: float


# For each device, if all materials are constant, and if one varies with temperature.
PLANES = {
    "cpu": (PlaneCost(0.6, 2.4, 0.4, 3.5, 0.5), PlaneCost(2.0, 4.4, 50.0, 3.5, 0.5)),
    "cuda": (PlaneCost(3.0, 10.0, 22.0, 16.0, 20.0), PlaneCost(6.0, 12.0, 22.0, 16.0, 20.0)),
}


def varies(scenario: Scenario) -> bool:
    """Whether a material of a scenario varies with temperature."""
    return any(material is not None and material.varies for _, material in scenario.palette)
