"""Heat flows over time as readable curves: means if there are many rows, and without a peak in the first rows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.amounts import POWERS, TIMES, Unit, choose_unit, format_time

_Floats = NDArray[np.float64]

# If there are more rows than this, flows are averaged over one of these intervals in s that has a whole number of rows.
_MOST_ROWS = 400
_HOUR, _DAY = 3600.0, 86400.0
_INTERVALS = (
    *(1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0),
    *(60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, _HOUR, 2.0 * _HOUR, 3.0 * _HOUR, 6.0 * _HOUR, 12.0 * _HOUR),
    *(_DAY, 2.0 * _DAY, 7.0 * _DAY, 14.0 * _DAY, 28.0 * _DAY),
)
# The first 1/_FIRST_ROWS of the rows of a curve may be cut off, if it has at least _FEWEST_ROWS rows and the range of
# the other rows is a smaller part of the whole range than _FLATTENED.
_FIRST_ROWS, _FEWEST_ROWS, _FLATTENED = 100, 20, 0.5
_MARGIN = 0.05
_EQUAL = 1e-6  # relative difference of equal intervals between rows


@dataclass(frozen=True)
class FlowCurves:
    """Heat flows to draw.

    Attributes:
        times: in s, shape (n,): the ends of the intervals over which the flows are means.
        flows: in the unit, by name, shape (n,) each.
        unit: of the flows.
        interval: the length in s of the intervals if they have several rows each; else 0.
        limits: ends of the axis of flows; None for those that fit the curves.
    """

    times: _Floats
    flows: Mapping[str, _Floats]
    unit: Unit
    interval: float
    limits: tuple[float, float] | None

    @property
    def remark(self) -> str:
        """What the curves leave out; empty if they show all."""
        remarks = []
        if self.interval:
            remarks.append(f"means over {format_time(self.interval, choose_unit(TIMES, self.interval))}")
        if self.limits is not None:
            remarks.append("the first ones are cut off")
        return "; ".join(remarks)


def flow_curves(times: _Floats, flows: Mapping[str, _Floats]) -> FlowCurves | None:
    """Heat flows in W as curves; None if none flows.

    Args:
        times: of rows in s, shape (rows,).
        flows: in W by name, shape (rows,). Each is the mean since the row before; that of the first row does not count.
    """
    there = {name: flow for name, flow in flows.items() if float(np.abs(flow[1:]).max(initial=0.0)) > 0.0}
    if not there:
        return None
    rows = _rows_in_interval(times)
    ends = np.arange(rows, len(times), rows)
    found = {}
    for name, flow in there.items():
        heat = np.concatenate([[0.0], np.cumsum(flow[1:] * np.diff(times))])
        found[name] = flow[1:] if rows == 1 else np.diff(heat[::rows][: len(ends) + 1]) / np.diff(times[::rows])
    limits = usual_range(found.values())
    largest = max(float(np.abs(flow).max()) for flow in found.values())
    unit = choose_unit(POWERS, largest if limits is None else max(map(abs, limits)))
    return FlowCurves(
        times[ends],
        {name: flow / unit.size for name, flow in found.items()},
        unit,
        float(times[rows] - times[0]) if rows > 1 else 0.0,
        None if limits is None else (limits[0] / unit.size, limits[1] / unit.size),
    )


def _rows_in_interval(times: _Floats) -> int:
    """The number of rows over which to average: 1 where there are few, or where their intervals are not equal."""
    steps = np.diff(times)
    if len(steps) <= _MOST_ROWS or float(np.ptp(steps)) > _EQUAL * float(steps[0]):
        return 1
    least = float(times[-1] - times[0]) / _MOST_ROWS
    for interval in _INTERVALS:
        rows = round(interval / float(steps[0]))
        if interval >= least and rows >= 1 and abs(rows * steps[0] - interval) <= _EQUAL * interval:
            return rows
    return 1


def usual_range(flows: Iterable[_Floats]) -> tuple[float, float] | None:
    """The range of some heat flows without their first ones, if these would flatten all that follow; else None.

    At the start a body may take up more heat in one row than in any later one.
    """
    curves = [np.asarray(flow)[np.isfinite(flow)] for flow in flows]
    if not curves or min(map(len, curves)) < _FEWEST_ROWS:
        return None
    later = np.concatenate([curve[max(1, len(curve) // _FIRST_ROWS) :] for curve in curves])
    low, high = min(float(later.min()), 0.0), max(float(later.max()), 0.0)
    whole = max(*(float(curve.max()) for curve in curves), 0.0) - min(*(float(curve.min()) for curve in curves), 0.0)
    margin = _MARGIN * (high - low)
    return (low - margin, high + margin) if 0.0 < high - low < _FLATTENED * whole else None
