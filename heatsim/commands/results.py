"""`heatsim render` and `export`: convert a run's output to pictures and VTI files."""

from typing import Annotated, Literal

from cyclopts import Parameter

from heatsim.commands.options import Folder


def render(folder: Folder, /) -> int:
    """Draw pictures of a run's output into its folder figures/, and write its report.html."""
    from heatsim.errors import FolderError, InputError
    from heatsim.render import render
    from heatsim.report.page import write_report

    try:
        drawn = render(folder)
    except FolderError:
        raise
    except InputError:
        # Views in space are missing; the report has all other pictures.
        write_report(folder)
        raise
    for path in (*drawn, write_report(folder)):
        print(path)
    return 0


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
