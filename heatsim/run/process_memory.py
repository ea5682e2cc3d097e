"""The memory of the process of a run: its arrays, and the program itself.

A plan loads the same program, and times steps on arrays of the same sizes. So it measures its own process.
"""

from heatsim.observers.snapshots import CELLS_AT_ONCE
from heatsim.observers.table import samples_at_once
from heatsim.run.plan import Plan
from heatsim.solver.field.field_copy import SLAB_BYTES

_STATUS = "/proc/self/status"
# float64 arrays of the size of a slab while enthalpies become temperatures, for a file.
_CONVERTED = 5
# float64 numbers for each cell of a piece while its heat fluxes are found; more of them if materials vary.
_FLUX, _FLUX_OF_VARYING = 10, 21
_SAMPLED = 5  # copies of the samples of points while rows are made of them
_POINT = 1000  # bytes, for the place of a point


def held() -> int:
    """Bytes that this process holds now; where the system does not report them, the most that it has held."""
    return _status("VmRSS") or _most_by_rusage()


def most() -> int:
    """The most bytes that this process has held so far; 0 where the system does not report them."""
    return _status("VmHWM") or _most_by_rusage()


def expected(plan: Plan, timed: Plan) -> int:
    """The most bytes that the process of a run will hold on the host; 0 if unknown.

    Args:
        plan: of the run.
        timed: whose first steps this process has done: the same plan, or one on a coarser grid.
    """
    measured, beside = most(), _written(plan) + _sampled(plan)
    start = measured + max(0, on_host(plan) - on_host(timed))
    # When fields and rows are written, what the start of the run needed besides its arrays is free again.
    return measured and max(start, min(start, held() + on_host(plan)) + beside)


def on_host(plan: Plan) -> int:
    """Bytes of a run's arrays on the host: on the CPU also those on its device."""
    return plan.host_bytes + plan.device_bytes * (plan.device.backend == "cpu")


def _written(plan: Plan) -> int:
    """Bytes on the host while a field is written: a copy of it, and a piece of it as temperatures and heat fluxes."""
    problem = plan.problem
    cells = problem.grid.cell_count
    flux = 0
    if problem.scenario.output.heat_flux:
        nx, ny, _ = problem.grid.cells
        flux = min(cells, max(CELLS_AT_ONCE, nx * ny)) * (_FLUX_OF_VARYING if problem.materials.varies else _FLUX) * 8
    if plan.device.backend != "cpu":
        return flux  # the copy is on the device, and the host's window is in plan.host_bytes
    piece = min(cells, SLAB_BYTES * cells // plan.copy_bytes)
    slab = _CONVERTED * 8 * piece if problem.materials.varies else min(plan.copy_bytes, SLAB_BYTES)
    return plan.copy_bytes + max(slab, flux)


def _sampled(plan: Plan) -> int:
    """Bytes on the host for the temperatures at points until they are rows: those of the eight cells around each."""
    points = sum(len(probe.points) for probe in plan.problem.scenario.probes)
    around = 8 * 8 * points
    return _POINT * points + _SAMPLED * around * min(plan.rows, samples_at_once(around))


def _status(name: str) -> int:
    """A number of bytes in the status of this process; 0 if there is none."""
    try:
        with open(_STATUS) as lines:
            return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0)
    except (OSError, ValueError, IndexError):
        return 0


def _most_by_rusage() -> int:
    import sys

    if sys.platform == "win32":
        return 0
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
