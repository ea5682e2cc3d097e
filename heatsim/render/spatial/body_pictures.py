"""The pictures of a 3-D body at some times: sections, its surface, isosurfaces."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from heatsim.counts import minus
from heatsim.errors import InputError
from heatsim.grid import Grid
from heatsim.render.choice import ISOSURFACE, MATERIAL, SECTIONS, SLICES, SURFACE, TEMPERATURE
from heatsim.render.page.axes import place_text
from heatsim.render.page.layout import arrange
from heatsim.render.page.levels import choose_levels, uniform_colour
from heatsim.render.page.samples import choose_times, read_samples
from heatsim.render.page.scales import Scale
from heatsim.render.page.view import DEFAULT_CAMERA, View, drawn_size, stretched
from heatsim.render.picture import Picture
from heatsim.render.spatial import pictures
from heatsim.render.spatial.fields import Fields
from heatsim.render.spatial.isosurfaces import IsosurfaceScene
from heatsim.render.spatial.quantities import open_reader
from heatsim.render.spatial.scene import Scene
from heatsim.render.spatial.section_pictures import PART_REMARK, SectionsToDraw, draw_slices
from heatsim.render.spatial.sections import Section, find_equal, read_sections, through_hottest
from heatsim.render.spatial.zoom import find_part, moved_to
from heatsim.storage.field_reader import Cells
from heatsim.storage.vtkhdf import VOID

_FLAT = 0.3  # a body whose thickness is a smaller part of its second length is flat
# Sections with an enlarged part go through the hottest cell if one of them misses it by this part of the range.
_MISSED = 0.05
_TIMES_FOR_PART = 12  # of an animation, at which the part to enlarge is looked for


class BodyPictures:
    """The pictures of a 3-D grid, which share scenes."""

    def __init__(self, fields: Fields, stack: ExitStack, same_page: bool = False) -> None:
        """Prepare the pictures of some fields.

        Args:
            fields: what to draw.
            stack: closes the scenes.
            same_page: whether pages of all times have the same layout, as an animation needs. If not, equal sections
                are drawn once.
        """
        self._fields, self._stack, self._same_page = fields, stack, same_page
        self._reader, self._choice, self._grid = fields.reader, fields.choice, fields.grid
        self._scenes: dict[View, Scene] = {}
        self._isosurfaces: IsosurfaceScene | None = None

    def pictures(self) -> list[Picture]:
        """The chosen views; by default sections, and the surface if there is void, else isosurfaces at one time.

        Flat bodies of several materials have no isosurfaces by default: layers that hide each other show nothing.

        Raises:
            InputError: isosurfaces of materials are asked for.
        """
        views = self._choice.views or (SLICES, *self._second_view)
        if ISOSURFACE in self._choice.views and self._choice.quantity == MATERIAL:
            raise InputError("--view isosurface: materials have no isosurfaces; choose another --quantity")
        once = ISOSURFACE in views and not self._choice.times
        repeated = [view for view in views if not (once and view == ISOSURFACE)]
        found = [self.at(view, index) for index in self._fields.chosen for view in repeated]
        if once and self._choice.quantity != MATERIAL:
            name = self._fields.name(ISOSURFACE, 0).rpartition("_t")[0]
            found.append(Picture(name, partial(self._draw_isosurfaces, lambda: self._fields.interesting)))
        return found

    @property
    def _second_view(self) -> Sequence[str]:
        """The usual view beside sections, if there is one."""
        if VOID in self._reader.materials:
            return [SURFACE]
        size = sorted(self._grid.size)
        return [] if len(self._reader.materials) > 1 and size[0] < _FLAT * size[1] else [ISOSURFACE]

    def at(self, view: str, index: int) -> Picture:
        """A view at a time."""
        name = self._fields.name(view, index)
        flat: Callable[[Path], None] = partial(self._draw_slices, index, with_view=False)
        if view == SLICES:
            return Picture(name, partial(self._draw_slices, index), flat)
        if view == SECTIONS:
            return Picture(name, flat, flat)
        if view == SURFACE:
            return Picture(name, partial(self._draw_surface, index))
        return Picture(name, partial(self._draw_isosurfaces, lambda: index))

    def _scene(self, view: View) -> Scene:
        """The scene of a view. All pictures of the view share it."""
        if view not in self._scenes:
            self._scenes[view] = self._stack.enter_context(Scene(self._grid, view))
        return self._scenes[view]

    @cached_property
    def _view_beside(self) -> View:
        return pictures.view_beside(self._grid, self._fields.camera)

    def _draw_slices(self, index: int, path: Path, with_view: bool = True) -> None:
        fields, grid, places = self._fields, self._grid, self._choice.planes
        sections: Sequence[Section] = read_sections(self._reader, index, places, fields.layers)
        cells = self._part(sections)
        if cells is not None and not places and not self._same_page:
            low, high = fields.ranges[index]
            sections = through_hottest(self._reader, index, sections, high - _MISSED * (high - low), fields.layers)
        equal = {} if places or self._same_page else find_equal(sections, grid)
        part = None if cells is None else grid.part(cells)
        scale, remark = fields.scale_at(index)
        # The pages of an animation have the same legend.
        fronts = fields.fronts(scale, None if self._same_page else index)
        remarks = (remark, self._describe_equal(equal, sections), PART_REMARK if part else "")
        caption = fields.caption(SLICES, index, *remarks, fronts=fronts)
        normals = [axis for axis in range(3) if axis not in equal]
        enlarged = None if part is None else stretched(part.size)
        inside = [axis for axis in normals if part is not None and _meets(sections[axis], axis, grid, part)]
        page = arrange(
            drawn_size(grid),
            with_view,
            caption.height(),
            normals=normals,
            part=enlarged,
            inside=inside,
            camera=self._choice.camera or DEFAULT_CAMERA,
        )
        layers = [fields.layer_lines(axis, section) for axis, section in enumerate(sections)]
        names = [] if self._same_page else fields.names_on({axis: sections[axis] for axis in normals}, index)
        shown = SectionsToDraw(grid, sections, fields.materials, layers, part, fronts, names)
        image = None
        if page.view is not None:
            image = self._scene(page.view).slices(sections, scale, fields.materials, layers)
        draw_slices(path, caption, scale, shown, page, image)

    def _part(self, sections: Sequence[Section]) -> Cells | None:
        """The part of the body in which the field varies, if it is to be enlarged.

        In an animation it has one size, and follows the sections; on graded grids it does not move.
        """
        if self._choice.cells is not None or self._choice.quantity == MATERIAL:
            return None
        if not self._same_page:
            return _part_of(sections, self._grid)
        if not self._parts or not self._grid.uniform:
            return self._part_of_all
        x, y, z = np.max([[end - start for start, end in cells] for cells in self._parts], axis=0).tolist()
        return moved_to((x, y, z), [section.place for section in sections], self._grid)

    @cached_property
    def _parts(self) -> Sequence[Cells]:
        """The parts of several times, from which the size of the part in an animation follows; none without a part."""
        times = choose_times(len(self._reader), _TIMES_FOR_PART)
        found = [_part_of(read_sections(self._reader, index, self._choice.planes), self._grid) for index in times]
        there = [cells for cells in found if cells is not None]
        return there if 2 * len(there) >= len(times) else []

    @cached_property
    def _part_of_all(self) -> Cells | None:
        """The box around the parts of several times."""
        if not self._parts:
            return None
        first, last = (np.moveaxis(np.array(self._parts), 2, 0)).tolist()
        x, y, z = zip(np.min(first, axis=0).tolist(), np.max(last, axis=0).tolist(), strict=True)
        return x, y, z

    def _describe_equal(self, equal: dict[int, int], sections: Sequence[Section]) -> str:
        """A remark on sections that are not drawn; empty if all are."""
        names = [place_text(self._grid, axis, section.place) for axis, section in enumerate(sections)]
        return " ".join(f"The section {names[axis]} is equal to {names[other]}." for axis, other in equal.items())

    def _draw_surface(self, index: int, path: Path) -> None:
        scale, remark = self._fields.scale_at(index)
        samples = read_samples(self._reader, index)
        image = self._scene(self._view_beside).surface(samples, scale, self._reader.materials, self._fields.layer_edges)
        caption = self._fields.caption(SURFACE, index, remark)
        pictures.draw_surface(path, caption, self._grid, scale, self._view_beside, image)

    def _draw_isosurfaces(self, when: Callable[[], int], path: Path) -> None:
        """Draw a field with a scale for its range only, which may be a small part of the common range.

        If the field varies only in a small part of the body, draw only this part.
        """
        fields, index = self._fields, when()
        cells = None if self._same_page else self._part(read_sections(self._reader, index, self._choice.planes))
        if cells is not None:
            with ExitStack() as stack:
                reader = stack.enter_context(open_reader(self._reader.path, self._choice.quantity, fields.run, cells))
                part = Fields(reader, fields.run, replace(self._choice, cells=cells, camera=fields.camera))
                BodyPictures(part, stack)._draw_isosurfaces(lambda: index, path)
            return
        low, high = self._choice.span or fields.ranges[index]
        scale = fields.scale_of(low, high)
        levels = choose_levels(scale, fields.run.melting if self._choice.quantity == TEMPERATURE else {})
        samples = read_samples(self._reader, index)
        if self._isosurfaces is None:
            self._isosurfaces = self._stack.enter_context(IsosurfaceScene(self._grid, self._view_beside))
        image, seen = self._isosurfaces.isosurfaces(
            samples, scale, levels, uniform_colour(), self._reader.materials, fields.layer_edges
        )
        caption = fields.caption(ISOSURFACE, index, _describe_range(scale))
        pictures.draw_isosurfaces(path, caption, self._grid, scale, seen, self._view_beside, image)


def _part_of(sections: Sequence[Section], grid: Grid) -> Cells | None:
    return find_part({axis: section.values for axis, section in enumerate(sections)}, grid)


def _meets(section: Section, axis: int, grid: Grid, part: Grid) -> bool:
    """Whether a section normal to an axis goes through a part of a grid."""
    place = grid.origin[axis] + section.place * grid.size[axis]
    return part.origin[axis] <= place <= part.origin[axis] + part.size[axis]


def _describe_range(scale: Scale) -> str:
    """The range of a scale as a sentence, with enough digits to distinguish its ends."""
    if scale.uniform:
        return ""
    low, high = scale.limits
    decimals = max(0, 2 - int(np.floor(np.log10(high - low))))
    bottom, top = (minus(f"{round(end, decimals) + 0.0:.{decimals}f}") for end in (low, high))
    return f"{scale.label}: from {bottom} to {top}."
