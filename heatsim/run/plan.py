"""What a run would need and do, worked out without running it."""

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from heatsim import device as devices
from heatsim.errors import CapacityError
from heatsim.kernels import catalog
from heatsim.kernels.catalog import KernelSpec
from heatsim.observers import energy
from heatsim.physics import regions
from heatsim.physics.cell_types import Medium
from heatsim.physics.problem import HeatProblem
from heatsim.physics.survey import Survey, survey
from heatsim.run.capacity import ADVICE, size
from heatsim.scenario import Contact
from heatsim.solver import device_bytes, steady_state
from heatsim.solver.field_copy import SLAB_BYTES
from heatsim.storage.folder import bytes_on_disk, check_names

# Values that a step moves between the processor and its memory, at the least: one read, one write.
_VALUES_MOVED = 2
_BYTES_PER_NUMBER = 25  # of a CSV file, at the most
# Space that HDF5 takes or sets aside for its own structures, in a file and for a time in it.
_BYTES_PER_FILE, _BYTES_PER_TIME = 2**17, 2**11
_CHECKPOINTS = 3  # the newest, the one before it, and for a moment the next
_LENGTHS_SHOWN = 4
_MANY_STEPS = 10_000


@dataclass(frozen=True)
class Plan:
    """The needs of a run.

    Attributes:
        problem: coefficients, limit, timeline.
        device: where it would run.
        kernel: what would run it.
        device_bytes: memory of the two buffers, the ledger and what the cells are made of.
        copy_bytes: memory of a copy of the field there, from which it is written while the run goes on; where it does
            not fit, the run waits meanwhile.
        host_bytes: memory on the host beside those, the painted regions among it.
        disk_bytes: the most that fields, tables and checkpoints ever take.
        fields: number of fields written.
        rows: number of probe and energy rows.
    """

    problem: HeatProblem
    device: devices.Device
    kernel: KernelSpec
    device_bytes: int
    copy_bytes: int
    host_bytes: int
    disk_bytes: int
    fields: int
    rows: int

    @classmethod
    def of(cls, problem: HeatProblem) -> "Plan":
        """Count what ``problem`` needs.

        Raises:
            DeviceError: the device or kernel asked for is not there.
        """
        scenario, grid = problem.scenario, problem.grid
        device = devices.choose(scenario.solver.device)
        kernel = catalog.choose(scenario.solver.kernel, device.backend)
        needed = device_bytes.of_run(problem, kernel)
        solver_bytes = steady_state.device_bytes(grid, problem.precision) if scenario.steady else 0
        # The CPU's fast kernel keeps the potentials of a step.
        varies = problem.materials.varies
        field_bytes = needed.field
        compared_bytes = field_bytes * (scenario.time.stop_below is not None)
        # What a GPU has written passes through the host in slabs, and what the ledger holds as a whole.
        passing_bytes = 2 * min(field_bytes, max(SLAB_BYTES, field_bytes // grid.shape[0])) + needed.ledger
        fields = len(problem.timeline.steps_at(scenario.output.every)) * scenario.output.fields
        rows = len(problem.timeline.steps_at(scenario.output.probe_every))
        columns = (1 + len(scenario.probe_columns)) * bool(scenario.probes) + (
            len(energy.columns(problem)) * scenario.output.energy
        )
        return cls(
            problem=problem,
            device=device,
            kernel=kernel,
            # What was compared with last may be on its way into a checkpoint when the next comes.
            device_bytes=needed.total + 2 * compared_bytes + solver_bytes,
            copy_bytes=field_bytes,
            # The NumPy oracle makes whole-array temporaries.
            host_bytes=(passing_bytes if device.backend == "cuda" else 6 * field_bytes * (kernel.name == "numpy"))
            + field_bytes * (varies and kernel.name == "numba")
            + regions.ARRAYS * grid.cell_count * bool(scenario.regions),
            disk_bytes=_BYTES_PER_FILE
            + fields * (field_bytes * (4 if scenario.output.heat_flux else 1) + _BYTES_PER_TIME)
            + problem.materials.cells.size * scenario.output.fields
            + (0 if scenario.steady else _CHECKPOINTS)
            * (field_bytes + compared_bytes + needed.ledger + _BYTES_PER_FILE)
            + rows * columns * _BYTES_PER_NUMBER,
            fields=fields,
            rows=rows,
        )

    @property
    def tuned(self) -> bool:
        """Whether the run itself finds out which kernel is fastest."""
        return self.device.backend == "cuda" and self.problem.scenario.solver.kernel == "auto"

    @property
    def room_for_copy(self) -> bool:
        """Whether what is free before the run has begun would hold a copy of the field too."""
        needed = self.device_bytes + self.copy_bytes + (self.host_bytes if self.device.backend == "cpu" else 0)
        return needed <= self.device.free_memory()

    def check_capacity(self, folder: Path) -> None:
        """See that it fits the device, the host and the disk that ``folder`` will be on.

        What a run has written to the folder already counts as there: it is gone on with, or removed before the start.

        Raises:
            CapacityError: it does not; says what is there and what would help.
            FolderError: the folder cannot have such a name.
        """
        check_names(folder)
        free = self.device.free_memory()
        needed = self.device_bytes + (self.host_bytes if self.device.backend == "cpu" else 0)
        if needed > free:
            raise CapacityError(
                f"{self.problem.scenario.path}: needs {size(needed)} of memory on {self.device.name}, which has "
                f"{size(free)} free; {ADVICE}"
            )
        if self.device.backend == "cuda" and self.host_bytes > devices.host_memory():
            raise CapacityError(
                f"{self.problem.scenario.path}: needs {size(self.host_bytes)} of host memory beside, "
                f"{size(devices.host_memory())} are free; {ADVICE}"
            )
        existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if os.path.exists(parent))
        free, there = shutil.disk_usage(existing).free, bytes_on_disk(folder)
        if self.disk_bytes > free + there:
            held = f" beside the {size(there)} that the run there holds" if there else ""
            raise CapacityError(
                f"{self.problem.scenario.path}: would write {size(self.disk_bytes)} ({self.fields:,} fields, "
                f"checkpoints, {self.rows:,} rows) to {folder}, where {size(free)} are free{held}; make output.every "
                "longer, use fewer cells or choose another --output"
            )

    def estimate_seconds(self) -> float:
        """Stepping time in s if the kernel ran at the device's copy speed, which is measured here for a moment."""
        itemsize = 4 if self.problem.precision == "float32" else 8
        if self.problem.scenario.steady:
            moved = steady_state.bytes_moved(self.problem)
            return moved / _copy_bandwidth(self.device)
        moved = self.problem.timeline.last_step * self.problem.grid.cell_count * itemsize * _VALUES_MOVED
        return moved / _copy_bandwidth(self.device)


def _copy_bandwidth(device: devices.Device) -> float:
    """Bytes read and written a second by a copy of 64 MiB, where there is room for it, within the device."""
    import time

    source = device.xp.ones(max(1, min(2**24, device.free_memory() // 32)), dtype="float32")
    target = device.xp.zeros_like(source)
    best = float("inf")
    for _ in range(4):
        device.synchronise()
        started = time.perf_counter()
        target[...] = source
        device.synchronise()
        best = min(best, time.perf_counter() - started)
    return 2.0 * int(source.nbytes) / best


def describe(plan: Plan) -> str:
    """The plan as text for a terminal."""
    if plan.problem.scenario.steady:
        return _describe_steady(plan)
    problem, timeline = plan.problem, plan.problem.timeline
    grid, limit = problem.grid, problem.limit
    x, y, z = limit.cell
    cells, spacing = " × ".join(str(n) for n in grid.cells), " × ".join(f"{d:.4g}" for d in grid.spacing)
    end = float(timeline.times[-1])
    kernel = "auto, tuned at the run" if plan.tuned else plan.kernel.name
    lines = [
        problem.scenario.title,
        f"grid         {cells} cells of {spacing} m",
        f"device       {plan.device.name}; kernel {kernel}; {problem.precision}",
        f"limit        {_limit(limit.dt)}" + (f", set by cell [{x}, {y}, {z}]" if isfinite(limit.dt) else ""),
        f"steps        {timeline.last_step:,} to t = {end:.6g} s, {len(timeline.dts):,} intervals",
    ]
    for dt, steps in list(timeline.step_lengths.items())[:_LENGTHS_SHOWN]:
        lines.append(f"dt           {dt!r} s, {steps:,} steps")
        lines += [f"             c{i} = {c!r}" for i, c in enumerate(problem.coefficients[dt].c)]
    if len(timeline.step_lengths) > _LENGTHS_SHOWN:
        lines.append(f"             and {len(timeline.step_lengths) - _LENGTHS_SHOWN} more step lengths")
    if problem.scenario.composite:
        lines += _materials(problem)
    lines += [
        f"memory       {size(plan.device_bytes)} on the device, {size(plan.copy_bytes)} more to write a copy from "
        f"meanwhile, {size(plan.host_bytes)} on the host",
        f"disk         {size(plan.disk_bytes)}: {plan.fields:,} fields, checkpoints, {plan.rows:,} rows",
        f"time         {plan.estimate_seconds():.3g} s of stepping if the kernel ran at the speed of a copy here",
    ]
    note = rounding_note(problem)
    return "\n".join(lines + ([f"float32      {note}"] if note else []))


def _describe_steady(plan: Plan) -> str:
    problem = plan.problem
    grid, tolerance = problem.grid, problem.scenario.time.tolerance
    cells, spacing = " × ".join(str(n) for n in grid.cells), " × ".join(f"{d:.4g}" for d in grid.spacing)
    to = "0.01 % of the range of the temperatures, at least 1 mK" if tolerance is None else f"{tolerance:.6g} K"
    lines = [
        problem.scenario.title,
        f"grid         {cells} cells of {spacing} m",
        f"device       {plan.device.name}; {problem.precision}",
        f"method       steady state, to {to}",
    ]
    if problem.scenario.composite:
        lines += _materials(problem)
    return "\n".join(
        [
            *lines,
            f"memory       {size(plan.device_bytes)} on the device, {size(plan.host_bytes)} on the host",
            f"disk         {size(plan.disk_bytes)}: {plan.fields:,} field, {plan.rows:,} row",
            f"time         about {plan.estimate_seconds():.2g} s of solving",
        ]
    )


def _limit(dt: float) -> str:
    """A stability limit in s as text."""
    return f"dt ≤ {dt:.6g} s" if isfinite(dt) else "any dt is stable: no heat is conducted"


def _materials(problem: HeatProblem) -> list[str]:
    """Every material with the time step it allows and its coefficients, and the cells of every region."""
    scenario, materials = problem.scenario, problem.materials
    lines = []
    for material in survey(scenario, materials.palette, problem.reference):
        cells = materials.cells_of(material.name)
        kx, ky, kz = material.conductivity
        k = f"{kx:.6g}" if kx == ky == kz else f"[{kx:.6g}, {ky:.6g}, {kz:.6g}]"
        at, enthalpy = "" if material.at is None else f" at {material.at:.6g} K", material.enthalpy
        lines += [
            f"material     {material.name}: {cells:,} cells; k = {k} W/(m K), ρ = {material.density:.6g} kg/m³, "
            f"cp = {material.specific_heat:.6g} J/(kg K){at}"
            + ("" if scenario.steady else f"; alone {_limit(material.limit)}"),
        ]
        if enthalpy is not None:
            (low, high), (least, most), (least_cp, most_cp) = (
                enthalpy.followed,
                enthalpy.conductivity_range,
                enthalpy.specific_heat_range,
            )
            lines.append(
                f"             followed from {low:.6g} to {high:.6g} K: k = {least:.6g} … {most:.6g} W/(m K), "
                f"cp = {least_cp:.6g} … {most_cp:.6g} J/(kg K)"
            )
        for dt in list(problem.timeline.step_lengths)[:_LENGTHS_SHOWN]:
            start, coefficients = f"             dt = {dt:.6g} s: ", _coefficients(material, dt)
            # Ranges are too long to stand side by side.
            beside = "; " if enthalpy is None else "\n" + " " * len(start)
            lines.append(start + beside.join(coefficients))
    for patch in scenario.patches:
        on_grid = patch.area_on_grid(scenario.grid)
        lines.append(f"patch        {patch.name}: {patch.area:.6g} m² on {patch.face}, {on_grid:.6g} m² on the grid")
    if scenario.uses_void:
        lines.append(f"void         {materials.cells_of('void'):,} cells")
    if problem.parts is not None:
        for region, cells in zip(scenario.regions, problem.parts.region_cells, strict=True):
            lines.append(f"region       {region.name}: {cells:,} cells of {', '.join(region.materials)}")
    return lines + _surfaces(materials, scenario.contacts)


def _surfaces(medium: Medium, contacts: Iterable[Contact]) -> list[str]:
    """The smooth areas of surfaces towards void that exchange heat, and of contacts."""
    areas = {
        frozenset(medium.palette[place].name for place in pair): area for pair, area in medium.surface_areas.items()
    }
    lines = []
    for pair, area in areas.items():
        if "void" in pair:
            (name,) = pair - {"void"}
            lines.append(f"surface      {name} towards void: {area:.6g} m²")
    for contact in contacts:
        area = areas.get(frozenset(contact.between), 0.0)
        lines.append(f"contact      {' and '.join(contact.between)}: {area:.6g} m², {contact.resistance:.6g} m² K/W")
    return lines


def _coefficients(material: Survey, dt: float) -> list[str]:
    """c0…c6, what is equal together, and the range of each of a material that changes."""
    alike: dict[str, list[int]] = {}
    pairs = zip(material.least_coefficients(dt), material.coefficients(dt), strict=True)
    for number, pair in enumerate(pairs):
        alike.setdefault(" … ".join(dict.fromkeys(f"{c:.6g}" for c in sorted(pair))), []).append(number)
    return [f"{' = '.join(f'c{number}' for number in numbers)} = {values}" for values, numbers in alike.items()]


def rounding_note(problem: HeatProblem) -> str:
    """What to know of float32's rounding for this run; empty if it hardly matters.

    In long runs on fine grids the change in a step falls below half a unit in the last place of the deviation, and
    rounding to nearest loses it. That sets in when a cell needs many steps to change by a rounding unit of the range:
    for slabs of 256 and 1,024 cells the error was measured at 3e-3 … 7e-3 K per 100 K after 100,000 steps, and at up to
    2.5e-2 K with steps far below the limit (64 cells, 200,000 steps of 1/10,000 of it). With stochastic rounding the
    same cases are off by less than 1e-4 K and by 4e-4 K: what is left is noise, which short steps leave conduction no
    time to level out.
    """
    if problem.precision != "float32" or problem.rounding == "stochastic" or problem.timeline.last_step < _MANY_STEPS:
        return ""
    return (
        f"{problem.timeline.last_step:,} steps: rounding to nearest may add up to some 1e-2 K per 100 K of range; "
        'solver.rounding = "stochastic" keeps it near 1e-4 K, precision = "float64" far below that'
    )
