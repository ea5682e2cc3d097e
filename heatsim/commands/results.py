"""`heatsim render` and `export`: convert a run's output to pictures, animations and VTI files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from heatsim.commands.options import Folder
from heatsim.errors import FolderError, InputError

if TYPE_CHECKING:
    from heatsim.render.choice import PictureChoice
    from heatsim.storage.field_reader import Cells


def render(
    folder: Folder,
    /,
    *,
    format: Annotated[
        Literal["png", "pdf", "svg", "gif", "mp4"] | None,
        Parameter(help="png, pdf or svg; of an animation gif or mp4. Default: png, or gif with --animate."),
    ] = None,
    view: Annotated[
        tuple[Literal["slices", "sections", "surface", "isosurface"], ...],
        Parameter(help="Draw only this view of a 3-D body; may be repeated.", negative="", show_default=False),
    ] = (),
    times: Annotated[
        str | None, Parameter(help='Times, as in "2, 10, 20 h"; the nearest fields are drawn. Default: a few.')
    ] = None,
    planes: Annotated[
        str | None, Parameter(help='Places of the sections, as in "x = 20 mm, z = 0"; others are chosen.')
    ] = None,
    zoom: Annotated[
        str | None,
        Parameter(help='Draw a part: a box such as "x = 30 to 38 mm, y = 0 to 5 mm", or a region by its name.'),
    ] = None,
    range: Annotated[str | None, Parameter(help='Ends of the colour scale, as in "20 degC, 80 degC".')] = None,
    quantity: Annotated[
        Literal["temperature", "heat_flux", "liquid_fraction", "material"], Parameter(help="What the colours show.")
    ] = "temperature",
    animate: Annotated[bool, Parameter(help="Write an animation of one view over all times.", negative="")] = False,
) -> int:
    """Draw pictures of a run or a study into its folder figures/, and write its report.html.

    Without options, all usual pictures are drawn again.
    """
    from heatsim.storage.study_hint import STUDY

    if (folder / STUDY).is_file():
        if view or times or planes or zoom or range or animate or quantity != "temperature":
            raise InputError(f"{folder}: is the folder of a study, for which only the option --format is allowed")
        return _render_study(folder, format or "png")
    from heatsim.render import render
    from heatsim.render.animation import animate as write_animation
    from heatsim.report.page import write_report

    choice = _choose(folder, format, view, times, planes, zoom, range, quantity, animate)
    try:
        drawn = [write_animation(folder, choice)] if animate else render(folder, choice)
    except FolderError:
        raise
    except InputError:
        # Views in space are missing; the report has all other pictures.
        write_report(folder)
        raise
    for path in (*drawn, write_report(folder)):
        print(path)
    return 0


def _render_study(folder: Path, suffix: str) -> int:
    from heatsim.study.figures import draw
    from heatsim.study.folder import read_study
    from heatsim.study.page import write_report
    from heatsim.study.results import Results

    if suffix not in ("png", "pdf", "svg"):
        raise InputError(f"--format {suffix}: pictures of a study are written as png, pdf or svg")
    definition = read_study(folder)
    rows = Results(folder, definition).rows()
    for path in (*draw(folder, definition, rows, suffix), write_report(folder, definition, rows)):
        print(path)
    return 0


def _choose(
    folder: Path,
    format: str | None,
    view: tuple[str, ...],
    times: str | None,
    planes: str | None,
    zoom: str | None,
    span: str | None,
    quantity: str,
    animate: bool,
) -> "PictureChoice":
    """What the options choose.

    Raises:
        InputError: an option cannot be read, or does not fit the run.
    """
    from heatsim.render import choice
    from heatsim.render.animation import FORMATS
    from heatsim.storage import folder as run_folder
    from heatsim.storage.field_reader import FieldReader
    from heatsim.storage.run_settings import read_settings

    run_folder.require_run(folder)
    suffix = format or ("gif" if animate else "png")
    if animate != (suffix in FORMATS):
        hint = f"an animation is written as {' or '.join(FORMATS)}" if animate else "add --animate"
        raise InputError(f"--format {suffix}: {hint}")
    cells = None if zoom is None else _part(folder, zoom)
    places = {}
    if planes is not None:
        with FieldReader(folder / run_folder.FIELDS, cells) as reader:
            places = choice.read_planes(planes, reader.grid)
    return choice.PictureChoice(
        views=view,
        times=choice.read_times(times),
        quantity=quantity,
        planes=places,
        span=choice.read_span(span, quantity, read_settings(folder).temperature_unit),
        cells=cells,
        format=suffix,
    )


def _part(folder: Path, text: str) -> "Cells":
    """The cells of the part of the body that `--zoom` selects.

    Raises:
        InputError: there is no such part.
    """
    from heatsim.physics.regions import paint, region_mask
    from heatsim.render.zoom import part_around, read_box
    from heatsim.scenario import load
    from heatsim.storage import folder as run_folder
    from heatsim.storage.field_reader import FieldReader

    if "=" in text:
        with FieldReader(folder / run_folder.FIELDS) as reader:
            return read_box(text, reader.grid)
    scenario = load(folder / run_folder.SCENARIO)
    names = [region.name for region in scenario.regions]
    if text not in names:
        known = f"its regions are {', '.join(names)}" if names else "it has no regions"
        raise InputError(
            f'--zoom: got "{text}", which is not a region of this run; {known}; or write a box, for example '
            '--zoom "x = 30 to 38 mm, y = 0 to 5 mm"'
        )
    inside = region_mask(text, scenario, paint(scenario))
    if not inside.any():
        raise InputError(f'--zoom: got "{text}", which contains no conducting cell')
    return part_around(inside, scenario.grid)


def export(
    folder: Folder,
    /,
    *,
    format: Annotated[
        Literal["vti", "pvd"], Parameter(help="vti: VTI files only; pvd: also a PVD file that lists all times.")
    ] = "pvd",
) -> int:
    """Write the fields as VTI files, one for each time, into the folder export/."""
    from heatsim.storage.export import export

    for path in export(folder, format):
        print(path)
    return 0
