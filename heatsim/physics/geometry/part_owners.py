"""The regions of the cells of a run, from its folder, for pictures."""

from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import FolderError, ScenarioError
from heatsim.physics.geometry.regions import paint
from heatsim.scenario import load
from heatsim.scenario.files import reading_within
from heatsim.storage.folder import SCENARIO

_MOST_CELLS = 2**22  # larger bodies are not painted again


def part_owners(folder: Path) -> tuple[Sequence[str], NDArray[np.uint8]] | None:
    """The names of the regions, and the number of each cell's region from 1, shape (nz, ny, nx); 0 without one.

    None if the run has no regions, too many cells, or a scenario that cannot be read any more.
    """
    try:
        with reading_within(folder):  # it may come from someone else
            scenario = load(folder / SCENARIO)
        if not scenario.regions or prod(scenario.grid.cells) > _MOST_CELLS:
            return None
        return [region.name for region in scenario.regions], paint(scenario).owner
    except (ScenarioError, FolderError):
        return None
