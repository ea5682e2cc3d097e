"""The heat that has passed each face, summed over every step, not sampled.

One float64 sum for each cell of a face, in kelvin of that cell, added to by the thread that updates the cell; turned
into joules in a fixed order when a row is due, so that two runs give the same digits.

A sum of n terms that are alike may be off by n/2 units in its last place, 1e-10 of it after a million steps. So the
sums that kernels add to are short: every STEPS_TO_CARRY steps they are carried over to long ones and begin at 0 again,
which leaves less than 1e-12 of the heat.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.grid import FACES
from heatsim.kernels.reductions.fused import statistics_of_each
from heatsim.physics.problem import HeatProblem
from heatsim.solver.heat_sums import HeatSums, SumLayout

# Sums are carried over after each multiple of this number of steps, counted from the start of the run. So an
# interruption changes no bit.
STEPS_TO_CARRY = 8_192

_STEPS_AT_ONCE = 16_384

FACE_SUMS = tuple(f"ledger_{name}" for name in FACES)
BEAM_SUMS = tuple(f"ledger_beam_{name}" for name in FACES)
EXPOSED_SUMS, PART_SUMS, CELL_SUMS, LIT_SUMS = "ledger_exposed", "ledger_parts", "ledger_cells", "ledger_lit"
# All sums, with the shapes that they have where nothing is entered.
_NAMES: dict[str, tuple[int, ...]] = dict.fromkeys((*FACE_SUMS, *BEAM_SUMS), (0, 0)) | {
    EXPOSED_SUMS: (0,),
    PART_SUMS: (0,),
    CELL_SUMS: (0,),
    LIT_SUMS: (0,),
}

Array = NDArray[np.float64]


def shapes_of_sums(problem: HeatProblem) -> dict[str, tuple[int, ...]]:
    """The shapes of the sums that a problem needs, by the names that checkpoints give them."""
    beams, shapes = problem.sources.beam_faces(), dict[str, tuple[int, ...]]()
    for face in range(6):
        if problem.open_faces[face]:
            shapes[FACE_SUMS[face]] = problem.grid.face_shape(face)
        if face in beams:
            shapes[BEAM_SUMS[face]] = problem.grid.face_shape(face)
    shapes[EXPOSED_SUMS] = (problem.materials.exposed_cells,)
    shapes[PART_SUMS] = (len(problem.boundary.mixed.numbers),)
    shapes[CELL_SUMS] = (len(problem.materials.heated),)
    shapes[LIT_SUMS] = (len(problem.materials.heated.lit),)
    return shapes


class Ledger:
    """Sums of f − g·T for the faces that exchange heat.

    Attributes:
        faces: six device arrays of float64; those of x faces are [z, y], of y faces [z, x], of z faces [y, x]. Faces
            that exchange nothing, and all of them when the ledger is off, have empty arrays.
        beams: the same for the heat of beams; faces without a beam have empty arrays.
        exposed: the same for the surfaces of each exposed cell towards void.
        parts: the same for the parts of cells that several conditions share; their sums are among those of faces.
        cells: the same for the cells that sources heat one by one.
        lit: the same for beams on the surfaces of each exposed cell towards void.
    """

    def __init__(self, device: Device, problem: HeatProblem, enabled: bool) -> None:
        """Sums of zero; empty ones unless ``enabled``."""
        shapes = shapes_of_sums(problem) if enabled else {}
        self._layout = SumLayout({name: shapes[name] for name in _NAMES if prod(shapes.get(name, (0,)))})
        self._values: Any = device.xp.zeros(self._layout.size)
        empty = {name: device.xp.zeros(shape) for name, shape in _NAMES.items()}
        self._sums = empty | self._layout.views(self._values)
        self.faces = tuple(self._sums[name] for name in FACE_SUMS)
        self.beams = tuple(self._sums[name] for name in BEAM_SUMS)
        self.exposed: Any = self._sums[EXPOSED_SUMS]
        self.parts: Any = self._sums[PART_SUMS]
        self.cells: Any = self._sums[CELL_SUMS]
        self.lit: Any = self._sums[LIT_SUMS]
        self._problem = problem
        self._device = device
        self._sources_step, self._sources_heat = 0, 0.0
        self._totals: list[tuple[float, float]] | None = None
        self._heats: Heats | None = None
        self._capacities: dict[int, Array] = {}
        self._carried: Any = None  # like the values; None until they are carried over

    @property
    def recorded(self) -> bool:
        """Whether it sums anything."""
        return self._layout.size > 0

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return self._layout.nbytes * (1 if self._carried is None else 2)

    def heats(self) -> "Heats":
        """Heat into the body since the start by where it passed, in J."""
        if self._heats is None:
            self._heats = self._find_heats()
        return self._heats

    @staticmethod
    def look_at_all(ledgers: "Sequence[Ledger]") -> None:
        """Find the sums over faces of several ledgers on one device, on a GPU by the same launches."""
        device = ledgers[0]._device
        of_ledgers = [ledger._face_parts() for ledger in ledgers]
        parts = [part for of_faces in of_ledgers for of_face in of_faces for part in of_face]
        if device.backend == "cpu":
            found = iter([(float(part.sum()), float(np.abs(part).sum())) for part in parts])
        else:
            statistics = statistics_of_each(device, parts)
            found = iter([(of_part.total, of_part.absolute_total) for of_part in statistics])
        for ledger, of_faces in zip(ledgers, of_ledgers, strict=True):
            sums = [[next(found) for _ in of_face] for of_face in of_faces]
            ledger._totals = [
                (sum((total for total, _ in of_face), 0.0), sum((magnitude for _, magnitude in of_face), 0.0))
                for of_face in sums
            ]

    def take(self, sources: float = 0.0) -> HeatSums:
        """Return the sums that kernels have entered, with the heat of sources in J, and set them to 0."""
        self.changed()
        taken = HeatSums(self._layout, self._values.copy(), sources)
        self._values.fill(0.0)
        return taken

    def show(self, sums: HeatSums) -> None:
        """Set the sums, and the heat that sources have given, for observers to read."""
        self.changed()
        self._values[...] = sums.values
        self._sources_heat = sums.sources

    def shown(self) -> HeatSums:
        """A copy of the sums, with the heat of sources."""
        return HeatSums(self._layout, self._values.copy(), self._sources_heat)

    def changed(self) -> None:
        """Discard what was derived from the sums. Call this after every change of the sums."""
        self._totals = None
        self._heats = None

    def carry(self) -> None:
        """Carry the sums over; on a GPU this is queued behind the steps so far."""
        if self._carried is None:
            self._carried = self._values.copy()
        else:
            self._carried += self._values
        self._values.fill(0.0)

    def _find_heats(self) -> "Heats":
        problem, boundary = self._problem, self._problem.boundary
        capacities = problem.materials.cell_heat_capacity
        through, patches = [], dict.fromkeys(range(6, 6 + len(problem.scenario.patches)), 0.0)
        beams = magnitude = 0.0
        for face in range(6):
            per_cell = self._capacities_at(face)
            if problem.materials.uniform and not boundary.maps[face].size:
                heat, its_magnitude = (total * float(capacities[0]) for total in self._totals_of_faces()[face])
            else:
                heat, its_magnitude = self._heat_of_cells(face, per_cell, patches)
            through.append(heat)
            magnitude += its_magnitude
            if self.beams[face].size:
                beams += float((self._per_cell(BEAM_SUMS[face]) * per_cell).sum())
        void = 0.0
        if self.exposed.size:
            cells = np.unravel_index(problem.materials.weighted_surfaces.cells, problem.grid.shape)
            of_cells = self._per_cell(EXPOSED_SUMS) * capacities[problem.materials.types_of(cells)]
            void = float(of_cells.sum())
            magnitude += float(np.abs(of_cells).sum())
            if self.lit.size:
                beams += float((self._per_cell(LIT_SUMS) * capacities[problem.materials.types_of(cells)]).sum())
        in_cells = self._of_heated_cells()
        return Heats(tuple(through), tuple(patches.values()), void, beams, magnitude, *in_cells)

    def _of_heated_cells(self) -> tuple[float, float]:
        """Heat in J that sources have given to single cells, and the sum of its magnitudes."""
        heated = self._problem.materials.heated
        if not self.cells.size:
            return 0.0, 0.0
        heat = self._per_cell(CELL_SUMS) * (heated.heat_capacity * heated.volume)
        return float(heat.sum()), float(np.abs(heat).sum())

    def _heat_of_cells(self, face: int, per_cell: Array, patches: dict[int, float]) -> tuple[float, float]:
        """Heat in J through a face of several materials or conditions, and Σ |heat of its cells|; adds to patches."""
        boundary = self._problem.boundary
        if not self.faces[face].size:
            return 0.0, 0.0
        heat = self._per_cell(FACE_SUMS[face]) * per_cell
        if boundary.maps[face].size:
            self._add_patches(face, heat, per_cell, patches)
        return float(heat.sum()), float(np.abs(heat).sum())

    def _add_patches(self, face: int, heat: Array, per_cell: Array, patches: dict[int, float]) -> None:
        """Add the heat in J through the patches of a face."""
        boundary = self._problem.boundary
        for number in np.unique(boundary.maps[face]).tolist():
            if number in patches:
                patches[number] += float(heat[boundary.maps[face] == number].sum())
        parts, cells = boundary.mixed.on_face(face)
        if len(cells):
            of_parts = self._per_cell(PART_SUMS)[parts] * np.broadcast_to(per_cell, heat.shape).reshape(-1)[cells]
            for number in np.unique(boundary.mixed.numbers[parts]).tolist():
                if boundary.owners[number] in patches:
                    patches[boundary.owners[number]] += float(of_parts[boundary.mixed.numbers[parts] == number].sum())

    def _capacities_at(self, face: int) -> Array:
        """The heat capacities in J/K of the cells at a face; one number if all are of one type."""
        if face not in self._capacities:
            materials = self._problem.materials
            capacities = materials.cell_heat_capacity
            at_face = capacities[:1] if materials.uniform else capacities[materials.types_on_face(face)]
            self._capacities[face] = at_face
        return self._capacities[face]

    def _totals_of_faces(self) -> list[tuple[float, float]]:
        """The sum over each face and that of the magnitudes, in K."""
        if self._totals is None:
            Ledger.look_at_all([self])
        assert self._totals is not None
        return self._totals

    def source_heat(self, step: int) -> float:
        """Heat in J that sources in the body have given until ``step``.

        It is added up from one call to the next, in pieces that do not depend on where a run was interrupted: calls
        come at due times only.
        """
        problem, timeline = self._problem, self._problem.timeline
        if timeline.adaptive:  # set with the sums
            return self._sources_heat
        while problem.sources.even and self._sources_step < step:
            until = min(step, timeline.interval_end(self._sources_step), self._sources_step + _STEPS_AT_ONCE)
            heat, steps = problem.step_heat.of(self._sources_step, until), np.ones(until - self._sources_step)
            self._sources_heat += problem.sources.total(heat, steps, problem.precision)
            self._sources_step = until
        return self._sources_heat

    def saved(self, sums: HeatSums) -> dict[str, NDArray[np.float64]]:
        """Other sums in the form in which :meth:`save` gives those of this ledger."""
        saved = {name: self._device.to_host(values) for name, values in sums.surfaces.items()}
        return saved | {"ledger_sources": np.array([0.0, sums.sources])}

    def save(self) -> dict[str, NDArray[np.float64]]:
        """The sums by face name, on the host."""
        saved = {name: self._device.to_host(sums) for name, sums in self._sums.items() if sums.size}
        saved |= {f"{name}_carried": self._device.to_host(sums) for name, sums in self._carried_sums().items()}
        if self._sources_step or self._sources_heat:
            saved["ledger_sources"] = np.array([self._sources_step, self._sources_heat])
        return saved

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Set the sums to those that :meth:`save` gave."""
        self.changed()
        for name, sums in self._sums.items():
            if sums.size:
                sums[...] = self._device.xp.asarray(arrays[name])
        if any(f"{name}_carried" in arrays for name in self._layout.shapes):
            self._carried = self._device.xp.zeros(self._layout.size)
            for name, carried in self._carried_sums().items():
                carried[...] = self._device.xp.asarray(arrays[f"{name}_carried"])
        if "ledger_sources" in arrays:
            self._sources_step, self._sources_heat = (
                int(arrays["ledger_sources"][0]),
                float(arrays["ledger_sources"][1]),
            )

    def _face_parts(self) -> list[list[Any]]:
        """For each face the arrays whose sum is the heat through it."""
        carried = self._carried_sums()
        return [
            [part for part in (sums, carried.get(f"ledger_{name}")) if part is not None and part.size]
            for name, sums in zip(FACES, self.faces, strict=True)
        ]

    def _carried_sums(self) -> dict[str, Any]:
        """The sums that were carried over, by name; empty if none were."""
        return {} if self._carried is None else self._layout.views(self._carried)

    def _per_cell(self, name: str) -> Array:
        """The sum of each cell since the start, on the host."""
        entered: Array = self._device.to_host(self._sums[name])
        carried = self._carried_sums()
        return entered + self._device.to_host(carried[name]) if name in carried else entered


@dataclass(frozen=True)
class Heats:
    """Heat in J into a body since the start.

    Attributes:
        faces: through each face, that of its patches among it, that of beams left out.
        patches: through each patch.
        void: through the surfaces towards void.
        beams: absorbed from beams.
        magnitude: Σ |heat through the faces of each cell|, beams left out, void included.
        cells: given by sources to single cells, and by beams to cells that are not at their face.
        cells_magnitude: Σ |heat given to each of these cells|.
    """

    faces: tuple[float, ...]
    patches: tuple[float, ...]
    void: float
    beams: float
    magnitude: float
    cells: float = 0.0
    cells_magnitude: float = 0.0
