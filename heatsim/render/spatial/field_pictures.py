"""The pictures of a run's fields: views of bodies, planes, lines and single cells."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

from heatsim.errors import InputError
from heatsim.grid import AXES
from heatsim.render.choice import MATERIAL, PLANE, SECTIONS, SLICES, TEMPERATURE, PictureChoice
from heatsim.render.curves import curves
from heatsim.render.page import axes
from heatsim.render.page.figure import title_of
from heatsim.render.page.material_colours import material_colour
from heatsim.render.page.samples import wide_axes
from heatsim.render.picture import Picture
from heatsim.render.spatial import pictures
from heatsim.render.spatial.body_pictures import BodyPictures
from heatsim.render.spatial.fields import Fields
from heatsim.render.spatial.section_pictures import PART_REMARK, SectionsToDraw
from heatsim.render.spatial.sections import Section
from heatsim.render.spatial.zoom import find_part
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.run_settings import RunSettings
from heatsim.storage.vtkhdf import VOID


def field_pictures(
    reader: FieldReader, run: RunSettings, choice: PictureChoice, stack: ExitStack
) -> tuple[Sequence[Picture], Sequence[Picture]]:
    """The 3-D views of a run, which need OpenGL, and its flat pictures; ``stack`` closes what they open.

    Raises:
        InputError: the run cannot have a view that was chosen.
    """
    fields = Fields(reader, run, choice)
    wide = wide_axes(reader.grid)
    if len(wide) == 3:
        if choice.camera is not None and choice.views and set(choice.views) == {SECTIONS}:
            raise InputError("--camera: sections are flat; leave --camera out, or choose another --view")
        found = BodyPictures(fields, stack).pictures()
        flat_views = [picture for picture in found if picture.draw_flat is picture.draw]
        return [picture for picture in found if picture not in flat_views], flat_views
    _refuse_views(choice, len(wide))
    if len(wide) == 2:
        return [], [Picture(fields.name(PLANE, index), partial(_draw_plane, fields, index)) for index in fields.chosen]
    return [], [Picture("profile", partial(_draw_line, fields, None) if wide else partial(_draw_cell, fields))]


def frames_of(fields: Fields, times: Sequence[int], stack: ExitStack) -> tuple[str, Sequence[Picture], bool]:
    """The pictures of one view at some times: the name of the view, the pictures, and whether they need OpenGL.

    Raises:
        InputError: the run cannot have the view that was chosen.
    """
    choice, wide = fields.choice, wide_axes(fields.grid)
    if len(wide) == 3:
        view = choice.views[0] if choice.views else SLICES
        body = BodyPictures(fields, stack, same_page=True)
        return view, [body.at(view, index) for index in times], view != SECTIONS
    _refuse_views(choice, len(wide))
    if len(wide) == 2:
        return PLANE, [Picture("", partial(_draw_plane, fields, index, same_page=True)) for index in times], False
    if not wide:
        raise InputError("--animate: this run has one cell; its curve is in profile.png")
    return "profile", [Picture("", partial(_draw_line, fields, [index])) for index in times], False


def _refuse_views(choice: PictureChoice, wide: int) -> None:
    if choice.camera is not None:
        raise InputError("--camera: this run has no 3-D views; leave --camera out")
    if wrong := [view for view in choice.views if view != SECTIONS]:
        shape = ("point", "line", "plane")[wide]
        raise InputError(
            f"--view {wrong[0]}: this run has no 3-D views, because its cells lie in a {shape}; leave --view out"
        )
    if wide < 2 and choice.quantity != TEMPERATURE:
        raise InputError(f"--quantity {choice.quantity}: this run has a line of cells; its profile is of temperatures")


def _draw_plane(fields: Fields, index: int, path: Path, same_page: bool = False) -> None:
    """Draw a grid of one plane, and a small part in which the field varies; in an animation without the part."""
    reader, grid = fields.reader, fields.grid
    scale, remark = fields.scale_at(index)
    (normal,) = (axis for axis in range(3) if grid.cells[axis] == 1)
    values = np.where(reader.conducting(slice(None)), reader.read(index), np.nan).astype(np.float64)
    section = Section(values.squeeze(2 - normal), reader.read_materials().squeeze(2 - normal), 0.5, (0,))
    whole = same_page or fields.choice.cells is not None or fields.choice.quantity == MATERIAL
    cells = None if whole else find_part({normal: section.values}, grid)
    part = None if cells is None else grid.part(cells)
    fronts = fields.fronts(scale, None if same_page else index)
    caption = fields.caption(PLANE, index, remark, PART_REMARK if part else "", fronts=fronts)
    layers = [fields.layer_lines(normal, section)] * 3
    names = [] if same_page else fields.names_on({normal: section}, index)
    shown = SectionsToDraw(grid, [section] * 3, fields.materials, layers, part, fronts, names, one=True)
    pictures.draw_plane(path, caption, scale, shown)


def _draw_line(fields: Fields, times: Sequence[int] | None, path: Path) -> None:
    """Draw the profiles at some times; without times at those that show most."""
    reader, grid = fields.reader, fields.grid
    (axis,) = wide_axes(grid)
    everything = np.stack([reader.read(index).reshape(-1).astype(np.float64) for index in range(len(reader))])
    chosen = times
    if chosen is None:
        chosen = fields.chosen if fields.choice.times else curves.profile_times(everything)
    profiles = [(fields.moment(index).removeprefix("t = "), everything[index]) for index in chosen]
    unit = axes.length_unit(grid)
    over = title_of(fields.run.title, "temperature along the line")
    ends = axes.ends_of(grid, axis, unit)
    places = grid.centres(axis) / unit.size
    whole_scale = times is not None
    bands = bands_of(fields, axis, unit.size) if fields.legend else []
    curves.draw_profile(
        path, over, AXES[axis], ends, unit, fields.common, places, profiles, whole_scale, bands, fields.legend
    )


def bands_of(fields: Fields, axis: int, unit: float) -> list[tuple[float, float, str]]:
    """The materials along a line of cells: both ends of each, in a unit of lengths in m, and its colour."""
    numbers, grid = fields.reader.read_materials().reshape(-1), fields.grid
    borders = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    places = (grid.axes[axis].borders[borders] / unit).tolist()
    names = fields.materials
    return [
        (start, end, material_colour(int(numbers[first]), names))
        for first, start, end in zip(borders, places, places[1:], strict=False)
        if not names or names[numbers[first]] != VOID
    ]


def _draw_cell(fields: Fields, path: Path) -> None:
    reader, run = fields.reader, fields.run
    values = np.array([reader.read(index).item() for index in range(len(reader))])
    over = title_of(run.title, "the one cell")
    curves.draw_temperatures(path, over, reader.times, {"cell": values}, run.temperature_unit, start=run.start)
