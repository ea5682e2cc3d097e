"""What methods that choose their own steps ask of a backend: stages, rates, norms and interpolation of one field."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple, Protocol

from heatsim.parallel.slab import Share
from heatsim.physics.time.stage_times import Side
from heatsim.solver.field.field import Field
from heatsim.solver.stabilized.interpolation import Weights

# The state from which a run continues: the field; and, by name, shares of sums and arrays of own planes on the host.
Restart = tuple[Field, Mapping[str, Share], Mapping[str, Any]]


class End(Enum):
    """The two ends of a step."""

    FIRST = 0
    LAST = 1


class Measure(NamedTuple):
    """What one look at the last end gives, in K.

    Attributes:
        size: of a combination of fields: the larger of the largest |mean over 2 × 2 × 2 cells|, and of the largest
            absolute value in a cell less what rounding can cause, at most three quarters of it.
        low, high: extremes of the temperatures at the last end; NaN if there is one in the field.
    """

    size: float
    low: float
    high: float


class StepInterrupted(Exception):  # noqa: N818  (not an error)
    """A signal stopped the stages of a step. The field and the ledger are those of its start."""


class StepStages(Protocol):
    """How a backend does a step of some length; only its backend looks inside."""

    @property
    def count(self) -> int:
        """Number of stages."""


class Substeps(Protocol):
    """One field with its rates, on any backend.

    It has a first end (T_n, F_n and the sums of the ledger so far) and a last end (T_{n+1}, F_{n+1}, sums). Between
    two steps both are kept, so that rows in between can be interpolated. Work may be queued: only :meth:`measure`
    must wait for it.
    """

    @property
    def dt_limit(self) -> float:
        """The limit of an Euler step in s, faces included: no rate of the body is above 2/dt_limit."""

    @property
    def longest(self) -> float:
        """The longest step in s that the stages allow."""

    @property
    def factor(self) -> float:
        """The factor of the error estimate: see :func:`heatsim.solver.stabilized.interpolation.factor_of_estimate`."""

    def choose(self, h: float, tolerance: float) -> StepStages:
        """The stages for a step of ``h`` s, at most ``longest``, whose error may be ``tolerance`` in K."""

    def rate(self, end: End, t: float, side: Side, stages: int = 0) -> None:
        """Calculate F(T) = dT/dt in K/s of one end at time ``t`` (s), and the flows through surfaces in W.

        Face values and sources are those at ``t``, approached from ``side``. The sums of the ledger do not change.
        ``stages`` is the number of stages of the step that ended at ``t``, 0 without one: a backend may smooth noise of
        rounding, which long steps would multiply.
        """

    def trial(self, h: float) -> None:
        """Set the last end to T_n + h·F_n. The ledger does not change."""

    def advance(self, stages: Any, t: float, h: float) -> None:
        """Do all stages of a step of ``h`` s from the first end at time ``t``; the result is the last end.

        The first end keeps its field and rate. Sums of the ledger at the last end are those of the first and the
        flows of all stages with their weights: see heatsim/solver/stabilized/scheme.py and
        heatsim/solver/implicit/scheme.py. ``stages`` are those of :meth:`choose`.

        Raises:
            StepInterrupted: a signal came; the caller calls :meth:`reject`.
        """

    def measure(self, weights: Weights, stages: int) -> Measure:
        """Size of the combination of T_n, F_n, T_{n+1}, F_{n+1} with ``weights``; extremes of T_{n+1}.

        ``stages`` is the number of stages of the step, from which the noise of rounding follows. Averaging over
        2 × 2 × 2 cells keeps this noise out of the mean; what alternates from cell to cell shows in the cells alone.
        Blocks at the upper end of an axis may be smaller. Void cells do not count. NaN in the combination gives NaN.
        """

    def accept(self) -> None:
        """Make the last end the first one: field, rate, flows and sums."""

    def take_shown(self) -> None:
        """Make what observers read the first end: field, sums and nodes."""

    def reject(self) -> None:
        """Forget the last end; the sums of the ledger are those of the first again."""

    def interpolate(self, weights: Weights) -> None:
        """Combine field, stored heat, heats through surfaces and of sources of both ends for observers to read.

        Heats are combined with flows in W in the place of rates.
        """
