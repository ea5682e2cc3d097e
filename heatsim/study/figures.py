"""Which pictures a study has; draws them into its folder."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from heatsim.render.page.figure import import_matplotlib
from heatsim.render.picture import Picture
from heatsim.storage import manifest
from heatsim.storage.disk import make_folders, writing
from heatsim.study import folder as study_folder
from heatsim.study.columns import FOLDER
from heatsim.study.definition import Definition
from heatsim.study.model import GRID
from heatsim.study.response_figures import draw_curves, draw_map, draw_response
from heatsim.study.responses import (
    curve_marks,
    curve_of,
    finished_rows,
    label_of,
    parameters_of,
    responses_of,
)
from heatsim.study.results import Row, read_curves

_MOST_RESPONSES = 12
_MOST_PROBES = 12


def draw(study: Path, definition: Definition, rows: Sequence[Row], suffix: str = "png") -> list[Path]:
    """Draw a study's responses and probes into its folder figures/, replacing its earlier ones of the same format.

    Args:
        study: the study's folder.
        definition: the study.
        rows: its results.
        suffix: of the pictures: "png", "pdf" or "svg".

    Returns:
        The paths of the pictures; none if no run is done.

    Raises:
        FolderError: heatsim did not write the folder, or the user changed a picture, which was kept; all others are
            drawn.
        StorageError: a picture could not be written.
    """
    return draw_pictures(study, find_pictures(study, definition, rows), suffix)


def draw_pictures(study: Path, pictures: Sequence[Picture], suffix: str = "png") -> list[Path]:
    """Draw pictures into the folder figures/ of a study, as :func:`draw`; their paths."""
    import_matplotlib()
    paths = []
    with replacing(study, pictures, suffix) as yours:
        for picture in pictures:
            path = path_of(study, picture, suffix)
            if path.relative_to(study).as_posix() not in yours:
                picture.draw(path)
                paths.append(path)
        manifest.refuse(study, yours)
    return paths


def path_of(study: Path, picture: Picture, suffix: str = "png") -> Path:
    """The path of a picture in a study's folder."""
    return study / study_folder.FIGURES / f"{picture.name}.{suffix}"


@contextmanager
def replacing(study: Path, pictures: Sequence[Picture], suffix: str = "png") -> Iterator[list[str]]:
    """Replace the pictures of a study within the context; see :func:`heatsim.storage.manifest.replacing`.

    Raises:
        FolderError: heatsim did not write the folder.
        StorageError: the disk refused.
    """
    names = [path_of(study, picture, suffix).relative_to(study).as_posix() for picture in pictures]
    with manifest.replacing(study, names, f"usual {suffix}") as yours:
        with writing(study / study_folder.FIGURES, study_folder.AGAIN):
            make_folders(study / study_folder.FIGURES)
        yield yours


def find_pictures(study: Path, definition: Definition, rows: Sequence[Row]) -> list[Picture]:
    """The pictures that the results of a study allow; none if no run is done.

    Raises:
        StorageError: the probes of a run cannot be read.
    """
    done = finished_rows(rows)
    if not done:
        return []
    title = str(definition.document.get("title", definition.path.stem))
    over, grid = parameters_of(definition, done), definition.table.method == GRID
    found = []
    for number, response in enumerate(responses_of(definition, done)[:_MOST_RESPONSES], 1):
        if not np.isfinite(response.values).any():
            continue
        name = f"{number}_{_plain(response.name)}"
        draw = partial(draw_response, title=title, response=response, over=over, grid=grid)
        found.append(Picture(f"response_{name}", draw))
        if len(over) == 2:
            draw = partial(draw_map, title=title, response=response, across=over[0], up=over[1], grid=grid)
            found.append(Picture(f"map_{name}", draw))
    curves = [read_curves(study / row[FOLDER]) for row in done]
    for number, probe in enumerate(definition.probes[:_MOST_PROBES], 1):
        # A steady state has one row, which is no curve.
        if all(probe in curve and len(times) > 1 for times, curve in curves):
            of_runs = [(times, curve_of(definition, probe, columns)) for times, columns in curves]
            label = label_of(definition, probe)
            marks = curve_marks(definition, probe, [values for _, values in of_runs])
            draw = partial(draw_curves, title=title, probe=probe, curves=of_runs, over=over, label=label)
            draw = partial(draw, start=definition.start, marks=marks)
            found.append(Picture(f"curves_{number}_{_plain(probe)}", draw))
    return found


def _plain(name: str) -> str:
    """A name that is safe in a file's name."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").lower()[:40] or "x"
