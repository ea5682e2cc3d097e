"""Draw the pictures of a run into its folder."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import takewhile
from pathlib import Path, PurePosixPath

from heatsim.errors import InputError
from heatsim.render.choice import PictureChoice
from heatsim.render.opengl import finish_trial, start_trial
from heatsim.render.page.figure import import_matplotlib
from heatsim.render.picture import Picture
from heatsim.render.run_pictures import Pictures, find_pictures
from heatsim.storage import folder as run_folder
from heatsim.storage import manifest
from heatsim.storage.disk import make_folders

_USUAL = PictureChoice()


def render(folder: Path, choice: PictureChoice = _USUAL) -> list[Path]:
    """Draw a run's fields, probes and energy into ``folder/figures``.

    A 3-D grid gives ``slices_t….png`` at up to four times, and ``isosurface.png`` or, with void in the box,
    ``surface_t….png``. A grid of one plane gives ``plane_t….png``, a grid of one line ``profile.png``. Unfinished runs
    can be drawn too.

    Args:
        folder: the output folder of a run.
        choice: what to draw. The usual pictures replace the earlier usual ones of the same format; other choices keep
            them.

    Returns:
        The paths of the pictures.

    Raises:
        FolderError: heatsim did not write the folder, or it contains nothing to draw; or the user changed a picture,
            which was kept, but everything else has been drawn.
        InputError: 3-D views cannot be drawn on this machine, but everything else has been drawn; or the run does not
            have what was chosen.
        StorageError: a file cannot be read, or a picture cannot be written.
    """
    import_matplotlib()
    run_folder.require_run(folder)
    with ExitStack() as stack:
        found = find_pictures(folder, stack, choice)
        yours = stack.enter_context(manifest.replacing(folder, _names(found, choice), _group(choice)))
        found = found.without([PurePosixPath(name).stem for name in yours])
        make_folders(folder / run_folder.FIGURES)
        trial = stack.enter_context(start_trial()) if found.views else None
        drawn = [_draw(picture, folder, choice) for picture in (*found.flat, *found.curves)]
        try:
            if found.views:
                finish_trial(trial)
        except InputError as error:
            drawn = [*_draw_flat(found.views, folder, choice), *drawn]
            names = ", ".join(path.name for path in drawn) or "nothing"
            raise InputError(f"{folder}: {names} drawn, but no 3-D views: {error}") from error
        drawn = [*(_draw(picture, folder, choice) for picture in found.views), *drawn]
        manifest.refuse(folder, yours)
        return drawn


def picture_names(folder: Path, choice: PictureChoice = _USUAL) -> list[str]:
    """The names, without suffix, of the pictures that :func:`render` would draw.

    Raises:
        FolderError, StorageError: as for :func:`render`.
    """
    run_folder.require_run(folder)
    with ExitStack() as stack:
        return [picture.name for picture in find_pictures(folder, stack, choice).all]


@contextmanager
def replacing_usual(folder: Path) -> Iterator[None]:
    """Replace the usual pictures of a run within the context; :func:`draw_some` draws them.

    Raises:
        FolderError: heatsim did not write the folder, or the user changed one of the pictures.
        StorageError: a file cannot be read or written.
    """
    run_folder.require_run(folder)
    with ExitStack() as stack:
        names = _names(find_pictures(folder, stack, _USUAL), _USUAL)
        manifest.refuse(folder, stack.enter_context(manifest.replacing(folder, names, _group(_USUAL))))
        make_folders(folder / run_folder.FIGURES)
        yield


def draw_some(folder: Path, numbers: Iterable[int], choice: PictureChoice = _USUAL) -> None:
    """Draw some of a run's pictures, as one of several processes that draw them together.

    Args:
        folder: the output folder of a run, within :func:`replacing_usual`.
        numbers: the numbers of the pictures, from 0. The first number without a picture ends the work.
        choice: usual pictures.

    Raises:
        FolderError, StorageError: as for :func:`render`.
    """
    with ExitStack() as stack:
        found = find_pictures(folder, stack, choice)
        # Isosurfaces, the last view, take longest.
        pictures = [*reversed(found.views), *found.flat, *found.curves]
        for number in takewhile(lambda number: number < len(pictures), numbers):
            _draw(pictures[number], folder, choice)


def _names(found: Pictures, choice: PictureChoice) -> list[str]:
    """The paths of pictures in the folder of the run."""
    return [f"{run_folder.FIGURES}/{picture.name}.{choice.format}" for picture in found.all]


def _group(choice: PictureChoice) -> str:
    """The pictures that are replaced together: the usual ones of a format."""
    return f"usual {choice.format}" if choice.usual else ""


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
