"""The equations of a steady state as Newton's method wants them: linear systems, one after the other."""

from dataclasses import dataclass
from typing import Any

from heatsim.kernels.multigrid.operator import Operator
from heatsim.physics.steady_balance import Flows, SteadyBalance
from heatsim.physics.steady_surfaces import SteadySurface

# A step of a problem that is not linear leaves absolute temperatures within these factors of what they were: the
# fourth power bends.
LEAST, MOST = 0.5, 2.0


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """A·x = b, in units of the balance's scale. All systems of the same equations are in the same arrays.

    Attributes:
        operator: A.
        b: right-hand side, of the operator's precision.
        x: float64; the first guess, and the solution in the end.
        temperature: deviations in K of the cells, whose range sets the tolerance where none is given; may be ``x``.
        exact: whether its solution is that of the equations, because nothing had to be linearised.
        changed: whether the operator may differ from that of the system before.
    """

    operator: Operator
    b: Any
    x: Any
    temperature: Any
    exact: bool
    changed: bool = True


class Equations:
    """The balance of a body on a device.

    Attributes:
        xp: NumPy, or CuPy.
        temperature: deviations in K of the cells, float64, a device array; void keeps its first guess.
        sought: what the solution is, for messages.
    """

    sought = "steady state"

    def __init__(self, balance: SteadyBalance, precision: str, temperature: Any) -> None:
        """Make conductances and sources.

        Args:
            balance: of the body, with arrays of the device.
            precision: of conductances and sources.
            temperature: the first guess as deviations in K, float64 on the device; is written to.
        """
        self.xp, self.temperature = balance.xp, temperature
        self._balance, self._scale = balance, balance.scale
        self._operator = Operator(
            balance.links(precision, self._scale), self.xp.zeros(balance.materials.grid.shape, dtype=precision)
        )
        self._b = balance.sources(precision, self._scale)
        self._x = temperature if balance.linear else self.xp.empty_like(temperature)
        self._bent = [surface for surface in balance.surfaces if not balance.is_linear(surface)]
        for surface in balance.surfaces:
            if balance.is_linear(surface):
                heat, slope = surface.linear_terms()
                self._add(surface, heat, slope)
        # What the surfaces that have to be linearised are added to each time.
        self._base = [[surface.of(of).copy() for of in (self._b, self._operator.ground)] for surface in self._bent]

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
        linear, ground, b = self._balance.linear, self._operator.ground, self._b
        # A cell at an edge of the body has several surfaces.
        for surface, base in zip(self._bent, self._base, strict=True):
            surface.put(base[0], b)
            surface.put(base[1], ground)
        for surface in self._bent:
            T = surface.of(self.temperature)
            heat, slope = self._balance.exchange(surface, T)
            self._add(surface, heat + slope * T, slope)
        if not linear:
            self._x[...] = self.temperature
        return LinearSystem(self._operator, self._b, self._x, self._x, exact=linear)

    def update(self, system: LinearSystem) -> None:
        """Take over the solution, or a part of the way there."""
        if not system.exact:
            self._move_to(system.x)

    def flows(self) -> Flows:
        """Where heat enters and leaves."""
        return self._balance.flows([surface.of(self.temperature) for surface in self._balance.surfaces])

    def _add(self, surface: SteadySurface, heat: Any, slope: Any) -> None:
        """Add a surface that exchanges heat − slope·T to the right-hand side and to the operator."""
        surface.add(heat / self._scale, self._b)
        if surface.grounded:
            surface.add(slope / self._scale, self._operator.ground)

    def _move_to(self, T: Any) -> None:
        """Take temperatures over, as deviations in K, as far as one step may go."""
        xp, reference = self.xp, self._balance.reference
        kelvin = self.temperature + reference
        xp.clip(T, LEAST * kelvin - reference, MOST * xp.maximum(kelvin, 1.0) - reference, out=self.temperature)


class VaryingEquations(Equations):
    """Where conductivities depend on temperature: each system is for a change of potentials, from 0 on."""

    def linearise(self) -> LinearSystem:
        """The system whose solution is a change of potentials."""
        balance, scale, ground = self._balance, self._scale, self._operator.ground
        self._linearised = found = balance.linearise(self.temperature)
        for link, values in zip(self._operator.links, found.links, strict=True):
            link[...] = values / scale
        residual = found.gain / scale
        residual += balance.sources("float64", scale)
        ground[...] = 0.0
        weights = found.weight / found.conducting
        for surface in balance.surfaces:
            heat, slope = balance.exchange(surface, surface.of(self.temperature))
            surface.add(heat / scale, residual)
            surface.add(slope * surface.of(weights) / scale, ground)
        self._b[...] = residual
        self._x[...] = 0.0
        return LinearSystem(self._operator, self._b, self._x, self.temperature, exact=False)

    def update(self, system: LinearSystem) -> None:
        """Move the potentials."""
        self._move_to(self._balance.moved(self._linearised, system.x))
