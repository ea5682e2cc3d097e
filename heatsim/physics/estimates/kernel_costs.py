"""The time that kernels need for a sweep over cells of different kinds: fixed weights, not measured in a run.

The weights of cells are in ns on one CPU core. Measured times there, in ns a cell, with 36 to 2 million cells:

                      plain bodies    materials vary    other bodies
    Euler step             0.5           1.8 to 6        0.9 to 2.3
    stage                  1.4           3.6 to 9        1.9 to 4
    application            10            45 to 60        10 to 13

On a GPU a stage costs little more than a step, but an application costs as much as 3 to 60 stages. The weight of an
application lies in between. Where the weights promise a speed-up of three, the CPU was 2 to 5 times as fast.

The weights of planes serve to divide a grid among ranks. They were measured for bodies with fins and pins of 4 to 16
cells: in ns with 370,000 cells on one CPU core, and in ps with 14 million cells on an H200. Void cells cost as much as
others. On a GPU the weights for materials that vary and for heated cells are estimates.
"""

from dataclasses import dataclass
from typing import NamedTuple

from heatsim.scenario import Scenario


class SweepCost(NamedTuple):
    """The cost of one sweep over the grid.

    Attributes:
        call: cost of the call itself.
        plain: cost of a cell in a body of one constant material with linear faces.
        varying: cost of a cell in a body with a material that varies with temperature.
        other: cost of a cell in any other body.
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
        step, stage: cost of a cell in a step of "euler", or in a stage of other methods.
        face: additional cost of a face between two kinds of cells.
        surface: additional cost of a face towards void that lets heat through.
        heated: additional cost of a cell that a source heats individually.
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
