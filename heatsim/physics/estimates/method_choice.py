"""The method in time of `method = "auto"`, from the work that each method needs."""

from dataclasses import dataclass, replace

from heatsim.errors import ScenarioError
from heatsim.physics.estimates.method_work import Choosable, WorkEstimate, count_work, first_tolerance
from heatsim.physics.time.tolerance import Tolerance, least_tolerance
from heatsim.scenario import Scenario


@dataclass(frozen=True)
class MethodChoice:
    """The method that "auto" takes.

    Attributes:
        method: "euler", "stabilized" or "implicit".
        reason: why, as the end of a sentence.
        work: of each method; None if only "euler" fits the scenario.
    """

    method: str
    reason: str
    work: WorkEstimate | None = None


def choose_method(problem: Choosable, first: Tolerance | None = None) -> MethodChoice:
    """The method that "auto" takes for a run in which time passes.

    It depends on the scenario alone: neither on the device, nor on the kernel, nor on the number of processes. It takes
    a method that refuses the scenario only where its tolerance cannot be resolved and Euler's method would not keep it.

    Args:
        problem: of the run.
        first: the tolerance of the first step, where it is known: finding it takes a look at the whole initial field.

    Raises:
        ScenarioError: the initial temperature cannot be read.
    """
    tolerance = first or first_tolerance(problem)
    least = least_tolerance(problem.precision, tolerance.span)
    resolved = tolerance.kelvin >= least
    try:
        work = count_work(problem, tolerance if resolved else replace(tolerance, given=tolerance.run_with(least)))
    except ScenarioError:
        return MethodChoice("euler", "because steps of other methods end at each jump, and there are too many")
    if not resolved and work.euler_error <= tolerance.of_run:
        return MethodChoice("euler", f"because {problem.precision} cannot resolve the tolerance", work)
    method = work.cheapest if resolved or work.cheapest != "euler" else "stabilized"
    if method == "euler":
        return MethodChoice(method, "because no other method costs less than a third of it", work)
    if not work.euler_fits:
        error, allowed = f"{work.euler_error:.2g}", f"{work.tolerance:.2g}"
        return MethodChoice(method, f"because euler may be off by {error} K; the tolerance is {allowed} K", work)
    part = work.costs[method] / work.costs["euler"]
    return MethodChoice(method, f"because it costs about {100.0 * part:.2g} % of euler", work)


def notes_on_choice(scenario: Scenario, choice: MethodChoice | None) -> list[str]:
    """Sentences for the user; none where all settings of a scenario have their full meaning."""
    if choice is None or choice.method != "euler" or scenario.time.tolerance is None:
        return []
    return [f"auto takes euler {choice.reason}; its steps do not use time.tolerance"]
