"""Find keys of a scenario that are allowed, but change nothing because of the values of other keys."""

from collections.abc import Iterator

from heatsim.scenario.tables.model import Scenario


def idle_keys(scenario: Scenario) -> list[str]:
    """Warnings about sources that never act and fields that are not written, for the user."""
    return [*_sources(scenario), *_fields(scenario)]


def _sources(scenario: Scenario) -> Iterator[str]:
    end = scenario.time.end
    for number, source in enumerate(scenario.sources):
        if not scenario.steady and source.during is not None and source.during[0] >= end:
            yield (
                f"sources.{number}.during: starts at {source.during[0]:.10g} s, and the run ends at {end:.10g} s; the "
                "source gives no heat"
            )


def _fields(scenario: Scenario) -> Iterator[str]:
    if scenario.output.heat_flux and not scenario.output.fields:
        yield "output.heat_flux has no effect, because output.fields is false: no fields are written"
