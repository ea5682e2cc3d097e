"""Check that a run can fit the machine, from the scenario alone, before any work on its cells."""

from collections.abc import Callable
from dataclasses import dataclass

from heatsim import device as devices
from heatsim.errors import CapacityError
from heatsim.parallel.team import ALONE, Team
from heatsim.physics.geometry import regions
from heatsim.run.ranks import held_planes
from heatsim.scenario import Scenario

# Every machine has this many bytes, so they need no check. A check can take 5 ms, for each run of a study.
_ALWAYS_FREE = 1 << 24
ADVICE = 'use fewer cells, precision "float32" or a larger machine'


def check_room(scenario: Scenario, elsewhere: bool = False, team: Team = ALONE, painter: Team | None = None) -> None:
    """Check that there is memory to paint the cells, and for two fields on the device. Collective.

    :class:`heatsim.run.plan.Plan` counts everything, but it needs the painted cells and, where the method in time is
    chosen, the extremes of the initial field.

    Args:
        scenario: the scenario to run.
        elsewhere: whether other machines do the run. Even then this machine paints the cells.
        team: the ranks that do the run.
        painter: the rank whose planes this machine paints at a time; None for that of ``team``.

    Raises:
        CapacityError: two fields do not fit the device, or the painted cells do not fit the host.
        DeviceError: the device of the scenario is not available.
    """
    # The map of cell types is one more array.
    per_cell, cells = (regions.ARRAYS + 1) * regions.are_painted(scenario), scenario.grid.cell_count
    painted = per_cell * held_planes(scenario, painter or team, even=True).grid(scenario.grid).cell_count

    def free(most: int, ask: Callable[[], int]) -> int:
        return ask() if most * team.size > _ALWAYS_FREE else _ALWAYS_FREE

    needs = [Need("the host", "", painted, free(per_cell * cells, devices.host_memory))]
    if not elsewhere:
        device = devices.choose(scenario.solver.device)
        fields = 2 * cells * (8 if scenario.solver.precision == "float64" else 4) // team.size
        on_host = device.backend == "cpu"
        most = free(fields + per_cell * cells * on_host, device.free_memory)
        needs.append(Need(device.name, device.number(), fields + painted * on_host, most))
    for need in needs:
        lack = found_lack(need, team)
        if lack:
            raise CapacityError(f"{scenario.path}: needs at least {lack}; {ADVICE}")


@dataclass(frozen=True)
class Need:
    """Memory that a rank needs.

    Attributes:
        where: the name of the host or the GPU.
        number: distinguishes the GPUs of a host; empty for the host.
        needed: bytes that the rank needs.
        free: bytes that are free before any rank takes them.
    """

    where: str
    number: str
    needed: int
    free: int


def found_lack(need: Need, team: Team) -> str:
    """Text about a machine or GPU on which the ranks do not fit together; empty if all fit. Collective.

    Args:
        need: of this rank.
        team: all ranks.
    """
    together: dict[tuple[str, str], list[Need]] = {}
    for host, each in team.gathered((team.host, need)):
        together.setdefault((host, each.number), []).append(each)
    for (host, _), needs in together.items():
        needed, free = sum(each.needed for each in needs), min(each.free for each in needs)
        if needed > free:
            ranks = f" for {len(needs)} ranks" if len(needs) > 1 else ""
            at = f" of {host}" if host else ""
            return f"{size(needed)} of memory{ranks} on {needs[0].where}{at}, which has {size(free)} free"
    return ""


def size(count: float) -> str:
    """A number of bytes as text, in the largest unit that leaves at least 1."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"
