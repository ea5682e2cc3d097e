"""The state that a checkpoint keeps, at the end of a step."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from heatsim.parallel.slab import Share
from heatsim.solver.field.field import Field


@dataclass(frozen=True)
class RestartPoint:
    """The state from which a resumed run continues.

    Attributes:
        step: number of steps done whose rows are written.
        field: the field.
        sums: this rank's share of the ledger's sums at the time of this field.
        values: other values that the method needs.
        planes: more arrays of cells in own planes, on the host.
    """

    step: int
    field: Field
    sums: Mapping[str, Share]
    values: Mapping[str, Any]
    planes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
