"""Statistics of regions, or of the whole body: temperatures, the liquid part, lengths of hot places, times above.

Only the box around a region is read, a few planes at a time.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.state import RunState
from heatsim.observers.time_beyond import TimeBeyond
from heatsim.physics.cells.cell_types import CELL_TYPE, CellTypes
from heatsim.physics.geometry.regions import region_mask
from heatsim.scenario import EXTENTS, LIQUID_FRACTION, TIMES_BEYOND, Material, Probe
from heatsim.scenario.tables.probes import DewPoint
from heatsim.solver.field.field import Field

_CELLS_AT_ONCE = 2**24

Array = NDArray[np.float64]


class RegionCells:
    """The conducting cells of a region on the field's device; of the whole body without a region.

    Several ranks create it together.

    Attributes:
        count: their number in the whole grid.
        box: the planes of the box around the whole region, counted from this rank's first own plane.
        block: the box as far as it lies in own planes; all of it in a run on one rank.
    """

    def __init__(self, region: str | None, state: RunState) -> None:
        slab, team, mask = state.field.slab, state.field.team, _mask(region, state)
        spans = [np.flatnonzero(mask.any(axis=tuple({0, 1, 2} - {axis}))) for axis in range(3)]
        starts = slab.first, 0, 0
        ends = [
            (int(span[0]) + start, int(span[-1]) + start + 1) if len(span) else (1 << 62, -1)
            for span, start in zip(spans, starts, strict=True)
        ]
        of_ranks = team.gathered((ends, int(np.count_nonzero(mask))))
        lows, highs = np.array([ends for ends, _ in of_ranks]).transpose(2, 0, 1)
        z, y, x = (slice(int(low), int(high)) for low, high in zip(lows.min(axis=0), highs.max(axis=0), strict=True))
        self.count = sum(count for _, count in of_ranks)
        self.box = slice(z.start - slab.first, z.stop - slab.first)
        low, high = (min(max(end, 0), slab.count) for end in (self.box.start, self.box.stop))
        self.block = slice(low, high), y, x
        self._mask: Any = state.field.device.xp.asarray(mask[self.block])
        self._cells: Any = None if state.problem.materials.uniform else state.arrays.body.cells[slab.own]
        self._planes = max(1, _CELLS_AT_ONCE // ((y.stop - y.start) * (x.stop - x.start)))

    def slabs(self) -> Iterator[tuple[Any, Any]]:
        """The own planes of the box a few at a time: the index of the slab in the field, and the mask there."""
        z, y, x = self.block
        for first in range(z.start, z.stop, self._planes):
            planes = slice(first, min(first + self._planes, z.stop))
            yield (planes, y, x), self.mask_of(planes)

    def with_neighbours(self, planes: slice) -> slice:
        """Some planes of the box, with the plane below and the plane above where the box has them, own ones or not."""
        return slice(max(planes.start - 1, self.box.start), min(planes.stop + 1, self.box.stop))

    def mask_of(self, planes: slice) -> Any:
        """The mask of some own planes of the box."""
        start = self.block[0].start
        return self._mask[planes.start - start : planes.stop - start]

    def of_type(self, table: Any, place: Any) -> Any:
        """The entries of a device array [types] for the cells at an index of the field."""
        return table[0] if self._cells is None else table[self._cells[place] & CELL_TYPE]


class Extent:
    """The length along an axis of the box around all places that are hotter than a threshold.

    Between the centres of two neighbouring cells on both sides of the threshold, the temperature is linear. Where the
    region ends, a hot cell is hot up to its face. Places that are hot only between centres are not seen.
    """

    def __init__(self, cells: RegionCells, axis: int, threshold: float | None, state: RunState) -> None:
        self._cells, self._axis = cells, axis
        xp, materials = state.field.device.xp, _materials_of_types(state)
        limits = [
            np.nan if m is None or (threshold is None and m.liquidus is None) else threshold or m.liquidus
            for m in materials
        ]
        self._limits: Any = xp.asarray(np.array(limits, dtype=np.float64) - state.field.reference)

    def of(self, field: Field) -> float:
        """The length in m; 0 if no centre of a cell is hotter."""
        grid, along = field.grid, 2 - self._axis
        low, high, beside = np.inf, -np.inf, self._beside(field)
        for place, _ in self._cells.slabs():
            ends = self._ends(field, place, beside, along)
            low, high = min(low, ends[0]), max(high, ends[1])
        low, high = field.team.lowest(low), field.team.highest(high)
        *_, unit = grid.axes[self._axis].nodes(0, 0)
        return max(high - low, 0.0) * unit if high > low else 0.0

    def _beside(self, field: Field) -> tuple[Any, Any]:
        """The excess temperatures in the planes below and above the own planes, within the box; None without a cut."""
        if field.slab.alone:
            return None, None
        (z, y, x), xp, edges = self._cells.block, field.device.xp, []
        for plane in (0, field.slab.count - 1):
            own = slice(plane, plane + 1)
            if z.start <= plane < z.stop:
                edges.append(field.device.to_host(self._excess(field, (own, y, x))))
            else:
                edges.append(np.full((1, y.stop - y.start, x.stop - x.start), np.nan))
        below, above = field.halo.swap(*edges)
        return None if below is None else xp.asarray(below), None if above is None else xp.asarray(above)

    def _excess(self, field: Field, place: Any) -> Any:
        """T − limit in K at an index of the field, in own planes of the box; NaN outside the region."""
        T = field.degrees(field.own[place], place)
        return field.device.xp.where(
            self._cells.mask_of(place[0]), T - self._cells.of_type(self._limits, place), np.nan
        )

    def _ends(self, field: Field, own: Any, beside: tuple[Any, Any], along: int) -> tuple[float, float]:
        """The lowest and highest coordinate of what is hot in the own planes of an index of the field.

        In cells, or in m along an axis with cells of several widths. They are inf and −inf if nothing is hot.
        ``beside``: from :meth:`_beside`.
        """
        xp, count, (planes, y, x) = field.device.xp, field.slab.count, own
        around = self._cells.with_neighbours(planes)
        inner = slice(max(around.start, 0), min(around.stop, count))
        excess = self._excess(field, (inner, y, x))
        if inner != around:
            outer = ([beside[0]] if around.start < 0 else [], [beside[1]] if around.stop > count else [])
            excess = xp.concatenate([*outer[0], excess, *outer[1]])
        hot = excess >= 0.0
        hot[: planes.start - around.start] = False
        hot[planes.stop - around.start :] = False
        excess, hot = xp.moveaxis(excess, along, 0), xp.moveaxis(hot, along, 0)
        if not bool(hot.any()):
            return np.inf, -np.inf
        start = around.start + field.slab.first if along == 0 else own[along].start
        n = len(excess)
        *nodes, _ = field.grid.axes[self._axis].nodes(start, n)
        centres, halves = (xp.asarray(along).reshape(-1, 1, 1) for along in nodes)
        between = centres[1:] - centres[:-1]
        beyond = {}
        for side in (-1, 1):
            # How far the hot part of each hot cell reaches beyond its centre.
            reach = xp.broadcast_to(halves, excess.shape).copy()
            here, other = (slice(0, n - 1), slice(1, n)) if side > 0 else (slice(1, n), slice(0, n - 1))
            colder = excess[other] < 0.0
            with np.errstate(invalid="ignore", divide="ignore"):
                crossing = excess[here] / (excess[here] - excess[other])
            reach[here] = xp.where(colder, crossing * between, reach[here])
            beyond[side] = reach
        low = float(xp.where(hot, centres - beyond[-1], np.inf).min())
        high = float(xp.where(hot, centres + beyond[1], -np.inf).max())
        return low, high


class RegionStatistic:
    """The statistic of a probe of a region or of the whole body."""

    def __init__(self, probe: Probe, state: RunState) -> None:
        assert probe.statistic is not None, "a probe of a statistic"
        self._state, self._region, self._statistic = state, probe.region, probe.statistic
        self._extent: Extent | None = None
        self._beyond: TimeBeyond | None = None
        if probe.statistic in EXTENTS:
            assert not isinstance(probe.threshold, DewPoint), "refused there"
            cells = RegionCells(probe.region, state)
            self._extent = Extent(cells, EXTENTS.index(probe.statistic), probe.threshold, state)
        elif probe.statistic in TIMES_BEYOND:
            self._beyond = TimeBeyond.of(probe, state)

    @property
    def reads_field(self) -> bool:
        """Whether :meth:`now` reads the field itself, and not only its statistics."""
        with_degrees = self._statistic == LIQUID_FRACTION or (
            self._statistic == "mean" and self._state.problem.materials.varies
        )
        return self._extent is not None or with_degrees

    def now(self) -> float:
        """The number of a row at the present step; a temperature in K."""
        state, region = self._state, self._region
        if self._extent is not None:
            return self._extent.of(state.field)
        if self._statistic == LIQUID_FRACTION:
            return state.statistics.liquid_fraction(region)
        if self._statistic == "mean":
            return state.statistics.mean(region)
        if self._beyond is not None:
            return self._beyond.at(state.statistics.extreme(region, not self._beyond.below), state.time)
        return state.statistics.extreme(region, self._statistic == "max")

    def place(self) -> tuple[int, int, int] | None:
        """The cell (x, y, z) that has the present extreme; None where it is not known. Collective."""
        return self._state.statistics.extreme_cells.of_region(self._region, self._statistic == "max")

    def point(self) -> None:
        """None: the extreme is that of a cell's centre."""

    def save(self) -> list[float] | None:
        """What the next row needs from the rows before; None if it needs nothing."""
        return None if self._beyond is None else self._beyond.save()

    def restore(self, saved: list[float] | None) -> None:
        """Restore what :meth:`save` returned."""
        if self._beyond is not None:
            self._beyond.restore(saved)


def _mask(region: str | None, state: RunState) -> NDArray[np.bool_]:
    """The conducting cells of a region, or of the body, in own planes."""
    problem, slab = state.problem, state.field.slab
    materials: CellTypes = problem.materials
    own = slice(slab.first, slab.last)
    if region is not None:
        assert problem.parts is not None, "a scenario with regions is painted"
        return np.asarray(region_mask(region, problem.scenario, problem.parts)[problem.parts.held.local(own)])
    if materials.void is None:
        return np.broadcast_to(np.True_, (slab.count, *problem.grid.shape[1:]))
    return np.asarray(materials.types_of(own) != materials.void)


def _materials_of_types(state: RunState) -> list[Material | None]:
    """The material of each cell type; None for void."""
    materials, palette = state.problem.materials, dict(state.problem.scenario.palette)
    return [palette[materials.palette[cell_type.material].name] for cell_type in materials.types]
