"""The equations of a steady state as Newton's method wants them: linear systems, one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any

from heatsim.kernels.multigrid.operator import Operator
from heatsim.kernels.multigrid.sweeps import LevelSweeps
from heatsim.physics.nodes.network import SURFACES
from heatsim.physics.operator.balance import Balance
from heatsim.physics.operator.cell_exchange import CellExchange
from heatsim.physics.operator.steady_flows import Flows
from heatsim.physics.operator.surface_exchange import BalanceSurface
from heatsim.physics.operator.varying_conduction import SMALL
from heatsim.solver.nodes.node_equations import NodeEquations
from heatsim.solver.steady.anderson import Acceleration

# A step of a problem that is not linear leaves absolute temperatures within these factors of what they were: the
# fourth power bends.
LEAST, MOST = 0.5, 2.0
# The same where heat that grows with the temperature has made the operator indefinite.
CAREFUL_LEAST, CAREFUL_MOST = 0.8, 1.25
# The coldest first guess in K of such a problem.
COLDEST = 1.0
# Of the secant to the ambient temperature: a smaller slope of a law is that of a constant flux with its rounding.
FLAT = 1e-9


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """A·x = b, in units of the balance's scale. All systems of the same equations are in the same arrays.

    Attributes:
        operator: A.
        b: right-hand side, of the operator's precision.
        x: float64; the first guess, and the solution in the end.
        temperature: deviations in K of the cells; their range sets the default tolerance; may be ``x``.
        exact: whether nothing was linearised, so that the solution is that of the equations.
        changed: whether the operator may differ from that of the system before.
        preconditioner: a positive operator near A for multigrid; None for A itself. With it A may be indefinite.
        nodes: that are eliminated from it; None without nodes.
    """

    operator: Operator
    b: Any
    x: Any
    temperature: Any
    exact: bool
    changed: bool = True
    preconditioner: Operator | None = None
    nodes: NodeEquations | None = None


class Equations:
    """The balance of a body on a device.

    A linear problem is one system, for the temperatures. Where surfaces radiate, each system is for a change δ of the
    temperatures, so that roundings of its right-hand side become small with δ:

        (A + slopes(T))·δ = sources + exchange(T) − A·T          slopes and exchange of the surfaces that radiate

    Heat that grows with the temperature, of sources or through surfaces, has negative slopes. Where A + slopes is then
    not positive, the body heats up faster than it loses heat: a state there is unstable. :meth:`turn_rises` makes the
    operator positive.

    With ``pace`` above 0 a change is an implicit step of the length 1/pace in time: pace·C stands on the diagonal.

    Attributes:
        xp: NumPy, or CuPy.
        temperature: deviations in K of the cells, float64, a device array; void keeps its first guess.
        sought: the name of the solution, for messages.
        rises: whether any heat grows with the temperature, at the temperatures of the last system.
        pace: in 1/s; 0 for the steady state itself.
        patience: steps in succession that may leave the smallest correction above half; then Newton's method failed.
    """

    sought = "steady state"
    patience = 20
    rises = False
    pace = 0.0
    _at_rest: Any = None  # ground without pace·C; cells with bent surfaces get theirs in each step
    _farthest = LEAST, MOST

    def __init__(self, balance: Balance, precision: str, temperature: Any, sweeps: LevelSweeps) -> None:
        """Make conductances and sources.

        Args:
            balance: of the body, with arrays of the device.
            precision: of conductances and sources.
            temperature: the first guess as deviations in K, float64 on the device; it is overwritten.
            sweeps: work on the device's arrays.
        """
        self.xp, self.temperature = balance.xp, temperature
        if not balance.linear:
            # At 0 K a surface that radiates has no slope.
            balance.xp.maximum(temperature, COLDEST - balance.reference, out=temperature)
        self._balance, self._scale = balance, balance.scale
        self._operator = Operator(
            balance.links(precision, self._scale),
            self.xp.zeros(balance.materials.grid.shape, dtype=precision),
            slab=balance.slab,
            graded=not balance.materials.grid.uniform,
        )
        self._b = balance.sources(precision, self._scale)
        self._sweeps = sweeps
        self.nodes = None if balance.body.boundary.network is None else NodeEquations(balance)
        # What fluids carry from node to node is left out of the matrix.
        downstream = self.nodes is not None and not self.nodes.symmetric
        self._downstream = Acceleration(balance.sums) if downstream else None
        self._bent_places = [
            place
            for place, surface in enumerate(balance.surfaces)
            if not balance.is_linear(surface) or self._follows(surface)
        ]
        for place, surface in enumerate(balance.surfaces):
            if place not in self._bent_places:
                heat, slope = surface.linear_terms()
                self._add(surface, heat, slope)
        self._lines: list[tuple[BalanceSurface, Any]] = []
        self._safe = None
        if balance.body.whole.sources.heated.tables or balance.body.whole.boundary.laws_rise:
            self._safe = replace(self._operator, ground=self._operator.ground.copy())
        # Right-hand side and ground without the surfaces that each step linearises.
        self._base = [[surface.of(of).copy() for of in (self._b, self._operator.ground)] for surface in self._bent]

    @property
    def _bent(self) -> Sequence[Any]:
        """The surfaces that each step linearises."""
        return [self._balance.surfaces[place] for place in self._bent_places]

    def _follows(self, surface: Any) -> bool:
        """Whether the conditions of a surface follow nodes from step to step."""
        return self.nodes is not None and self.nodes.couples(surface)

    @property
    def linear(self) -> bool:
        """Whether one system is enough."""
        return self._balance.linear and self.nodes is None  # with nodes a change leaves roundings that are small

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays on the device, the temperature's among them."""
        return self._operator.nbytes + int(self._b.nbytes) + int(self.temperature.nbytes)

    def hold(self, kelvins: Sequence[Any]) -> None:
        """Replace what drives a linear body: the surroundings of the cells of each surface by differences in K.

        Sources and given fluxes are left out, and the first guess is 0 K.

        Args:
            kelvins: for each surface of the balance a number, or one for each of its cells.
        """
        self._b[...] = self.temperature[...] = 0.0
        for surface, difference in zip(self._balance.surfaces, kelvins, strict=True):
            surface.add(surface.linear_terms()[1] * difference / self._scale, self._b)

    def linearise(self) -> LinearSystem:
        """The system whose solution is the next temperature."""
        operator, b, scale, T = self._operator, self._b, self._scale, self.temperature
        if self.linear:
            return LinearSystem(operator, b, T, T, exact=True)
        if self.nodes is not None:
            self.nodes.settle(T)
        if self._at_rest is not None:
            operator.ground[...] = self._at_rest
        # A cell at an edge of the body has several surfaces.
        for surface, base in zip(self._bent, self._base, strict=True):
            surface.put(base[0], b)
            surface.put(base[1], operator.ground)
        if self._safe is not None:
            self._safe.ground[...] = operator.ground
        slopes, lost, self._lines = [], [], []
        for surface in self._bent:
            heat, slope = (found / scale for found in self._balance.exchange(surface, surface.of(T)))
            slope = slope + self._line(surface, heat, slope, 1.0 / scale)
            # Rounding of b is added to the gain, which is small near the solution.
            lost.append(surface.add_rounded(heat, b))
            slopes.append(slope)
        self._sweeps.residual(operator, T, b, self._gain)
        for surface, slope, rounded in zip(self._bent, slopes, lost, strict=True):
            surface.add(rounded, self._gain)
            surface.add(slope, operator.ground)
            if self._safe is not None:
                surface.add(abs(slope), self._safe.ground)
        self._hold(1.0)
        if self._safe is not None:
            self.rises = self._on_any_rank(any(float(self.xp.min(slope)) < 0.0 for slope in slopes))
        if self.nodes is not None:
            self.nodes.linearise(T, scale)
            self.nodes.add_missing(self._gain)
        self._change[...] = 0.0
        b = self._gain.astype(b.dtype, copy=False)
        return LinearSystem(operator, b, self._change, T, exact=False, preconditioner=self._safe, nodes=self.nodes)

    def turn_rises(self) -> None:
        """Make the operator of the last system positive: slopes of heat that grows with the temperature change sign.

        A step then leads where time would lead: up where the body gains heat.
        """
        if self._safe is not None:
            self._operator.ground[...] = self._safe.ground
        self._farthest = CAREFUL_LEAST, CAREFUL_MOST
        self._change[...] = 0.0

    def begin_in_time(self) -> None:
        """Keep what changes with ``pace``."""
        self._at_rest = self._operator.ground.copy()

    def _hold(self, weights: Any) -> None:
        """Add pace·C to the operator; ``weights``: kelvins for each unit of the unknown."""
        if self.pace > 0.0:
            held = (self.pace / self._scale) * self._heat_capacity * weights
            for operator in (self._operator, self._safe):
                if operator is not None:
                    operator.ground[...] += held

    @cached_property
    def _heat_capacity(self) -> Any:
        """The heat capacity of each cell in J/K."""
        return self._balance.in_cells(self._balance.materials.cell_heat_capacity)

    def fastest(self, system: LinearSystem) -> float:
        """The largest |dT/dt| in K/s at the temperatures of the last system. Collective."""
        xp = self.xp
        rate = system.b * (self._scale / xp.where(self._heat_capacity > 0.0, self._heat_capacity, xp.inf))
        return self._balance.sums.largest_of_array(rate)

    def imbalance(self, system: LinearSystem, since: Any = None) -> float:
        """√Σ gain² of all cells; with ``since`` of gain − pace·C·(T − since). Collective."""
        gain = system.b.astype("float64")
        if since is not None:
            gain -= (self.pace / self._scale) * self._heat_capacity * (self.temperature - since)
        return sqrt(self._balance.sums.of_arrays([gain * gain])[0])

    def take_rises_in(self) -> None:
        """Make the operator of the last system the derivative of the balance, with all slopes."""
        for surface, slope in self._lines:
            surface.add(-slope, self._operator.ground)

    def _line(self, surface: BalanceSurface | CellExchange, heat: Any, slope: Any, unit: Any) -> Any:
        """What to add to the slope of a surface where the heat flux of its law is constant.

        There the slope of the tangent is 0, so the system may be singular. Newton's method then uses the secant to the
        ambient temperature, where no heat flows. The solution is the same.

        Args:
            surface: any surface of the balance.
            heat: heat flow into its cells at the present temperatures.
            slope: slope of ``heat``, per kelvin.
            unit: 1 W in the unit of ``heat``.
        """
        if isinstance(surface, CellExchange) or surface.law is None:
            return 0.0
        xp, below = self.xp, surface.law.ambient - surface.of(self.temperature)
        line = xp.maximum((heat - unit * surface.brought) / xp.where(below == 0.0, xp.inf, below), 0.0)
        added = xp.where(abs(slope) <= FLAT * line, line, 0.0)
        self._lines.append((surface, added))
        return added

    def update(self, system: LinearSystem) -> None:
        """Add the change, or a part of it."""
        change = system.x
        if self._downstream is not None and self.pace == 0.0:
            change = self._downstream.change(self.temperature.copy(), system.x.copy(), 1.0)
        if self.nodes is not None:
            self.nodes.move(change)
        if not system.exact:
            self._move_to(self.temperature + change)

    @cached_property
    def _change(self) -> Any:
        """The unknown of systems that are not linear: a change of T in K, float64."""
        return self.xp.empty_like(self.temperature)

    @cached_property
    def _gain(self) -> Any:
        """The heat that cells gain at the present temperatures, in units of the scale, float32."""
        return self.xp.empty(self.temperature.shape, dtype="float32")

    def hotter_than_sources(self) -> bool:
        """Whether any cell is hotter than the range of a source whose heat still grows at the end of the range.

        Collective.
        """
        cells = [surface for surface in self._balance.surfaces if isinstance(surface, CellExchange)]
        return self._on_any_rank(any(each.hotter_than_tables(each.of(self.temperature)) for each in cells))

    def _on_any_rank(self, condition: bool) -> bool:
        return bool(self._balance.sums.largest(float(condition)))

    def gaps_fall(self) -> bool:
        """Whether less heat passes any gap where the temperatures beside it differ more. Collective."""
        return False

    def flows(self) -> Flows:
        """Where heat enters and leaves."""
        if self.nodes is not None:
            self.nodes.network.state[:, SURFACES:] = self.nodes.flows(self.nodes.settle(self.temperature))[:, SURFACES:]
        return self._balance.flows([surface.of(self.temperature) for surface in self._balance.surfaces])

    def _add(self, surface: BalanceSurface | CellExchange, heat: Any, slope: Any) -> None:
        """Add a surface that exchanges heat − slope·T to the right-hand side and to the operator."""
        surface.add(heat / self._scale, self._b)
        if surface.grounded:
            surface.add(slope / self._scale, self._operator.ground)

    def _move_to(self, T: Any) -> None:
        """Take temperatures over, as deviations in K, as far as one step may go."""
        xp, reference = self.xp, self._balance.reference
        kelvin, (least, most) = self.temperature + reference, self._farthest
        xp.clip(T, least * kelvin - reference, most * xp.maximum(kelvin, COLDEST) - reference, out=self.temperature)


class VaryingEquations(Equations):
    """Where conductivities depend on temperature: each system is for a change of potentials, from 0 on.

    Its matrix is symmetric and leaves a part of Newton's matrix out (operator/varying_conduction.py). Where
    conductivities jump, that part may be larger than what is left, so Anderson's acceleration makes up for it. It may
    hardly seem to approach the solution before it finds it.
    """

    patience = 200

    def __init__(self, balance: Balance, precision: str, temperature: Any, sweeps: LevelSweeps) -> None:
        """Make conductances and sources; the arguments are those of :class:`Equations`."""
        super().__init__(balance, precision, temperature, sweeps)
        self._acceleration = Acceleration(balance.sums)

    def linearise(self) -> LinearSystem:
        """The system whose solution is a change of potentials."""
        balance, scale, ground = self._balance, self._scale, self._operator.ground
        if self.nodes is not None:
            self.nodes.settle(self.temperature)
        self._sweeps.fill_halo(self._operator, self.temperature)
        self._linearised = found = balance.linearise(self.temperature)
        for link, values in zip(self._operator.links, found.links, strict=True):
            link[...] = values / scale
        residual = found.gain / scale
        residual += balance.sources("float64", scale)
        ground[...] = 0.0
        weights = found.weight / found.conducting
        self._rising, self._lines = [], []
        for surface in balance.surfaces:
            T = surface.of(self.temperature)
            heat, slope = balance.exchange(surface, T)
            if self._safe is not None and float(self.xp.min(slope)) < 0.0:
                # The next lines give these slopes the wrong sign.
                self._rising.append((surface, self.xp.minimum(slope, 0.0) * surface.of(weights) / scale))
            # Where k(T) bends, the heat may change faster than with k(T) held.
            slope = self.xp.maximum(slope, abs(heat - balance.exchange(surface, T + SMALL)[0]) / SMALL)
            surface.add(heat / scale, residual)
            slope, unit = slope * surface.of(weights) / scale, surface.of(weights) / scale
            surface.add(slope + self._line(surface, heat * unit, slope, unit), ground)
        if self.nodes is not None:
            self.nodes.linearise(self.temperature, scale, weights)
            self.nodes.add_missing(residual)
        self._b[...] = residual
        self._change[...] = 0.0
        if self._safe is not None:
            self._safe.ground[...] = ground
        self._hold(weights)
        if self._safe is not None:
            self.rises = self._on_any_rank(bool(self._rising))
        return LinearSystem(
            self._operator,
            self._b,
            self._change,
            self.temperature,
            exact=False,
            preconditioner=self._safe,
            nodes=self.nodes,
        )

    def gaps_fall(self) -> bool:
        """Whether less heat passes any gap where the temperatures beside it differ more. Collective."""
        return self._on_any_rank(self._linearised.falling)

    def take_rises_in(self) -> None:
        """Make the operator of the last system the derivative of the balance, with all slopes."""
        super().take_rises_in()
        for surface, slope in self._rising:
            surface.add(2.0 * slope, self._operator.ground)

    def update(self, system: LinearSystem) -> None:
        """Move the potentials."""
        found = self._linearised
        # The square of a change of potential over this weight is one of temperature times one of v.
        weight = 1.0 / (found.weight * found.conducting)
        change = found.weight * system.x
        if self.pace == 0.0:
            change = self._acceleration.change(found.potential, change, weight)
        if self.nodes is not None:
            self.nodes.move(change / found.weight)
        self._move_to(self._balance.moved(found, change / found.weight))
