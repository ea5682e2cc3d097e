"""A verification case: a scenario, the quantity to compare, and its known value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heatsim.run.simulation import Simulation
from heatsim.storage import folder, tables

Array = NDArray[np.float64]
# The temperature in K at x, y, z (arrays that broadcast) and a time in s.
Temperature = Callable[[Array, Array, Array, float], Array]

FOLDER = Path(__file__).parent / "cases"
# A second-order scheme has order 2: half the spacing gives a quarter of the error.
LEAST_ORDER = 1.9


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
    """

    name: str
    source: str
    quantity: Quantity
    range: float
    tolerance: float
    float32: float | None = None
    order: bool = False

    @property
    def path(self) -> Path:
        """Its scenario file, which `heatsim run` accepts too."""
        return FOLDER / f"{self.name}.toml"

    def allowed(self, precision: str) -> float:
        """The largest allowed error in K."""
        fraction = self.float32 if self.float32 is not None and precision == "float32" else self.tolerance
        return self.range * fraction


def probes(values: Mapping[float, tuple[float, ...]]) -> Quantity:
    """Compare rows of probes.csv: for each time in s the temperatures in K of all probes, in their order."""

    def compare(simulation: Simulation) -> Comparison:
        _, rows = tables.read(simulation.folder / folder.PROBES)
        computed = {float(row[0]): row[1:] for row in rows}
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
