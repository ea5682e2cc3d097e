"""The lines of `heatsim plan --ranks N`: how the grid is divided, what each rank needs, and the expected efficiency.

A sweep of s steps is followed by an exchange of halo planes. A rank with n own planes and two cuts of h planes takes

    t = T · (n + 2·h) + latency + 2 · bytes / bandwidth,       efficiency = T · n / t

for a sweep, where T is the measured time per plane. The halo planes are calculated twice, and ranks wait during the
exchange.
"""

from dataclasses import dataclass

from heatsim.parallel.halo import halo_bytes
from heatsim.parallel.slab import HALO, Slab
from heatsim.parallel.team import Team
from heatsim.physics.materials import SOLVING
from heatsim.physics.problem import HeatProblem
from heatsim.run.capacity import size
from heatsim.run.plan import Plan


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


class PlannedTeam(Team):
    """A rank of a run that is only planned. It sends no messages.

    Args:
        rank: its number.
        size: the number of ranks.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size


def plan_of_ranks(problem: HeatProblem, ranks: int) -> list[Plan]:
    """The plans of all ranks.

    Raises:
        ScenarioError: the grid has too few planes, or a number of planes that the method cannot divide.
        DeviceError: the device or the kernel of the scenario is not available.
    """
    return [Plan.of(problem, PlannedTeam(rank, ranks)) for rank in range(ranks)]


def efficiency(slab: Slab, sweep: float, sent: int, link: Link) -> float:
    """The fraction of a rank's time that it spends on its own planes.

    Args:
        slab: its planes.
        sweep: seconds of a sweep over the whole grid on one processor.
        sent: bytes sent over a cut in an exchange.
        link: the connection to its neighbours.
    """
    plane, cuts = sweep / slab.planes, sum(slab.cut)
    if not cuts:
        return 1.0
    return plane * slab.count / (plane * slab.depth + link.latency + cuts * sent / link.bandwidth)


def describe_ranks(plans: list[Plan], seconds: float | None) -> str:
    """The plans of all ranks as lines of text.

    Args:
        plans: from :func:`plan_of_ranks`.
        seconds: time of a step or stage of the whole grid on one processor such as this one; None if not measured. The
            efficiency of solving equations is not estimated.
    """
    largest = max(plans, key=lambda plan: plan.device_bytes)
    counts = [plan.slab.count for plan in plans]
    planes = str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    whole = largest.problem
    sent, method = halo_bytes(whole.grid, whole.precision), whole.scenario.time.method
    solves = method in SOLVING
    often = "for each vector and level of a cycle" if solves else f"every {HALO} steps"
    lines = [
        f"ranks        {len(plans)}, each with {planes} own planes and up to {2 * HALO} halo planes",
        f"memory       {size(largest.device_bytes)} on the device of each rank, {size(largest.host_bytes)} on its host",
        f"halo         {size(sent)} over each cut in each direction, {often}",
    ]
    if seconds and not solves:
        slowest = max(plans, key=lambda plan: plan.slab.depth).slab
        found = [
            f"{efficiency(slowest, HALO * seconds, sent, link):.1%} over {link.name}"
            for link in LINKS[largest.device.backend]
        ]
        lines.append(f"efficiency   {', '.join(found)}, estimated for one such processor per rank")
    return "\n".join(lines)
