"""The equations of a steady state as Newton's method wants them: linear systems, one after the other."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.kernels.multigrid.operator import Operator
from heatsim.physics.cell_types import INTERIOR
from heatsim.physics.steady_balance import Flows, SteadyBalance
from heatsim.physics.steady_varying import linearise, moved

Array = NDArray[np.float64]

# A step of a problem that is not linear leaves absolute temperatures within these factors of what they were: the
# fourth power bends.
LEAST, MOST = 0.5, 2.0


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """A·x = b, in units of the balance's scale.

    Attributes:
        operator: A.
        b: right-hand side, of the operator's precision.
        x: float64; the first guess, and the solution in the end.
        exact: whether its solution is the steady state, because nothing had to be linearised.
    """

    operator: Operator
    b: Any
    x: Any
    exact: bool


class Equations:
    """The balance of a body on a device.

    Attributes:
        xp: NumPy, or CuPy.
        temperature: deviations in K of the cells, float64, a device array; void keeps its first guess.
    """

    def __init__(self, device: Device, balance: SteadyBalance, precision: str, temperature: Any) -> None:
        """Put the conductances on the device.

        Args:
            device: where the arrays are.
            balance: of the body.
            precision: of conductances and sources.
            temperature: the first guess as deviations in K, float64 on the device; is written to.
        """
        self.xp = device.xp
        self.temperature = temperature
        self._device, self._balance, self._scale = device, balance, balance.scale
        self._operator = Operator(
            balance.links(self.xp, precision, self._scale), self.xp.zeros(balance.medium.grid.shape, dtype=precision)
        )
        self._b = balance.sources(self.xp, precision, self._scale)
        exchanging = [surface.cells for surface in balance.surfaces]
        # A cell at an edge of the body exchanges through several surfaces.
        self._cells, inverse = np.unique(np.concatenate([*exchanging, np.zeros(0, np.int64)]), return_inverse=True)
        ends = np.cumsum([len(cells) for cells in exchanging])
        self._places = np.split(inverse, ends[:-1]) if len(exchanging) else []
        self._on_device = self.xp.asarray(self._cells)
        self._own = device.to_host(self._b.reshape(-1)[self._on_device]).astype(np.float64)
        medium = balance.medium
        self._conducts = None
        if medium.void is not None and not medium.uniform:
            self._conducts = self.xp.asarray((medium.cells & np.uint8(INTERIOR - 1)) != medium.void)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(nz, ny, nx)."""
        return self._operator.shape

    @property
    def linear(self) -> bool:
        """Whether one system is enough."""
        return self._balance.linear

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays on the device, the temperature's among them."""
        return self._operator.nbytes + int(self._b.nbytes) + int(self.temperature.nbytes)

    def linearise(self) -> LinearSystem:
        """The system whose solution is the next temperature."""
        linear = self._balance.linear
        T = self._device.to_host(self.temperature.reshape(-1)[self._on_device])
        heat, slope = self._exchange(T)
        self._put(self._b, self._own + (heat + slope * T) / self._scale)
        self._put(self._operator.ground, slope / self._scale)
        x = self.temperature if linear else self.temperature.copy()
        return LinearSystem(self._operator, self._b, x, exact=linear)

    def update(self, system: LinearSystem) -> None:
        """Take over the solution, or a part of the way there."""
        if system.exact:
            return
        xp, reference = self.xp, self._balance.reference
        kelvin = self.temperature + reference
        xp.clip(system.x, LEAST * kelvin - reference, MOST * xp.maximum(kelvin, 1.0) - reference, out=self.temperature)

    def release(self) -> None:
        """Give memory back that making the coarse levels took, where a pool keeps it."""
        if self._device.backend == "cuda":
            self.xp.get_default_memory_pool().free_all_blocks()

    def flows(self) -> Flows:
        """Where heat enters and leaves."""
        T = self._device.to_host(self.temperature.reshape(-1)[self._on_device])
        return self._balance.flows([T[places] for places in self._places])

    def spread(self, system: LinearSystem) -> float:
        """The range of the temperatures in K, void left out."""
        x = system.x if self._conducts is None else system.x[self._conducts]
        return float(x.max() - x.min())

    def _exchange(self, T: Array) -> tuple[Array, Array]:
        """Heat in W into the cells at surfaces, and its slope in W/K, at their T."""
        heat, slope = np.zeros(len(T)), np.zeros(len(T))
        for surface, places in zip(self._balance.surfaces, self._places, strict=True):
            gained, lost = self._balance.exchange(surface, T[places])
            heat += np.bincount(places, gained, len(T))
            slope += np.bincount(places, lost, len(T))
        return heat, slope

    def _put(self, array: Any, values: Array) -> None:
        array.reshape(-1)[self._on_device] = self.xp.asarray(values.astype(array.dtype))


class VaryingEquations(Equations):
    """Where conductivities depend on temperature: each system is for a change of potentials, from 0 on.

    Conduction is linearised on the host, a few NumPy operations a cell in each Newton step.
    """

    def linearise(self) -> LinearSystem:
        """The system whose solution is a change of potentials."""
        balance, scale, xp = self._balance, self._scale, self.xp
        T = self._device.to_host(self.temperature)
        self._linearised = found = linearise(balance.medium, balance.periodic, T + balance.shift)
        conducting, weight = (values.reshape(-1)[self._cells] for values in (found.conducting, found.weight))
        heat, slope = self._exchange(T.reshape(-1)[self._cells])
        for link, values in zip(self._operator.links, found.links, strict=True):
            link[...] = xp.asarray((values / scale).astype(link.dtype))
        residual = found.gain / scale
        residual += balance.sources(np, "float64", scale)
        residual.reshape(-1)[self._cells] += heat / scale
        self._b[...] = xp.asarray(residual.astype(self._b.dtype))
        self._put(self._operator.ground, slope * weight / conducting / scale)
        return LinearSystem(self._operator, self._b, xp.zeros(self.shape), exact=False)

    def update(self, system: LinearSystem) -> None:
        """Move the potentials."""
        balance = self._balance
        v = self._device.to_host(system.x)
        T = moved(balance.medium, self._linearised, v) - balance.shift
        kelvin = self._device.to_host(self.temperature) + balance.reference
        T = np.clip(T, LEAST * kelvin - balance.reference, MOST * np.maximum(kelvin, 1.0) - balance.reference)
        self.temperature[...] = self.xp.asarray(T)

    def spread(self, system: LinearSystem) -> float:
        """The range of the temperatures in K before this change, void left out."""
        return super().spread(LinearSystem(system.operator, system.b, self.temperature, exact=False))
