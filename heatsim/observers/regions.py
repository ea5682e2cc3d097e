"""Averages and extremes of the temperature over regions."""

from typing import Any

import numpy as np

from heatsim.physics.problem import HeatProblem
from heatsim.physics.regions import region_mask
from heatsim.scenario import Probe
from heatsim.solver.field import Field

_CELLS_AT_ONCE = 2**24


class RegionStatistic:
    """The mean, maximum or minimum over the conducting cells of a region.

    Only the box around the region is read, a few planes at a time.
    """

    def __init__(self, probe: Probe, problem: HeatProblem, field: Field) -> None:
        assert probe.region is not None, "a probe of a region"
        assert problem.parts is not None, "a scenario with regions is painted"
        mask = region_mask(probe.region, problem.scenario, problem.parts)
        spans = [np.flatnonzero(mask.any(axis=tuple({0, 1, 2} - {axis}))) for axis in range(3)]
        self._block = tuple(slice(int(span[0]), int(span[-1]) + 1) for span in spans)
        self._mask: Any = field.device.xp.asarray(mask[self._block])
        self._count = int(np.count_nonzero(mask))
        self._statistic = probe.statistic

    def of(self, field: Field) -> float:
        """The statistic in K."""
        xp, (z, y, x) = field.device.xp, self._block
        planes = max(1, _CELLS_AT_ONCE // self._mask[0].size)
        parts = []
        for first in range(z.start, z.stop, planes):
            last = min(first + planes, z.stop)
            place, mask = (slice(first, last), y, x), self._mask[first - z.start : last - z.start]
            slab = field.degrees(field.deviation[place], place)
            if self._statistic == "mean":
                parts.append(float(xp.where(mask, slab, 0).sum(dtype=np.float64)))
            elif self._statistic == "max":
                parts.append(float(xp.where(mask, slab, -np.inf).max()))
            else:
                parts.append(float(xp.where(mask, slab, np.inf).min()))
        if self._statistic == "mean":
            return field.reference + sum(parts) / self._count
        return field.reference + (max(parts) if self._statistic == "max" else min(parts))
