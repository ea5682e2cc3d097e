"""A verification case: a scenario, the quantity to compare, and its known value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heatsim.run.simulation import Simulation
from heatsim.scenario import ADAPTIVE
from heatsim.storage.run_tables import RunTable, read_probes

Array = NDArray[np.float64]
# The temperature in K at x, y, z (arrays that broadcast) and a time in s.
Temperature = Callable[[Array, Array, Array, float], Array]

FOLDER = Path(__file__).parent / "cases"
# A second-order scheme has order 2: half the spacing gives a quarter of the error.
LEAST_ORDER = 1.9
# The tolerance of a method that has one, as a part of the allowed error of the case. Where the order in
# space is tested, they must also be small against the error on the finer grid.
_PART_OF_STEP, _PART_OF_STEP_FOR_ORDER = 1e-2, 1e-3
# In float32 the least tolerance, as a part of the range: what rounding does not hide.
_LEAST_PART_OF_RANGE = 1e-5


@dataclass(frozen=True, eq=False)
class Comparison:
    """Known and computed values in K, of equal shapes."""

    reference: Array
    computed: Array

    @property
    def error(self) -> float:
        """The largest difference in K; NaN if any difference is NaN."""
        return float(np.abs(self.computed - self.reference).max())

    @property
    def rms(self) -> float:
        """The root of the mean square of the differences in K."""
        return float(np.sqrt(np.mean((self.computed - self.reference) ** 2)))

    @property
    def worst(self) -> tuple[float, float]:
        """The known and the computed value at the largest difference."""
        at = int(np.argmax(np.abs(self.computed - self.reference)))
        return float(self.reference.flat[at]), float(self.computed.flat[at])


Quantity = Callable[[Simulation], Comparison]


@dataclass(frozen=True)
class EndState:
    """The state that a transient case ends in, which the method "steady" must find.

    Attributes:
        in_space: the largest error of the grid in K; 0 where the end state is one temperature.
        quantity: compares a steady state with the known one; None where that of the case does.
    """

    in_space: float = 0.0
    quantity: Quantity | None = None


@dataclass(frozen=True)
class Case:
    """A scenario with a known answer.

    Attributes:
        name: name of the case; its scenario file is name.toml.
        source: the publication or derivation of the answer.
        quantity: compares a finished run with the known answer.
        range: difference between the highest and the lowest temperature in K.
        tolerance: the largest allowed error, as a fraction of the range.
        float32: the same for float32, if rounding dominates there; else None.
        order: whether the order of convergence is tested: the scenario also runs on half as many cells along each axis
            with four times the time step, and the order must be at least ``LEAST_ORDER``.
        adaptive: the same as ``tolerance`` for methods that follow a tolerance, where Euler's steps have other errors:
            they may take away a part of the error in space, or be the largest ones; else None.
        euler_only: why no other method in time can give the answer; empty if others can.
        end: the end state of a transient case, or the reason why none exists; empty for a steady case.
    """

    name: str
    source: str
    quantity: Quantity
    range: float
    tolerance: float
    float32: float | None = None
    order: bool = False
    adaptive: float | None = None
    euler_only: str = ""
    end: EndState | str = ""

    @property
    def path(self) -> Path:
        """Its scenario file, which `heatsim run` accepts too."""
        return FOLDER / f"{self.name}.toml"

    def allowed(self, precision: str, method: str = "euler") -> float:
        """The largest allowed error in K."""
        fraction = self.tolerance if self.adaptive is None or method not in ADAPTIVE else self.adaptive
        if precision == "float32" and self.float32 is not None:
            fraction = max(fraction, self.float32)
        return self.range * fraction

    def tolerance_of_step(self, precision: str) -> float:
        """The error in K that a step may have, so that the errors of all steps are small in the comparison."""
        part = _PART_OF_STEP_FOR_ORDER if self.order else _PART_OF_STEP
        least = _LEAST_PART_OF_RANGE * self.range if precision == "float32" else 0.0
        return max(part * self.allowed(precision, "stabilized"), least)


def table_of(read: Callable[[Path], RunTable | None], simulation: Simulation) -> RunTable:
    """A table of a finished run; a case that compares it writes it."""
    found = read(simulation.folder)
    assert found is not None
    return found


def probes(values: Mapping[float, tuple[float, ...]]) -> Quantity:
    """Compare rows of probes.csv: for each time in s the temperatures in K of all probes, in their order."""

    def compare(simulation: Simulation) -> Comparison:
        times, rows = _rows(simulation)
        computed = dict(zip(times.tolist(), rows, strict=True))
        return Comparison(
            np.array(list(values.values()), dtype=np.float64), np.array([computed[time] for time in values])
        )

    return compare


def everywhere(temperature: Temperature) -> Quantity:
    """Compare all cells at the end of the run."""

    def compare(simulation: Simulation) -> Comparison:
        grid = simulation.plan.problem.grid
        x, y, z = (grid.centres(axis) for axis in range(3))
        known = temperature(x[None, None, :], y[None, :, None], z[:, None, None], simulation.time)
        return Comparison(np.broadcast_to(known, grid.shape), simulation.temperature)

    return compare


def one_temperature(temperature: float, cells: bool = True) -> EndState:
    """The end state of a body that takes one temperature in K.

    Args:
        temperature: in K.
        cells: whether all cells are compared; if not, the probes, because some cells are void.
    """

    def at_probes(simulation: Simulation) -> Comparison:
        _, rows = _rows(simulation)
        return Comparison(np.full_like(rows, temperature), rows)

    quantity = everywhere(lambda x, y, z, t: np.full((), temperature)) if cells else at_probes
    return EndState(quantity=quantity)


def _rows(simulation: Simulation) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The times in s of the rows of probes.csv, and the temperatures in K, shape (rows, probes)."""
    probes = table_of(read_probes, simulation)
    return probes.times, np.stack(list(probes.columns.values()), axis=1)
