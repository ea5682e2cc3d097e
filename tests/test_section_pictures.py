"""Which sections of a body are drawn: their places, equal ones, layers on them, and the part that is enlarged."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import NDArray
from run_folders import write_run

from heatsim.cli import main
from heatsim.errors import InputError
from heatsim.grid import Grid
from heatsim.render.choice import PictureChoice
from heatsim.render.curves.curves import draw_numbers
from heatsim.render.descriptions import description_of
from heatsim.render.page.axes import fitting_ticks
from heatsim.render.page.figure import LARGE, NORMAL, new_figure, text_width, title_of
from heatsim.render.page.levels import choose_levels
from heatsim.render.page.material_colours import material_colour
from heatsim.render.page.scales import TemperatureScale
from heatsim.render.spatial.field_pictures import bands_of
from heatsim.render.spatial.fields import Fields
from heatsim.render.spatial.layers import ShownLayer, layers_on
from heatsim.render.spatial.outlines import material_entries
from heatsim.render.spatial.sections import find_equal, read_sections, through_hottest
from heatsim.render.spatial.zoom import find_part, part_around, read_box
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.field_writer import FieldWriter
from heatsim.storage.run_settings import LayerPlace, read_settings
from heatsim.temperature_units import CELSIUS

CUBE = Grid((20, 20, 20), (0.1, 0.1, 0.1))
PLATE = Grid((60, 40, 8), (0.06, 0.04, 0.004))


def write(path: Path, grid: Grid, field: NDArray[np.float64], labels: NDArray[np.uint8] | None = None) -> Path:
    """A file with one field, and of materials "board", "chip" and "void" if there are labels."""
    names = () if labels is None else ("board", "chip", "void")
    with FieldWriter.create(path, grid, "float64", materials=names) as writer:
        if labels is not None:
            writer.write_materials([labels])
        writer.append(0.0, [field])
    return path


def spot(grid: Grid, centre: tuple[float, float, float], radius: float) -> NDArray[np.float64]:
    squares = [((grid.centres(axis) - centre[axis]) / radius) ** 2 for axis in range(3)]
    return 300.0 + 1500.0 * np.exp(-(squares[0][None, None, :] + squares[1][None, :, None] + squares[2][:, None, None]))


def test_a_fin_in_the_middle_is_shown_rather_than_the_coldest_end(tmp_path: Path) -> None:
    # Hot below, colder above and towards x_max, with a hot fin in the first two thirds of the length.
    x, z = np.linspace(0.0, 1.0, 20), np.linspace(0.0, 1.0, 20)
    field = np.broadcast_to(360.0 - 30.0 * z[:, None, None] - 15.0 * (z[:, None, None] * x[None, None, :]), CUBE.shape)
    field = field.copy()
    field[:15, 9:11, :14] = 360.0
    with FieldReader(write(tmp_path / "fields.vtkhdf", CUBE, field)) as reader:
        x, y, _ = read_sections(reader, 0)
    assert (x.place, y.place) == (0.5, 0.5)


def test_the_middle_of_two_materials_shows_one_of_them(tmp_path: Path) -> None:
    labels = np.full(CUBE.shape, 2, dtype=np.uint8)
    labels[:, :, :10] = 0
    field = np.broadcast_to(np.where(np.arange(20) < 10, 300.0, 900.0), CUBE.shape)
    with FieldReader(write(tmp_path / "fields.vtkhdf", CUBE, field, labels)) as reader:
        x, _, _ = read_sections(reader, 0, {0: 0.05})
        assert x.place == 0.5
        np.testing.assert_array_equal(x.values, 300.0)
        np.testing.assert_array_equal(x.materials, 0)


def test_a_plane_between_cells_of_one_material_shows_their_mean(tmp_path: Path) -> None:
    field = np.broadcast_to(np.arange(20.0)[:, None, None], CUBE.shape)
    with FieldReader(write(tmp_path / "fields.vtkhdf", CUBE, field)) as reader:
        np.testing.assert_array_equal(read_sections(reader, 0, {2: 0.03})[2].values, 5.5)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("void_below", "shown"), [(False, 304.0), (True, 305.0)])
def test_a_plane_at_a_layer_shows_the_cells_that_hold_it(
    tmp_path: Path, axis: int, void_below: bool, shown: float
) -> None:
    labels = np.zeros((20, 20, 20), dtype=np.uint8)
    if void_below:
        labels[:5] = 2
    field = np.broadcast_to(300.0 + np.arange(20.0)[:, None, None], labels.shape)
    turned, numbers = (np.moveaxis(array, 0, 2 - axis) for array in (field, labels))
    layer = ShownLayer.of(LayerPlace("pad", "copper", axis, 0.025, ((0.02, 0.03), (0.04, 0.06))), CUBE)
    assert layer is not None
    with FieldReader(write(tmp_path / "fields.vtkhdf", CUBE, turned, numbers)) as reader:
        section = read_sections(reader, 0, {axis: 0.025}, [layer])[axis]
        np.testing.assert_array_equal(section.values, shown)
        ((_, edge),) = layers_on([layer], reader, axis, section.cells[:1], 0.025)
        u, v = (other for other in range(3) if other != axis)
        low, high = edge.min(axis=(0, 1)), edge.max(axis=(0, 1))
        np.testing.assert_allclose([low[u], low[v], high[u], high[v]], [0.02, 0.03, 0.04, 0.06])
        # A section across the layer shows it as a line, one beside it nothing.
        ((_, line),) = layers_on([layer], reader, u, (), 0.03)
        np.testing.assert_allclose(line[0, :, v], [0.03, 0.06])
        np.testing.assert_allclose(line[0, :, axis], 0.025)
        assert not list(layers_on([layer], reader, u, (), 0.05))


def test_layers_outside_a_part_are_left_out() -> None:
    part = CUBE.part(((0, 4), (0, 20), (10, 20)))
    assert ShownLayer.of(LayerPlace("pad", "copper", 2, 0.025, None), part) is None
    assert ShownLayer.of(LayerPlace("pad", "copper", 2, 0.06, ((0.03, 0.0), (0.05, 0.05))), part) is None
    layer = ShownLayer.of(LayerPlace("pad", "copper", 2, 0.06, ((0.01, 0.0), (0.05, 0.05))), part)
    assert layer is not None
    assert (layer.low, layer.high) == ((0.01, 0.0, 0.06), (pytest.approx(0.02), 0.05, 0.06))


def test_the_material_of_a_layer_is_in_the_legend_as_a_line() -> None:
    entries = material_entries(("board", "copper", "unused", "void"), {0, 3}, {"copper"})
    assert [(entry.text, entry.kind) for entry in entries] == [("board", "area"), ("copper (layers)", "line")]
    assert [entry.text for entry in material_entries(("board", "copper"), {0, 1}, {"copper"})] == ["board", "copper"]
    assert material_entries(("material",)) == []


def test_equal_sections_are_found(tmp_path: Path) -> None:
    x, y, z = (np.linspace(-1.0, 1.0, 20) ** 2 for _ in range(3))
    fields = {
        "all": 300.0 + x[None, None, :] + y[None, :, None] + z[:, None, None],
        "two": 300.0 + x[None, None, :] + y[None, :, None] + np.linspace(0.0, 3.0, 20)[:, None, None],
        "none": 300.0 + x[None, None, :] + 2.0 * y[None, :, None] + 3.0 * z[:, None, None],
    }
    expected = {"all": {0: 2, 1: 2}, "two": {0: 1}, "none": {}}
    for name, field in fields.items():
        with FieldReader(write(tmp_path / name, CUBE, field)) as reader:
            sections = read_sections(reader, 0)
            assert find_equal(sections, CUBE) == expected[name], name
    # The same numbers of cells with other lengths do not look equal.
    assert find_equal(sections, Grid(CUBE.cells, (0.1, 0.2, 0.3))) == {}


def test_a_thermal_bridge_at_a_symmetry_plane_is_shown(tmp_path: Path) -> None:
    """A chip in the plane y_min of a plate with a gradient along x: the central plane does not show it."""
    labels = np.zeros(CUBE.shape, dtype=np.uint8)
    labels[:7, 0, :] = 1
    field = np.broadcast_to(300.0 + np.linspace(0.0, 20.0, 20), CUBE.shape).copy()
    field[:7, :6] += 1.0
    with FieldReader(write(tmp_path / "bridge", CUBE, field, labels)) as reader:
        _, y, z = read_sections(reader, 0)
    assert y.cells == (0,)
    assert max(z.cells) < 7
    with FieldReader(write(tmp_path / "plain", CUBE, field, np.zeros(CUBE.shape, dtype=np.uint8))) as reader:
        _, y, z = read_sections(reader, 0)
    assert (y.place, z.place) == (0.5, 0.5)


def test_a_small_part_where_a_field_varies_is_found(tmp_path: Path) -> None:
    with FieldReader(write(tmp_path / "spot", PLATE, spot(PLATE, (0.02, 0.01, 0.004), 0.0015))) as reader:
        cells = find_part({axis: one.values for axis, one in enumerate(read_sections(reader, 0))}, PLATE)
    assert cells is not None
    # 10 % of the range reaches sqrt(ln 10) = 1.52 radii: 4.6 mm in the plane, and half of it below the surface.
    for (first, last), at, half in zip(cells, (20.0, 10.0, 8.0), (2.3, 2.3, 4.6), strict=True):
        assert first <= at - half
        assert last >= min(at + half, 8.0 if at == 8.0 else np.inf)
    assert (cells[0][1] - cells[0][0], cells[1][1] - cells[1][0]) == (8, 8)
    with FieldReader(write(tmp_path / "wide", PLATE, spot(PLATE, (0.02, 0.01, 0.004), 0.02))) as reader:
        assert find_part({axis: one.values for axis, one in enumerate(read_sections(reader, 0))}, PLATE) is None
    with FieldReader(write(tmp_path / "uniform", PLATE, np.full(PLATE.shape, 300.0))) as reader:
        assert find_part({axis: one.values for axis, one in enumerate(read_sections(reader, 0))}, PLATE) is None


def test_parts_are_read_from_texts_and_cells() -> None:
    assert read_box("x = 10 to 20 mm, z = 0.001 to 0.0021", PLATE) == ((10, 20), (0, 40), (2, 5))
    assert read_box("y = 1 cm to 400 mm", PLATE) == ((0, 60), (10, 40), (0, 8))
    inside = np.zeros(PLATE.shape, dtype=bool)
    inside[7, 10:14, 20:40] = True
    assert part_around(inside, PLATE) == ((15, 45), (8, 16), (5, 8))


@pytest.mark.parametrize("text", ["x = 5", "w = 1 to 2", "x = 20 to 10 mm", "x = 100 to 200 mm", "x = a to b"])
def test_parts_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--zoom: "):
        read_box(text, PLATE)


def test_a_part_of_the_cells_is_read(tmp_path: Path) -> None:
    field = np.arange(float(PLATE.cell_count)).reshape(PLATE.shape)
    labels = (np.arange(PLATE.cell_count) % 3).astype(np.uint8).reshape(PLATE.shape)
    path = write(tmp_path / "fields.vtkhdf", PLATE, field, labels)
    with FieldReader(path, ((10, 30), (5, 7), (2, 8))) as part:
        assert (part.grid.cells, part.grid.origin) == ((20, 2, 6), pytest.approx((0.01, 0.005, 0.001)))
        assert part.grid.spacing == pytest.approx(PLATE.spacing)
        np.testing.assert_array_equal(part.read(0), field[2:8, 5:7, 10:30])
        np.testing.assert_array_equal(part.read_materials(slice(1, 3)), labels[3:5, 5:7, 10:30])
        np.testing.assert_array_equal(part.read_plane(0, 0, 3), field[2:8, 5:7, 13])


PLUG = """
title = "Plug"
domain = { size = [0.06, 0.04, 0.004], cells = [60, 40, 8], material = "steel" }
materials.steel = { conductivity = 15.0, density = 7800.0, specific_heat = 500.0 }
regions = [{ name = "plug", material = "steel", box = { min = [0.02, 0.01, 0.0], max = [0.03, 0.02, 0.002] } }]
initial.temperature = 300.0
time.end = 1.0
"""


def test_zoom_draws_around_a_region_or_a_box(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run", PLATE, times=[0.0], probes=())
    (folder / "scenario.toml").write_text(PLUG)
    for zoom in ("plug", "x = 0 to 20 mm, y = 0 to 20 mm"):
        assert main(["render", str(folder), "--view", "sections", "--zoom", zoom]) == 0
        (picture,) = (folder / "figures").glob("zoom_*")
        assert picture.name == "zoom_sections_t0000.png"
        picture.unlink()
    assert main(["render", str(folder), "--zoom", "pulg"]) == 2
    message = 'got "pulg", which is not a region of this run; its regions are plug; or write a box'
    assert message in capsys.readouterr().err


def test_isosurfaces_are_a_few_round_numbers_and_melting_points() -> None:
    levels = choose_levels(TemperatureScale(293.15, 372.15, unit=CELSIUS), {"wax": (333.15, 335.15)})
    assert [level.text for level in levels] == ["40", "61: wax melts", "80"]
    in_kelvins = choose_levels(TemperatureScale(300.0, 350.0), {"wax": (326.15, 328.15)})
    assert "327.15: wax melts" in [level.text for level in in_kelvins]
    assert [level.value for level in levels] == pytest.approx([40.0, 61.0, 80.0])
    assert choose_levels(TemperatureScale(299.0, 301.0, uniform=True), {}) == []
    # Levels near an end would be specks.
    assert [level.text for level in choose_levels(TemperatureScale(299.0, 700.0), {})] == ["400", "500", "600"]


@pytest.mark.parametrize(("low", "high"), [(0.0, 100.0), (30.02, 30.05), (-1200.0, 1200.0), (0.0, 0.3)])
def test_texts_of_ticks_do_not_overlap(low: float, high: float) -> None:
    for room in (150.0, 300.0, 600.0):
        marks = fitting_ticks(low, high, room, is_level=True)
        if len(marks) > 2:
            places = sorted(marks)
            apart = (places[1] - places[0]) / (high - low) * room
            assert apart > max(text_width(text, 7.5) for text in marks.values())


def test_long_titles_fit_in_two_lines(tmp_path: Path) -> None:
    for name in ("Gehäuse", "Wärmebrücke " * 20, "W" * 200):
        with new_figure(tmp_path / "title.png", title_of(name, "t = 12.5 min"), 900, 400) as figure:
            (text,) = figure.texts
            assert NORMAL <= text.get_fontsize() <= LARGE
            assert text.get_text().count("\n") <= 1
            box = text.get_window_extent()
            assert (box.x0 > 0.0, box.x1 < 900.0) == (True, True)
            assert "12.5 min" in text.get_text()


@pytest.mark.parametrize("title", ["Plate", "Plate — north", ""])
def test_a_dash_in_a_name_does_not_divide_the_description(title: str, tmp_path: Path) -> None:
    path = tmp_path / "probe.png"
    with new_figure(path, title_of(title, 'probe "inlet — outlet"'), 900, 400):
        pass
    assert description_of(path) == 'Probe "inlet — outlet"'


def test_a_run_of_layers_shows_them(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", CUBE, times=[0.0], probes=())
    text = '[[layers]]\nmaterial = "copper"\nthickness = 1e-5\nplane = { axis = "z", at = 0.05 }\n'
    (folder / "scenario.toml").write_text(f'title = "t"\n{text}')
    with FieldReader(folder / "fields.vtkhdf") as reader:
        fields = Fields(reader, read_settings(folder), PictureChoice())
        assert [entry.text for entry in fields.legend] == ["material", "copper (layers)"]
        sections = read_sections(reader, 0, {2: 0.05}, fields.layers)
        counts = [len(fields.layer_lines(axis, section)) for axis, section in enumerate(sections)]
    assert counts == [1, 1, 1]


def test_sections_show_the_parts_and_not_the_void_between_them(tmp_path: Path) -> None:
    # Two balls beside the middle, each of one temperature along y and z.
    labels = np.full(CUBE.shape, 2, dtype=np.uint8)
    labels[5:9, 5:9, 2:6] = 0
    labels[12:16, 12:16, 14:18] = 1
    field = np.broadcast_to(np.linspace(300.0, 400.0, 20), CUBE.shape)
    with FieldReader(write(tmp_path / "fields.vtkhdf", CUBE, field, labels)) as reader:
        for section in read_sections(reader, 0):
            assert np.isfinite(section.values).any()


def test_a_difference_from_a_negative_temperature_has_one_sign() -> None:
    scale = TemperatureScale.spanning(263.15, 263.150001, np.float64, CELSIUS)
    assert scale.label == "Temperature + 10 °C (nK)"
    assert TemperatureScale.spanning(283.15, 283.150001, np.float64, CELSIUS).label == "Temperature − 10 °C (nK)"


@pytest.mark.parametrize("count", [3, 20, 90])
def test_the_legend_of_curves_stays_on_the_page(tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: figures.append(figure))
    times = np.linspace(0.0, 1.0, 5)
    curves = {f"thermocouple {number} on the outer wall": times for number in range(count)}
    draw_numbers(tmp_path / "curves.png", "Curves", times, curves, "Probes")
    (figure,) = figures
    FigureCanvasAgg(figure).draw()
    width, height = figure.get_size_inches() * figure.dpi
    found = [text for text in figure.findobj(Text) if "thermocouple" in text.get_text()]
    assert len(found) == min(count, 60)
    for box in (text.get_window_extent() for text in found):
        assert 0.0 <= box.x0 < box.x1 <= width
        assert 0.0 <= box.y0 < box.y1 <= height


def test_the_materials_of_a_line_are_bands_behind_its_profile(tmp_path: Path) -> None:
    grid = Grid((10, 1, 1), (0.1, 1.0, 1.0), (0.5, 0.0, 0.0))
    labels = np.array([0, 0, 0, 1, 1, 1, 1, 2, 0, 0], dtype=np.uint8).reshape(grid.shape)
    folder = write_run(tmp_path / "run", grid, times=[0.0], probes=())
    write(folder / "fields.vtkhdf", grid, np.full(grid.shape, 300.0), labels)
    with FieldReader(folder / "fields.vtkhdf") as reader:
        bands = bands_of(Fields(reader, read_settings(folder), PictureChoice()), 0, 1e-3)
    assert [(round(start), round(end)) for start, end, _ in bands] == [(500, 530), (530, 570), (580, 600)]
    assert [colour for *_, colour in bands] == [material_colour(number) for number in (0, 1, 0)]


def test_sections_go_through_the_hottest_cell_if_one_of_them_misses_it(tmp_path: Path) -> None:
    grid = Grid((9, 8, 7), (0.9, 0.8, 0.7))
    field = np.full(grid.shape, 300.0)
    field[5, 1, 7] = 400.0
    folder = write_run(tmp_path / "run", grid, lambda grid, time: field, times=[0.0], probes=())
    with FieldReader(folder / "fields.vtkhdf") as reader:
        middle = read_sections(reader, 0, {0: 0.45, 1: 0.4, 2: 0.35})
        found = through_hottest(reader, 0, middle, 390.0)
        assert [section.cells for section in found] == [(7,), (1,), (5,)]
        assert all(section.values.max() == 400.0 for section in found)
        assert through_hottest(reader, 0, found, 390.0) is found
        assert through_hottest(reader, 0, middle, 300.0) is middle
