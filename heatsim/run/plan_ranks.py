"""The lines of `heatsim plan --ranks N`: how the grid is divided, what each rank needs, and the expected efficiency."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heatsim.parallel.halo import halo_bytes
from heatsim.parallel.slab import HALO, Slab
from heatsim.parallel.team import Team
from heatsim.physics.body import SOLVING, planes_to_hold
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.problem import HeatProblem
from heatsim.run.capacity import size
from heatsim.run.plan import Plan
from heatsim.run.plan_text import describe
from heatsim.run.rank_model import Link, efficiency_of_cycles, efficiency_of_steps
from heatsim.run.ranks import Array, cut
from heatsim.run.work_time import WorkTime
from heatsim.scenario import Scenario
from heatsim.solver.steady.steady_state import level_shapes, usual_cycles, work_of_cycle

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


def describe_job(
    scenario: Scenario, team: Team, costs: Array, times: Mapping[str, WorkTime] | None = None
) -> tuple[Plan, str]:
    """The plan of a run by the ranks of a team, and its text. Collective.

    Each rank paints only the planes that it needs.

    Args:
        scenario: the scenario.
        team: the ranks.
        costs: cost of each plane, in any unit.
        times: the result of :func:`heatsim.run.step_times.measure_any_grid`; None to leave out times and efficiency.

    Raises:
        ScenarioError: the scenario has a mistake, or several ranks cannot do this run.
        DeviceError: the device or the kernel of the scenario is not available.
    """
    boundary = Boundary.from_scenario(scenario)
    slab = cut(scenario, boundary, team.size, costs)[team.rank]
    problem = HeatProblem.from_scenario(scenario, planes_to_hold(scenario, boundary, slab, team))
    plan = Plan.of(problem, team)
    text, needs = describe(plan, times), team.gathered(RankNeeds.of(plan))
    return plan, f"{text}\n{describe_ranks(plan, needs, costs, _seconds(plan, times or {}))}"


def _seconds(plan: Plan, times: Mapping[str, WorkTime]) -> float | None:
    """The time in s of a step, a stage or an application of the operator; None if not measured."""
    method = plan.problem.scenario.time.method
    if method not in times:
        return None
    problem = plan.problem
    applications = usual_cycles(problem) * work_of_cycle(problem.grid) if problem.scenario.steady else 1
    return times[method].unit / applications


def describe_ranks(plan: Plan, needs: Sequence[RankNeeds], costs: Array, seconds: float | None) -> str:
    """The needs of all ranks as lines of text.

    Args:
        plan: of any of the ranks.
        needs: of all ranks.
        costs: cost of each plane, in any unit.
        seconds: time in s of a step, a stage or an application of the operator to the whole grid, on one processor
            such as this one; None to leave out the efficiency.
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
    if seconds:
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
