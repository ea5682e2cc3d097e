"""The pictures of a run, drawn by processes that get ready while it is still calculating.

A line on the standard input of the process starts the drawing. Where anything fails, :func:`heatsim.render.render`
draws in the process of the run, and reports the reason.
"""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from heatsim.errors import FolderError, InputError
from heatsim.render.background import DrawingProcess, draw_together, end_with

if TYPE_CHECKING:
    from heatsim.render.choice import PictureChoice

# Up to this number of cells the run and the import of VTK take similar times, and both fit into the memory.
_MOST_CELLS = 2**22


class BackgroundRenderer(DrawingProcess):
    """A process that draws the pictures of a run; a context manager, whose exit ends the process."""

    def __init__(self, folder: Path, in_three_dimensions: bool) -> None:
        """Start the process.

        Args:
            folder: the output folder, which need not exist yet.
            in_three_dimensions: whether there will be 3-D views.
        """
        super().__init__(__name__, str(folder.absolute()), *["3-D"] * in_three_dimensions)
        self._folder = folder

    @classmethod
    def of(cls, folder: Path, cells: Sequence[int], fields: bool) -> "BackgroundRenderer | None":
        """Start the process for a run that will have pictures; None if its grid is too large.

        Args:
            folder: the output folder.
            cells: of the grid, along x, y and z.
            fields: whether the run writes fields.
        """
        return cls(folder, fields and min(cells) > 1) if prod(cells) <= _MOST_CELLS else None

    def render(self) -> None:
        """Draw the pictures, once the run has written its files.

        Raises:
            FolderError, InputError, StorageError: as for :func:`heatsim.render.render`.
        """
        if not self.draw(b"draw\n"):
            draw_all(self._folder)


def draw_all(folder: Path, choice: "PictureChoice | None" = None) -> list[Path]:
    """Draw the pictures of a run, and its geometry, in this process; their paths. ``choice``: None for the usual.

    Raises:
        FolderError, InputError, StorageError: as for :func:`heatsim.render.render`.
    """
    from heatsim.commands.geometry import draw_geometry, replacing_geometry
    from heatsim.physics.geometry.part_owners import part_owners
    from heatsim.render import choice as choices
    from heatsim.render import render

    try:
        drawn = render(folder, choice or choices.PictureChoice(owners=part_owners))
    except FolderError:
        raise
    except InputError:
        # Views in space are missing; sections need no OpenGL.
        with replacing_geometry(folder):
            draw_geometry(folder, in_space=False)
        raise
    with replacing_geometry(folder):
        return [*draw_geometry(folder), *drawn]


def main() -> int:
    """Draw the pictures of the folder named by the first argument, when a line comes in; the exit code."""
    # The process is too short for the search for cycles to pay.
    gc.disable()
    from heatsim.commands.geometry import draw_geometry, replacing_geometry
    from heatsim.physics.geometry.part_owners import part_owners
    from heatsim.render import draw_some, replacing_usual
    from heatsim.render.choice import PictureChoice
    from heatsim.render.opengl import prefer_egl
    from heatsim.render.page.figure import warm_up

    directory, *in_three_dimensions = sys.argv[1:]
    folder = Path(directory)
    warm_up()
    if in_three_dimensions:
        import pyvista.plotting  # noqa: F401
        import vtkmodules.vtkViewsContext2D  # noqa: F401  (the first plotter imports it)

        prefer_egl()

    def draw(numbers: Iterator[int]) -> None:
        # The geometry is number 0: it takes longest, with the models of scenarios.
        first = next(numbers)
        if first == 0:
            draw_geometry(folder)
        others = (number - 1 for number in (chain([first], numbers) if first else numbers))
        draw_some(folder, others, PictureChoice(owners=part_owners))

    def begins(stack: ExitStack) -> bool:
        if not sys.stdin.readline():
            return False
        stack.enter_context(replacing_geometry(folder))
        stack.enter_context(replacing_usual(folder))
        return True

    return draw_together(draw, begins)


if __name__ == "__main__":
    end_with(main)
