"""Memory, disk space and time that a run needs, calculated before it starts."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from heatsim import device as devices
from heatsim.counts import counted
from heatsim.errors import CapacityError, Mistake, ScenarioError
from heatsim.kernels import catalog
from heatsim.kernels.catalog import KernelSpec
from heatsim.observers import energy
from heatsim.parallel.slab import Slab
from heatsim.parallel.team import ALONE, Team
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.surface_cells import check_probes
from heatsim.run.capacity import ADVICE, Need, found_lack, size
from heatsim.run.ranks import divide, painted_bytes
from heatsim.scenario import Scenario
from heatsim.scenario.documents.resolved import input_bytes
from heatsim.solver import device_bytes
from heatsim.solver.device_bytes import DeviceBytes
from heatsim.solver.field.field_copy import SLAB_BYTES
from heatsim.solver.implicit import field_stages
from heatsim.solver.steady import steady_state
from heatsim.storage.folder import bytes_on_disk, check_names

_BYTES_PER_NUMBER = 25  # in a CSV file, at most
# Space that HDF5 uses or reserves for its own structures, per file and per time in the file.
_BYTES_PER_FILE, _BYTES_PER_TIME = 2**17, 2**11
_CHECKPOINTS = 3  # the newest, the one before it, and, while it is written, the next


@dataclass(frozen=True)
class Plan:
    """The needs of a run.

    Attributes:
        problem: coefficients, limit, timeline.
        device: the device of the run.
        kernel: the kernel of the run; with "auto" on a GPU the run itself may choose a faster one.
        device_bytes: device memory for the two buffers, the ledger and the cell types.
        copy_bytes: device memory for a copy of the field. It is written to disk while the run continues; if it does not
            fit, the run waits until the field is written.
        host_bytes: additional memory on the host, including the painted regions.
        disk_bytes: largest disk space of fields, tables, checkpoints and copies of input files at any time.
        input_bytes: of the copies of input files.
        fields: number of fields written.
        rows: number of probe and energy rows.
        team: the ranks that do the run. All bytes above are for this rank.
        part: the problem of the planes that this rank steps; ``problem`` in a run on one rank.
    """

    problem: HeatProblem
    device: devices.Device
    kernel: KernelSpec
    device_bytes: int
    copy_bytes: int
    host_bytes: int
    disk_bytes: int
    input_bytes: int
    fields: int
    rows: int
    team: Team
    part: HeatProblem

    @classmethod
    def of(cls, problem: HeatProblem, team: Team = ALONE) -> Self:
        """The plan of a run of ``problem`` by the ranks of a team.

        Raises:
            DeviceError: the device or the kernel of the scenario is not available.
            ScenarioError: the kernel does not step such a body, several ranks cannot do this run, or a probe's surface
                has no cell.
        """
        scenario = problem.scenario
        device = devices.choose(scenario.solver.device)
        kernel = catalog.choose(scenario.solver.kernel, device.backend, graded=not problem.grid.uniform)
        _check_body(problem, kernel)
        part = divide(problem, team)
        check_probes(problem, part, team)
        needed = device_bytes.of_run(part, kernel)
        whole = needed if part is problem else device_bytes.of_run(problem, kernel)
        # A rank that has painted a part of the planes knows the ledger of these only.
        ledger = whole.ledger if problem.materials.held.slab is None else sum(problem.held.gathered(needed.ledger))
        fields = len(problem.timeline.steps_at(scenario.output.every)) * scenario.output.fields
        rows = len(problem.timeline.steps_at(scenario.output.probe_every))
        return cls(
            problem=problem,
            device=device,
            kernel=kernel,
            device_bytes=needed.total + _method_bytes(part, needed.field),
            copy_bytes=needed.field,
            host_bytes=_host_bytes(problem, device, kernel, needed),
            disk_bytes=_field_file_bytes(problem, whole.field, fields)
            + _checkpoint_bytes(scenario, whole.field, ledger)
            + _table_bytes(problem, rows)
            + input_bytes(scenario),
            input_bytes=input_bytes(scenario),
            fields=fields,
            rows=rows,
            team=team,
            part=part,
        )

    @property
    def slab(self) -> Slab:
        """The planes that this rank steps."""
        return self.part.slab

    @property
    def tuned(self) -> bool:
        """Whether the run itself measures which kernel is fastest."""
        return self.device.backend == "cuda" and self.problem.scenario.solver.kernel == "auto"

    def room_for_copy(self) -> bool:
        """Whether the memory that is free before the run is enough for a copy of the field too. Collective."""
        return not found_lack(self._need(self.copy_bytes), self.team)

    def check_capacity(self, folder: Path | None) -> None:
        """Check that the run fits the memory of the device and the host, and the disk of ``folder``. Collective.

        Without a folder the run writes nothing. The space of files already in the folder counts as free: the run
        continues them or removes them at the start.

        Raises:
            CapacityError: it does not fit; the message says what is free and what helps.
            FolderError: the system does not allow this name of the folder.
        """
        if folder is None:
            self.check_memory()
            return
        check_names(folder)
        self.check_memory()
        with self.team.agreeing():
            if self.team.first:
                self._check_disk(folder)

    def _check_disk(self, folder: Path) -> None:
        """Check that the files of the run fit the disk of ``folder``."""
        existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if os.path.exists(parent))
        free, there = shutil.disk_usage(existing).free, bytes_on_disk(folder)
        if self.disk_bytes > free + there:
            held = f" in addition to the {size(there)} of the run in that folder" if there else ""
            raise CapacityError(
                f"{self.problem.scenario.path}: would write {size(self.disk_bytes)} ({counted(self.fields, 'field')}, "
                f"checkpoints, {counted(self.rows, 'row')}) to {folder}, where {size(free)} are free{held}; "
                "make output.every longer, use fewer cells or choose another --output"
            )

    def check_memory(self) -> None:
        """Check that the run fits the memory of the device and the host. Collective.

        Raises:
            CapacityError: it does not fit; the message says what is free and what helps.
        """
        path, less = self.problem.scenario.path, ""
        if self.problem.timeline.adaptive:
            less = ', or time.method = "euler", which needs less'
        if self.problem.precision == "float64" and self.problem.precision_choice is not None:
            less += f"; solver.precision is float64 {self.problem.precision_choice.reason}"
        lack = found_lack(self._need(), self.team)
        if lack:
            raise CapacityError(f"{path}: needs {lack}; {ADVICE}{less}")
        if self.device.backend == "cuda":
            lack = found_lack(Need("the host", "", self.host_bytes, devices.host_memory()), self.team)
            if lack:
                raise CapacityError(f"{path}: also needs {lack}; {ADVICE}")

    def _need(self, more: int = 0) -> Need:
        """The device memory that this rank needs, plus ``more`` bytes."""
        needed = self.device_bytes + more + (self.host_bytes if self.device.backend == "cpu" else 0)
        return Need(self.device.name, self.device.number(), needed, self.device.free_memory())


def _check_body(problem: HeatProblem, kernel: KernelSpec) -> None:
    """Check that a kernel steps the body and its grid.

    Raises:
        ScenarioError: the body is composite or its cells have different widths, and the kernel is for others only.
    """
    if not (kernel.graded or problem.grid.uniform):
        others = (other.name for other in catalog.KERNELS if other.backend == kernel.backend and other.graded)
        message = (
            f'got "{kernel.name}", which steps only cells of one width; choose auto, {", ".join(others)}, '
            "or leave out the tables domain.x, domain.y and domain.z"
        )
        raise ScenarioError(problem.scenario.path, [Mistake("solver.kernel", message)])
    if kernel.composite or problem.linear:
        return
    able = (other.name for other in catalog.KERNELS if other.backend == kernel.backend and other.composite)
    message = (
        f'got "{kernel.name}", which steps only one constant material with linear conditions and without sources; '
        f"this body has {', '.join(problem.composite_features)}; choose auto, {', '.join(able)}"
    )
    raise ScenarioError(problem.scenario.path, [Mistake("solver.kernel", message)])


def _method_bytes(part: HeatProblem, field: int) -> int:
    """Device memory of the method and of comparisons; ``field``: bytes of one buffer."""
    scenario = part.scenario
    # A checkpoint may still hold the last compared field when the next one is stored.
    compared = 2 * field * (scenario.time.stop_below is not None)
    if scenario.steady:
        return compared + steady_state.device_bytes(part)
    if scenario.time.method == "implicit":
        return compared + field_stages.device_bytes(part)
    return compared


def _host_bytes(problem: HeatProblem, device: devices.Device, kernel: KernelSpec, needed: DeviceBytes) -> int:
    """Additional memory on the host, including the painted regions; ``needed``: on the device."""
    if device.backend == "cuda":
        # Fields pass through the host in slabs, the ledger as a whole.
        stepping = 2 * min(needed.field, max(SLAB_BYTES, needed.field // problem.grid.shape[0])) + needed.ledger
    else:
        # The NumPy oracle needs temporary arrays of the size of the field.
        stepping = 6 * needed.field * (kernel.name == "numpy")
        # The fast CPU kernel stores the potentials of all cells.
        stepping += needed.field * (kernel.name == "numba" and problem.materials.varies)
    return stepping + painted_bytes(problem, device.backend)


def _field_file_bytes(problem: HeatProblem, field: int, count: int) -> int:
    """Bytes of fields.vtkhdf with ``count`` fields of ``field`` bytes."""
    output = problem.scenario.output
    materials = problem.grid.cell_count * (not problem.materials.uniform) * output.fields
    return _BYTES_PER_FILE + count * (field * (4 if output.heat_flux else 1) + _BYTES_PER_TIME) + materials


def _checkpoint_bytes(scenario: Scenario, field: int, ledger: int) -> int:
    """Bytes of all checkpoints, from those of a field and of the ledger."""
    if scenario.steady:
        return 0
    # Implicit steps also store the rate of the field and the flows, which are like the ledger.
    implicit = scenario.time.method == "implicit"
    fields = 1 + (scenario.time.stop_below is not None) + implicit
    return _CHECKPOINTS * (field * fields + ledger * (1 + implicit) + _BYTES_PER_FILE)


def _table_bytes(problem: HeatProblem, rows: int) -> int:
    """Bytes of probes.csv and energy.csv."""
    scenario, columns = problem.scenario, 0
    if scenario.probe_columns:
        columns += 1 + len(scenario.probe_columns)
    if scenario.output.energy:
        columns += 1 + len(energy.columns(problem))
    return rows * columns * _BYTES_PER_NUMBER
