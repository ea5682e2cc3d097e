"""The geometry that a scenario describes, for a picture before it runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import ScenarioError
from heatsim.grid import FACES
from heatsim.physics.geometry.regions import Parts, are_painted, paint, region_mask, source_mask
from heatsim.render.geometry.parts import Geometry, Rectangle3D, ShownBeam, ShownBorder, ShownProbe, ShownSource
from heatsim.report.page import GEOMETRY
from heatsim.run.in_words import channel_in_words, condition_in_words, contact_in_words, density_in_words
from heatsim.scenario import Face, Region, Scenario, face_axes, load
from heatsim.scenario.documents.copies import base_of
from heatsim.scenario.tables.materials import VOID
from heatsim.storage import folder as run_folder
from heatsim.storage import manifest
from heatsim.storage.disk import make_folders

_PICTURE = f"{run_folder.FIGURES}/{GEOMETRY}.png"
_Mask = NDArray[np.bool_]


def geometry_of(scenario: Scenario) -> Geometry:
    """The geometry of a scenario.

    Raises:
        ScenarioError: a region, source or probe does not fit the domain.
    """
    shape = scenario.grid.shape
    parts = paint(scenario) if are_painted(scenario) else None
    labels = np.zeros(shape, dtype=np.uint8) if parts is None else parts.material
    regions, numbers = _named(scenario)
    return Geometry(
        scenario.title,
        scenario.grid,
        [name for name, _ in scenario.palette],
        labels,
        regions,
        np.zeros(shape, dtype=np.uint8) if parts is None else numbers[parts.owner],
        list(_sources(scenario, parts)),
        list(_contacts(scenario, labels, parts)),
        list(_surfaces(scenario, labels, parts)),
        list(_patches(scenario)),
        list(_layers(scenario)),
        list(_beams(scenario)),
        [ShownProbe(probe.name, np.array(probe.points)) for probe in scenario.probes if probe.points],
        list(_remarks(scenario)),
    )


@contextmanager
def replacing_geometry(folder: Path) -> Iterator[None]:
    """Replace the picture of the geometry of a run within the context; :func:`draw_geometry` draws it.

    Raises:
        FolderError: heatsim did not write the folder, or the user changed the picture.
    """
    with manifest.replacing(folder, [_PICTURE]) as yours:
        manifest.refuse(folder, yours)
        make_folders(folder / run_folder.FIGURES)
        yield


def draw_geometry(folder: Path, in_space: bool = True) -> list[Path]:
    """Draw the geometry of the run in a folder; the path, none if its scenario was written for another version.

    Args:
        folder: of the run, within :func:`replacing_geometry`.
        in_space: whether OpenGL works.

    Raises:
        StorageError: the picture could not be written.
    """
    from heatsim.render.geometry.picture import draw

    try:
        scenario = load(folder / run_folder.SCENARIO)
    except ScenarioError:
        return []
    draw(folder / _PICTURE, geometry_of(scenario), in_space and min(scenario.grid.cells) > 1)
    return [folder / _PICTURE]


def _named(scenario: Scenario) -> tuple[list[str], NDArray[np.uint8]]:
    """The texts of the regions, one for all copies of a region, and for each owner of cells the number of its text."""
    copies: dict[str, list[Region]] = {}
    for region in scenario.regions:
        copies.setdefault(base_of(region.name), []).append(region)
    names = [f"{base} ×{len(of)}" if len(of) > 1 else of[0].name for base, of in copies.items()]
    materials = [", ".join(of[0].materials) for of in copies.values()]
    numbers = [1 + list(copies).index(base_of(region.name)) for region in scenario.regions]
    texts = [f"{name} ({of})" for name, of in zip(names, materials, strict=True)]
    return texts, np.array([0, *numbers], dtype=np.uint8)


def _sources(scenario: Scenario, parts: Parts | None) -> Iterator[ShownSource]:
    for source in scenario.sources:
        if source.beam is not None:
            continue
        everywhere = np.ones(scenario.grid.shape, dtype=bool)
        amount = f"{source.power:g} W" if source.power is not None else density_in_words(source.power_density)
        yield ShownSource(
            f"{source.label}: {amount}", everywhere if parts is None else source_mask(source, scenario, parts)
        )


def _contacts(scenario: Scenario, labels: NDArray[np.uint8], parts: Parts | None) -> Iterator[ShownBorder]:
    for contact in scenario.contacts:
        one, other = (_cells_of(name, scenario, labels, parts) for name in contact.between)
        text = f"contact {' – '.join(contact.between)}: {contact_in_words(contact, scenario.time.end)}"
        yield ShownBorder(text, one, other)


def _surfaces(scenario: Scenario, labels: NDArray[np.uint8], parts: Parts | None) -> Iterator[ShownBorder]:
    names, unit = [name for name, _ in scenario.palette], scenario.output.temperature_unit
    for surface in scenario.surfaces if VOID in names else ():
        part, room, void = surface.part(scenario.rooms), surface.room(scenario.rooms), labels == names.index(VOID)
        where = f"of {part}" if room is None else f"{part or 'all'} towards {room}"
        text = f"surface {where}: {condition_in_words(surface.condition, unit, scenario.time.end)}"
        one = ~void if part is None else _cells_of(part, scenario, labels, parts) & ~void
        if room is not None and parts is not None:
            void = void & (parts.owner == scenario.rooms[room])
        yield ShownBorder(text, one, void)
    if parts is not None:
        for channel in scenario.channels:
            void = labels == names.index(VOID)
            text = f"channel {channel.name}: {channel_in_words(channel, unit, scenario.time.end)}"
            yield ShownBorder(text, ~void, void & (parts.owner == scenario.rooms[channel.region]))


def _cells_of(name: str, scenario: Scenario, labels: NDArray[np.uint8], parts: Parts | None) -> _Mask:
    """The cells of a material or of a region."""
    names = [material for material, _ in scenario.palette]
    if name in names or parts is None:
        return np.asarray(labels == names.index(name))
    return region_mask(name, scenario, parts)


def _patches(scenario: Scenario) -> Iterator[Rectangle3D]:
    unit, end = scenario.output.temperature_unit, scenario.time.end
    for patch in scenario.patches:
        low, high = [0.0] * 3, [0.0] * 3
        normal = FACES.index(patch.face) // 2
        low[normal] = high[normal] = _place(scenario, patch.face)
        for index, axis in enumerate(face_axes(patch.face)):
            low[axis], high[axis] = patch.rectangle.min[index], patch.rectangle.max[index]
        text = f"patch {patch.name} on {patch.face}: {condition_in_words(patch.condition, unit, end)}"
        yield Rectangle3D(text, normal, (low[0], low[1], low[2]), (high[0], high[1], high[2]))


def _layers(scenario: Scenario) -> Iterator[Rectangle3D]:
    for layer in scenario.layers:
        low, high = [0.0] * 3, [0.0] * 3
        low[layer.plane.across] = high[layer.plane.across] = layer.plane.at
        for axis, start, end in zip(layer.plane.along, *layer.plane.corners(scenario.grid), strict=True):
            low[axis], high[axis] = start, end
        plane = f"{layer.plane.axis} = {1e3 * layer.plane.at:g} mm"
        text = f"{layer.name} ({layer.material}, {1e6 * layer.thickness:g} µm, {plane})"
        corners = (low[0], low[1], low[2]), (high[0], high[1], high[2])
        yield Rectangle3D(text, layer.plane.across, *corners, layer.material)


def _place(scenario: Scenario, face: str) -> float:
    """The coordinate in m of a face of the box."""
    axis, upper = divmod(FACES.index(face), 2)
    return scenario.grid.origin[axis] + upper * scenario.grid.size[axis]


def _beams(scenario: Scenario) -> Iterator[ShownBeam]:
    for source in scenario.sources:
        beam = source.beam
        if beam is None:
            continue
        points = np.full((len(beam.path), 3), _place(scenario, beam.face))
        points[:, list(face_axes(beam.face))] = beam.path
        motion = "does not move" if beam.speed is None or len(points) == 1 else f"{1e3 * beam.speed:g} mm/s"
        text = f"beam {source.name}: {beam.power:g} W, {100.0 * beam.absorptivity:g} % absorbed, "
        text += f"radius {1e3 * beam.radius:g} mm, {motion}"
        yield ShownBeam(text, points, FACES.index(beam.face) // 2, beam.radius)


def _remarks(scenario: Scenario) -> Iterator[str]:
    """The conditions of faces and of surfaces towards void, those that are equal together; and probes of regions."""
    conditions: dict[str, list[str]] = {}
    unit, end = scenario.output.temperature_unit, scenario.time.end
    found: list[tuple[str, Face]] = [(face, scenario.boundaries.face(face)) for face in FACES]
    if scenario.uses_void:
        found.append(("void", scenario.boundaries.void))
    for name, condition in found:
        conditions.setdefault(condition_in_words(condition, unit, end), []).append(name)
    for text, faces in conditions.items():
        yield f"{', '.join(faces)}: {text}."
    for kind, probes in (
        ("regions", [(probe, probe.region) for probe in scenario.probes if probe.region and not probe.surface]),
        ("surfaces", [(probe, probe.surface) for probe in scenario.probes if probe.surface]),
    ):
        if probes:
            yield f"Probes of {kind}: {', '.join(f'{one.name} ({one.statistic} of {place})' for one, place in probes)}."
