"""The rules of contacts, and of surfaces towards void; each returns every mistake, as those in ``checks``."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from heatsim.errors import Mistake
from heatsim.grid import FACES
from heatsim.scenario.messages import did_you_mean, show
from heatsim.scenario.rules.validation import entries, known
from heatsim.scenario.tables.boundaries import Face, Insulated
from heatsim.scenario.tables.library import is_of_library, properties_of
from heatsim.scenario.tables.materials import VOID
from heatsim.scenario.tables.model import Scenario
from heatsim.scenario.tables.regions import Region


def contacts_name_known_parts(scenario: Scenario) -> list[Mistake]:
    """A contact names materials or regions that exist and conduct. A name that both have means the material."""
    if not known(scenario.materials, scenario.regions):
        return []
    regions = regions_by_name(scenario)
    mistakes = []
    for index, contact in entries(scenario.contacts):
        for end, name in enumerate(contact.between if known(contact.between) else ()):
            message = _wrong_part(scenario, name, regions)
            if message is not None:
                mistakes.append(Mistake(f"contacts.{index}.between.{end}", message))
    return mistakes


def _wrong_part(scenario: Scenario, name: str, regions: Mapping[str, Region]) -> str | None:
    if name == VOID or (name not in scenario.materials and name in regions and regions[name].is_void):
        return f"got {show(name)}, which does not conduct; the name of a material or of a region is expected"
    if name in scenario.materials or name in regions:
        return None
    if is_of_library(name):
        try:
            properties_of(name)
        except ValueError as error:
            return str(error)
    names = [*scenario.materials, *regions]
    if not names:
        return f"got {show(name)}; there are no materials with names and no regions: write [materials.NAME] for each"
    return f"got {show(name)}; one of {', '.join(map(show, names))} is expected{did_you_mean(name, names)}"


def contacts_differ(scenario: Scenario) -> list[Mistake]:
    """Two parts have at most one contact, and no two contacts of the same rank hold for the same cells."""
    mistakes, pairs = [], set()
    given = [(index, contact) for index, contact in entries(scenario.contacts) if known(contact.between)]
    for index, contact in given:
        if frozenset(contact.between) in pairs:
            message = f"got {show(contact.between)}; there is a contact between these two already"
            mistakes.append(Mistake(f"contacts.{index}.between", message))
        pairs.add(frozenset(contact.between))
    if mistakes or not known(scenario.materials, scenario.regions):
        return mistakes
    # A region and a material, twice: the first pair's region may be of the second pair's material, and the reverse.
    regions = regions_by_name(scenario)
    mixed = [
        (index, *parts)
        for index, contact in given
        if (parts := _region_and_material(contact.between, scenario, regions)) is not None
    ]
    for (_, region, material), (index, other, other_material) in combinations(mixed, 2):
        both = other_material in (materials_of(regions[region]) or ()), material in (materials_of(regions[other]) or ())
        if region != other and all(both):
            message = (
                f"got {show([other, other_material])} beside {show([region, material])}; both hold where "
                f"{show(region)} touches {show(other)}: write a contact between these two regions"
            )
            if frozenset((region, other)) not in pairs:
                mistakes.append(Mistake(f"contacts.{index}.between", message))
    return mistakes


def layers_have_constant_contacts(scenario: Scenario) -> list[Mistake]:
    """In a body with layers, contacts have constant resistances."""
    message = (
        "in a body with layers, contacts must have a constant resistance or conductance: give one, or make each layer "
        "a region with cells"
    )
    given = [(index, contact) for index, contact in entries(scenario.contacts) if scenario.layers]
    return [
        Mistake(f"contacts.{index}", message)
        for index, contact in given
        if (contact.conductance is not None or (contact.gap is not None and known(contact.gap.width)))
        and contact.constant_resistance is None
    ]


def contacts_have_different_columns(scenario: Scenario) -> list[Mistake]:
    """With ``output.region_heat``, each contact has a column of a different name in energy.csv."""
    if not known(scenario.output) or not scenario.output.region_heat:
        return []
    mistakes: list[Mistake] = []
    first: dict[str, tuple[str, str]] = {}
    for index, contact in entries(scenario.contacts):
        if not known(contact.between):
            continue
        other = first.setdefault(contact.name, contact.between)
        if other != contact.between:
            message = (
                f"got {show(contact.between)} beside {show(other)}; both would be the column {show(contact.name)} of "
                "energy.csv: rename one of these materials or regions"
            )
            mistakes.append(Mistake(f"contacts.{index}.between", message))
    return mistakes


def _region_and_material(
    between: tuple[str, str], scenario: Scenario, regions: Mapping[str, Region]
) -> tuple[str, str] | None:
    """The region and the material of a contact between a region and a material; None for any other contact."""
    materials = [name for name in between if name in scenario.materials]
    others = [name for name in between if name not in scenario.materials and name in regions]
    return (others[0], materials[0]) if len(materials) == len(others) == 1 else None


def surfaces_name_known_parts(scenario: Scenario) -> list[Mistake]:
    """Each [[surfaces]] names a region or a room, or a part that conducts and a room; each has a different name."""
    if not known(scenario.regions, scenario.materials):
        return []
    mistakes: list[Mistake] = []
    taken: dict[str, tuple[str, ...]] = {}
    for index, surface in entries(scenario.surfaces):
        key, names = f"surfaces.{index}.{surface.key}", surface.names
        if not names:
            continue
        found = _wrong_region(scenario, names[0]) if surface.between is None else _wrong_between(scenario, names)
        other = next((of for of in taken.values() if sorted(of) == sorted(names)), taken.get(surface.name))
        if found is None and other is not None:
            what = "a second time; a region has one surface" if len(names) == 1 else "a second time: write one of them"
            if sorted(other) != sorted(names):
                what = f"beside {show(other[0])}; tables call both {show(surface.name)}: rename one of these regions"
            found = f"got {show(names[0] if surface.between is None else [*names])} {what}"
        if found is not None:
            mistakes.append(Mistake(key, found))
        taken.setdefault(surface.name, names)
    return mistakes


def _wrong_region(scenario: Scenario, name: str) -> str | None:
    """What is wrong with the region or room of a surface."""
    regions = regions_by_name(scenario)
    if name in scenario.rooms:
        return wrong_room(scenario, name)
    if name in regions and known(scenario.materials) and name in scenario.materials:
        return f"got {show(name)}, a region; a material has this name too: rename the region"
    if name in regions:
        return None
    choice = f"one of {', '.join(map(show, regions))} is expected" if regions else "there are no [[regions]]"
    return f"got {show(name)}; {choice}{did_you_mean(name, regions)}"


def _wrong_between(scenario: Scenario, names: Sequence[str]) -> str | None:
    """What is wrong with the names of a conducting part and a room."""
    rooms, regions = [name for name in names if name in scenario.rooms], regions_by_name(scenario)
    if VOID in names and not rooms:
        part = show(names[names[0] == VOID])
        return (
            f'got {show([*names])}; write a void region in place of "void", or of = {part} for all that it borders on'
        )
    faults = [wrong_room(scenario, name) for name in rooms]
    faults += [_wrong_part(scenario, name, regions) for name in names if name not in rooms]
    found = next((of for of in faults if of is not None), None)
    if found is not None or len(rooms) == 1:
        return found
    if rooms:
        return f"got {show([*names])}, which are both void: no heat passes there; write a part that conducts and a room"
    void = f", such as {', '.join(map(show, [*scenario.rooms][:4]))}" if scenario.rooms else ', with material = "void"'
    return (
        f"got {show([*names])}, which both conduct: write a void region in place of one of them{void}; a resistance "
        "between parts that conduct stands in [[contacts]]"
    )


def wrong_room(scenario: Scenario, name: str) -> str | None:
    """Why a void region, a room, cannot be named: its name means something else too."""
    if name in (*FACES, VOID):
        meaning = "all surfaces towards void have" if name == VOID else "a face of the box has"
    elif known(scenario.materials) and name in scenario.materials:
        meaning = "a material has"
    else:
        return None
    return f"got {show(name)}, a void region; {meaning} this name too: rename the region"


def conditions_towards_void_need_void(scenario: Scenario) -> list[Mistake]:
    """A scenario with a condition on surfaces towards void has void."""
    if not has_no_void(scenario):
        return []
    message = f'while no region has the material "{VOID}": nothing is void'
    return [
        Mistake(key, f'got type "{condition.type}" {message}')
        for key, condition in _towards_void(scenario)
        if not isinstance(condition, Insulated)
    ]


def has_no_void(of: Scenario) -> bool:
    """Whether no cell can be void; False if the domain or a region could not be read."""
    if not known(of.domain, of.regions) or not known(*of.regions):
        return False
    painted = [materials_of(region) for region in of.regions]
    return of.domain.material != VOID and all(names is not None and VOID not in names for names in painted)


def _towards_void(scenario: Scenario) -> Iterator[tuple[str, Face]]:
    if known(scenario.boundaries) and known(scenario.boundaries.void):
        yield "boundaries.void", scenario.boundaries.void
    for index, surface in entries(scenario.surfaces):
        if known(surface.condition):
            yield f"surfaces.{index}", surface.condition


def materials_of(region: Region) -> set[str] | None:
    """The names of the materials that a region paints, or None if they could not be read."""
    if region.labels is not None:
        return set(region.materials) if known(region.labels.materials) else None
    return set(region.materials) or None


def regions_by_name(of: Scenario) -> dict[str, Region]:
    """The regions of a scenario that could be read, by their names."""
    return {region.name: region for _, region in entries(of.regions) if known(region.name)}
