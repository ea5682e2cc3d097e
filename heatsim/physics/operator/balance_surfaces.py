"""The surfaces of a body that exchange heat at one moment: faces of the box, and void surfaces."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES, Grid
from heatsim.parallel.slab import Slab
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.mixed_cells import TOWARDS_VOID
from heatsim.physics.conditions.surface_balance import EMISSION, FILM, FLUX, FREE, LAW
from heatsim.physics.conditions.surface_laws import law_of
from heatsim.physics.geometry.regions import Parts
from heatsim.physics.operator.boundary_faces import BoundaryFaces, boundary_faces
from heatsim.physics.operator.face_cells import beam_flux, cells_at, slices_at
from heatsim.physics.operator.joined_surfaces import conditions_at
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


def find_surfaces(xp: Any, body: Balanced, reference: float, *, changing: bool = False) -> tuple[BalanceSurface, ...]:
    """The surfaces of a body that let heat through, face by face in the order of FACES, then void surfaces.

    Args:
        xp: NumPy, or CuPy.
        body: its conditions and beams are taken at t = 0.
        reference: the temperature in K that deviations are counted from.
        changing: whether to include surfaces that let nothing through at t = 0 but may do so later.

    Raises:
        ScenarioError: a value is not finite at t = 0.
    """
    return tuple(_Finder(xp, body, reference, changing).find())


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
    """Makes surfaces of boundary faces; see :func:`find_surfaces`."""

    def __init__(self, xp: Any, body: Balanced, reference: float, changing: bool) -> None:
        self._xp, self._body, self._reference, self._changing = xp, body, reference, changing
        self._rows: Array = body.boundary.rows(np.zeros(1), reference)[0]
        self._exchanging = np.any(self._rows[:, [FILM, FLUX, EMISSION]] != 0.0, axis=1)
        if changing:
            conditions = body.boundary.conditions
            self._exchanging = np.array([not isinstance(each, Insulated | Periodic) for each in conditions])
        beams, grid = body.sources.face_beams(np.zeros(1), INSTANT), body.materials.grid
        self._fluxes = {
            face: xp.asarray(beam_flux([beam for beam in beams if beam.face == face], grid.face_shape(face)).ravel())
            for face in {beam.face for beam in beams}
        }

    def find(self) -> Iterator[BalanceSurface]:
        """Face by face, then towards void; those that cover no cell are left out."""
        for faces in boundary_faces(self._body.boundary, self._body.materials, self._body.open_faces):
            shone = not faces.towards_void and faces.side in self._fluxes
            for number, some in faces.by_condition():
                if shone or faces.towards_void or self._exchanging[number]:
                    surface = self._surface(number, some)
                    yield replace(surface, beam=_beam_on(surface, self._fluxes))

    def _surface(self, number: int, faces: BoundaryFaces) -> BalanceSurface:
        """The surface of boundary faces with one condition."""
        xp, materials, row = self._xp, self._body.materials, self._rows[number]
        half, radiating = 1.0 / materials.half[faces.axis], bool(row[EMISSION] > 0.0)
        if self._changing:
            radiating = not is_linear(self._body.boundary.conditions[number])
        conducting = half[half > 0.0]
        one_half = bool((conducting == conducting[0]).all())
        # A whole face with one number for all cells stays a slice of the grid.
        whole = faces.dense and one_half and materials.void is None and not materials.varies
        whole = whole and faces.side not in self._fluxes and not self._changing
        return BalanceSurface(
            xp=xp,
            cells=slices_at(faces.side) if whole else xp.asarray(faces.cells),
            name=VOID if faces.towards_void else FACES[faces.side],
            conditions=(SameCondition(number, slice(None)),),
            grounded=bool(row[FILM] > 0.0) or radiating,
            radiates=radiating,
            face=faces.side + TOWARDS_VOID * faces.towards_void,
            places=None if whole else xp.asarray(faces.places),
            parts=xp.asarray(faces.parts) if np.any(faces.parts >= 0) else None,
            cell_types=0 if whole else xp.asarray(faces.types(materials).astype(np.uint8)),
            area=faces.area * (1.0 if np.all(faces.fractions == 1.0) else xp.asarray(faces.fractions)),
            half=float(conducting[0]) if one_half else xp.asarray(half[faces.types(materials)]),
            weight=1.0 / xp.asarray(faces.ratios) if faces.towards_void else 1.0,
            condition=tuple(row.tolist()),
            beam=0.0,
            reference=self._reference,
            law=law_of(self._rows, number) if row[FREE] == LAW else None,
            lit=self._lit(faces),
        )

    def _lit(self, faces: BoundaryFaces) -> tuple[int, Any] | None:
        """The face of the box through which beams fall on boundary faces towards void.

        With it comes the place on this face of each cell, −1 where no beam falls. None if no beam falls on any cell.
        """
        materials = self._body.materials
        if not faces.towards_void or not len(materials.heated.lit):
            return None
        lit = materials.heated.lit >> faces.side & 1 > 0
        if not lit.any():
            return None
        nx, ny, _ = materials.grid.cells
        along = (faces.cells % nx, faces.cells // nx % ny, faces.cells // (nx * ny))
        u, v = (place for axis, place in enumerate(along) if axis != faces.axis)
        places = np.where(lit[faces.places], v * materials.grid.face_shape(faces.side)[1] + u, -1)
        return faces.side, self._xp.asarray(places)
