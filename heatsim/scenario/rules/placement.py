"""The rules about space: initial fields, label images, patches, beams and probes fit the domain; see ``checks``."""

from itertools import combinations, product

from heatsim.errors import Mistake
from heatsim.grid import Grid
from heatsim.scenario.messages import show, show_key
from heatsim.scenario.rules.validation import entries, known
from heatsim.scenario.stored_field import StoredField
from heatsim.scenario.tables.boundaries import Face, Periodic, Temperature
from heatsim.scenario.tables.initial import ArrayFile, value_fault
from heatsim.scenario.tables.labels import absent_labels
from heatsim.scenario.tables.layers import Plane
from heatsim.scenario.tables.model import Scenario
from heatsim.scenario.tables.patches import off_face
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.quantities import TEMPERATURE

# The rounding error of the upper end of the domain, which is a sum, relative to its terms.
ROUNDING = 4e-16
_SAME = 1e-6  # places that differ by less than this part of the domain are equal
# A layer of this thickness in m was probably meant in another unit.
_THICKEST = 1.0


def grid_of(of: Scenario) -> Grid | None:
    """The grid, or None if the domain could not be read."""
    domain = of.domain
    found = known(domain) and known(domain.size, domain.cells, domain.origin) and not domain.automatic
    return of.grid if found else None


def face_of(scenario: Scenario, name: str) -> Face | None:
    """The condition on a face, or None if it could not be read."""
    boundaries = scenario.boundaries
    if not known(boundaries, name):
        return None
    return boundaries.face(name) if name in boundaries.model_fields_set else boundaries.default


def label_images_fit_the_grid(scenario: Scenario) -> list[Mistake]:
    """A label image has one label for every cell."""
    grid = grid_of(scenario)
    mistakes = []
    for index, region in entries(scenario.regions):
        file = None if region.labels is None else region.labels.file
        if grid is not None and file is not None and file.shape != grid.shape:
            message = (
                f"got {show(file.path.name)}, which has shape {file.shape}; domain.cells needs (nz, ny, nx) = "
                f"{grid.shape}"
            )
            mistakes.append(Mistake(f"regions.{index}.labels.file", message))
        elif grid is not None and region.labels is not None and known(file, region.labels.materials):
            try:
                absent = absent_labels(region.labels)
            except ValueError as error:
                message = f"got {show(region.labels.file.path.name)}, which {error}"
                mistakes.append(Mistake(f"regions.{index}.labels.file", message))
                continue
            key = f"regions.{index}.labels.materials"
            mistakes += [Mistake(f"{key}.{show_key((label,))}", message) for label, message in absent.items()]
    return mistakes


def initial_field_fits_the_domain(scenario: Scenario) -> list[Mistake]:
    """An array has one temperature for every cell, and a time of another run the same cells.

    In a body of one part an expression is at least 0 K at its corners. All cells are checked when the field is made.
    This finds most mistakes together with those of other tables.
    """
    grid = grid_of(scenario)
    array = scenario.initial.temperature if known(scenario.initial) else None
    if grid is not None and isinstance(array, Expression):
        return _too_cold_at_a_corner(scenario, array, grid)
    if grid is None or not isinstance(array, ArrayFile):
        return []
    # The shape comes first: an array of another one may be larger than the memory.
    message = _other_cells(array, grid)
    if message is None and known(scenario.regions):
        message = value_fault(array, scenario.uses_void)
    name = show(array.file.path.name)
    return [] if message is None else [Mistake("initial.temperature.file", f"got {name}, which {message}")]


def _other_cells(array: ArrayFile, grid: Grid) -> str | None:
    """The message about an array whose cells are not those of a grid; None if they are."""
    shape = array.load().shape
    if shape != grid.shape:
        return f"has shape {shape}; domain.cells needs (nz, ny, nx) = {grid.shape}"
    if not isinstance(array.file, StoredField):
        return None
    domains = (array.file.grid.origin, array.file.grid.size), (grid.origin, grid.size)
    margin = _SAME * max(grid.size)
    if all(
        abs(there - here) <= margin for ends in zip(*domains, strict=True) for there, here in zip(*ends, strict=True)
    ):
        planes = zip(array.file.grid.axes, grid.axes, strict=True)
        if all(abs(there.borders - here.borders).max() <= margin for there, here in planes):
            return None
        return (
            "belongs to cells of other widths; use the same widths, or save the array as a .npy file if its cells are "
            "meant whatever their places"
        )
    there, here = (
        f"{' × '.join(f'{length:.6g}' for length in size)} m from ({', '.join(f'{start:.6g}' for start in origin)}) m"
        for origin, size in domains
    )
    return (
        f"belongs to a domain of {there}, and this one has {here}; use the same domain, or save the array as a .npy "
        "file if its cells are meant whatever their places"
    )


def _too_cold_at_a_corner(scenario: Scenario, temperature: Expression, grid: Grid) -> list[Mistake]:
    """The message about an expression that is below 0 K at a corner cell of a body of one part."""
    if not known(scenario.regions, scenario.layers) or scenario.regions or scenario.layers:
        return []
    for point in product(*(grid.centres(axis)[[0, -1]].tolist() for axis in range(3))):
        value = float(temperature.evaluate(**dict(zip("xyz", point, strict=True))))
        outside = TEMPERATURE.range_fault(value)
        if outside is not None:
            place = ", ".join(f"{number:.9g}" for number in point)
            text = f"got {show(temperature.text)}, which is {value:.9g} K at ({place}) m"
            return [Mistake("initial.temperature", f"{text}; {outside}")]
    return []


def layers_lie_between_cells(scenario: Scenario) -> list[Mistake]:
    """The plane of a layer lies between two planes of cells or on a face, and its rectangle in the domain."""
    grid, mistakes = grid_of(scenario), []
    for index, layer in entries(scenario.layers):
        plane = layer.plane
        if grid is None or not known(plane) or not known(plane.axis, plane.at):
            continue
        if grid.radial and plane.axis == "y":  # refused in axial.py
            continue
        axis, key = plane.across, f"layers.{index}.plane"
        low, size, cells = grid.origin[axis], grid.size[axis], grid.axes[axis]
        at = plane.index(grid)
        if not 0 <= at <= grid.cells[axis]:
            message = f"got {plane.at!r}; the domain reaches from {low!r} to {low + size!r} m along {plane.axis}"
            mistakes.append(Mistake(f"{key}.at", message))
        elif at != int(at):
            below, above = (f"{cells.borders[int(at) + more]:.9g}" for more in (0, 1))
            message = (
                f"got {plane.at!r}, inside a cell; the nearest planes between cells of {cells.widths[int(at)]:.6g} m "
                f"are at {below} and {above} m: move the layer, or choose cells that end at it"
            )
            mistakes.append(Mistake(f"{key}.at", message))
        if plane.rectangle is not None and known(plane.rectangle.min, plane.rectangle.max):
            for end in ("min", "max"):
                outside = off_face(getattr(plane.rectangle, end), f"{plane.axis}_min", grid)
                for place, message in outside:
                    in_domain = message.replace(f"{plane.axis}_min reaches", "the domain reaches")
                    mistakes.append(Mistake(f"{key}.rectangle.{end}.{place}", in_domain))
    return mistakes


def layers_are_thinner_than_cells(scenario: Scenario) -> list[Mistake]:
    """A layer is at most as thick as a cell: it has one temperature across, as one cell has."""
    grid, mistakes = grid_of(scenario), []
    for index, layer in entries(scenario.layers):
        if grid is None or not known(layer.thickness, layer.plane) or not known(layer.plane.axis):
            continue
        d = _thinnest_beside(layer.plane, grid)
        if layer.thickness > d * (1.0 + ROUNDING):
            message = f"got {layer.thickness!r} m, more than a cell, which has {d:.6g} m along {layer.plane.axis}; "
            if layer.thickness >= _THICKEST:
                message += f'a number without a unit is in m: write "{layer.thickness:g} um" for micrometres'
            else:
                message += "a layer has one temperature across: make it a region with cells"
            mistakes.append(Mistake(f"layers.{index}.thickness", message))
    return mistakes


def _thinnest_beside(plane: Plane, grid: Grid) -> float:
    """The size in m, across a plane, of the smaller cell beside it; of the largest cell if the plane is not known."""
    widths = grid.axes[plane.across].widths
    beside = max(round(plane.index(grid)), 0) if known(plane.at) else len(widths) + 1
    return float(widths[max(beside - 1, 0) : beside + 1].min(initial=widths.max()))


def patches_and_beams_have_a_surface(scenario: Scenario) -> list[Mistake]:
    """Faces with a patch or a beam are not periodic."""
    placed = [(f"patches.{index}.face", patch.face, "patch") for index, patch in entries(scenario.patches)]
    placed += [
        (f"sources.{index}.beam.face", source.beam.face, "beam")
        for index, source in entries(scenario.sources)
        if source.beam is not None
    ]
    return [
        Mistake(key, f"got {show(face)}; this face is periodic and has no surface for a {item}")
        for key, face, item in placed
        if known(face) and isinstance(face_of(scenario, face), Periodic)
    ]


def patches_and_beams_lie_on_their_faces(scenario: Scenario) -> list[Mistake]:
    """The corners of a patch and the path of a beam lie on the face."""
    points = []
    for index, patch in entries(scenario.patches):
        if known(patch.rectangle):
            at = f"patches.{index}.rectangle"
            points += [(f"{at}.min", patch.rectangle.min, patch.face), (f"{at}.max", patch.rectangle.max, patch.face)]
    for index, source in entries(scenario.sources):
        beam = source.beam
        # In axial domains it lies on the axis, which hollow ones do not contain: see axial.py.
        if beam is not None and known(beam.path) and not (known(scenario.domain) and scenario.domain.axial):
            points += [(f"sources.{index}.beam.path.{n}", point, beam.face) for n, point in enumerate(beam.path)]
    grid = grid_of(scenario)
    if grid is None:
        return []
    return [
        Mistake(f"{key}.{axis}", message)
        for key, point, face in points
        if known(point, face)
        for axis, message in off_face(point, face, grid)
    ]


def patches_do_not_overlap(scenario: Scenario) -> list[Mistake]:
    """Patches on a face do not overlap."""
    placed = [
        (index, patch)
        for index, patch in entries(scenario.patches)
        if known(patch.face, patch.rectangle) and known(patch.rectangle.min, patch.rectangle.max)
    ]
    return [
        Mistake(
            f"patches.{index}.rectangle",
            f"{show(patch.name)} overlaps {show(other.name)}; patches on a face must not overlap",
        )
        for (_, other), (index, patch) in combinations(placed, 2)
        if other.face == patch.face and patch.rectangle.overlaps(other.rectangle)
    ]


def held_patches_are_as_wide_as_half_a_cell(scenario: Scenario) -> list[Mistake]:
    """A held patch is at least half a cell wide; the heat through a narrower one would depend on the cell size."""
    grid = grid_of(scenario)
    mistakes = []
    for index, patch in entries(scenario.patches):
        rectangle = patch.rectangle
        if grid is None or not known(patch.face, rectangle) or not known(rectangle.min, rectangle.max):
            continue
        outside = off_face(rectangle.min, patch.face, grid) + off_face(rectangle.max, patch.face, grid)
        held = isinstance(patch.condition, Temperature)
        if held and not outside and min(covered.sum() for covered in patch.coverage(grid)) < 0.5:
            message = (
                f"{show(patch.name)} has a fixed temperature and is narrower than half a cell; make it larger or the "
                "cells smaller"
            )
            mistakes.append(Mistake(f"patches.{index}.rectangle", message))
    return mistakes


def probes_lie_in_the_domain(scenario: Scenario) -> list[Mistake]:
    """The points of probes lie inside the domain or on its surface."""
    domain = scenario.domain
    if not known(domain) or not known(domain.size, domain.origin):
        return []
    points = []
    for index, probe in entries(scenario.probes):
        points.append((f"probes.{index}.point", probe.point))
        if probe.line is not None:
            points += [(f"probes.{index}.line.from", probe.line.from_), (f"probes.{index}.line.to", probe.line.to)]
    return [
        Mistake(
            f"{key}.{number}",
            f"got {at!r}; the domain reaches from {low!r} to {low + length!r} m along {'xyz'[number]}",
        )
        for key, point in points
        if point is not None
        for number, (at, low, length) in enumerate(zip(point, domain.origin, domain.size, strict=True))
        if not low <= at <= low + length + ROUNDING * (abs(low) + length)
    ]
