"""The lines of `heatsim plan --ranks N`: how the grid is divided, what each rank needs, and the expected efficiency."""

from heatsim.parallel.halo import halo_bytes
from heatsim.parallel.slab import HALO
from heatsim.parallel.team import Team
from heatsim.physics.materials import SOLVING
from heatsim.physics.problem import HeatProblem
from heatsim.run.capacity import size
from heatsim.run.plan import Plan
from heatsim.run.rank_model import Link, efficiency_of_cycles, efficiency_of_steps
from heatsim.solver.steady_state import level_shapes

# NVLink: two H200 with NCCL, 512³ to 1024³ cells per GPU in both precisions, within 1.1 % (kernels/MEASUREMENTS.md).
# InfiniBand: published measurements of NCCL with one NDR adapter per GPU. The two for CPUs (MPI within a machine, and
# over 100 Gbit/s) are only orders of magnitude.
LINKS = {
    "cuda": (Link("NVLink", 20e-6, 200e9), Link("InfiniBand NDR", 20e-6, 47e9)),
    "cpu": (Link("one machine", 20e-6, 5e9), Link("100 Gbit/s", 30e-6, 11e9)),
}
# Seconds in which Python queues the work of one level of multigrid on a GPU.
_QUEUED = 0.3e-3


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


def describe_ranks(plans: list[Plan], seconds: float | None) -> str:
    """The plans of all ranks as lines of text.

    Args:
        plans: from :func:`plan_of_ranks`.
        seconds: time of a step, a stage or an application of the operator on one processor such as this one, for the
            whole grid; None if not measured.
    """
    largest = max(plans, key=lambda plan: plan.device_bytes)
    counts = [plan.slab.count for plan in plans]
    planes = str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    problem = largest.problem
    solves = problem.scenario.time.method in SOLVING
    often = "for each vector and level of a cycle" if solves else f"every {HALO} steps"
    sent = size(halo_bytes(problem.grid, problem.precision))
    lines = [
        f"ranks        {len(plans)}, each with {planes} own planes and up to {2 * HALO} halo planes",
        f"memory       {size(largest.device_bytes)} on the device of each rank, {size(largest.host_bytes)} on its host",
        f"halo         {sent} over each cut in each direction, {often}",
    ]
    if seconds:
        slowest = max(plans, key=lambda plan: plan.slab.depth)
        links = LINKS[largest.device.backend]
        found = [f"{efficiency(slowest, seconds, link):.1%} over {link.name}" for link in links]
        lines.append(f"efficiency   {', '.join(found)}, estimated for one such processor per rank")
    return "\n".join(lines)


def efficiency(plan: Plan, seconds: float, link: Link) -> float:
    """The expected efficiency of a rank.

    Args:
        plan: its plan.
        seconds: as for :func:`describe_ranks`.
        link: the connection to its neighbours.
    """
    problem, slab, on_gpu = plan.problem, plan.slab, plan.device.backend == "cuda"
    if problem.scenario.time.method in SOLVING:
        shapes = level_shapes(problem.grid)
        return efficiency_of_cycles(slab, shapes, seconds, link, queued=_QUEUED * on_gpu)
    sent = halo_bytes(problem.grid, problem.precision)
    writes_halo = plan.kernel.steps < HALO
    return efficiency_of_steps(slab, HALO * seconds, sent, link, writes_halo=writes_halo)
