"""Check that a run can fit the machine, from the scenario alone, before any work on its cells."""

from collections.abc import Callable

from heatsim import device as devices
from heatsim.errors import CapacityError
from heatsim.physics import regions
from heatsim.scenario import Scenario

# Bytes that every machine has; asking takes 5 ms on some, for each run of a study.
_ALWAYS_FREE = 1 << 24
ADVICE = 'use fewer cells, precision "float32" or a larger machine'


def check_room(scenario: Scenario, elsewhere: bool = False) -> None:
    """Check that there is memory to paint the cells, and for two fields on the device.

    :class:`heatsim.run.plan.Plan` counts everything, but it needs the painted cells and, where the method in time is
    chosen, the extremes of the initial field.

    Args:
        scenario: the scenario to run.
        elsewhere: whether other machines do the run; its cells are painted on this machine too.

    Raises:
        CapacityError: two fields do not fit the device, or the painted cells do not fit the host.
        DeviceError: the device of the scenario is not available.
    """
    painted = regions.ARRAYS * scenario.grid.cell_count * regions.are_painted(scenario)
    needs: list[tuple[int, Callable[[], int], str]] = [(painted, devices.host_memory, "the host")]
    if not elsewhere:
        device = devices.choose(scenario.solver.device)
        fields = 2 * scenario.grid.cell_count * (4 if scenario.solver.precision == "float32" else 8)
        needs.append((fields + painted * (device.backend == "cpu"), device.free_memory, device.name))
    for needed, free_memory, where in needs:
        if needed > _ALWAYS_FREE and needed > (free := free_memory()):
            raise CapacityError(
                f"{scenario.path}: needs at least {size(needed)} of memory on {where}, which has {size(free)} free; "
                f"{ADVICE}"
            )


def size(count: float) -> str:
    """A number of bytes as text, in the largest unit that leaves at least 1."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"
