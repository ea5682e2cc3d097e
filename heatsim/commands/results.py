"""`heatsim render` and `export`: convert a run's output to pictures, animations and VTK files."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from heatsim.commands.options import Folder
from heatsim.commands.terminal import show_path, waiting_for
from heatsim.errors import FolderError, InputError


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
        str | None,
        Parameter(
            help='Times, as in "2, 10, 20 h"; the nearest fields are drawn. Default: a few.', allow_leading_hyphen=True
        ),
    ] = None,
    planes: Annotated[
        str | None,
        Parameter(help='Positions of the sections, as in "x = 20 mm, z = 0"; heatsim chooses those of the other axes.'),
    ] = None,
    zoom: Annotated[
        str | None,
        Parameter(help='Draw a part: a box such as "x = 30 to 38 mm, y = 0 to 5 mm", or a region by its name.'),
    ] = None,
    range: Annotated[
        str | None, Parameter(help='Ends of the colour scale, as in "20 degC, 80 degC".', allow_leading_hyphen=True)
    ] = None,
    quantity: Annotated[
        Literal["temperature", "heat_flux", "liquid_fraction", "material"], Parameter(help="What the colours show.")
    ] = "temperature",
    camera: Annotated[
        str | None,
        Parameter(
            help="Where 3-D views are seen from: front, back, top, below, or azimuth and elevation in degrees, as in "
            '"-57, 26". Default: a corner; of surfaces and isosurfaces one that sees the warm side.',
            allow_leading_hyphen=True,
        ),
    ] = None,
    animate: Annotated[bool, Parameter(help="Write an animation of one view over all times.", negative="")] = False,
) -> int:
    """Draw pictures of a run or a study into its folder figures/, and write its report.html.

    Without options, all usual pictures are drawn again.
    """
    from heatsim.storage.study_hint import STUDY

    if (folder / STUDY).is_file():
        if view or times or planes or zoom or range or camera or animate or quantity != "temperature":
            raise InputError(f"{folder}: is the folder of a study, for which only the option --format is allowed")
        return _render_study(folder, format or "png")
    from heatsim.commands.pictures import draw_all
    from heatsim.opened.picture_options import choose
    from heatsim.render import render
    from heatsim.render.animation import animate as write_animation
    from heatsim.report.page import write_report

    suffix = _suffix(format, animate)
    choice = choose(
        folder,
        views=view,
        times=times,
        planes=planes,
        zoom=zoom,
        span=range,
        quantity=quantity,
        camera=camera,
        suffix=suffix,
    )
    try:
        whole = choice.usual and suffix == "png"
        with waiting_for("drawing the animation" if animate else "drawing the pictures"):
            if animate:
                drawn = [write_animation(folder, choice)]
            else:
                drawn = draw_all(folder, choice) if whole else render(folder, choice)
    except FolderError:
        raise
    except InputError:
        # Views in space are missing; the report has all other pictures.
        write_report(folder)
        raise
    for path in (*drawn, write_report(folder)):
        show_path(path)
    return 0


def _render_study(folder: Path, suffix: str) -> int:
    from heatsim.storage.study_hint import is_convergence, study_command
    from heatsim.study.figures import draw
    from heatsim.study.folder import read_study
    from heatsim.study.page import write_report
    from heatsim.study.results import Results

    if suffix not in ("png", "pdf", "svg"):
        raise InputError(f"--format {suffix}: pictures of a study are written as png, pdf or svg")
    definition = read_study(folder)
    if is_convergence(definition.document):
        raise InputError(f"{folder}: is the folder of `heatsim converge`; {study_command(folder)} draws it again")
    rows = Results(folder, definition).rows()
    with waiting_for("drawing the pictures"):
        written = [*draw(folder, definition, rows, suffix), write_report(folder, definition, rows)]
    for path in written:
        show_path(path)
    return 0


def _suffix(format: str | None, animate: bool) -> str:
    """The suffix of the pictures.

    Raises:
        InputError: pictures or an animation are not written in this format.
    """
    from heatsim.render.animation import FORMATS

    suffix = format or ("gif" if animate else "png")
    if animate != (suffix in FORMATS):
        hint = f"an animation is written as {' or '.join(FORMATS)}" if animate else "add --animate"
        raise InputError(f"--format {suffix}: {hint}")
    return suffix


def export(
    folder: Folder,
    /,
    *,
    format: Annotated[
        Literal["vti", "pvd"],
        Parameter(help="vti: VTI files only (VTR on graded grids); pvd: also a PVD file that lists all times."),
    ] = "pvd",
) -> int:
    """Write the fields as VTI files (VTR on graded grids), one for each time, into the folder export/."""
    from heatsim.storage.export import export

    for path in export(folder, format):
        show_path(path)
    return 0
