"""The timeline of a scenario: its due times, and the steps of Euler's method between them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from heatsim.errors import Mistake, ScenarioError
from heatsim.physics.time.time_steps import Timeline, TimelineError, build
from heatsim.scenario import Scenario


def of_steps(scenario: Scenario, limit: float) -> Timeline:
    """The steps of Euler's method.

    Args:
        scenario: its times and intervals.
        limit: the largest stable time step in s.

    Raises:
        ScenarioError: a time step that does not divide the intervals, or too many steps.
    """
    time = scenario.time
    with _mistakes(scenario):
        steps = build(time.end, _intervals(scenario), time.dt, time.safety, limit, scenario.switching_times)
    return replace(steps, changes=scenario.intervals_of_changes)


def of_due_times(scenario: Scenario) -> Timeline:
    """The due times alone, for methods that choose their own steps.

    Raises:
        ScenarioError: too many due times.
    """
    with _mistakes(scenario):
        due = Timeline.adaptive_to(scenario.time.end, _intervals(scenario))
    return replace(due, changes=scenario.intervals_of_changes)


def _intervals(scenario: Scenario) -> tuple[float, ...]:
    """The seconds between fields, between rows, and between moments at which values may be set."""
    return (scenario.output.every, scenario.output.probe_every, *scenario.intervals_of_changes)


@contextmanager
def _mistakes(scenario: Scenario) -> Iterator[None]:
    """Turn errors of the timeline into mistakes of the scenario."""
    try:
        yield
    except TimelineError as error:
        raise ScenarioError(scenario.path, [Mistake(error.key, str(error))]) from None
