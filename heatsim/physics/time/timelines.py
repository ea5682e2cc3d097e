"""The timeline of a scenario: its due times, and the steps of Euler's method between them."""

from collections.abc import Iterator
from contextlib import contextmanager

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
        return build(time.end, _intervals(scenario), time.dt, time.safety, limit, scenario.switching_times)


def of_due_times(scenario: Scenario) -> Timeline:
    """The due times alone, for methods that choose their own steps.

    Raises:
        ScenarioError: too many due times.
    """
    with _mistakes(scenario):
        return Timeline.adaptive_to(scenario.time.end, _intervals(scenario))


def _intervals(scenario: Scenario) -> tuple[float, float]:
    """The seconds between fields and between rows."""
    return scenario.output.every, scenario.output.probe_every


@contextmanager
def _mistakes(scenario: Scenario) -> Iterator[None]:
    """Turn errors of the timeline into mistakes of the scenario."""
    try:
        yield
    except TimelineError as error:
        raise ScenarioError(scenario.path, [Mistake(error.key, str(error))]) from None
