"""Whether the runs of a study have the same body: then one of them paints it and finds its stability limit for all."""

from heatsim.physics import kernel_costs
from heatsim.scenario import Scenario, Source


def same_body(scenario: Scenario, other: Scenario) -> bool:
    """Whether cell types, conditions and stability limits of two scenarios are the same.

    The scenarios may differ in their titles, in the method in time, and in the numbers that are powers of sources.
    Materials that vary with temperature have tables that depend on powers; for them the answer is False.
    """
    if scenario.path != other.path or kernel_costs.varies(scenario):
        return False
    return _without_powers(scenario) == _without_powers(other)


def _without_powers(scenario: Scenario) -> Scenario:
    """The scenario with 1 for each power that heats all cells of a source alike."""
    sources = tuple(_of_power_1(source) if source.even else source for source in scenario.sources)
    return scenario.with_method("auto").model_copy(update={"title": "", "sources": sources})


def _of_power_1(source: Source) -> Source:
    given = {name: 1.0 for name in ("power", "power_density") if getattr(source, name) is not None}
    return source.model_copy(update=given)
