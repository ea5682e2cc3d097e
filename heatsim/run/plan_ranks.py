"""The lines of `heatsim plan --ranks N`: how the grid is divided, what each rank needs, and the expected efficiency."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heatsim.parallel.halo import halo_bytes
from heatsim.parallel.slab import HALO, Slab
from heatsim.parallel.team import Team
from heatsim.physics.materials import SOLVING, planes_to_hold
from heatsim.physics.problem import HeatProblem
from heatsim.run.capacity import size
from heatsim.run.plan import Plan
from heatsim.run.rank_model import Link, efficiency_of_cycles, efficiency_of_steps
from heatsim.run.ranks import Array, cut
from heatsim.solver.steady_state import level_shapes

# NVLink: two H200, 512³ to 1024³ cells per GPU in both precisions, within 1.2 % (kernels/MEASUREMENTS.md).
# InfiniBand: published measurements of NCCL with one NDR adapter per GPU. The two for CPUs (MPI within a machine, and
# over 100 Gbit/s) are only orders of magnitude.
LINKS = {
    "cuda": (Link("NVLink", 20e-6, 200e9, copies=True), Link("InfiniBand NDR", 20e-6, 47e9)),
    "cpu": (Link("one machine", 20e-6, 5e9), Link("100 Gbit/s", 30e-6, 11e9)),
}
# Seconds in which Python queues the work of one level of multigrid on a GPU: an estimate, not measured on several GPUs.
_QUEUED = 0.3e-3


@dataclass(frozen=True)
class RankNeeds:
    """The planes and the memory of a rank.

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
        """The needs of the rank to which a plan belongs."""
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
        problem: the problem of the whole grid.
        ranks: the number of ranks.
        costs: cost of each plane, in any unit.

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


def describe_ranks(
    plan: Plan, needs: Sequence[RankNeeds], costs: Array | None = None, seconds: float | None = None
) -> str:
    """The needs of all ranks as lines of text.

    Args:
        plan: of any of the ranks.
        needs: of all ranks.
        costs: cost of each plane, in any unit; None to leave out the efficiency.
        seconds: time in s of a step, a stage or an application of the operator to the whole grid, on one processor
            such as this one; None if not measured.
    """
    device_bytes, host_bytes = max(each.device_bytes for each in needs), max(each.host_bytes for each in needs)
    counts = [each.slab.count for each in needs]
    planes = str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    problem = plan.problem
    solves = problem.scenario.time.method in SOLVING
    often = "for each vector and level of a cycle" if solves else f"every {HALO} steps"
    sent = size(halo_bytes(problem.grid, problem.precision))
    lines = [
        f"ranks        {len(needs)}, each with {planes} own planes and up to {2 * HALO} halo planes",
        f"memory       {size(device_bytes)} on the device of each rank, {size(host_bytes)} on its host",
        f"halo         {sent} over each cut in each direction, {often}",
    ]
    if seconds and costs is not None:
        of_ranks, links = [each.slab for each in needs], LINKS[plan.device.backend]
        found = [f"{efficiency(plan, of_ranks, costs, seconds, link):.1%} over {link.name}" for link in links]
        lines.append(f"efficiency   {', '.join(found)}, estimated for one such processor per rank")
    return "\n".join(lines)


def efficiency(plan: Plan, of_ranks: Sequence[Slab], costs: Array, seconds: float, link: Link) -> float:
    """The speed of all ranks together, divided by the number of ranks and by the speed of one rank.

    Args:
        plan: of any of the ranks.
        of_ranks: the slabs of all ranks.
        costs: cost of each plane, in any unit.
        seconds: time in s of a step, a stage or an application of the operator on one processor.
        link: the connection between neighbours.
    """
    problem = plan.problem
    if problem.scenario.time.method in SOLVING:
        queued = _QUEUED if plan.device.backend == "cuda" else 0.0
        return min(efficiency_of_cycles(slab, level_shapes(problem.grid), seconds, link, queued) for slab in of_ranks)
    sent, writes_halo = halo_bytes(problem.grid, problem.precision), plan.kernel.steps < HALO
    overlaps = link.copies and problem.linear and not problem.timeline.adaptive and not writes_halo
    return efficiency_of_steps(of_ranks, costs, HALO * seconds, sent, link, writes_halo=writes_halo, overlaps=overlaps)
