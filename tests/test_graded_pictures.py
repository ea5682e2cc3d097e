"""Pictures of graded grids: cells have their real borders, and sections, parts and layers lie where they are."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from run_folders import write_run

import heatsim
from heatsim.amounts import Unit
from heatsim.grid import Grid
from heatsim.render import render
from heatsim.render.choice import PictureChoice
from heatsim.render.geometry.part_sections import _inner
from heatsim.render.geometry.parts import ShownBorder
from heatsim.render.page.samples import sample_borders, spread
from heatsim.render.page.section_cells import SectionCells
from heatsim.render.spatial.layers import ShownLayer
from heatsim.render.spatial.outlines import find_outlines
from heatsim.render.spatial.sections import find_equal, read_sections
from heatsim.render.spatial.zoom import find_part, part_around, read_box
from heatsim.run.in_words import grid_in_words
from heatsim.run.plan_details import _ranges
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.field_writer import FieldWriter
from heatsim.storage.run_settings import LayerPlace

# Fine at x_min, with a border in the middle; coarse in the middle of z.
X = (0.0, 0.001, 0.002, 0.004, 0.01, 0.02)
Z = (0.0, 0.002, 0.005, 0.015, 0.018, 0.02)
GRID = Grid((5, 4, 5), (0.02, 0.02, 0.02), (0.0, 0.0, 0.0), (X, (), Z))


def linear(grid: Grid, time: float) -> np.ndarray:
    x, y, z = (grid.centres(axis) for axis in range(3))
    return 300.0 + 1000.0 * x[None, None, :] + 10.0 * y[None, :, None] + 1.0 * z[:, None, None] + 0.0 * time


def test_sections_lie_in_the_middle_of_the_body_and_have_the_value_there(tmp_path: Path) -> None:
    with FieldWriter.create(tmp_path / "fields.vtkhdf", GRID, "float64") as writer:
        writer.append(0.0, [linear(GRID, 0.0)])
    with FieldReader(tmp_path / "fields.vtkhdf") as reader:
        x, y, z = read_sections(reader, 0)
        assert (x.cells, y.cells, z.cells) == ((3, 4), (1, 2), (2,))
        assert (x.place, y.place, z.place) == pytest.approx((0.5, 0.5, 0.5))
        # Of cells of several widths, the mean at the border between them is not the mean of both.
        np.testing.assert_allclose(x.values[2, 0], 300.0 + 10.0 + 0.025 + 0.01)
        at = read_sections(reader, 0, {0: 0.003, 2: 0.018})
        assert (at[0].cells, at[0].place, at[2].cells) == ((2,), pytest.approx(0.15), (3, 4))
    # The sections have equal values at equal cells, but the cells differ in width.
    flat = [np.broadcast_to(np.arange(5.0), (5, 5))] * 2
    even = Grid((5, 5, 5), (0.02, 0.02, 0.02), borders=(X, X, X))
    assert len(find_equal([type(x)(values, values.astype(np.uint8), 0.5) for values in (*flat, flat[0])], even)) == 2
    assert not find_equal(
        [type(x)(values, values.astype(np.uint8), 0.5) for values in (*flat, flat[0])],
        Grid(even.cells, even.size, borders=(X, Z, ())),
    )


def test_cells_are_drawn_between_their_borders() -> None:
    figure = Figure(figsize=(4.0, 4.0), dpi=100)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(0.0, 20.0)
    axes.set_ylim(0.0, 20.0)
    cells = SectionCells(GRID, 0, 2, Unit("mm", 1e-3, 0.0))
    values = np.arange(25.0).reshape(5, 5)  # indexed [z, x]
    cells.show(axes, values, cmap="gray", norm=Normalize(0.0, 24.0))
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[::-1, :, 0].astype(float)
    places = (np.arange(400) + 0.5) / 400 * 0.02
    row, column = (np.searchsorted(borders, places) - 1 for borders in (Z, X))
    np.testing.assert_allclose(pixels, values[np.ix_(row, column)] / 24.0 * 255.0, atol=2.0)
    # Outlines of materials are on the same borders.
    labels = (np.arange(5)[:, None] >= 2).astype(np.uint8) * np.ones((5, 5), np.uint8)
    ends = cells.at(find_outlines(labels)[1].segments)
    np.testing.assert_allclose([ends[..., 1].min(), ends[..., 1].max()], [5.0, 20.0])
    assert set(np.round(ends[..., 0].reshape(-1), 9)) == {0.0, 1.0, 2.0, 4.0, 10.0, 20.0}


def test_sampled_cells_fill_the_axis() -> None:
    axis = GRID.axes[0]
    np.testing.assert_allclose(sample_borders(axis, spread(5, 9)), np.array(X) / 0.02)
    np.testing.assert_allclose(sample_borders(axis, np.array([0, 2, 4])), [0.0, 0.075, 0.35, 1.0])


def test_parts_are_measured_in_metres() -> None:
    assert read_box("x = 1 to 3 mm, z = 5 to 15 mm", GRID) == ((1, 3), (0, 4), (2, 3))
    # Each margin is a quarter of the length of the part, and at least two of its cells.
    long = Grid(
        (200, 4, 1), (2.0, 0.04, 0.01), borders=((*np.arange(101) * 1e-3, *np.linspace(0.119, 2.0, 100)), (), ())
    )
    inside = np.zeros(long.shape, dtype=bool)
    inside[:, 1:2, 80:100] = True
    assert part_around(inside, long) == ((75, 101), (0, 4), (0, 1))
    # Half of the cells vary, in a twentieth of the length.
    field = 300.0 + np.where(np.arange(200) < 90, 90.0 - np.arange(200), 0.0) * np.ones((4, 1))
    found = find_part({2: field}, long)
    assert found is not None
    assert found[0][0] == 0
    assert found[0][1] <= 102


def test_layers_and_contacts_lie_on_borders() -> None:
    layer = ShownLayer.of(LayerPlace("track", "copper", 2, 0.015, ((0.001, 0.005), (0.01, 0.02))), GRID)
    assert layer is not None
    assert layer.border(GRID) == 3
    np.testing.assert_array_equal(np.argwhere(layer.covers(GRID))[[0, -1]], [[1, 1], [3, 3]])
    one, other = np.zeros((2, *GRID.shape), dtype=bool)
    one[:3, :, 1:3], other[3:] = True, True
    (rectangle,) = ShownBorder("contact", one, other).rectangles(GRID)
    assert (rectangle.normal, rectangle.low, rectangle.high) == (2, (0.001, 0.0, 0.015), (0.004, 0.02, 0.015))


def test_letters_stand_in_the_widest_cells() -> None:
    widths = np.array([2.0, 2.0, 30.0, 2.0, 2.0])
    assert _inner(np.ones((3, 5), dtype=bool), widths, np.full(3, 10.0))[0].tolist() == [1, 2]


def test_texts_have_ranges() -> None:
    assert " cells of 1 to 10 × 5 × 2 to 10 mm; " in grid_in_words(GRID)
    assert " cells of 10 × 10 × 0.25 mm; " in grid_in_words(Grid((10, 10, 4), (0.1, 0.1, 0.001)))
    rate = 0.01
    (least, most), left, *_ = _ranges((1.0 - 6.0 * rate, *[rate] * 6), GRID)
    x, z = (GRID.axes[axis].link_factors[1:-1].sum(axis=1) for axis in (0, 2))
    assert (least, most) == pytest.approx((1.0 - rate * (2 + x.max() + z.max()), 1.0 - rate * (2 + x.min() + z.min())))
    # Between cells of 1 mm, and of 2 and 6 mm, with a mean of 4 mm: α/(d·distance).
    assert left == pytest.approx((rate * 16.0 / (6.0 * 4.0), rate * 16.0))


def test_all_pictures_are_drawn_and_opened_runs_have_the_centres(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", GRID, linear)
    names = [path.stem for path in render(folder, PictureChoice(views=("sections",)))]
    assert "sections_t0001" in names
    T = heatsim.open(folder).temperature
    for axis, name in enumerate("xyz"):
        np.testing.assert_array_equal(T[name], GRID.centres(axis))
