"""The work of stages on a field: its requests to kernels, in order.

A work is a generator. It yields requests, receives their replies, and returns a result. So the order of the launches of
a step is written once. A run alone does each request at once; an ensemble does the requests of all its members with the
same launches.

        work of member 0    StageRun ── reply ── IncrementRun ── reply ── …
        work of member 1    StageRun ── reply ── IncrementRun ── reply ── …
                            └ same launches ┘
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from heatsim.kernels.composite.arrays import SweepTable
from heatsim.physics.operator.step_inputs import StepInputs

Numbers = TypeVar("Numbers")


@dataclass(eq=False)
class StageValues(Generic[Numbers]):
    """Conditions and sources of the stages of a step.

    Attributes:
        numbers: of the stages, in the form that their :class:`StageArguments` have.
        increments: of the stages that are added to another field.
        table: the stages on a GPU; None until they are needed there.
    """

    numbers: Numbers
    increments: StepInputs
    table: SweepTable | None = None


@dataclass(frozen=True, eq=False)
class StageRun:
    """A request for :meth:`StageKernels.advance`, with its arguments; its result is the reply."""

    T: Any
    T_new: Any
    values: StageValues[Any]
    some: slice
    enters: bool = True


@dataclass(frozen=True, eq=False)
class IncrementRun:
    """A request for :meth:`StageKernels.add_increments`, with its arguments; its result is the reply."""

    base: Any
    T: Any
    out: Any
    values: StageValues[Any]
    number: int


Result = TypeVar("Result")
Work = Generator[StageRun | IncrementRun, Any, Result]
