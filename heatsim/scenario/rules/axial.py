"""The rules of axial domains: what does not turn around the axis is refused; see ``checks``."""

from collections.abc import Iterator

from heatsim.errors import Mistake
from heatsim.scenario.messages import show
from heatsim.scenario.rules.validation import entries, known
from heatsim.scenario.tables.boundaries import Insulated
from heatsim.scenario.tables.initial import ImageFile
from heatsim.scenario.tables.model import Scenario
from heatsim.scenario.tables.patches import Rectangle, face_axes
from heatsim.scenario.tables.regions import Cylinder, Shaped, Sphere

_AXIAL = 'domain.symmetry = "axial"'
_ACROSS = ("y_min", "y_max")


def axial_domains_turn_around_their_axis(scenario: Scenario) -> list[Mistake]:
    """Everything in an axial domain is symmetric around the axis x = 0, and no heat passes the axis."""
    if not known(scenario.domain) or not scenario.domain.axial:
        return []
    return [*_faces(scenario), *_parts(scenario), *_rings(scenario), *_beams(scenario), *_others(scenario)]


def _has_axis(scenario: Scenario) -> bool:
    """Whether the axis is part of the domain; else it is hollow."""
    return known(scenario.domain.origin) and scenario.domain.origin[0] == 0.0


def _faces(scenario: Scenario) -> Iterator[Mistake]:
    if not known(scenario.boundaries):
        return
    without = (*_ACROSS, "x_min") if _has_axis(scenario) else _ACROSS
    for name in without:
        condition = getattr(scenario.boundaries, name)
        if known(condition) and not isinstance(condition, Insulated):
            what = (
                "is the axis, which has no area"
                if name == "x_min"
                else "lies across the angle, along which nothing changes"
            )
            yield Mistake(
                f"boundaries.{name}", f"got {show(condition.type)}; with {_AXIAL} this face {what}: remove it"
            )
    if known(scenario.boundaries.x_max) and scenario.boundaries.x_max.type == "periodic":
        yield Mistake("boundaries.x_max", f'got "periodic"; with {_AXIAL} the radius cannot wrap')


def _parts(scenario: Scenario) -> Iterator[Mistake]:
    shaped: list[tuple[str, Shaped]] = [(f"regions.{index}", region) for index, region in entries(scenario.regions)]
    shaped += [(f"sources.{index}", source) for index, source in entries(scenario.sources)]
    for key, part in shaped:
        if part.stl is not None:
            yield Mistake(f"{key}.stl", f"{_AXIAL} allows box, sphere and cylinder only")
        match part.sphere or part.cylinder:
            case Sphere(centre=(x, y, _)) if (x, y) != (0.0, 0.0):
                yield Mistake(
                    f"{key}.sphere.centre",
                    f"got {show([x, y])} for x and y; with {_AXIAL} a sphere lies on the axis: write 0 and 0",
                )
            case Cylinder(from_=(x, y, _), to=(u, v, _)) if (x, y, u, v) != (0.0, 0.0, 0.0, 0.0):
                yield Mistake(
                    f"{key}.cylinder",
                    f"got the axis from {show([x, y])} to {show([u, v])} in x and y; with {_AXIAL} it lies on that of "
                    "the domain: write 0 and 0",
                )
    for index, region in entries(scenario.regions):
        if region.labels is not None:
            yield Mistake(
                f"regions.{index}.labels", f"{_AXIAL} does not allow label images; use box, sphere or cylinder"
            )


def _rings(scenario: Scenario) -> Iterator[Mistake]:
    """Patches, channels and layers are rings: along y they cover all of the domain."""
    for index, patch in entries(scenario.patches):
        if not known(patch.face, patch.rectangle):
            continue
        if patch.face in _ACROSS or (patch.face == "x_min" and _has_axis(scenario)):
            yield Mistake(f"patches.{index}.face", f"got {show(patch.face)}; with {_AXIAL} no heat passes this face")
        else:
            yield from _parts_of_rings(f"patches.{index}", "patches are rings", patch.rectangle, patch.face)
    for index, channel in entries(scenario.channels):
        if channel.from_ in _ACROSS:
            yield Mistake(
                f"channels.{index}.from", f"got {show(channel.from_)}; with {_AXIAL} no fluid passes this face"
            )
    for index, layer in entries(scenario.layers):
        plane, key = layer.plane, f"layers.{index}.plane"
        if not known(plane) or not known(plane.axis, plane.at):
            continue
        if plane.axis == "y":
            yield Mistake(f"{key}.axis", f'got "y"; with {_AXIAL} layers are discs across z and cylinders across x')
        elif plane.axis == "x" and plane.at <= 0.0:
            message = f"got {plane.at:g}; with {_AXIAL} a layer across x is a cylinder: write its radius"
            yield Mistake(f"{key}.at", message)
        elif plane.rectangle is not None and known(plane.rectangle):
            yield from _parts_of_rings(key, "layers are whole circles", plane.rectangle, f"{plane.axis}_min")


def _parts_of_rings(key: str, what: str, rectangle: Rectangle, face: str) -> Iterator[Mistake]:
    if known(rectangle.min, rectangle.max):
        (low, high), at = (rectangle.min, rectangle.max), face_axes(face).index(1)
        if low[at] > -0.5 or high[at] < 0.5:
            message = f"got {low[at]:g} to {high[at]:g} along y; with {_AXIAL} {what}: write -0.5 and 0.5 for y"
            yield Mistake(f"{key}.rectangle", message)


def _beams(scenario: Scenario) -> Iterator[Mistake]:
    """Beams fall along the axis and stay there."""
    for index, source in entries(scenario.sources):
        beam, key = source.beam, f"sources.{index}.beam"
        if not known(beam) or beam is None or not known(beam.face, beam.path):
            continue
        if beam.face not in ("z_min", "z_max"):
            yield Mistake(
                f"{key}.face",
                f"got {show(beam.face)}; with {_AXIAL} a beam falls along the axis: write z_min or z_max; for heat on "
                "the side of a cylinder write a patch with a flux",
            )
        elif beam.path != ((0.0, 0.0),):
            got = show(list(beam.path[0])) if len(beam.path) == 1 else f"{len(beam.path):,} points"
            yield Mistake(
                f"{key}.path",
                f"got {got}; with {_AXIAL} the spot of a beam is centred on the axis and does not move: write "
                "[[0.0, 0.0]], or leave the symmetry out",
            )


def _others(scenario: Scenario) -> Iterator[Mistake]:
    if known(scenario.initial) and isinstance(scenario.initial.temperature, ImageFile):
        yield Mistake("initial.temperature.image", f"{_AXIAL} does not allow images; write an expression in x and z")
