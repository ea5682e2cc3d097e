"""Statistics of the temperatures of a surface: a face of the box, or the surface towards void.

Extremes are those of the middles of its faces and of its edges and corners.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import NotFiniteError
from heatsim.observers.edges.surface_edges import SurfaceEdges
from heatsim.observers.state import RunState
from heatsim.observers.time_beyond import TimeBeyond
from heatsim.physics.readings.surface_cells import SurfaceCells
from heatsim.scenario import TIMES_BEYOND, Probe, TimeFunction
from heatsim.scenario.tables.environments import one_ambient, sides_of_factor
from heatsim.scenario.tables.probes import TEMPERATURE_FACTOR
from heatsim.solver.field.points import Points

# Relative to a temperature; an edge is the place of an extreme if it is more extreme than the faces by more than this.
_SAME = 1e-6


class SurfaceStatistic:
    """The statistic of a probe of a surface.

    Attributes:
        extreme: the temperature in K at the place that :meth:`now` has found.
        is_smallest: whether the temperature factor found there is smaller than all before.
    """

    extreme = 0.0
    is_smallest = False

    def __init__(self, probe: Probe, state: RunState) -> None:
        assert probe.surface is not None, "a probe of a surface"
        self._state, self._statistic = state, probe.statistic
        self._surface = SurfaceCells(state.part, probe.surface, probe.region, state.team)
        self._cells = state.field.points(*self._surface.own_places)
        self._places = [self._of_ranks(self._surface, along) for along in self._surface.own_places]
        self._areas = self._of_ranks(self._surface, self._surface.own_areas)
        self._beyond = TimeBeyond.of(probe, state) if probe.statistic in TIMES_BEYOND else None
        self._ambients: list[TimeFunction] = []
        if probe.statistic == TEMPERATURE_FACTOR:
            self._ambients += filter(None, map(one_ambient, sides_of_factor(state.problem.scenario, probe)))
        self._smallest = np.inf  # temperature factor
        self._name = probe.name
        self._extreme = 0
        self._edge: int | None = None
        self._edges: tuple[SurfaceEdges, Points] | None = None
        if probe.statistic != "mean":
            edges = SurfaceEdges(state.part, self._surface, probe.region, state.team)
            if len(edges.points):
                self._edges = edges, state.field.points(*edges.own_places)

    @property
    def reads_field(self) -> bool:
        """Never: the cells behind the surface are points of the field."""
        return False

    def now(self) -> float:
        """The number of a row at the present step; a temperature in K, or a time in s. Collective."""
        own = self._surface.of(self._cells.own_temperatures(), self._state.step)
        temperatures = self._of_ranks(self._surface, own)
        if self._statistic == "mean":
            return float(np.average(temperatures, weights=self._areas))
        room, outside = self._room_and_outside()
        coldest = self._statistic == "min" or (self._beyond is not None and self._beyond.below) or room > outside
        sign = -1.0 if coldest else 1.0
        self._extreme, self._edge = int((sign * temperatures).argmax()), None
        extreme = float(temperatures[self._extreme])
        if self._edges is not None:
            at_edges = self._at_edges(*self._edges)
            edge = int((sign * at_edges).argmax())
            beyond = sign * (float(at_edges[edge]) - extreme)
            if beyond > _SAME * abs(extreme):
                self._edge = edge
            extreme += sign * max(beyond, 0.0)
        self.extreme = extreme
        if self._ambients:
            factor = (extreme - outside) / (room - outside)
            self.is_smallest = factor < self._smallest
            self._smallest = min(self._smallest, factor)
            return factor
        return extreme if self._beyond is None else self._beyond.at(extreme, self._state.time)

    def _room_and_outside(self) -> tuple[float, float]:
        """The temperatures in K that a temperature factor compares; zeros for other statistics.

        Raises:
            NotFiniteError: they are equal.
        """
        now = np.array([self._state.time])
        values = [float(function.at(now)[0]) for function in self._ambients]
        if values and values[0] == values[1]:
            message = f'probe "{self._name}" has no temperature factor at t = {self._state.time!r} s: the room and the '
            raise NotFiniteError(f"{message}outside both have {values[0]!r} K then; change one of their temperatures")
        return (values[0], values[1]) if values else (0.0, 0.0)

    def place(self) -> tuple[int, int, int]:
        """The cell (x, y, z) behind the place of the extreme that :meth:`now` has found."""
        if self._edge is None or self._edges is None:
            x, y, z = (int(along[self._extreme]) for along in self._places)
        else:
            x, y, z = self._edges[0].cells[self._edge].tolist()
        return x, y, z

    def point(self) -> tuple[float, float, float] | None:
        """The point in m of the extreme that :meth:`now` has found, if it lies on an edge."""
        if self._edge is None or self._edges is None:
            return None
        x, y, z = self._edges[0].points[self._edge].tolist()
        return x, y, z

    def _at_edges(self, edges: SurfaceEdges, points: Points) -> NDArray[np.float64]:
        """The temperatures in K of edges and corners. Collective."""
        own = edges.of(points.own_temperatures(), self._state.step)
        return edges.mean(self._of_ranks(edges, own))

    def _of_ranks(self, of: SurfaceCells | SurfaceEdges, values: NDArray[Any]) -> NDArray[Any]:
        """The values of all ranks, in the order of a run on one rank. Collective."""
        return self._state.field.joined(of.order, values, of.shape)

    def save(self) -> list[float] | None:
        """What the next row needs from the rows before; None if it needs nothing."""
        if self._beyond is None:
            return [self._smallest] if np.isfinite(self._smallest) else None
        return self._beyond.save()

    def restore(self, saved: list[float] | None) -> None:
        """Restore what :meth:`save` returned."""
        if self._beyond is not None:
            self._beyond.restore(saved)
        elif saved is not None:
            (self._smallest,) = saved
