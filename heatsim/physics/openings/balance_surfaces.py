"""The surfaces of a body that exchange heat at one moment: faces of the box, and void surfaces."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES, Grid
from heatsim.parallel.slab import Slab
from heatsim.physics.cells.cell_types import CELL_TYPE, CellTypes
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.mixed_cells import MIXED, TOWARDS_VOID
from heatsim.physics.conditions.surface_balance import EMISSION, FILM, FLUX, FREE, LAW
from heatsim.physics.conditions.surface_laws import law_of
from heatsim.physics.geometry.regions import Parts
from heatsim.physics.openings.face_cells import beam_flux, cells_at, conditions_on, slices_at
from heatsim.physics.openings.joined_surfaces import conditions_at
from heatsim.physics.openings.surface_exchange import BalanceSurface, SameCondition
from heatsim.physics.sources.beam_rows import BeamRows
from heatsim.physics.sources.sources import Sources
from heatsim.physics.time.time_steps import INSTANT
from heatsim.scenario import Insulated, Periodic, is_linear

Array = NDArray[np.float64]

VOID = "void"


class Balanced(Protocol):
    """The data of a problem that a balance needs; attributes of :class:`heatsim.physics.problem.HeatProblem`."""

    @property
    def materials(self) -> CellTypes: ...  # noqa: D102
    @property
    def boundary(self) -> Boundary: ...  # noqa: D102
    @property
    def sources(self) -> Sources: ...  # noqa: D102
    @property
    def parts(self) -> Parts | None: ...  # noqa: D102
    @property
    def reference(self) -> float: ...  # noqa: D102
    @property
    def periodic(self) -> tuple[bool, bool, bool]: ...  # noqa: D102
    @property
    def open_faces(self) -> tuple[bool, ...]: ...  # noqa: D102
    @property
    def slab(self) -> Slab: ...  # noqa: D102
    @property
    def whole(self) -> "Balanced": ...  # noqa: D102


def find_surfaces(
    xp: Any, body: Balanced, types: Any, reference: float, *, changing: bool = False
) -> tuple[BalanceSurface, ...]:
    """The surfaces of a body that let heat through, face by face in the order of FACES, then void surfaces.

    Args:
        xp: NumPy, or CuPy.
        body: its conditions and beams are taken at t = 0.
        types: the bytes of its cells, flattened, on the device; not read if the body is uniform.
        reference: the temperature in K that deviations are counted from.
        changing: whether to include surfaces that let nothing through at t = 0 but may do so later.

    Raises:
        ScenarioError: a value is not finite at t = 0.
    """
    return tuple(_Finder(xp, body, types, reference, changing).find())


def at_stage(
    surfaces: Sequence[BalanceSurface], grid: Grid, conditions: Array, beams: Sequence[BeamRows]
) -> tuple[BalanceSurface, ...]:
    """The same surfaces with other conditions and beams.

    Args:
        surfaces: those of :func:`find_surfaces`.
        grid: the cells.
        conditions: the six numbers of every condition and the tables behind them, shape (rows, 6).
        beams: the flux of each beam; only the first row is used.
    """
    fluxes: dict[int, Any] = {}
    beams = [beam for beam in beams if beam.at_face]
    for face in {beam.face for beam in beams}:
        flux = beam_flux([beam for beam in beams if beam.face == face], cells_at(np, grid, face).shape)
        fluxes[face] = surfaces[0].xp.asarray(flux.reshape(-1)) if surfaces else flux
    return tuple(
        replace(surface, **conditions_at(surface, conditions), beam=_beam_on(surface, fluxes)) for surface in surfaces
    )


def _beam_on(surface: BalanceSurface, fluxes: Mapping[int, Any]) -> Any:
    """The flux of beams on a surface, from that at the cells of each face of the box that has beams."""
    if surface.lit is not None:
        face, places = surface.lit
        return surface.weight * surface.xp.where(places >= 0, fluxes[face][places], 0.0) if face in fluxes else 0.0
    return fluxes[surface.face][surface.places] if surface.face in fluxes else 0.0


class _Finder:
    """Finds the surfaces of a body; see :func:`find_surfaces`."""

    def __init__(self, xp: Any, body: Balanced, types: Any, reference: float, changing: bool) -> None:
        self._xp, self._body, self._types, self._reference = xp, body, types, reference
        self._changing = changing
        self._rows: Array = body.boundary.rows(np.zeros(1), reference)[0]

    def find(self) -> Iterator[BalanceSurface]:
        """Face by face, then towards void; those that cover no cell are left out."""
        beams = self._body.sources.face_beams(np.zeros(1), INSTANT)
        for face in range(6):
            yield from self._at_face(face, [beam for beam in beams if beam.face == face])
        yield from self._towards_void()

    def _at_face(self, face: int, beams: list[BeamRows]) -> Iterator[BalanceSurface]:
        xp, body, axis = self._xp, self._body, face // 2
        if body.periodic[axis] or not body.open_faces[face]:
            return
        exchanges, materials = self._exchanging(), body.materials
        half = materials.half[axis]
        one_half = bool((half == half[0]).all()) and not materials.varies
        if one_half and not beams and not body.boundary.maps[face].size and not self._changing:
            if exchanges[face]:
                at = _Places(face, slices_at(face), None, None)
                yield self._surface(FACES[face], face, axis, at, 0, 1.0, 1.0, 0.0)
            return
        cells = cells_at(xp, materials.grid, face)
        flux = xp.asarray(beam_flux(beams, cells.shape).reshape(-1)) if beams else 0.0
        cells = cells.reshape(-1)
        for number, places, fractions, parts in conditions_on(xp, body.boundary, face):
            if beams or exchanges[number]:
                places = xp.arange(len(cells)) if places is None else places
                at = _Places(face, cells[places], places, parts)
                beam = flux if isinstance(flux, float) else flux[places]
                yield from self._conducting(FACES[face], number, axis, at, fractions, 1.0, beam)

    def _exchanging(self) -> NDArray[np.bool_]:
        """Which conditions let heat through: at t = 0, or ever."""
        if self._changing:
            conditions = self._body.boundary.conditions
            return np.array([not isinstance(condition, Insulated | Periodic) for condition in conditions])
        return np.asarray(np.any(self._rows[:, [FILM, FLUX, EMISSION]] != 0.0, axis=1))

    def _towards_void(self) -> Iterator[BalanceSurface]:
        xp, materials = self._xp, self._body.materials
        if not materials.exposed_cells:
            return
        exposed = xp.asarray(materials.weighted_surfaces.cells)
        own = self._types[exposed] & CELL_TYPE
        for side in range(6):
            axis = side // 2
            n, stride = materials.grid.cells[axis], int(np.prod(materials.grid.cells[:axis]))
            ratios, place = xp.asarray(materials.weighted_surfaces.area[:, side]), exposed // stride % n
            beyond = place + 1 if side % 2 else place - 1
            around = self._types[exposed + (beyond % n - place) * stride] & CELL_TYPE
            passes = (own != materials.void) & (around == materials.void) & (ratios > 0.0)
            if not self._body.periodic[axis]:
                # Beyond a face that does not wrap there is nothing.
                passes &= (beyond >= 0) & (beyond < n)
            for condition, some, fractions in self._conditions_towards_void(side, own, passes):
                at = _Places(TOWARDS_VOID + side, exposed[some], some, None)
                for surface in self._conducting(VOID, condition, axis, at, fractions, 1.0 / ratios[some], 0.0):
                    lit = self._lit_places(side, surface)
                    if lit is None:
                        yield surface
                    else:
                        shone = replace(surface, lit=(side, lit))
                        yield replace(shone, beam=_beam_on(shone, self._fluxes()))

    def _conditions_towards_void(self, side: int, own: Any, passes: Any) -> Iterator[tuple[int, Any, Any]]:
        """Each condition on one side, the exposed cells that have it, and the fractions of their surfaces."""
        xp, materials, boundary = self._xp, self._body.materials, self._body.boundary
        conditions = xp.asarray(materials.void_conditions)[own]
        for condition in np.unique(materials.void_conditions).tolist():
            some = xp.flatnonzero(passes & (conditions == condition))
            if condition != MIXED:
                yield condition, some, 1.0
                continue
            parts, cells = boundary.mixed.on_face(TOWARDS_VOID + side)
            numbers, fractions = boundary.mixed.numbers[parts], boundary.mixed.fractions[parts]
            places = np.searchsorted(materials.weighted_surfaces.cells, cells)
            for number in np.unique(numbers).tolist():
                of_number = numbers == number
                yield number, xp.asarray(places[of_number]), xp.asarray(fractions[of_number])

    def _fluxes(self) -> dict[int, Any]:
        """The flux of beams at the cells of each face of the box that has some, on the device, at t = 0."""
        found, grid = dict[int, Any](), self._body.materials.grid
        beams = self._body.sources.face_beams(np.zeros(1), INSTANT)
        for face in {beam.face for beam in beams}:
            of_face = beam_flux([beam for beam in beams if beam.face == face], grid.face_shape(face))
            found[face] = self._xp.asarray(of_face.reshape(-1))
        return found

    def _lit_places(self, side: int, surface: BalanceSurface) -> Any:
        """The place on the face of the box of each cell on whose side beams fall, −1 for others; None if all are."""
        materials, xp = self._body.materials, self._xp
        if not len(materials.heated.lit):
            return None
        lit = materials.heated.lit >> side & 1 > 0
        if not lit.any():
            return None
        nx, ny, _ = materials.grid.cells
        cells = materials.weighted_surfaces.cells
        along = (cells % nx, cells // nx % ny, cells // (nx * ny))
        u, v = (place for axis, place in enumerate(along) if axis != side // 2)
        places = np.where(lit, v * materials.grid.face_shape(side)[1] + u, -1)
        return xp.asarray(places)[surface.places]

    def _conducting(
        self, name: str, number: int, axis: int, at: "_Places", fractions: Any, weight: Any, beam: Any
    ) -> Iterator[BalanceSurface]:
        """A surface of those of the cells that conduct, if any; ``fractions`` are parts of their faces."""
        xp, materials = self._xp, self._body.materials
        if materials.uniform:
            cell_types = xp.zeros(len(at.cells), dtype=np.uint8)
        else:
            cell_types = self._types[at.cells] & CELL_TYPE
            if materials.void is not None:
                some = xp.flatnonzero(cell_types != materials.void)
                cell_types, at = cell_types[some], at.taken(some)
                fractions, weight, beam = (_taken(values, some) for values in (fractions, weight, beam))
        if len(at.cells):
            yield self._surface(name, number, axis, at, cell_types, fractions, weight, beam)

    def _surface(
        self, name: str, number: int, axis: int, at: "_Places", cell_types: Any, fractions: Any, weight: Any, beam: Any
    ) -> BalanceSurface:
        materials, row = self._body.materials, self._rows[number]
        half, radiating = 1.0 / materials.half[axis], bool(row[EMISSION] > 0.0)
        if self._changing:
            radiating = not is_linear(self._body.boundary.conditions[number])
        conducting = half[half > 0.0]
        halves = float(conducting[0]) if (conducting == conducting[0]).all() else self._xp.asarray(half)[cell_types]
        return BalanceSurface(
            xp=self._xp,
            cells=at.cells,
            name=name,
            conditions=(SameCondition(number, slice(None)),),
            grounded=bool(row[FILM] > 0.0) or radiating,
            radiates=radiating,
            face=at.face,
            places=at.places,
            parts=at.parts,
            cell_types=cell_types,
            area=fractions * (materials.grid.cell_volume / materials.grid.spacing[axis]),
            half=halves,
            weight=weight,
            condition=tuple(row.tolist()),
            beam=beam,
            reference=self._reference,
            law=law_of(self._rows, number) if row[FREE] == LAW else None,
        )


@dataclass(frozen=True, eq=False)
class _Places:
    """Cells of a surface; see :class:`BalanceSurface`."""

    face: int
    cells: Any
    places: Any
    parts: Any

    def taken(self, some: Any) -> "_Places":
        """Some of them."""
        parts = None if self.parts is None else self.parts[some]
        return _Places(self.face, self.cells[some], self.places[some], parts)


def _taken(values: Any, places: Any) -> Any:
    """Values at some places; a number that holds for all stays one."""
    return values if isinstance(values, float) else values[places]
