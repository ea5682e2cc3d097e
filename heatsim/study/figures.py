"""Which pictures a study has; draws them into its folder."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from heatsim.render.picture import Picture
from heatsim.storage.disk import clear_pictures
from heatsim.study import folder as study_folder
from heatsim.study.columns import FOLDER
from heatsim.study.definition import Definition
from heatsim.study.model import GRID
from heatsim.study.response_figures import draw_curves, draw_map, draw_response
from heatsim.study.responses import (
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
    """Draw a study's responses and probes into its folder figures/, replacing its earlier pictures of the same format.

    Args:
        study: the study's folder.
        definition: the study.
        rows: its results.
        suffix: of the pictures: "png", "pdf" or "svg".

    Returns:
        The paths of the pictures; none if no run is done.

    Raises:
        StorageError: a picture could not be written.
    """
    clear(study, suffix)
    figures, paths = study / study_folder.FIGURES, []
    for picture in find_pictures(study, definition, rows):
        paths.append(figures / f"{picture.name}.{suffix}")
        picture.draw(paths[-1])
    return paths


def clear(study: Path, suffix: str = "png") -> None:
    """Remove the pictures of a study that have a suffix.

    Raises:
        StorageError: a picture could not be removed.
    """
    clear_pictures(study / study_folder.FIGURES, [f"{name}.{suffix}" for name in study_folder.OWN_PICTURES])


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
            draw = partial(draw_curves, title=title, probe=probe, curves=of_runs, over=over, label=label)
            found.append(Picture(f"curves_{number}_{_plain(probe)}", draw))
    return found


def _plain(name: str) -> str:
    """A name that is safe in a file's name."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").lower()[:40] or "x"
