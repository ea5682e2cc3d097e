"""The surfaces of a body that exchange heat at one moment: faces of the box, and void surfaces."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES, Grid
from heatsim.parallel.slab import Slab
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.mixed_cells import TOWARDS_VOID
from heatsim.physics.conditions.surface_balance import EMISSION, FILM, FLUX, FREE, LAW
from heatsim.physics.conditions.surface_laws import law_of, laws_of
from heatsim.physics.geometry.regions import Parts
from heatsim.physics.operator.boundary_faces import BoundaryFaces, boundary_faces
from heatsim.physics.operator.face_cells import beam_flux, slices_at
from heatsim.physics.operator.heat_sums import SumLayout
from heatsim.physics.operator.surface_exchange import BalanceSurface, SameCondition
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
    xp: Any, body: Balanced, reference: float, *, changing: bool = False, ledger: SumLayout | None = None
) -> tuple[BalanceSurface, ...]:
    """The surfaces of a body that let heat through, face by face in the order of FACES, then void surfaces.

    Cells behind a face of the box, or towards void, whose conditions are of one kind form one surface, so that one
    calculation with arrays finds their heat. The order of the surfaces is the same on all ranks: a cell adds up the
    heat of its boundary faces in one order, so sums have the same bits.

    Args:
        xp: NumPy, or CuPy.
        body: its conditions and beams are taken at t = 0.
        reference: the temperature in K that deviations are counted from.
        changing: whether to include surfaces that let nothing through at t = 0 but may do so later.
        ledger: where a ledger has its sums; None if their places are not needed. It needs ``changing``.

    Raises:
        ScenarioError: a value is not finite at t = 0.
    """
    return tuple(_Finder(xp, body, reference, changing, ledger).find())


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
    xp = surfaces[0].xp if surfaces else np
    fluxes = {face: xp.asarray(flux) for face, flux in beam_fluxes(beams, grid).items()}
    return tuple(
        replace(surface, **_conditions_at(surface, conditions), beam=_beam_on(surface, fluxes)) for surface in surfaces
    )


def with_conditions(surface: BalanceSurface, conditions: Array) -> BalanceSurface:
    """A surface with other conditions and the same beams; ``conditions`` as of :func:`at_stage`."""
    return replace(surface, **_conditions_at(surface, conditions))


def beam_fluxes(beams: Sequence[BeamRows], grid: Grid) -> dict[int, Array]:
    """The flux of beams in W/m² at the cells of each face of the box through which some shine, flattened."""
    beams = [beam for beam in beams if beam.at_face]
    return {
        face: beam_flux([beam for beam in beams if beam.face == face], grid.face_shape(face)).reshape(-1)
        for face in sorted({beam.face for beam in beams})
    }


def _beam_on(surface: BalanceSurface, fluxes: Mapping[int, Any]) -> Any:
    """The flux of beams on a surface, from :func:`beam_fluxes`."""
    if surface.lit is None or surface.lit[0] not in fluxes:
        return 0.0
    face, places = surface.lit
    return surface.weight * surface.xp.where(places >= 0, fluxes[face][places], 0.0)


def _conditions_at(surface: BalanceSurface, rows: Any) -> dict[str, Any]:
    """The attributes of a surface that change with its conditions: ``condition``, ``law``.

    ``rows``: the conditions and tables at one time, shape (rows, 6), on the host.
    """
    if surface.which is None:
        number = surface.conditions[0].number
        law = None if surface.law is None else law_of(rows, number)
        return {"condition": tuple(rows[number].tolist()), "law": law}
    numbers: NDArray[np.int64] = np.array([condition.number for condition in surface.conditions])
    if surface.law is not None:
        return {"law": laws_of(rows, numbers, surface.which, surface.xp)}
    columns = surface.xp.take(surface.xp.asarray(rows[numbers].T), surface.which, axis=1)
    return {"condition": (*(columns[column] for column in range(FREE)), float(rows[numbers[0], FREE]))}


class _Kind(NamedTuple):
    """What the conditions of one surface have in common, see :class:`BalanceSurface`."""

    grounded: bool
    radiates: bool
    law: bool
    free: float


class _Finder:
    """Makes surfaces of boundary faces; see :func:`find_surfaces`."""

    def __init__(self, xp: Any, body: Balanced, reference: float, changing: bool, ledger: SumLayout | None) -> None:
        self._xp, self._body, self._reference, self._changing, self._ledger = xp, body, reference, changing, ledger
        self._rows: Array = body.boundary.rows(np.zeros(1), reference)[0]
        conditions, rows = body.boundary.conditions, self._rows[: len(body.boundary.conditions)]
        radiates = rows[:, EMISSION] > 0.0
        self._exchanging = np.any(rows[:, [FILM, FLUX, EMISSION]] != 0.0, axis=1)
        if changing:
            radiates = np.array([not is_linear(each) for each in conditions])
            self._exchanging = np.array([not isinstance(each, Insulated | Periodic) for each in conditions])
        self._kinds = [
            _Kind(bool(row[FILM] > 0.0 or radiating), bool(radiating), row[FREE] == LAW, float(row[FREE]))
            for row, radiating in zip(rows, radiates, strict=True)
        ]
        self._shone = body.sources.beam_faces()
        beams = body.sources.face_beams(np.zeros(1), INSTANT)
        self._fluxes = {face: xp.asarray(flux) for face, flux in beam_fluxes(beams, body.materials.grid).items()}

    def find(self) -> Iterator[BalanceSurface]:
        """Face by face, then towards void; those that cover no cell are left out."""
        groups = dict[tuple[int, ...], list[tuple[int, BoundaryFaces]]]()
        for faces in boundary_faces(self._body.boundary, self._body.materials, self._body.open_faces):
            place, shone = (faces.side, -1), faces.side in self._shone
            if faces.towards_void:
                place = (TOWARDS_VOID, -1 if faces.lit(self._body.materials) is None else faces.side)
            for number, some in faces.by_condition():
                if faces.towards_void or shone or self._exchanging[number]:
                    first, alone = self._kinds.index(self._kinds[number]), number if self._alike(some) else -1
                    groups.setdefault((*place, alone, first), []).append((number, some))
        return (self._surface(groups[key]) for key in sorted(groups))

    def _alike(self, faces: BoundaryFaces) -> bool:
        """Whether the same numbers hold for all cells."""
        shone = faces.towards_void or faces.side in self._shone
        return not shone and self._half(faces) is not None and isinstance(faces.area, float) and faces.full

    def _half(self, faces: BoundaryFaces) -> float | None:
        """The conductance of the half cells in W/(m² K), if it is one number for all types."""
        if not isinstance(faces.half_factors, float):
            return None
        half = 1.0 / (self._body.materials.half[faces.axis] * faces.half_factors)
        conducting = half[half > 0.0]
        return float(conducting[0]) if (conducting == conducting[0]).all() else None

    def _surface(self, group: "list[tuple[int, BoundaryFaces]]") -> BalanceSurface:
        """The surface of boundary faces whose conditions are of one kind."""
        xp, materials, kind = self._xp, self._body.materials, self._kinds[group[0][0]]
        number, first = group[0]
        counts, every = [len(faces) for _, faces in group], [faces for _, faces in group]
        ends = np.cumsum(counts)
        # A whole face with one number for all cells stays a slice of the grid.
        whole = first.dense and self._alike(first) and materials.void is None
        whole = whole and not materials.by_halves and not self._changing

        def each(values: Callable[[BoundaryFaces], Any]) -> Any:
            """One number for all cells, or an array with one for each."""
            found = [values(faces) for faces in every]
            if all(isinstance(value, float) for value in found) and len(set(found)) == 1:
                return found[0]
            pairs = zip(found, counts, strict=True)
            return xp.asarray(np.concatenate([np.broadcast_to(value, (count,)) for value, count in pairs]))

        def half(faces: BoundaryFaces) -> Any:
            same = self._half(faces)
            return 1.0 / faces.resistances(materials) if same is None else same

        cells = None if whole else np.concatenate([faces.cells for faces in every])
        lit = [places for faces in every if (places := faces.lit(materials)) is not None]
        surface = BalanceSurface(
            xp=xp,
            cells=slices_at(first.side) if cells is None else xp.asarray(cells),
            name=VOID if first.towards_void else FACES[first.side],
            conditions=tuple(
                SameCondition(of, slice(None) if len(group) == 1 else slice(int(end - count), int(end)))
                for (of, _), end, count in zip(group, ends, counts, strict=True)
            ),
            grounded=kind.grounded,
            radiates=kind.radiates,
            cell_types=0 if whole else each(lambda faces: faces.types(materials).astype(np.uint8)),
            area=each(lambda faces: faces.area if faces.full else faces.area * faces.fractions),
            half=each(half),
            weight=each(lambda faces: 1.0 / faces.ratios if faces.towards_void else 1.0),
            condition=tuple(self._rows[number].tolist()),
            beam=0.0,
            reference=self._reference,
            law=law_of(self._rows, number) if kind.law else None,
            lit=None if whole or not lit else (first.side, xp.asarray(np.concatenate(lit))),
            which=None if len(group) == 1 else xp.asarray(np.repeat(np.arange(len(group)), counts)),
            occurrences=None if cells is None else _occurrences(xp, cells),
            ledger=None if self._ledger is None else each(self._ledger.places_of),
        )
        return replace(surface, **_conditions_at(surface, self._rows), beam=_beam_on(surface, self._fluxes))


def _occurrences(xp: Any, cells: NDArray[np.int64]) -> tuple[Any, ...] | None:
    """The places of the first occurrences of cells, of the second ones, and so on; None if no cell occurs twice."""
    order = np.argsort(cells, kind="stable")
    begins = np.flatnonzero(np.diff(cells[order], prepend=-1))
    if len(begins) == len(cells):
        return None
    occurrence = np.empty(len(cells), np.int64)
    occurrence[order] = np.arange(len(cells)) - np.repeat(begins, np.diff(begins, append=len(cells)))
    return tuple(xp.asarray(np.flatnonzero(occurrence == number)) for number in range(occurrence.max() + 1))
