"""When conditions, contacts, sources and beams change for the last time."""

from collections.abc import Iterator

from heatsim.grid import FACES
from heatsim.physics.conditions.condition_terms import time_functions
from heatsim.physics.sources.passing import passing_times
from heatsim.scenario import Beam, Scenario, Source
from heatsim.scenario.values.timefunction import TimeFunction


def last_change(scenario: Scenario) -> float:
    """The time in s after which conditions, sources and beams stay constant until the end of the run; 0 if always."""
    end = scenario.time.end
    return max((min(time, end) for time in _last_changes(scenario)), default=0.0)


def _last_changes(scenario: Scenario) -> Iterator[float]:
    end, boundaries = scenario.time.end, scenario.boundaries
    conditions = [*map(boundaries.face, FACES), boundaries.void]
    conditions += [patch.condition for patch in scenario.patches]
    conditions += [surface.condition for surface in scenario.surfaces]
    functions: list[TimeFunction] = [function for condition in conditions for function in time_functions(condition)]
    for node in scenario.nodes:
        functions += [node.power, *node.known_temperatures]
    for channel in scenario.channels:
        functions += [channel.coefficient, *([] if channel.before is not None else [channel.inlet])]
    functions += [contact.conductance for contact in scenario.contacts if contact.conductance is not None]
    yield from (function.last_change(end) for function in functions)
    for source in scenario.sources:
        yield from (function.last_change(end) for function in source.functions_in_time())
        yield from _switched(source, end)
        if source.beam is not None:
            yield from (time for time in _moves(source.beam) if time < end)


def _switched(source: Source, end: float) -> Iterator[float]:
    """Times before the end at which a source is switched on or off."""
    if source.during is not None:
        yield from (edge for edge in source.during if edge < end)


def _moves(beam: Beam) -> Iterator[float]:
    """Times at which the spot of a beam starts, and at which it reaches the end of its path and is switched off."""
    passing = passing_times(beam)
    yield float(passing[0])
    if len(passing) > 1:
        yield float(passing[-1])
