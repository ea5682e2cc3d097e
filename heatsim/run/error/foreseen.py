"""Whether a run will state its error in space, before it starts: from the times of steps on both grids."""

from collections.abc import Mapping

from heatsim.counts import duration
from heatsim.errors import HeatsimError, InputError
from heatsim.physics.estimates.other_grids import GridChoice, seconds_to_converge
from heatsim.run.error.coarser_run import PART, by, cheap_grid, plan_on, too_long
from heatsim.run.plan import Plan
from heatsim.run.plan_methods import between, own_work
from heatsim.run.step_times import measure_work
from heatsim.run.work_time import WorkTime
from heatsim.storage.disk import converge_command


def foreseen_error(plan: Plan, times: Mapping[str, WorkTime]) -> list[str]:
    """A line of a plan on the error in space; none without the time of the run.

    Args:
        plan: of the run.
        times: the time of the work of each measured method.
    """
    problem, scenario = plan.problem, plan.problem.scenario
    if scenario.domain.accuracy is not None or scenario.output.error == "none" or scenario.time.method not in times:
        return []
    seconds = times[scenario.time.method].of(own_work(problem)[1])
    try:
        choice = GridChoice.of(scenario)
        cells = cheap_grid(choice, scenario, seconds, 0.0, PART * seconds)
        coarser = plan_on(scenario, cells, scenario.solver.kernel)
        timed = measure_work(coarser)
        least, most = map(timed.of, own_work(coarser.problem))
        if most > PART * seconds:
            raise InputError(too_long(cells))
        return [f"error        ± in space, by a run with {by(cells)} cells after this one: {between(least, most)}"]
    except HeatsimError as error:
        takes = seconds_to_converge(scenario, plan.device.backend, seconds)
        command = f"`{converge_command(scenario.path)}` finds it in {duration(takes)}" if takes is not None else ""
        why = "; ".join(filter(None, [" ".join(str(error).split()), command]))
        return [f"error        in space not stated: {why}"]
