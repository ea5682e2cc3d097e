"""The rules of couplings and temperature factors; each returns every mistake, as those in ``checks``."""

from collections.abc import Iterator, Sequence

from heatsim.errors import Mistake
from heatsim.scenario.messages import did_you_mean, show
from heatsim.scenario.rules.validation import entries, known
from heatsim.scenario.tables.boundaries import Convection, Temperature, depends_on_surface, is_linear, radiates
from heatsim.scenario.tables.environments import Owner, called, environment, one_ambient, owners_of, sides_of_factor
from heatsim.scenario.tables.materials import Material
from heatsim.scenario.tables.model import Scenario
from heatsim.scenario.tables.probes import TEMPERATURE_FACTOR
from heatsim.scenario.values.materialfunction import MaterialFunction


def couplings_need_a_linear_steady_state(scenario: Scenario) -> list[Mistake]:
    """Couplings are of steady states whose heat flows are linear functions of the temperatures."""
    if not scenario.couplings or not known(scenario.time):
        return []
    if not scenario.steady:
        message = 'a coupling is that of a steady state: write time.method = "steady", in another scenario'
        return [Mistake("couplings", message)]
    why = next(_bends(scenario), None)
    message = f"heat flows are not proportional to differences of temperature: {why}; remove it, or the [[couplings]]"
    return [] if why is None else [Mistake("couplings", message)]


def _bends(scenario: Scenario) -> Iterator[str]:
    """What makes heat flows a nonlinear function of temperatures."""
    if scenario.nodes or scenario.channels:
        yield "the temperatures of nodes follow the body"
    for owner in _owners(scenario):
        if known(owner.condition) and not is_linear(owner.condition):
            laws = depends_on_surface(owner.condition) and not radiates(owner.condition)
            yield f"{owner.key} {'depends on the temperature of the surface' if laws else 'radiates'}"
    for name, material in [("material", scenario.material), *(scenario.materials or {}).items()]:
        if isinstance(material, Material) and isinstance(material.conductivity, MaterialFunction):
            yield f'material "{name}" varies with temperature'
    for number, source in entries(scenario.sources):
        if isinstance(source.power_density, MaterialFunction):
            yield f"sources.{number}.power_density depends on the temperature"


def couplings_name_surroundings(scenario: Scenario) -> list[Mistake]:
    """The two surroundings of a coupling exist, exchange heat and differ."""
    owners, mistakes = _owners(scenario), list[Mistake]()
    for index, coupling in entries(scenario.couplings):
        if not owners or not known(coupling.between):
            continue
        key, before = f"couplings.{index}.between", len(mistakes)
        for end, names in enumerate(coupling.between):
            for number, name in enumerate(names):
                at = f"{key}.{end}.{number}" if len(names) > 1 else f"{key}.{end}"
                message = _no_surroundings(name, scenario, owners)
                mistakes += [] if message is None else [Mistake(at, message)]
        one, other = (environment(scenario, names) for names in coupling.between)
        if len(mistakes) == before and one & other:
            both = ", ".join(sorted(show(owners[number].name) for number in one & other))
            mistakes.append(Mistake(key, f"got {both} on both sides; two different surroundings are expected"))
    return mistakes


def temperature_factors_have_two_temperatures(scenario: Scenario) -> list[Mistake]:
    """The room and the outside of a temperature factor have one temperature each, not the same."""
    mistakes, owners = [], _owners(scenario)
    for index, probe in entries(scenario.probes):
        if not owners or probe.statistic != TEMPERATURE_FACTOR or probe.outside is None or probe.surface is None:
            continue
        message = _no_surroundings(probe.outside, scenario, owners)
        sides = sides_of_factor(scenario, probe)
        room, outside = map(one_ambient, sides)
        if message is None and room is not None and room == outside:
            message = f"got {show(probe.outside)}; it has the temperature of the room, so that there is no factor"
        mistakes += [] if message is None else [Mistake(f"probes.{index}.outside", message)]
        for key, ambient, side in zip(("surface", "outside"), (room, outside), sides, strict=True):
            if message is None and ambient is None:
                keys = " and ".join(owner.key for owner in side)
                what = f"got {show(getattr(probe, key))}; {keys} must have one ambient temperature, not several, "
                mistakes.append(Mistake(f"probes.{index}.{key}", what + "and the same everywhere"))
    return mistakes


def _no_surroundings(name: str, scenario: Scenario, owners: Sequence[Owner]) -> str | None:
    """What is wrong with a name of surroundings; None if nothing is."""
    exchanging = [owner for owner in owners if isinstance(owner.condition, Convection | Temperature)]
    every = [each for owner in exchanging for each in (owner.name, owner.room) if each is not None]
    names, named = list(dict.fromkeys(every)), called(scenario, owners, name)
    if any(owner in exchanging or not known(owner.condition) for owner in named):
        return None
    if named:
        what = f'got {show(name)}; {named[0].key} has the type "{named[0].condition.type}"'
        return f"{what}, which exchanges no heat with a temperature: convection or a fixed temperature is expected"
    choice = f"one of {', '.join(map(show, names))} is expected" if names else "nothing has convection or a temperature"
    return f"got {show(name)}; {choice}{did_you_mean(name, names)}"


def _owners(scenario: Scenario) -> list[Owner]:
    """All conditions; none if a table could not be read."""
    tables = scenario.boundaries, scenario.patches, scenario.surfaces
    if not known(*tables) or not known(*scenario.patches, *scenario.surfaces):
        return []
    return owners_of(scenario)
