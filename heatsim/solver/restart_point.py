"""The state that a checkpoint keeps, at the end of a step."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from heatsim.solver.field import Field


@dataclass(frozen=True)
class RestartPoint:
    """What a run that is resumed goes on from.

    Attributes:
        step: number of steps done whose rows are written.
        field: the field to go on from.
        sums: the ledger's sums that belong to it, on the host.
        values: what else the method needs.
        planes: more arrays of cells in own planes, on the host.
    """

    step: int
    field: Field
    sums: Mapping[str, Any]
    values: Mapping[str, Any]
    planes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
