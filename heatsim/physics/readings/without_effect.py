"""Find contacts and conditions that are allowed, but act nowhere because of the positions of the parts of a body."""

from collections.abc import Iterator

import numpy as np

from heatsim.grid import FACES
from heatsim.physics.geometry.division import Division
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import VOID
from heatsim.scenario.messages import show
from heatsim.scenario.tables.boundaries import Insulated, Periodic


def notes_without_effect(problem: HeatProblem) -> list[str]:
    """Sentences for the user about contacts, surfaces and faces of the box that do nothing. Collective on ranks."""
    return [*_contacts(problem), *_surfaces(problem), *_faces(problem), *_unnamed_faces(problem)]


def contact_areas(problem: HeatProblem) -> list[float]:
    """The smooth area in m² of each contact of the scenario; 0 where its resistance is 0."""
    contacts = Division.of(problem.scenario).contacts
    found = [0.0] * len(problem.scenario.contacts)
    for pair, area in problem.materials.surface_areas.items():
        if pair in contacts:
            found[contacts[pair]] += area
    return found


def _contacts(problem: HeatProblem) -> Iterator[str]:
    for number, (contact, area) in enumerate(zip(problem.scenario.contacts, contact_areas(problem), strict=True)):
        if area == 0.0 and contact.constant_resistance != 0.0:
            one, other = map(show, contact.between)
            yield f"contacts.{number} has no effect: {one} and {other} do not touch, or another contact prevails"


def _surfaces(problem: HeatProblem) -> Iterator[str]:
    scenario, kinds = problem.scenario, Division.of(problem.scenario).kinds
    exposed = {
        kinds[place][1]
        for pair, area in problem.materials.surface_areas.items()
        if area > 0.0 and any(kinds[place][0] == VOID for place in pair)
        for place in pair
    }
    for number, surface in enumerate(scenario.surfaces):
        is_room = surface.room(scenario.rooms) is not None
        if not isinstance(surface.condition, Insulated) and not is_room and surface.of not in exposed:
            yield f"surfaces.{number} has no effect: {show(surface.of)} does not border on void"


def _faces(problem: HeatProblem) -> Iterator[str]:
    """Faces of the box that only void touches, where a condition of the body's surfaces is missing."""
    materials, boundaries = problem.materials, problem.scenario.boundaries
    if materials.void is None or "void" in boundaries.model_fields_set:
        return
    faces = [
        name
        for face, name in enumerate(FACES)
        if not isinstance(boundaries.face(name), Insulated | Periodic)
        and bool(np.all(materials.types_on_face(face) == materials.void))
    ]
    if faces:
        yield (
            f"the conditions on {', '.join(faces)} have no effect, because only void touches these faces of the box: "
            "write the condition of the body's surfaces towards void as boundaries.void"
        )


def _unnamed_faces(problem: HeatProblem) -> Iterator[str]:
    """Insulated faces of the box without a key that the body touches, while its other surface has a condition."""
    materials, boundaries = problem.materials, problem.scenario.boundaries
    if materials.void is None or isinstance(boundaries.void, Insulated) or "default" in boundaries.model_fields_set:
        return
    faces = [
        name
        for face, name in enumerate(FACES)
        if name not in boundaries.model_fields_set
        and isinstance(boundaries.face(name), Insulated)
        and problem.grid.cells[face // 2] > 1
        and not bool(np.all(materials.types_on_face(face) == materials.void))
    ]
    if faces:
        yield (
            f"the body touches {', '.join(faces)}, where it is insulated: boundaries.void acts only between the body "
            "and void; write the condition of these faces, also if it is insulated, or leave a cell of void beside them"
        )
