"""What `heatsim plan --ranks N` says: how the grid is divided, what each rank needs, and how well they work together.

A sweep of s steps is followed by an exchange of halo planes. A rank with n own planes and two cuts of h planes takes

    t = T · (n + 2·h) + latency + 2 · bytes / bandwidth,       efficiency = T · n / t

for a sweep, where T is the time that a plane takes, measured here. The halo planes are calculated twice, and nothing is
done while they travel.
"""

from dataclasses import dataclass

from heatsim.parallel.slab import HALO, Slab
from heatsim.parallel.team import Team
from heatsim.physics.problem import HeatProblem
from heatsim.run.capacity import size
from heatsim.run.plan import Plan


@dataclass(frozen=True)
class Link:
    """A connection between two ranks.

    Attributes:
        name: for the user.
        latency: s from the start of an exchange to its end, for small messages.
        bandwidth: bytes per second in each direction.
    """

    name: str
    latency: float
    bandwidth: float


# NVLink of an H200: 29 us were measured for 4 planes of 512² cells both ways. InfiniBand: published measurements of
# NCCL over one NDR adapter a GPU. Messages of MPI within a machine, and over 100 Gbit/s: orders of magnitude.
LINKS = {
    "cuda": (Link("NVLink", 15e-6, 300e9), Link("InfiniBand NDR", 20e-6, 47e9)),
    "cpu": (Link("one machine", 20e-6, 5e9), Link("100 Gbit/s", 30e-6, 11e9)),
}


class PlannedTeam(Team):
    """A rank of a run that is only planned; it has no messages.

    Args:
        rank: its number.
        size: the number of ranks.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size


def plan_of_ranks(problem: HeatProblem, ranks: int) -> list[Plan]:
    """The plans of all ranks.

    Raises:
        ScenarioError: the grid has too few planes, or the method runs on one rank.
        DeviceError: the device or the kernel of the scenario is not available.
    """
    return [Plan.of(problem, PlannedTeam(rank, ranks)) for rank in range(ranks)]


def halo_bytes(problem: HeatProblem) -> int:
    """The bytes that a rank sends over one cut in an exchange."""
    nx, ny, _ = problem.grid.cells
    return HALO * nx * ny * (4 if problem.precision == "float32" else 8)


def efficiency(slab: Slab, sweep: float, sent: int, link: Link) -> float:
    """The part of a rank's time that goes into its own planes.

    Args:
        slab: its planes.
        sweep: seconds of a sweep over the whole grid on one processor.
        sent: bytes over a cut in an exchange.
        link: to its neighbours.
    """
    plane, cuts = sweep / slab.planes, sum(slab.cut)
    if not cuts:
        return 1.0
    return plane * slab.count / (plane * slab.depth + link.latency + cuts * sent / link.bandwidth)


def describe_ranks(plans: list[Plan], seconds: float | None) -> str:
    """The plans of all ranks as lines of text.

    Args:
        plans: from :func:`plan_of_ranks`.
        seconds: of a step or stage on one processor such as this one; None if they were not measured.
    """
    largest = max(plans, key=lambda plan: plan.device_bytes)
    counts = [plan.slab.count for plan in plans]
    planes = str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    sent = halo_bytes(largest.problem)
    lines = [
        f"ranks        {len(plans)}, each with {planes} planes of its own and up to {2 * HALO} of its neighbours",
        f"memory       {size(largest.device_bytes)} on the device of each rank, {size(largest.host_bytes)} on its host",
        f"halo         {size(sent)} over each cut and direction, every {HALO} steps",
    ]
    if seconds:
        slowest = max(plans, key=lambda plan: plan.slab.depth).slab
        found = [
            f"{efficiency(slowest, HALO * seconds, sent, link):.1%} over {link.name}"
            for link in LINKS[largest.device.backend]
        ]
        lines.append(f"efficiency   {', '.join(found)}, if each rank has a processor such as this one; by a model")
    return "\n".join(lines)
