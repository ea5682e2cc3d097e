"""Surfaces that exchange heat in a steady state: faces of the box, and what borders on void, at t = 0.

By the balance of :mod:`heatsim.physics.boundary`, and with its derivative by the temperature T of the cell behind,

    exchange = area·K·(T_s − T),     slope = −∂exchange/∂T = area·K·(h + h_r)/(free·K + h + h_r),     h_r = 4·ε·σ·T_s³

Where a surface is larger than the smooth one that it stands for, K is weighted as in
:mod:`heatsim.physics.link_weights`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES, Grid
from heatsim.physics.boundary import EMISSION, FILM, FREE, Boundary, surface_rise
from heatsim.physics.cell_types import INTERIOR, Medium
from heatsim.physics.link_weights import kinds_around
from heatsim.physics.regions import Parts
from heatsim.physics.sources import Sources
from heatsim.physics.time_steps import INSTANT

Array = NDArray[np.float64]
Cells = NDArray[np.int64]

_KIND = np.uint8(INTERIOR - 1)


class Balanced(Protocol):
    """What a balance needs to know of a problem; the attributes of :class:`heatsim.physics.problem.HeatProblem`."""

    @property
    def materials(self) -> Medium: ...  # noqa: D102
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


@dataclass(frozen=True, eq=False)
class SteadySurface:
    """A face of the box, or the surfaces across one axis towards void.

    Attributes:
        name: the face's, or "void".
        cells: the cells behind it, by their index in the flattened grid; shape (n,).
        kinds: what they are.
        area: in m², shape (n,).
        half: conductance K of the half cell behind it in W/(m² K) at the reference temperature, shape (n,).
        weight: area of the cells' faces over the smooth area that they stand for, shape (n,).
        numbers: of the conditions, shape (n,).
        condition: the six numbers of each, shape (6, n).
        beam: flux of beams in W/m², shape (n,).
        reference: the temperature in K that deviations are counted from.
    """

    name: str
    cells: Cells
    kinds: NDArray[np.intp]
    area: Array
    half: Array
    weight: Array
    numbers: NDArray[np.intp]
    condition: Array
    beam: Array
    reference: float

    def exchange(
        self, T: Array, conducting: Array | float = 1.0, below_held: Array | None = None
    ) -> tuple[Array, Array]:
        """Heat into each cell in W, that of beams included, and its slope in W/K.

        Args:
            T: of the cells, as deviations in K.
            conducting: their conductivities over those at the reference temperature.
            below_held: by how much their potentials are below that at the ambient temperature, in K; it drives the
                heat through a held face where the conductivity varies.
        """
        half = self.half * conducting
        rise = surface_rise(self.condition, half * self.weight, self.reference, T, self.beam)
        surface = np.maximum(T + rise + self.reference, 0.0)
        film = self.condition[FILM] + 4.0 * self.condition[EMISSION] * surface**3
        passing = half * rise
        if below_held is not None:
            passing = np.where(self.condition[FREE] > 0.0, passing, self.half * below_held)
        return self.area * passing, self.area * half * film / (self.condition[FREE] * half * self.weight + film)

    @property
    def grounded(self) -> NDArray[np.bool_]:
        """Whether what passes depends on the temperature of the cell, shape (n,)."""
        return np.asarray((self.condition[FILM] > 0.0) | (self.condition[EMISSION] > 0.0))

    @property
    def radiates(self) -> bool:
        """Whether any of it radiates."""
        return bool((self.condition[EMISSION] > 0.0).any())


def find_surfaces(body: Balanced, reference: float) -> tuple[SteadySurface, ...]:
    """The surfaces of a body: parts of faces in the order of FACES, then what borders on void.

    Args:
        body: its conditions and beams are taken at t = 0.
        reference: the temperature in K that deviations are counted from.

    Raises:
        ScenarioError: a value is not finite then.
    """
    rows = body.boundary.rows(np.zeros(1), reference)[0]
    return (*_faces(body, rows, reference), *_towards_void(body, rows, reference))


def _faces(body: Balanced, rows: Array, reference: float) -> Iterator[SteadySurface]:
    grid = body.materials.grid
    beams = body.sources.beam_rows(np.zeros(1), INSTANT)
    for face, name in enumerate(FACES):
        axis = face // 2
        on_face = [beam for beam in beams if beam.face == face]
        if body.periodic[axis] or not (on_face or body.boundary.exchanging(face)):
            continue
        cells = _cells_at(grid, face)
        flux = np.zeros(cells.shape)
        for beam in on_face:
            (first_u, first_v), (u, v) = beam.first[0], (weight[0] for weight in beam.weights)
            flux[first_v : first_v + len(v), first_u : first_u + len(u)] += np.outer(v, u)
        rows_of_cells, columns = (np.arange(n) for n in cells.shape)
        for numbers, fractions in body.boundary.shares(face, rows_of_cells[:, None], columns):
            some = fractions > 0.0
            weight = np.ones(int(some.sum()))
            yield _surface(
                *(body, name, axis, cells[some], fractions[some], weight, np.asarray(numbers)[some], rows),
                *(flux[some], reference),
            )


def _cells_at(grid: Grid, face: int) -> Cells:
    """The cells at a face of the box, by their index in the flattened grid; of the shape of the face's map."""
    nx, ny, _ = grid.cells
    strides, axis = (1, nx, nx * ny), face // 2
    u, v = (strides[other] * np.arange(grid.cells[other]) for other in range(3) if other != axis)
    return np.asarray(v[:, None] + u + strides[axis] * (grid.cells[axis] - 1) * (face % 2), dtype=np.int64)


def _towards_void(body: Balanced, rows: Array, reference: float) -> Iterator[SteadySurface]:
    medium, condition = body.materials, body.boundary.void
    if condition is None or medium.exposure is None or not medium.exposed_cells:
        return
    cells, ratios = medium.exposure.cells, medium.exposure.area
    own, around = kinds_around(medium, cells)
    for side in range(6):
        axis = side // 2
        n, stride = medium.grid.cells[axis], int(np.prod(medium.grid.cells[:axis]))
        # Beyond a face that does not wrap there is nothing.
        inside = body.periodic[axis] | (cells // stride % n != (n - 1 if side % 2 else 0))
        passes = inside & (own != medium.void) & (around[:, side] == medium.void) & (ratios[:, side] > 0.0)
        count = int(passes.sum())
        yield _surface(
            *(body, "void", axis, cells[passes], np.ones(count), 1.0 / ratios[passes, side]),
            *(np.full(count, condition), rows, np.zeros(count), reference),
        )


def _surface(
    body: Balanced,
    name: str,
    axis: int,
    cells: Cells,
    fractions: Array,
    weight: Array,
    numbers: NDArray[np.intp],
    rows: Array,
    beam: Array,
    reference: float,
) -> SteadySurface:
    """A surface of those of the cells that conduct; ``fractions`` are parts of their faces."""
    medium = body.materials
    kinds = np.zeros(len(cells), dtype=np.intp)
    if not medium.uniform:
        kinds = (medium.cells.reshape(-1)[cells] & _KIND).astype(np.intp)
    some = np.isfinite(medium.half[axis, kinds])
    area = fractions * (medium.grid.cell_volume / medium.grid.spacing[axis])
    return SteadySurface(
        *(name, cells[some], kinds[some], area[some], 1.0 / medium.half[axis, kinds[some]], weight[some]),
        *(numbers[some], rows[numbers[some]].T, beam[some], reference),
    )
