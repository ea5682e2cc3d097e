"""Whether a run can fit the machine, as far as its scenario tells without any work."""

from heatsim import device as devices
from heatsim.errors import CapacityError
from heatsim.physics import regions
from heatsim.scenario import Scenario

ADVICE = 'use fewer cells, precision "float32" or a larger machine'


def check_room(scenario: Scenario, elsewhere: bool = False) -> None:
    """See that a composite body could fit, before its regions are painted: the least that a run of it needs.

    Everything else is counted by :class:`heatsim.run.plan.Plan`, which needs the painted regions.

    Args:
        scenario: what is to run.
        elsewhere: whether other machines do the run; its regions are painted here all the same.

    Raises:
        CapacityError: two fields do not fit the device, or the painted regions do not fit the host.
        DeviceError: the device asked for is not there.
    """
    if not scenario.composite:
        return
    painted = regions.ARRAYS * scenario.grid.cell_count * bool(scenario.regions)
    needs = [(painted, devices.host_memory(), "the host")]
    if not elsewhere:
        device = devices.choose(scenario.solver.device)
        fields = 2 * scenario.grid.cell_count * (4 if scenario.solver.precision == "float32" else 8)
        needs.append((fields + painted * (device.backend == "cpu"), device.free_memory(), device.name))
    for needed, free, where in needs:
        if needed > free:
            raise CapacityError(
                f"{scenario.path}: needs at least {size(needed)} of memory on {where}, which has {size(free)} free; "
                f"{ADVICE}"
            )


def size(count: float) -> str:
    """A number of bytes in the largest unit that leaves at least 1."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"
