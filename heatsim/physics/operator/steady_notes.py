"""What a user should know where equations are solved: what a steady state takes at t = 0, which keys are not used."""

from collections.abc import Iterator

from heatsim.physics.conditions.boundary import Boundary
from heatsim.scenario import NodeTemperature, Scenario, SpaceFormula, TimeFunction
from heatsim.scenario.documents.resolved import KEYS_WITHOUT_MEANING
from heatsim.scenario.values.functions import functions_in_time
from heatsim.scenario.values.quantities import Quantity


def notes_on_steady(scenario: Scenario) -> list[str]:
    """Sentences for the user; none where all settings have their full meaning."""
    notes = []
    changing = list(_changing(scenario))
    if changing:
        notes.append(f"values that change in time are taken at t = 0: {', '.join(changing)}")
    unused = [
        f"{table}.{name}"
        for table, name in KEYS_WITHOUT_MEANING["steady"]
        if name in getattr(scenario, table).model_fields_set
    ]
    unused += _kernel(scenario)
    if unused:
        notes.append(f"a steady state does not use {', '.join(unused)}")
    return notes


def notes_on_implicit(scenario: Scenario) -> list[str]:
    """Sentences for the user of implicit steps; none where all settings have their full meaning."""
    return [f"implicit steps do not use {key}" for key in _kernel(scenario)]


def _kernel(scenario: Scenario) -> list[str]:
    """The key of the kernel, if the scenario names one."""
    return ["solver.kernel"] if scenario.solver.kernel != "auto" else []


def _changing(scenario: Scenario) -> Iterator[str]:
    """The keys of values that are not the same at all times."""
    conditions = Boundary.from_scenario(scenario)
    for key, condition in zip(conditions.keys, conditions.conditions, strict=True):
        named: list[tuple[TimeFunction, Quantity]] = []
        for name, function, quantity in functions_in_time(condition):
            # Surroundings are the ambient if they are not set.
            known = function.constant or isinstance(function, NodeTemperature)
            if not known and (function, quantity) not in named:
                named.append((function, quantity))
                yield f"{key}.{name}"
    for number, node in enumerate(scenario.nodes):
        yield from (f"nodes.{number}.{name}" for name, function in node.functions_in_time if not function.constant)
    for number, source in enumerate(scenario.sources):
        if not source.scale.constant:
            yield f"sources.{number}.scale"
        if isinstance(source.power_density, SpaceFormula) and not source.power_density.constant:
            yield f"sources.{number}.power_density"
        if source.during is not None:
            on = source.during[0] <= 0.0
            yield f"sources.{number}.during ({'on' if on else 'off'})"
        if source.beam is not None and source.beam.start > 0.0:
            yield f"sources.{number}.beam.start (off)"
