"""Work of stages on a field: the requests that it makes of kernels, in their order.

A work is a generator. It yields requests, receives their replies, and returns a result. So the order of the launches of
a step is written once: a run alone has each request done at once, and an ensemble has the requests of all its members
done by the same launches.

        work of member 0    StageRun ── reply ── IncrementRun ── reply ── …
        work of member 1    StageRun ── reply ── IncrementRun ── reply ── …
                            └ same launches ┘
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from numpy.typing import NDArray

from heatsim.kernels.composite.arrays import SweepTable
from heatsim.physics.rows import Rows


@dataclass(eq=False)
class StageValues:
    """Conditions and sources of the stages of a step.

    Attributes:
        rows: of the stages; None for a linear problem.
        sweeps: of the stages of a linear problem, struct Sweep on the host; None for others.
        increments: of the stages that are added to another field.
        table: the stages on a GPU; None until they are needed there.
    """

    rows: Rows | None
    sweeps: NDArray[Any] | None
    increments: Rows
    table: SweepTable | None = None


@dataclass(frozen=True, eq=False)
class StageRun:
    """A request for :meth:`StageKernels.advance`, with its arguments; its result is the reply."""

    T: Any
    T_new: Any
    values: StageValues
    some: slice
    enters: bool = True


@dataclass(frozen=True, eq=False)
class IncrementRun:
    """A request for :meth:`StageKernels.add_increments`, with its arguments; its result is the reply."""

    base: Any
    T: Any
    out: Any
    values: StageValues
    number: int


Result = TypeVar("Result")
Work = Generator[StageRun | IncrementRun, Any, Result]
