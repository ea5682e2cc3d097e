"""Conjugate gradients preconditioned by multigrid, on arrays that stay the same from system to system.

    r ← b − A·x,  z ← MG(r),  p ← z                                                b − A·x in float64
    step      x ← x + α·p,  r ← r − α·A·p,  z ← MG(r),  p ← z + β·p                float32, sums in float64

Source: Saad, *Iterative Methods for Sparse Linear Systems* (2003), §9.2.
"""

from typing import Any

from heatsim.kernels.multigrid.cycle import VCycle
from heatsim.kernels.multigrid.sweeps import LevelSweeps
from heatsim.solver.steady.steady_equations import LinearSystem


class ConjugateGradients:
    """The vectors of an iteration and the operations on them.

    Attributes:
        cycle: MG for the operator, or for the preconditioner of the system.
        z: MG(r), float32: approximates the error of x.
        scalars: the numbers of the iteration, on the device; see :mod:`heatsim.kernels.multigrid.sweeps`.
    """

    def __init__(self, xp: Any, sweeps: LevelSweeps, system: LinearSystem) -> None:
        """Allocate vectors and coarse levels.

        Args:
            xp: NumPy, or CuPy.
            sweeps: work on the arrays' device.
            system: the first system; the others have the same arrays for A and x.
        """
        self._sweeps, self._operator, self._x = sweeps, system.operator, system.x
        self._nodes = system.nodes
        self.cycle = VCycle(xp, sweeps, system.preconditioner or system.operator)
        self._r, self._p, self.z, self._Ap = (xp.empty(system.operator.shape, dtype="float32") for _ in range(4))
        self.scalars = sweeps.scalars()

    def begin_coarse(self) -> float:
        """Find how the cells respond to nodes; the number of cycles that this takes."""
        if self._nodes is None:
            return 0.0
        return self._nodes.begin_coarse(
            lambda b, x: self.cycle.solve(b, x, self._Ap),
            lambda p, Ap: self._sweeps.apply(self._operator, p, Ap, self.scalars),
        )

    def begin(self, b: Any) -> None:
        """Calculate r from x, and z; :meth:`set_first_direction` follows."""
        self._sweeps.residual(self._operator, self._x, b, self._r)
        if self._nodes is not None:
            self._Ap[...] = 0.0
            self._nodes.couple(self._x, self._Ap)
            self._r -= self._Ap
        self._precondition()

    def set_first_direction(self) -> None:
        """Take z as the first direction."""
        self._p[...] = self.z

    def step(self) -> None:
        """Do a step and find the next direction, without waiting for the device."""
        sweeps, scalars = self._sweeps, self.scalars
        sweeps.apply(self._operator, self._p, self._Ap, scalars)
        if self._nodes is not None:
            self._nodes.couple(self._p, self._Ap, scalars)
        sweeps.advance(self._x, self._p, self._r, self._Ap, scalars)
        self._precondition()
        sweeps.direct(self._p, self.z, scalars)

    def end(self) -> None:
        """Add z to x."""
        self._x += self.z

    def _precondition(self) -> None:
        """Calculate z = MG(r), and r·z."""
        self.cycle.solve(self._r, self.z, self._Ap)
        if self._nodes is not None:
            self._nodes.correct(self._r, self.z)
        self._sweeps.inner(self._operator, self._r, self.z, self.scalars)
