"""The regions of the cells of a run, from its folder, for pictures."""

from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import ScenarioError
from heatsim.physics.geometry.regions import paint
from heatsim.scenario import load
from heatsim.storage.folder import SCENARIO

_MOST_CELLS = 2**22  # larger bodies are not painted again


def part_owners(folder: Path) -> tuple[Sequence[str], NDArray[np.uint8]] | None:
    """The names of the regions, and the number of each cell's region from 1, shape (nz, ny, nx); 0 without one.

    None if the run has no regions, too many cells, or if a file that its scenario names was changed.
    """
    try:
        scenario = load(folder / SCENARIO)
        if not scenario.regions or prod(scenario.grid.cells) > _MOST_CELLS:
            return None
        return [region.name for region in scenario.regions], paint(scenario).owner
    except ScenarioError:
        return None
