"""`heatsim render` and `export`: what a run has written, in other forms."""

from typing import Annotated, Literal

from cyclopts import Parameter

from heatsim.commands.options import Folder


def render(folder: Folder, /) -> int:
    """Draw pictures from what a run wrote, into its folder figures/."""
    from heatsim.render import render

    for path in render(folder):
        print(path)
    return 0


def export(
    folder: Folder,
    /,
    *,
    format: Annotated[
        Literal["vti", "pvd"], Parameter(help="pvd adds an index of all times to the VTI files.")
    ] = "pvd",
) -> int:
    """Write the fields as VTI files, one a time, into the folder export/."""
    from heatsim.storage.export import export

    for path in export(folder, format):
        print(path)
    return 0
