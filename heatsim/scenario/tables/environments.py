"""Surroundings by name: which conditions a face, a patch, void or the surface of a region has."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from heatsim.grid import FACES
from heatsim.scenario.tables.boundaries import Convection, Face, Radiation, Temperature
from heatsim.scenario.tables.model import Scenario
from heatsim.scenario.tables.probes import TOWARDS_VOID, Probe
from heatsim.scenario.values.nodetemperature import NodeTemperature
from heatsim.scenario.values.timefunction import SpaceFormula, TimeFunction


class Owner(NamedTuple):
    """What a condition belongs to.

    Attributes:
        name: of the face, the patch, the region, or "void".
        key: of the condition in the file.
        condition: what holds there.
        room: the room that its surface borders on; None for all others.
    """

    name: str
    key: str
    condition: Face
    room: str | None = None


def owners_of(scenario: Scenario) -> list[Owner]:
    """All conditions of a scenario; their places are the owners' numbers of ``Boundary``."""
    return [
        *(Owner(name, f"boundaries.{name}", scenario.boundaries.face(name)) for name in FACES),
        *(Owner(patch.name, f"patches.{number}", patch.condition) for number, patch in enumerate(scenario.patches)),
        Owner(TOWARDS_VOID, "boundaries.void", scenario.boundaries.void),
        *(
            Owner(each.name, f"surfaces.{number}", each.condition, each.room(scenario.rooms))
            for number, each in enumerate(scenario.surfaces)
        ),
    ]


def called(scenario: Scenario, owners: Sequence[Owner], name: str) -> list[Owner]:
    """The owners with a name; of a room, the parts of its surface and, if they are not all, what holds towards void."""
    found = [owner for owner in owners if name in (owner.name, owner.room)]
    if name in scenario.rooms and all(owner.name != name for owner in found):
        found += [owner for owner in owners if owner.name == TOWARDS_VOID]
    return found


def environment(scenario: Scenario, names: Iterable[str]) -> frozenset[int]:
    """The numbers of the owners with one of these names. A patch is not among those of its face."""
    owners = owners_of(scenario)
    return frozenset(owners.index(owner) for name in names for owner in called(scenario, owners, name))


def one_ambient(owners: Iterable[Owner]) -> TimeFunction | None:
    """The temperature with which conditions exchange heat, those that do; None if it is not one that is given.

    One that varies in space is none, and that of a node is not given.
    """
    found = list[TimeFunction]()
    for owner in owners:
        match owner.condition:
            case Convection(ambient=ambient) | Radiation(ambient=ambient) | Temperature(value=ambient):
                if ambient not in found:
                    found.append(ambient)
    return found[0] if len(found) == 1 and not isinstance(found[0], SpaceFormula | NodeTemperature) else None


def sides_of_factor(scenario: Scenario, probe: Probe) -> tuple[list[Owner], list[Owner]]:
    """The conditions of the room and of the outside of a temperature factor."""
    owners = owners_of(scenario)
    return _beside(scenario, probe, owners), called(scenario, owners, probe.outside or "")


def _beside(scenario: Scenario, probe: Probe, owners: list[Owner]) -> list[Owner]:
    """The conditions on the surface of a probe."""
    if probe.surface in scenario.rooms:
        return called(scenario, owners, probe.surface)
    if probe.surface != TOWARDS_VOID:
        patches = {patch.name for patch in scenario.patches if patch.face == probe.surface}
        return [each for each in owners if each.name == probe.surface or each.name in patches]
    towards_void = owners[len(FACES) + len(scenario.patches) :]
    own = [each for each in towards_void[1:] if each.name == probe.region]
    return towards_void if probe.region is None else own or towards_void[:1]
