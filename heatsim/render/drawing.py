"""Draw the pictures of a run into its folder."""

from collections.abc import Iterable
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path

from heatsim.errors import InputError
from heatsim.render.choice import PictureChoice
from heatsim.render.opengl import finish_trial, start_trial
from heatsim.render.picture import Picture
from heatsim.render.run_pictures import find_pictures
from heatsim.storage import folder as run_folder
from heatsim.storage.disk import clear_pictures, make_folders

_NAMES = ("slices_t*", "surface_t*", "plane_t*", "isosurface", "profile", "probes", "probes_*", "line_*", "energy")
_USUAL = PictureChoice()


def render(folder: Path, choice: PictureChoice = _USUAL) -> list[Path]:
    """Draw a run's fields, probes and energy into ``folder/figures``.

    A 3-D grid gives ``slices_t….png`` at up to four times, and ``isosurface.png`` or, with void in the box,
    ``surface_t….png``. A grid of one plane gives ``plane_t….png``, a grid of one line ``profile.png``. Unfinished runs
    can be drawn too.

    Args:
        folder: the output folder of a run.
        choice: what to draw. The usual pictures replace earlier pictures of the same format; other choices keep them.

    Returns:
        The paths of the pictures.

    Raises:
        FolderError: the folder is not that of a run, or contains nothing to draw.
        InputError: 3-D views cannot be drawn on this machine, but everything else has been drawn; or the run does not
            have what was chosen.
        StorageError: a file cannot be read, or a picture cannot be written.
    """
    if choice.usual:
        clear(folder, choice.format)
    run_folder.require_run(folder)
    with ExitStack() as stack:
        found = find_pictures(folder, stack, choice)
        make_folders(folder / run_folder.FIGURES)
        trial = stack.enter_context(start_trial()) if found.views else None
        drawn = [_draw(picture, folder, choice) for picture in (*found.flat, *found.curves)]
        try:
            if trial is not None:
                finish_trial(trial)
        except InputError as error:
            drawn = [*_draw_flat(found.views, folder, choice), *drawn]
            names = ", ".join(path.name for path in drawn) or "nothing"
            raise InputError(f"{folder}: {names} drawn, but no 3-D views: {error}") from error
        return [*(_draw(picture, folder, choice) for picture in found.views), *drawn]


def picture_names(folder: Path, choice: PictureChoice = _USUAL) -> list[str]:
    """The names, without suffix, of the pictures that :func:`render` would draw.

    Raises:
        FolderError, StorageError: as for :func:`render`.
    """
    run_folder.require_run(folder)
    with ExitStack() as stack:
        return [picture.name for picture in find_pictures(folder, stack, choice).all]


def clear(folder: Path, suffix: str = _USUAL.format) -> None:
    """Remove the usual pictures of a run that have a suffix.

    Raises:
        FolderError: the folder is not that of a run.
        StorageError: a picture cannot be removed.
    """
    run_folder.require_run(folder)
    clear_pictures(folder / run_folder.FIGURES, [f"{name}.{suffix}" for name in _NAMES])


def draw_some(folder: Path, numbers: Iterable[int]) -> None:
    """Draw some of a run's pictures, as one of several processes that draw them together.

    Args:
        folder: the output folder of a run, without pictures (:func:`clear`).
        numbers: the numbers of the pictures, from 0. The first number without a picture ends the work.

    Raises:
        FolderError, StorageError: as for :func:`render`.
    """
    with ExitStack() as stack:
        found = find_pictures(folder, stack, _USUAL)
        # Isosurfaces, the last view, take longest.
        pictures = [*reversed(found.views), *found.flat, *found.curves]
        for number in takewhile(lambda number: number < len(pictures), numbers):
            _draw(pictures[number], folder, _USUAL)


def _draw(picture: Picture, folder: Path, choice: PictureChoice) -> Path:
    path = folder / run_folder.FIGURES / f"{picture.name}.{choice.format}"
    picture.draw(path)
    return path


def _draw_flat(views: Iterable[Picture], folder: Path, choice: PictureChoice) -> list[Path]:
    """Draw those views in space that need no OpenGL."""
    drawn = []
    for view in views:
        if view.draw_flat is not None:
            path = folder / run_folder.FIGURES / f"{view.name}.{choice.format}"
            view.draw_flat(path)
            drawn.append(path)
    return drawn
