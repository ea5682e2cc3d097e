"""Statistics of the temperatures of a surface: a face of the box, or the surface towards void."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.regions import TimeBeyond
from heatsim.observers.state import RunState
from heatsim.physics.readings.surface_cells import SurfaceCells
from heatsim.scenario import TIMES_BEYOND, Probe


class SurfaceStatistic:
    """The statistic of a probe of a surface."""

    def __init__(self, probe: Probe, state: RunState) -> None:
        assert probe.surface is not None, "a probe of a surface"
        self._state, self._statistic = state, probe.statistic
        self._surface = SurfaceCells(state.part, probe.surface, probe.region, state.team)
        self._cells = state.field.points(*self._surface.own_places)
        self._places = [self._of_ranks(along) for along in self._surface.own_places]
        self._areas = self._of_ranks(self._surface.own_areas)
        self._beyond = TimeBeyond.of(probe) if probe.statistic in TIMES_BEYOND else None
        self._extreme = 0

    @property
    def reads_field(self) -> bool:
        """Never: the cells behind the surface are points of the field."""
        return False

    def now(self) -> float:
        """The number of a row at the present step; a temperature in K, or a time in s. Collective."""
        temperatures = self._of_ranks(self._surface.of(self._cells.own_temperatures(), self._state.step))
        if self._statistic == "mean":
            return float(np.average(temperatures, weights=self._areas))
        coldest = self._statistic == "min" if self._beyond is None else self._beyond.below
        self._extreme = int(temperatures.argmin() if coldest else temperatures.argmax())
        extreme = float(temperatures[self._extreme])
        return extreme if self._beyond is None else self._beyond.at(extreme, self._state.time)

    def place(self) -> tuple[int, int, int]:
        """The cell (x, y, z) behind the place of the extreme that :meth:`now` has found."""
        x, y, z = (int(along[self._extreme]) for along in self._places)
        return x, y, z

    def _of_ranks(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values of the cells of all ranks, in the order of a run on one rank. Collective."""
        return self._state.field.joined(self._surface.order, values, (self._surface.count,))

    def save(self) -> list[float] | None:
        """What the next row needs from the rows before; None if it needs nothing."""
        return None if self._beyond is None else self._beyond.save()

    def restore(self, saved: list[float] | None) -> None:
        """Restore what :meth:`save` returned."""
        if self._beyond is not None:
            self._beyond.restore(saved)
