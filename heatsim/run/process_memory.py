"""The memory of the process of a run: its arrays, and the program itself.

A plan loads the same program, and times steps on arrays of the same sizes. So it measures its own process.
"""

from heatsim.run.plan import Plan
from heatsim.solver.field.field_copy import SLAB_BYTES

_STATUS = "/proc/self/status"
# float64 arrays of the size of a slab while enthalpies become temperatures, for a file.
_CONVERTED = 5


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
    measured = most()
    return measured and measured + max(0, on_host(plan) - on_host(timed)) + _written(plan)


def on_host(plan: Plan) -> int:
    """Bytes of a run's arrays on the host: on the CPU also those on its device."""
    return plan.host_bytes + plan.device_bytes * (plan.device.backend == "cpu")


def _written(plan: Plan) -> int:
    """Bytes on the host while a field is written: a copy of it, and a slab of it as temperatures."""
    if plan.device.backend != "cpu":
        return 0  # the copy is on the device, and the host's window is in plan.host_bytes
    problem = plan.problem
    cells = min(problem.grid.cell_count, SLAB_BYTES * problem.grid.cell_count // plan.copy_bytes)
    slab = min(plan.copy_bytes, SLAB_BYTES)
    return plan.copy_bytes + (_CONVERTED * 8 * cells if problem.materials.varies else slab)


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
