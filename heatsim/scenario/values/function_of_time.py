"""What a number as a function of time is: the base of constants, formulas and tables."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Length = float | NDArray[np.float64]  # of steps in s: one for all, or one for each


class TimeFunction:
    """A number as a function of time: a constant, a formula or a table.

    Attributes:
        end: the end of the run in s where the function has to know it; else None.
    """

    @property
    def end(self) -> float | None:
        """None."""
        return None

    @property
    def constant(self) -> bool:
        """Whether the value is the same at all times."""
        raise NotImplementedError

    @property
    def foreseen(self) -> bool:
        """Whether the values are known before the run; False if only their range is, see ``Steered``."""
        return True

    def at(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at times in s; each value depends only on its own time."""
        raise NotImplementedError

    def jumps(self, end: float, error: float = 0.0) -> NDArray[np.float64] | None:
        """Times in s in (0, ``end``), ascending, at which the value jumps or has a kink.

        Args:
            end: in s.
            error: kinks of a table are left out if straight lines between the others miss it by no more than this, in
                the unit of its values.

        Returns:
            The times; None if they are too many to distinguish.
        """
        raise NotImplementedError

    def resolved(self, end: float) -> bool:
        """Whether the nodes up to ``end`` (s) show all that it does; False if it changes too often."""
        return self.jumps(end) is not None

    def mean(self, times: NDArray[np.float64], dt: Length) -> NDArray[np.float64]:
        """Means over steps of ``dt`` seconds from ``times`` (s); each mean depends only on its own step."""
        raise NotImplementedError

    def nodes(self, end: float) -> NDArray[np.float64]:
        """Times in s from 0 to ``end``, ascending, between which the value is smooth and rises or falls.

        Gauss–Legendre quadrature with three points between them gives the integral. At a jump there are two nodes a
        rounding apart, one on each side.
        """
        raise NotImplementedError

    def extreme_times(self, end: float) -> NDArray[np.float64]:
        """0, and times in s up to ``end`` at which the value is lowest and highest."""
        nodes = self.nodes(end)
        values = self.at(nodes)
        return np.array([0.0, nodes[np.argmin(values)], nodes[np.argmax(values)]])

    def last_change(self, end: float) -> float:
        """The time in s from which the value is constant up to ``end`` (s); 0 if it never changes."""
        raise NotImplementedError

    def extremes(self, end: float) -> tuple[float, float]:
        """The lowest and highest value in [0, end]."""
        values = self.at(self.nodes(end))
        return float(values.min()), float(values.max())


class Unchanging(TimeFunction):
    """A number that does not change with time alone."""

    @property
    def constant(self) -> bool:
        """True."""
        return True

    def jumps(self, end: float, error: float = 0.0) -> NDArray[np.float64]:
        """None at all."""
        return np.zeros(0)

    def mean(self, times: NDArray[np.float64], dt: Length) -> NDArray[np.float64]:
        """As :meth:`at`."""
        return self.at(times)

    def nodes(self, end: float) -> NDArray[np.float64]:
        """0 and ``end``."""
        return np.array([0.0, end])

    def last_change(self, end: float) -> float:
        """0."""
        return 0.0


@dataclass(frozen=True)
class Constant(Unchanging):
    """One value at all times."""

    value: float

    def at(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """The value, once for each time."""
        return np.full(np.shape(times), self.value)


@dataclass(frozen=True)
class Mapped(TimeFunction):
    """What follows from the values of another function of time, and rises with them."""

    function: TimeFunction

    @abstractmethod
    def of(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """What follows from values of the function."""

    @property
    def constant(self) -> bool:
        """Whether the function is constant."""
        return self.function.constant

    @property
    def foreseen(self) -> bool:
        """Whether the values of the function are."""
        return self.function.foreseen

    def at(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at times in s."""
        return self.of(self.function.at(times))

    def jumps(self, end: float, error: float = 0.0) -> NDArray[np.float64] | None:
        """All those of the function."""
        return self.function.jumps(end)

    def resolved(self, end: float) -> bool:
        """Whether the function is."""
        return self.function.resolved(end)

    def mean(self, times: NDArray[np.float64], dt: Length) -> NDArray[np.float64]:
        """What follows from the means of the function."""
        return self.of(self.function.mean(times, dt))

    def nodes(self, end: float) -> NDArray[np.float64]:
        """Those of the function."""
        return self.function.nodes(end)

    def last_change(self, end: float) -> float:
        """That of the function."""
        return self.function.last_change(end)

    def extremes(self, end: float) -> tuple[float, float]:
        """What follows from the extremes of the function."""
        low, high = self.of(np.array(self.function.extremes(end))).tolist()
        return low, high
