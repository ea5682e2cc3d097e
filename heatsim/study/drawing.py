"""The pictures of a study, drawn by processes that get ready while its runs are still calculating.

The definition and the results come through standard input. Where anything fails, :func:`heatsim.study.figures.draw`
draws in the process of the study, and reports the reason.
"""

import gc
import pickle
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from heatsim.render.background import DrawingProcess, draw_together, end_with

if TYPE_CHECKING:
    from heatsim.study.definition import Definition
    from heatsim.study.results import Row


class BackgroundStudyPictures(DrawingProcess):
    """A process that draws the pictures of a study; a context manager, whose exit ends the process."""

    def __init__(self) -> None:
        super().__init__(__name__)

    def render(self, study: Path, definition: "Definition", rows: "Sequence[Row]") -> None:
        """Draw the pictures, once the runs have ended.

        Raises:
            StorageError: as for :func:`heatsim.study.figures.draw`.
        """
        if not self.draw(pickle.dumps((study.absolute(), definition, rows))):
            from heatsim.study import figures

            figures.draw(study, definition, rows)


def main() -> int:
    """Draw the pictures of the study that comes in; the exit code."""
    # The process is too short for the search for cycles to pay.
    gc.disable()
    from heatsim.render.page.figure import warm_up
    from heatsim.storage import manifest
    from heatsim.study.figures import find_pictures, path_of, replacing

    warm_up()
    try:
        study, definition, rows = pickle.load(sys.stdin.buffer)
    except EOFError:  # the study has ended without results
        return 0
    pictures = find_pictures(study, definition, rows)

    def draw(numbers: Iterator[int]) -> None:
        for number in takewhile(lambda number: number < len(pictures), numbers):
            pictures[number].draw(path_of(study, pictures[number]))

    def begins(stack: ExitStack) -> bool:
        manifest.refuse(study, stack.enter_context(replacing(study, pictures)))
        return bool(pictures)

    return draw_together(draw, begins)


if __name__ == "__main__":
    end_with(main)
