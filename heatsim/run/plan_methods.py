"""The lines of a plan on methods in time: what each needs, which one the run has, and why."""

from collections.abc import Mapping

from heatsim.counts import counted, duration
from heatsim.errors import ScenarioError
from heatsim.physics.estimates.method_choice import MethodChoice, choose_method
from heatsim.physics.estimates.method_work import RunWork, WorkEstimate, count_work, first_tolerance
from heatsim.physics.problem import HeatProblem
from heatsim.run.capacity import size
from heatsim.run.plan import Plan
from heatsim.run.step_times import fitting_methods
from heatsim.run.work_time import WorkTime


def describe_methods(plan: Plan, times: Mapping[str, WorkTime]) -> list[str]:
    """Lines on the methods in time that fit a run: the chosen method, the work of each, and what limits the steps.

    Args:
        plan: the plan of the run.
        times: the time of the work of each measured method.
    """
    problem, method = plan.problem, plan.problem.scenario.time.method
    choice = problem.choice or choose_method(problem)
    adaptive = problem.timeline.adaptive
    work = count_work(problem, first_tolerance(problem)) if choice.work is None and adaptive else choice.work
    lines = [f"method       {method}; {_why(choice, method, problem.choice is not None)}"]
    for name in fitting_methods(problem):
        try:
            fitting = plan if name == method else Plan.of(problem.with_method(name), plan.team)
        except ScenarioError:
            continue
        count, (least, most) = _count(fitting.problem, name, work)
        memory = f"{size(fitting.device_bytes)} on the device"
        time = [between(times[name].of(least), times[name].of(most))] if name in times else []
        lines.append(f"{name:<12} {'; '.join([count, memory, *time])}")
    return lines + (_chosen_steps(problem, work) if adaptive and work else [])


def own_work(problem: HeatProblem) -> tuple[RunWork, RunWork]:
    """The least and the most work of a run with its own method."""
    method = problem.scenario.time.method
    if problem.scenario.steady:
        return RunWork(1), RunWork(1)
    work = problem.choice.work if problem.choice is not None else None
    if work is None and problem.timeline.adaptive:
        work = count_work(problem, first_tolerance(problem))
    return _count(problem, method, work)[1]


def _why(choice: MethodChoice, method: str, automatic: bool) -> str:
    """Which method "auto" takes, and why."""
    if automatic:
        return f"auto takes it {choice.reason}"
    taken = "it too" if choice.method == method else choice.method
    return f"auto would take {taken} {choice.reason}"


def _count(problem: HeatProblem, method: str, work: WorkEstimate | None) -> tuple[str, tuple[RunWork, RunWork]]:
    """What a method needs as text, and the least and the most of it."""
    steps = problem.timeline.last_step
    if method == "euler" or work is None:
        return counted(steps, "step"), (RunWork(steps), RunWork(steps))
    of_run = work.of_run(method, steps)
    if method == "stabilized":
        return f"about {_rounded(work.stages)} stages", of_run
    return f"about {_rounded(work.applications)} applications of the operator", of_run


def _chosen_steps(problem: HeatProblem, work: WorkEstimate) -> list[str]:
    """What decides the steps of a method with a tolerance."""
    given = problem.scenario.time.tolerance
    unit = problem.scenario.output.temperature_unit
    first = unit.difference_text(work.tolerance, 4)
    to = f"0.02 % of the temperature range, {first} at first" if given is None else unit.difference_text(given)
    return [
        f"steps        to t = {problem.scenario.time.end:.6g} s, for an error of the run in time of {to}",
        *_jumps(work),
    ]


def _jumps(work: WorkEstimate) -> list[str]:
    """A line with the numbers of jumps and kinks in time, if there are any."""
    kinks = int(work.jumps.kinks.sum())
    counts = {"jump": len(work.jumps.times) - kinks, "kink": kinks}
    shown = [f"{count:,} {name}{'s' * (count > 1)}" for name, count in counts.items() if count]
    return [f"steps end    at {' and '.join(shown)} of conditions or sources"] if shown else []


def between(shortest: float, longest: float) -> str:
    """A range of time spans in s as text."""
    least, most = duration(shortest), duration(longest)
    return least if least == most else f"{least} to {most.removeprefix('about ')}"


def _rounded(counts: tuple[int, int]) -> str:
    """A range of estimated numbers, with two digits and with thousands separators."""
    least, most = (f"{int(float(f'{count:.2g}')):,}" for count in counts)
    return f"{least} to {most}"
