"""Isosurfaces without scraps: cold corners have none, hot spots keep theirs, and void leaves no trace."""

import numpy as np
import pytest

from heatsim.grid import Grid
from heatsim.render.page.levels import choose_levels
from heatsim.render.page.samples import Samples
from heatsim.render.page.scales import TemperatureScale
from heatsim.render.page.view import View, drawn_size

N = 24
GRID = Grid((N, N, N), (1.0, 1.0, 1.0))


def spots(places: list[tuple[float, float, float]], width: float) -> np.ndarray:
    """Bumps of height 1 at some places in a unit box."""
    z, y, x = np.meshgrid(*[(np.arange(N) + 0.5) / N] * 3, indexing="ij")
    return np.max([np.exp(-((x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2) / width**2) for a, b, c in places], axis=0)


CORNERS = [(x, y, z) for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)]
HALL = np.broadcast_to(30.0 * np.linspace(0.0, 1.0, N), (N, N, N))


@pytest.mark.parametrize(
    ("field", "seen"),
    [
        # From 20 to 30 through the body; four small corners of the cold face are colder.
        (20.0 + HALL / 3.0 - 20.0 * spots(CORNERS[:4], 0.12), ["20", "25"]),
        (20.0 + 20.0 * spots([(0.2, 0.5, 0.5), (0.8, 0.5, 0.5)], 0.1), ["25", "30", "35"]),
        (np.where(spots([(0.5, 0.5, 0.5)], 0.3) > 0.2, 20.0 + HALL, np.nan), ["25", "30", "35", "40", "45"]),
    ],
    ids=["cold corners", "two hot spots", "void"],
)
def test_the_levels_are_those_of_the_isosurfaces_that_are_drawn(field: np.ndarray, seen: list[str]) -> None:
    pytest.importorskip("pyvista", reason="PyVista is not installed")
    from heatsim.render.spatial.isosurfaces import IsosurfaceScene

    cells = np.arange(N)
    samples = Samples((cells, cells, cells), field, np.zeros(field.shape, np.uint8))
    scale = TemperatureScale(float(np.nanmin(field)), float(np.nanmax(field)))
    view = View.fitting(120, 120, (5, 5, 5, 5), drawn_size(GRID))
    with IsosurfaceScene(GRID, view) as scene:
        image, levels = scene.isosurfaces(samples, scale, choose_levels(scale, {}), "#888888")
    assert [level.text for level in levels] == seen
    assert image.shape == (120, 120, 3)
