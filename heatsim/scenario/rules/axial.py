"""The rules of axial domains: what does not turn around the axis is refused; see ``checks``."""

from collections.abc import Iterator

from heatsim.errors import Mistake
from heatsim.scenario.messages import show
from heatsim.scenario.rules.validation import entries, known
from heatsim.scenario.tables.boundaries import Insulated
from heatsim.scenario.tables.initial import ImageFile
from heatsim.scenario.tables.model import Scenario
from heatsim.scenario.tables.patches import face_axes
from heatsim.scenario.tables.regions import Cylinder, Shaped, Sphere

_AXIAL = 'domain.symmetry = "axial"'
_ACROSS = ("y_min", "y_max")


def axial_domains_turn_around_their_axis(scenario: Scenario) -> list[Mistake]:
    """Everything in an axial domain is symmetric around the axis x = 0, and no heat passes the axis."""
    if not known(scenario.domain) or not scenario.domain.axial:
        return []
    return [*_faces(scenario), *_parts(scenario), *_rings(scenario), *_others(scenario)]


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
    """Patches are rings: along y they cover all of the domain."""
    for index, patch in entries(scenario.patches):
        if not known(patch.face, patch.rectangle):
            continue
        key, axes = f"patches.{index}", face_axes(patch.face)
        if patch.face in _ACROSS or (patch.face == "x_min" and _has_axis(scenario)):
            yield Mistake(f"{key}.face", f"got {show(patch.face)}; with {_AXIAL} no heat passes this face")
        elif known(patch.rectangle.min, patch.rectangle.max):
            at = axes.index(1)
            if patch.rectangle.min[at] > -0.5 or patch.rectangle.max[at] < 0.5:
                yield Mistake(
                    f"{key}.rectangle",
                    f"got {patch.rectangle.min[at]:g} to {patch.rectangle.max[at]:g} along y; with {_AXIAL} patches "
                    "are rings: write -0.5 and 0.5 for y",
                )


def _others(scenario: Scenario) -> Iterator[Mistake]:
    for index, source in entries(scenario.sources):
        if source.beam is not None:
            yield Mistake(
                f"sources.{index}.beam",
                f"{_AXIAL} does not allow beams; write their flux as a patch with an expression",
            )
    if known(scenario.layers) and scenario.layers:
        yield Mistake("layers.0", f"{_AXIAL} does not allow layers; make it a region with thin cells: [domain.z]")
    if known(scenario.initial) and isinstance(scenario.initial.temperature, ImageFile):
        yield Mistake("initial.temperature.image", f"{_AXIAL} does not allow images; write an expression in x and z")
