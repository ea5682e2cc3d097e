"""What a case is: a scenario, what is looked at when it has run, and what that must be."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heatsim.run.simulation import Simulation
from heatsim.storage import folder, tables

Array = NDArray[np.float64]
# The temperature in K at x, y, z, which are arrays that can be broadcast, and a time in s.
Temperature = Callable[[Array, Array, Array, float], Array]

FOLDER = Path(__file__).parent / "cases"
# Halving the spacing of a scheme of second order divides the error by 4, which is an order of 2.
LEAST_ORDER = 1.9


@dataclass(frozen=True, eq=False)
class Comparison:
    """Values in K that are known and the same ones as computed, of equal shapes."""

    reference: Array
    computed: Array

    @property
    def error(self) -> float:
        """The largest difference in K; NaN if one is."""
        return float(np.abs(self.computed - self.reference).max())

    @property
    def rms(self) -> float:
        """The root of the mean square of the differences in K."""
        return float(np.sqrt(np.mean((self.computed - self.reference) ** 2)))

    @property
    def worst(self) -> tuple[float, float]:
        """The known and the computed value that differ most."""
        at = int(np.argmax(np.abs(self.computed - self.reference)))
        return float(self.reference.flat[at]), float(self.computed.flat[at])


Quantity = Callable[[Simulation], Comparison]


@dataclass(frozen=True)
class Case:
    """A scenario with a known answer.

    Attributes:
        name: of the case and, with .toml, of its scenario file.
        source: who published the answer, or where it is derived.
        quantity: compares a run that is done with what is known.
        range: the difference in K between the warmest and the coldest that there is.
        tolerance: the largest error allowed, as a fraction of the range.
        float32: the same for float32, where rounding decides; None where it does not.
        order: whether the scenario is run on half as many cells along each axis too, with four times the time step, and
            the order of convergence must be at least ``LEAST_ORDER``.
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
        """Its scenario file, which can be run by itself."""
        return FOLDER / f"{self.name}.toml"

    def allowed(self, precision: str) -> float:
        """The largest error allowed in K."""
        fraction = self.float32 if self.float32 is not None and precision == "float32" else self.tolerance
        return self.range * fraction


def probes(values: Mapping[float, tuple[float, ...]]) -> Quantity:
    """Rows of probes.csv: for each time in s the temperatures in K of all probes, in their order."""

    def compare(simulation: Simulation) -> Comparison:
        _, rows = tables.read(simulation.folder / folder.PROBES)
        computed = {float(row[0]): row[1:] for row in rows}
        return Comparison(
            np.array(list(values.values()), dtype=np.float64), np.array([computed[time] for time in values])
        )

    return compare


def everywhere(temperature: Temperature) -> Quantity:
    """Every cell at the end."""

    def compare(simulation: Simulation) -> Comparison:
        grid = simulation.plan.problem.grid
        x, y, z = (grid.centres(axis) for axis in range(3))
        known = temperature(x[None, None, :], y[None, :, None], z[:, None, None], simulation.time)
        return Comparison(np.broadcast_to(known, grid.shape), simulation.temperature)

    return compare
