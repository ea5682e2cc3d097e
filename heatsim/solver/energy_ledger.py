"""The heat that has passed each face, summed over every step, not sampled.

One float64 sum for each cell of a face, in kelvin of that cell, added to by the thread that updates the cell; turned
into joules in a fixed order when a row is due, so that two runs give the same digits.

A sum of n terms that are alike may be off by n/2 units in its last place, 1e-10 of it after a million steps. So the
sums that kernels add to are short: every STEPS_TO_CARRY steps they are carried over to long ones and begin at 0 again,
which leaves less than 1e-12 of the heat.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.grid import FACES, Grid
from heatsim.kernels.reductions.fused import statistics_of_each
from heatsim.physics.body import Body
from heatsim.physics.cell_types import INTERIOR
from heatsim.physics.faces import Faces
from heatsim.physics.problem import HeatProblem

# Sums are carried over after each multiple of so many steps of the run, wherever it was interrupted.
STEPS_TO_CARRY = 8_192

_STEPS_AT_ONCE = 16_384


class Ledger:
    """Sums of f − g·T for the faces that exchange heat.

    Attributes:
        faces: six device arrays of float64; those of x faces are [z, y], of y faces [z, x], of z faces [y, x]. Faces
            that exchange nothing, and all of them when the ledger is off, have empty arrays.
        beams: the same for what beams gave to the cells of each face; faces without a beam have empty arrays.
        exposed: the same for the surfaces of each exposed cell towards void.
        parts: the same for the parts of cells that several conditions share; their sums are among those of faces.
    """

    def __init__(self, device: Device, grid: Grid, faces: Faces, enabled: bool, body: Body | None = None) -> None:
        nz, ny, nx = grid.shape
        shapes = ((nz, ny), (nz, nx), (ny, nx))
        beams = body.sources.beam_faces() if body is not None else set()

        def sums(wanted: Iterable[bool]) -> tuple[Any, ...]:
            return tuple(
                device.xp.zeros(shapes[face // 2] if enabled and recorded else (0, 0))
                for face, recorded in enumerate(wanted)
            )

        exchanging = faces.exchanging if body is None else body.conditions.exchanging
        self.faces = sums(exchanging(face) or face in beams for face in range(6))
        self.beams = sums(face in beams for face in range(6))
        exposed = body.medium.exposed_cells if body is not None and enabled else 0
        self.exposed: Any = device.xp.zeros(exposed)
        parts = 0 if body is None else len(body.conditions.mixed.numbers)
        self.parts: Any = device.xp.zeros(parts if enabled else 0)
        self._device = device
        self._sources_step, self._sources_heat = 0, 0.0
        self._totals: list[float] | None = None
        self._magnitudes: list[float] = []
        self._body_heats: BodyHeats | None = None
        self._carried: dict[str, Any] = {}

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        named = (*self.faces, *self.beams, self.exposed, self.parts)
        return sum(int(sums.nbytes) for sums in (*named, *self._carried.values()))

    def heats(self, cell_heat_capacity: float) -> tuple[float, ...]:
        """Heat through each face into the body since the start, in J, from a cell's ρ·cp·V in J/K."""
        if self._totals is None:
            Ledger.look_at_all([self])
        assert self._totals is not None
        return tuple(total * cell_heat_capacity for total in self._totals)

    def magnitude(self, problem: HeatProblem) -> float:
        """Σ |heat through the faces of each cell| in J since the start, void included."""
        if problem.body is not None:
            return self.body_heats(problem.body).magnitude
        self.heats(problem.cell_heat_capacity)
        return sum(self._magnitudes) * problem.cell_heat_capacity

    @staticmethod
    def look_at_all(ledgers: "Sequence[Ledger]") -> None:
        """Find the sums over faces of several ledgers on one device, on a GPU by the same launches."""
        device = ledgers[0]._device
        parts = [part for ledger in ledgers for parts in ledger._face_parts() for part in parts]
        if device.backend == "cpu":
            found = iter([(float(part.sum()), float(np.abs(part).sum())) for part in parts])
        else:
            statistics = statistics_of_each(device, parts)
            found = iter([(of_part.total, of_part.absolute_total) for of_part in statistics])
        for ledger in ledgers:
            sums = [[next(found) for _ in parts] for parts in ledger._face_parts()]
            ledger._totals = [sum((total for total, _ in of_face), 0.0) for of_face in sums]
            ledger._magnitudes = [sum((magnitude for _, magnitude in of_face), 0.0) for of_face in sums]

    def changed(self) -> None:
        """To be called by whoever has added to the sums: what was found out about them is forgotten."""
        self._totals = None
        self._body_heats = None

    def carry(self) -> None:
        """Carry the sums over; on a GPU that is queued behind the steps that have been."""
        for name, sums in self._named():
            if not sums.size:
                continue
            if name in self._carried:
                self._carried[name] += sums
            else:
                self._carried[name] = sums.copy()
            sums.fill(0.0)

    def body_heats(self, body: Body) -> "BodyHeats":
        """Heat since the start by where it passed, in J."""
        if self._body_heats is None:
            self._body_heats = self._find_body_heats(body)
        return self._body_heats

    def _find_body_heats(self, body: Body) -> "BodyHeats":
        capacities = body.medium.cell_heat_capacity
        through, patches = [], dict.fromkeys(range(6, 6 + len(body.conditions.scenario.patches)), 0.0)
        beams = magnitude = 0.0
        for face in range(6):
            if not self.faces[face].size:
                through.append(0.0)
                continue
            per_cell = capacities[_kinds_on_face(body, face)]
            heat = self._per_cell(f"ledger_{FACES[face]}", self.faces[face]) * per_cell
            through.append(float(heat.sum()))
            magnitude += float(np.abs(heat).sum())
            for number in body.conditions.on_face(face):
                if number >= 6:
                    patches[number] = float(heat[body.conditions.maps[face] == number].sum())
            parts, cells = body.conditions.mixed.on_face(face)
            if len(cells):
                of_parts = self._per_cell("ledger_parts", self.parts)[parts] * per_cell.reshape(-1)[cells]
                for number in np.unique(body.conditions.mixed.numbers[parts]).tolist():
                    if number >= 6:
                        patches[number] += float(of_parts[body.conditions.mixed.numbers[parts] == number].sum())
            if self.beams[face].size:
                beams += float((self._per_cell(f"ledger_beam_{FACES[face]}", self.beams[face]) * per_cell).sum())
        void = 0.0
        exposure = body.medium.exposure
        if exposure is not None and self.exposed.size:
            kinds = body.medium.cells.reshape(-1)[exposure.cells] & ~np.uint8(INTERIOR)
            heat = self._per_cell("ledger_exposed", self.exposed) * capacities[kinds]
            void = float(heat.sum())
            magnitude += float(np.abs(heat).sum())
        return BodyHeats(tuple(through), tuple(patches.values()), void, beams, magnitude)

    def source_heat(self, problem: HeatProblem, step: int) -> float:
        """Heat in J that sources in the body have given until ``step``.

        It is added up from one call to the next, in pieces that do not depend on where a run was interrupted: calls
        come at due times only.
        """
        timeline, body = problem.timeline, problem.body
        while body is not None and self._sources_step < step:
            interval = timeline.interval(self._sources_step)
            until = min(step, int(timeline.steps[interval + 1]), self._sources_step + _STEPS_AT_ONCE)
            times = timeline.step_times(self._sources_step, until)
            self._sources_heat += body.source_heat(times, float(timeline.dts[interval]), problem.precision)
            self._sources_step = until
        return self._sources_heat

    def save(self) -> dict[str, NDArray[np.float64]]:
        """The sums by face name, on the host."""
        saved = {name: self._device.to_host(sums) for name, sums in self._named() if sums.size}
        saved |= {f"{name}_carried": self._device.to_host(sums) for name, sums in self._carried.items()}
        if self._sources_step:
            saved["ledger_sources"] = np.array([self._sources_step, self._sources_heat])
        return saved

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what :meth:`save` gave."""
        self.changed()
        for name, sums in self._named():
            if sums.size:
                sums[...] = self._device.xp.asarray(arrays[name])
            if f"{name}_carried" in arrays:
                self._carried[name] = self._device.xp.array(arrays[f"{name}_carried"])
        if "ledger_sources" in arrays:
            self._sources_step, self._sources_heat = (
                int(arrays["ledger_sources"][0]),
                float(arrays["ledger_sources"][1]),
            )

    def _face_parts(self) -> list[list[Any]]:
        """For each face the arrays whose sum is the heat through it."""
        return [
            [part for part in (sums, self._carried.get(f"ledger_{name}")) if part is not None and part.size]
            for name, sums in zip(FACES, self.faces, strict=True)
        ]

    def _per_cell(self, name: str, sums: Any) -> NDArray[np.float64]:
        """What has been entered for each cell since the start, on the host."""
        entered: NDArray[np.float64] = self._device.to_host(sums)
        return entered + self._device.to_host(self._carried[name]) if name in self._carried else entered

    def _named(self) -> list[tuple[str, Any]]:
        """The arrays with the names that checkpoints give them."""
        return [
            *((f"ledger_{name}", sums) for name, sums in zip(FACES, self.faces, strict=True)),
            *((f"ledger_beam_{name}", sums) for name, sums in zip(FACES, self.beams, strict=True)),
            ("ledger_exposed", self.exposed),
            ("ledger_parts", self.parts),
        ]


@dataclass(frozen=True)
class BodyHeats:
    """Heat in J into a composite body since the start.

    Attributes:
        faces: through each face, that of its patches among it, that of beams left out.
        patches: through each patch.
        void: through the surfaces towards void.
        beams: absorbed from beams.
        magnitude: Σ |heat through the faces of each cell|, beams left out, void included.
    """

    faces: tuple[float, ...]
    patches: tuple[float, ...]
    void: float
    beams: float
    magnitude: float


def _kinds_on_face(body: Body, face: int) -> NDArray[np.intp]:
    """The kinds of the cells of a face, of the shape of its sums."""
    nz, ny, nx = body.medium.grid.shape
    if body.medium.uniform:
        return np.zeros(((nz, ny), (nz, nx), (ny, nx))[face // 2], dtype=np.intp)
    cells = np.moveaxis(body.medium.cells, 2 - face // 2, 0)[-(face % 2)]
    return np.asarray(cells & ~np.uint8(INTERIOR), dtype=np.intp)
