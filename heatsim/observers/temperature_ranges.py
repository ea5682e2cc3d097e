"""Record temperatures outside the tables of materials, and of what else depends on temperature."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.state import LeftRange, Record, RunState
from heatsim.physics.estimates.temperature_range import beyond_cells, surrounding
from heatsim.physics.readings.contact_links import contact_links, temperatures_between
from heatsim.physics.readings.surface_cells import SurfaceCells
from heatsim.scenario.messages import show
from heatsim.solver.field.field import Field

ROUNDING = 0.01  # K; rounding moves a temperature less than this beyond a limit

_CELLS_AT_ONCE = 2**22
_SIDES = (("low", -1.0), ("high", 1.0))
_MATERIAL, _SOURCE, _SURFACE, _CONTACT = "material", "source", "surface", "contact"


@dataclass(frozen=True, eq=False)
class Ranged:
    """A material, a source, a surface or a contact with tables of temperature, which have a first and a last entry.

    Attributes:
        kind: "material", "source", "surface" or "contact".
        name: its name in the scenario; the key of a surface's condition.
        ends: for each table (key, lowest, highest), temperatures in K.
        types: the cell types of a material, or beside a contact.
        amount: index of a source among the amounts of :class:`heatsim.physics.cells.cell_heat.HeatedCells`.
        during: the start and the end in s of a source; None if it is always on.
        surface: the surface or the contact, whose own temperature counts.
        around: the lowest and highest temperature in K around a surface.
    """

    kind: str
    name: str
    ends: Sequence[tuple[str, float, float]]
    types: Sequence[int] = ()
    amount: int | None = None
    during: tuple[float, float] | None = None
    surface: "WatchedSurface | LawContact | None" = None
    around: tuple[float, float] = (inf, -inf)

    def passed(self, side: str, temperature: float) -> list[tuple[str, float]]:
        """The key and the end in K of each table that does not reach to ``temperature`` on one side."""
        if side == "high":
            return [(key, high) for key, _, high in self.ends if temperature > high + ROUNDING]
        return [(key, low) for key, low, _ in self.ends if temperature < low - ROUNDING]

    def compare(self, state: RunState, lowest: Sequence[float], highest: Sequence[float]) -> None:
        """Update the records in ``state.beyond`` from the field. Does nothing while a source is off. Collective.

        Args:
            state: the run.
            lowest: lowest temperature of each cell type in K.
            highest: highest temperature of each cell type in K.
        """
        if self.during is not None and not self.during[0] <= state.time <= self.during[1]:
            return
        ends = max(low for _, low, _ in self.ends), min(high for _, _, high in self.ends)
        types = self.types or range(len(lowest))
        coldest, hottest = min(lowest[place] for place in types), max(highest[place] for place in types)
        of_types = min(coldest, self.around[0]), max(hottest, self.around[1])
        for (side, sign), found, end in zip(_SIDES, of_types, ends, strict=True):
            which = LeftRange(self.kind, self.name, side)
            before = state.beyond.get(which)
            limit = sign * end + ROUNDING if before is None else sign * before.temperature
            # The cells of a source, and a surface, are read only if any cell, or what is around, has passed the limit.
            if sign * found > limit and self.amount is not None:
                found = extremes(state.field, state.problem.materials.heated.cells_of(self.amount))[side == "high"]
            if sign * found > limit and self.surface is not None:
                found = self.surface.extremes(state)[side == "high"]
            if sign * found > limit:
                state.beyond[which] = Record(found, state.time)


def ranged(state: RunState, *, looking: bool = False) -> list[Ranged]:
    """The materials, sources, surfaces and contacts of a run whose tables have ends.

    Args:
        state: the run.
        looking: whether to look at the temperatures of surfaces and contacts; then it is collective.
    """
    problem = state.problem
    materials, palette, heated = problem.materials, dict(problem.scenario.palette), problem.materials.heated
    types: dict[str, list[int]] = {}
    for number, cell_type in enumerate(materials.types):
        types.setdefault(materials.palette[cell_type.material].name, []).append(number)
    found = []
    for name, of_material in types.items():
        material = palette[name]
        if material is not None and material.table_ends:
            found.append(Ranged(_MATERIAL, name, material.table_ends, of_material))
    for number, amount in enumerate(heated.amounts):
        if amount.table >= 0:
            table, source = heated.tables[amount.table], problem.scenario.sources[amount.source]
            ends = [("power_density", table.low, table.high)]
            found.append(Ranged(_SOURCE, source.name, ends, amount=number, during=source.during))
    coldest, hottest = problem.reached
    around, beyond = [*surrounding(problem.boundary, problem.scenario.time.end)], beyond_cells(problem.boundary)
    for name, every in problem.boundary.ends_of_laws.items():
        ends = [(key, low, high) for key, low, high in every if coldest < low or high < hottest]
        if ends:
            numbers = [number for number, each in enumerate(problem.boundary.keys) if each == name]
            surface = WatchedSurface(state, *numbers) if looking else None
            found.append(
                Ranged(_SURFACE, name, ends, surface=surface, around=(min(*around, beyond[0]), max(*around, beyond[1])))
            )
    for row, law in enumerate(problem.boundary.gaps, start=problem.boundary.first_gap):
        contact = problem.scenario.contacts[law.number]
        if contact.ends != (-inf, inf):
            ends = [("conductance" if contact.gap is None else "conductivity", *contact.ends)]
            beside = np.flatnonzero((materials.gap_of == row).any(axis=1)).tolist()
            between = LawContact(state, law.number) if looking else None
            found.append(Ranged(_CONTACT, contact.name, ends, beside, surface=between))
    return found


class LawContact:
    """The contact with a conductance that depends on the mean temperature of its surfaces. Collective."""

    def __init__(self, state: RunState, number: int) -> None:
        self._links = contact_links(state.problem)[number]
        self._points = [state.field.points(x, y, z) for z, y, x in (self._links.first, self._links.second)]

    def extremes(self, state: RunState) -> tuple[float, float]:
        """The lowest and the highest mean temperature in K of both surfaces. Collective."""
        one, other = (points.temperatures() for points in self._points)
        T = temperatures_between(state.problem, self._links, (one, other), state.time)
        return float(T.min(initial=inf)), float(T.max(initial=-inf))


class WatchedSurface:
    """The surface with some conditions, by their numbers. Collective."""

    def __init__(self, state: RunState, *numbers: int) -> None:
        self._cells = SurfaceCells(state.part, None, None, state.team, numbers)
        self._points = state.field.points(*self._cells.own_places)

    def extremes(self, state: RunState) -> tuple[float, float]:
        """The lowest and the highest temperature in K of the surface. Collective."""
        T = self._cells.of(self._points.own_temperatures(), state.step)
        ends = state.team.gathered((float(T.min(initial=inf)), float(T.max(initial=-inf))))
        return min(low for low, _ in ends), max(high for _, high in ends)


def extremes(field: Field, cells: NDArray[np.int64]) -> tuple[float, float]:
    """The lowest and the highest temperature in K of cells, by their index in the flattened whole grid. Collective."""
    xp, slab = field.device.xp, field.slab
    _, ny, nx = field.grid.shape
    own = cells[slice(*np.searchsorted(cells, [slab.first * ny * nx, slab.last * ny * nx]))]
    low, high = inf, -inf
    for first in range(0, len(own), _CELLS_AT_ONCE):
        some = own[first : first + _CELLS_AT_ONCE]
        place = tuple(xp.asarray(axis) for axis in (some // (ny * nx) - slab.first, some // nx % ny, some % nx))
        T = field.degrees(field.own[place], place)
        low, high = min(low, float(T.min())), max(high, float(T.max()))
    ends = field.team.gathered((low, high))
    return min(low for low, _ in ends) + field.reference, max(high for _, high in ends) + field.reference


def warnings(state: RunState) -> Iterator[str]:
    """A warning for each material, source, surface and contact that left the range of its tables."""
    unit = state.problem.scenario.output.temperature_unit
    for one in ranged(state):
        records = [(side, state.beyond.get(LeftRange(one.kind, one.name, side))) for side, _ in _SIDES]
        reached = [(side, record) for side, record in sorted(records) if record is not None]
        if not reached:
            continue
        places = " and ".join(f"{unit.text(of.temperature)} at t = {of.time:.6g} s" for _, of in reached)
        ends = " and ".join(
            f"its {key} {'ends' if side == 'high' else 'begins'} at {unit.text(end)}"
            for side, of in reached
            for key, end in one.passed(side, of.temperature)
        )
        yield (
            f"{one.kind} {show(one.name)} reached {places}, but {ends}: outside, the run used the nearest known value; "
            f"{'write a law that holds there' if one.kind == _SURFACE else 'extend the table or the temperature_range'}"
        )
