"""The lines of `heatsim plan --ranks N`: how the grid is divided, what each rank needs, and the expected efficiency.

A sweep of s steps is followed by an exchange of halo planes. A rank with n own planes and two cuts of h planes takes

    t = T · (n + 2·h) + latency + 2 · bytes / bandwidth

for a sweep, where T is the measured time per plane. The halo planes are calculated twice, and ranks wait during the
exchange. The slowest rank decides: efficiency = T · planes / ranks / t. If planes cost different times, T · n becomes
the sum of these times.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heatsim.parallel.slab import HALO, Slab
from heatsim.parallel.team import Team
from heatsim.physics.materials import SOLVING, planes_to_hold
from heatsim.physics.problem import HeatProblem
from heatsim.run.capacity import size
from heatsim.run.plan import Plan
from heatsim.run.ranks import Array, cut


@dataclass(frozen=True)
class Link:
    """A connection between two ranks.

    Attributes:
        name: its name in the plan.
        latency: time in s of an exchange of small messages.
        bandwidth: bytes per second in each direction.
    """

    name: str
    latency: float
    bandwidth: float


# NVLink: two H200 with NCCL, 512³ to 1024³ cells per GPU in both precisions, within 1.1 % (kernels/MEASUREMENTS.md).
# InfiniBand: published measurements of NCCL with one NDR adapter per GPU. The two for CPUs (MPI within a machine, and
# over 100 Gbit/s) are only orders of magnitude.
LINKS = {
    "cuda": (Link("NVLink", 20e-6, 200e9), Link("InfiniBand NDR", 20e-6, 47e9)),
    "cpu": (Link("one machine", 20e-6, 5e9), Link("100 Gbit/s", 30e-6, 11e9)),
}


@dataclass(frozen=True)
class RankNeeds:
    """What a rank needs.

    Attributes:
        slab: its planes.
        device_bytes: on its device.
        host_bytes: on its host.
    """

    slab: Slab
    device_bytes: int
    host_bytes: int

    @classmethod
    def of(cls, plan: Plan) -> "RankNeeds":
        """The needs of the rank of a plan."""
        return cls(plan.slab, plan.device_bytes, plan.host_bytes)


class PlannedTeam(Team):
    """A rank of a run that is only planned. It sends no messages.

    Args:
        rank: its number.
        size: the number of ranks.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size


def plan_of_ranks(problem: HeatProblem, ranks: int, costs: Array) -> list[Plan]:
    """The plans of all ranks.

    Args:
        problem: of the whole grid.
        ranks: the number of ranks.
        costs: of each plane, in any unit.

    Raises:
        ScenarioError: the grid has too few planes, or a number of planes that the method cannot divide.
        DeviceError: the device or the kernel of the scenario is not available.
    """
    found = cut(problem.scenario, problem.boundary, ranks, costs)
    plans = []
    for rank, slab in enumerate(found):
        team = PlannedTeam(rank, ranks)
        held = planes_to_hold(problem.scenario, problem.boundary, slab, team)
        plans.append(Plan.of(replace(problem, held=held), team))
    return plans


def halo_bytes(problem: HeatProblem) -> int:
    """The bytes that a rank sends over one cut in an exchange."""
    nx, ny, _ = problem.grid.cells
    return HALO * nx * ny * (4 if problem.precision == "float32" else 8)


def efficiency(of_ranks: Sequence[Slab], costs: Array, sweep: float, sent: int, link: Link) -> float:
    """The speed of a sweep on all ranks, divided by the number of ranks and by the speed on one rank.

    Args:
        of_ranks: the slabs of all ranks.
        costs: of each plane, in any unit.
        sweep: seconds of a sweep over the whole grid on one processor.
        sent: bytes sent over a cut in an exchange.
        link: the connection between neighbours.
    """
    seconds = sweep * costs / costs.sum()
    slowest = 0.0
    for slab in of_ranks:
        cuts = sum(slab.cut)
        waiting = link.latency + cuts * sent / link.bandwidth if cuts else 0.0
        slowest = max(slowest, float(seconds[slab.place].sum()) + waiting)
    return sweep / len(of_ranks) / slowest


def describe_ranks(plan: Plan, needs: Sequence[RankNeeds], costs: Array | None = None, seconds: float = 0.0) -> str:
    """The needs of all ranks as lines of text.

    Args:
        plan: of any of the ranks.
        needs: of all ranks.
        costs: of each plane, in any unit.
        seconds: time of a step or stage of the whole grid on one processor such as this one; 0 if not measured. The
            efficiency of solving equations is not estimated.
    """
    device_bytes, host_bytes = max(each.device_bytes for each in needs), max(each.host_bytes for each in needs)
    counts = [each.slab.count for each in needs]
    planes = str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    sent, solves = halo_bytes(plan.problem), plan.problem.scenario.time.method in SOLVING
    often = "for each vector and level of a cycle" if solves else f"every {HALO} steps"
    lines = [
        f"ranks        {len(needs)}, each with {planes} own planes and up to {2 * HALO} halo planes",
        f"memory       {size(device_bytes)} on the device of each rank, {size(host_bytes)} on its host",
        f"halo         {size(sent)} over each cut in each direction, {often}",
    ]
    if seconds and costs is not None and not solves:
        of_ranks = [each.slab for each in needs]
        found = [
            f"{efficiency(of_ranks, costs, HALO * seconds, sent, link):.1%} over {link.name}"
            for link in LINKS[plan.device.backend]
        ]
        lines.append(f"efficiency   {', '.join(found)}, estimated for one such processor per rank")
    return "\n".join(lines)
