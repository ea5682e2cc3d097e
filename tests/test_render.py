"""The content of the pictures; a person has to judge their look."""

import errno
import os
import subprocess
import sys
import time
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image
from run_folders import gaussian, uniform, write_run, write_table

from heatsim.amounts import ENERGIES, LENGTHS, TIMES, choose_unit, format_time
from heatsim.commands.pictures import BackgroundRenderer
from heatsim.device import usable_cores
from heatsim.errors import FolderError, InputError, StorageError
from heatsim.grid import Grid
from heatsim.render import opengl, render
from heatsim.render.background import DrawingProcess
from heatsim.render.choice import PictureChoice
from heatsim.render.page.figure import WIDTH
from heatsim.render.page.layout import Size, arrange
from heatsim.render.page.raster import Raster
from heatsim.render.page.samples import choose_times, read_samples
from heatsim.render.page.scales import TemperatureScale, colour_map, ticks
from heatsim.render.page.view import View, describe_stretch, drawn_size
from heatsim.render.spatial.fields import Fields
from heatsim.render.spatial.sections import read_sections
from heatsim.storage import manifest
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.field_writer import FieldWriter
from heatsim.storage.run_settings import read_settings

pytest.importorskip("pyvista", reason="PyVista is not installed")

BLOCK = Grid((12, 9, 6), (0.1, 0.06, 0.03), (0.5, 0.0, -0.01))
PLANE = Grid((40, 30, 1), (0.04, 0.03, 1.0))
CURVES = ["probes.png", "energy.png"]


def names(paths: list[Path]) -> list[str]:
    return [path.name for path in paths]


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def count_colour(path: Path, colour: np.ndarray, within: int = 0) -> int:
    return int((np.abs(pixels(path).astype(int) - colour.astype(int)) <= within).all(axis=-1).sum())


def count_colours(path: Path) -> int:
    return len(np.unique(pixels(path).astype(np.uint32) @ np.array([1, 256, 65536], dtype=np.uint32)))


def bytes_of(fractions: list[float]) -> np.ndarray:
    return np.asarray(colour_map()(fractions, bytes=True)[:, :3])


@pytest.fixture(scope="module")
def block(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    folder = write_run(tmp_path_factory.mktemp("block") / "run", BLOCK, times=[0.0, 0.5, 1.0, 1.5, 2.0, 2.5])
    figures = folder / "figures"
    with manifest.replacing(folder, ["figures/slices_t0099.png", "figures/profile.png"], "usual png"):
        figures.mkdir()
        for name in ("slices_t0099.png", "profile.png", "slices_t0007.png", "zoom.png"):
            (figures / name).write_bytes(b"from before")
    return folder, render(folder)


def test_a_body_gives_slices_at_four_times_an_isosurface_and_curves(block: tuple[Path, list[Path]]) -> None:
    _, paths = block
    slices = [f"slices_t{index:04d}.png" for index in (0, 1, 3, 5)]
    assert names(paths) == [*slices, "isosurface.png", *CURVES]
    for path in paths:
        image = pixels(path)
        assert image.shape[1] == 1600
        assert 700 <= image.shape[0] <= 1500
        assert (image[0] == 255).all()
        assert (image[-1] == 255).all()
        assert count_colours(path) > 50


def test_earlier_pictures_are_replaced_and_others_left_alone(block: tuple[Path, list[Path]]) -> None:
    folder, paths = block
    assert {path.name for path in (folder / "figures").iterdir()} == {*names(paths), "slices_t0007.png", "zoom.png"}


def test_a_picture_that_the_user_changed_is_kept_and_named(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", Grid((8, 8, 1), (1.0, 1.0, 1.0)))
    figures, mine = folder / "figures", b"with my arrows"
    before = {path.name: path.read_bytes() for path in render(folder)}
    (figures / "plane_t0001.png").write_bytes(mine)
    (figures / "energy.png").unlink()
    for _ in range(2):
        with pytest.raises(FolderError, match=r"figures/plane_t0001\.png is not as heatsim wrote it, and was kept"):
            render(folder)
        found = {path.name: path.read_bytes() for path in figures.iterdir()}
        assert found == {**before, "plane_t0001.png": mine}
    (figures / "plane_t0001.png").unlink()
    assert {path.name: path.read_bytes() for path in render(folder)} == before


def test_times_share_one_colour_bar_unless_it_hides_a_field(block: tuple[Path, list[Path]]) -> None:
    folder, _ = block
    # The range falls with (1 + t)^(−3/2): from t = 2 s it is less than a fifth of that of all times.
    with FieldReader(folder / "fields.vtkhdf") as reader:
        fields = Fields(reader, read_settings(folder), PictureChoice())
        scales = [fields.scale_at(index) for index in range(len(reader))]
    (low, high), (first, remark) = fields.ranges[0], scales[0]
    assert (first.low, remark) == (fields.common.low, "")
    assert first.high == high
    assert scales[1][0].low == low == scales[1][0].low
    for (scale, text), ends in zip(scales[4:], fields.ranges[4:], strict=True):
        assert (scale.low, scale.high) == ends
        assert text == "Colours: a scale for this time alone."


def test_colours_fade_as_the_hot_spot_does(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", PLANE, times=[0.0, 1.0, 2.0], probes=())
    bright = []
    for path in render(folder, PictureChoice(span=(300.0, 350.0))):
        red, green, _ = np.moveaxis(pixels(path)[100:1000, :1300], -1, 0)
        bright.append(int(((red > 150) & (green < 200)).sum()))
    assert bright == sorted(bright, reverse=True)
    assert bright[0] > 2 * bright[-1]


def test_slices_in_space_have_the_colours_of_the_flat_panels(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", BLOCK, uniform, probes=())
    paths = render(folder)
    (middle,) = bytes_of([0.5])
    image = pixels(paths[0])
    for part in (image[:, :1000], image[:, 1000:1460]):
        assert (part == middle).all(axis=-1).sum() > 20_000
    # A uniform body has no isosurface: the body itself is drawn.
    assert names(paths) == ["slices_t0001.png", "isosurface.png", "energy.png"]
    assert count_colour(paths[1], middle, within=1) > 100_000


def test_a_plane_is_a_flat_picture_of_whole_pixels_a_cell(tmp_path: Path) -> None:
    cells = (16, 12)

    def checks(grid: Grid, time: float) -> np.ndarray:
        field = np.add.outer(np.arange(cells[1]), np.arange(cells[0])) % 2 * 100.0 + 300.0
        field[0, 0] = 350.0
        return field[None]

    paths = render(write_run(tmp_path / "run", Grid((*cells, 1), (0.16, 0.12, 5.0)), checks, probes=()))
    assert names(paths) == ["plane_t0001.png", "energy.png"]
    cold, corner, hot = bytes_of([0.0, 0.5, 1.0])
    image = pixels(paths[0])
    rows, columns = np.nonzero((image == corner).all(axis=-1))
    # The cell at x_min, y_min is a square (but for the frame's line) at the lower left.
    size = 1230 // 16
    square = image[rows.max() - size + 3 : rows.max() - 3, columns.min() + 3 : columns.min() + size - 3]
    assert (square == corner).all()
    assert rows.max() > 0.8 * image.shape[0]
    area = size**2 * 16 * 12
    for colour in (cold, hot):
        assert count_colour(paths[0], colour) == pytest.approx(0.5 * area, rel=0.03)


def test_a_plane_larger_than_a_screen_keeps_a_pixel_a_cell(tmp_path: Path) -> None:
    grid = Grid((1500, 1, 700), (1.5, 0.1, 0.7))
    paths = render(write_run(tmp_path / "run", grid, times=[0.0], probes=()))
    height, width, _ = pixels(paths[0]).shape
    assert width > 1500
    assert height > 700


@pytest.mark.quick("1")
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_line_gives_a_profile(tmp_path: Path, axis: int) -> None:
    cells, size = [1, 1, 1], [2.0, 3.0, 4.0]
    cells[axis], size[axis] = 40, 0.1
    folder = write_run(
        tmp_path / "run", Grid(tuple(cells), tuple(size)), times=list(np.linspace(0.0, 1e4, 20)), probes=()
    )
    paths = render(folder)
    assert names(paths) == ["profile.png", "energy.png"]
    assert pixels(paths[0]).shape == (900, 1600, 3)
    first, *_, last = bytes_of(list(np.linspace(0.0, 0.85, 8)))
    for colour in (first, last):
        assert count_colour(paths[0], colour, within=3) > 1000


def test_one_cell_gives_its_temperature_over_time(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", Grid((1, 1, 1), (1.0, 1.0, 1.0)), times=[0.0, 1.0, 2.0], probes=())
    assert names(render(folder)) == ["profile.png", "energy.png"]


@pytest.mark.slow
def test_a_body_is_drawn_at_the_first_time_alone_and_with_many_probes(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", BLOCK, times=[0.0], probes=["_hidden", *(f"probe {i}" for i in range(40))])
    assert names(render(folder)) == ["slices_t0000.png", "isosurface.png", *CURVES]


def test_an_unfinished_run_can_be_drawn(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", Grid((8, 8, 1), (1.0, 1.0, 1.0)))
    (folder / "summary.json").unlink()
    assert names(render(folder)) == ["plane_t0000.png", "plane_t0001.png", *CURVES]


def test_what_cannot_be_drawn_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="nowhere"):
        render(tmp_path / "nowhere")
    with pytest.raises(FolderError, match=r"scenario\.toml is missing"):
        render(tmp_path)
    (tmp_path / "scenario.toml").write_text("title = 'empty'")
    with pytest.raises(FolderError, match=r"no fields, probes or energy rows to draw; continue with .*resume"):
        render(tmp_path)
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(FolderError, match=r"to draw; run the scenario with output\.fields or output\.energy = true"):
        render(tmp_path)
    with pytest.raises(FolderError, match=r"no fields to draw; run the scenario with output\.fields = true"):
        render(tmp_path, PictureChoice(("slices",)))
    for content, reason in (("title = ", "Invalid value"), ("time = 1", "not those that a run writes")):
        (tmp_path / "scenario.toml").write_text(content)
        with pytest.raises(FolderError, match=rf"scenario\.toml: cannot be read as a scenario: .*{reason}"):
            render(tmp_path)
    folder = write_run(tmp_path / "run", BLOCK)
    (folder / "fields.vtkhdf").write_bytes(b"damaged")
    with pytest.raises(StorageError, match=r"fields\.vtkhdf"):
        render(folder)


def test_without_pyvista_the_curves_are_drawn_and_the_reason_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(tmp_path / "run", BLOCK)
    monkeypatch.setitem(sys.modules, "pyvista", None)
    with pytest.raises(InputError, match=r"probes\.png, energy\.png drawn, but no 3-D views.*pip install pyvista"):
        render(folder)
    # The sections are drawn too, without the view in space.
    flat = ["slices_t0000.png", "slices_t0001.png"]
    assert sorted(path.name for path in (folder / "figures").iterdir()) == sorted([*flat, *CURVES])
    # A plane needs no PyVista.
    flat = write_run(tmp_path / "flat", Grid((8, 8, 1), (1.0, 1.0, 1.0)))
    assert len(render(flat)) == 4


def test_without_opengl_the_reason_is_given_and_the_process_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(tmp_path / "run", BLOCK, probes=())

    def crash() -> "subprocess.Popen[bytes]":
        script = "import os, signal; print('no EGL here', flush=True); os.kill(os.getpid(), signal.SIGSEGV)"
        return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)

    monkeypatch.setattr("heatsim.render.drawing.start_trial", crash)
    with pytest.raises(InputError, match=r"energy\.png drawn.*OpenGL.*no EGL here.*apt install.*heatsim render"):
        render(folder)


def test_opengl_is_tried_until_it_has_worked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opengl, "_works", False)
    for result in ("raise SystemExit(3)", "pass"):
        monkeypatch.setattr(opengl, "getsource", lambda function, result=result: f"def try_opengl(): {result}")
        with opengl.start_trial() as trial:
            assert trial is not None
            if result == "pass":
                opengl.finish_trial(trial)
                continue
            with pytest.raises(InputError, match="does not work on this machine"):
                opengl.finish_trial(trial)
    with opengl.start_trial() as trial:
        assert trial is None
        opengl.finish_trial(trial)


def test_the_process_beside_a_run_draws_its_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    with BackgroundRenderer(folder, in_three_dimensions=True) as pictures:
        write_run(folder, BLOCK, times=[0.0], probes=())
        with monkeypatch.context() as alone:
            # It needs no help.
            alone.delattr("heatsim.render.drawing.render")
            pictures.render()
        assert not processes_with(folder)
    found = {path.name: path.read_bytes() for path in (folder / "figures").iterdir()}
    assert found.keys() >= {"slices_t0000.png", "isosurface.png", "energy.png"}
    # The scenario of this folder has no geometry.
    assert found == {path.name: path.read_bytes() for path in render(folder)}


@pytest.mark.parametrize(
    ("cells", "fields", "started"),
    [((4, 4, 4), True, [True]), ((4, 4, 1), True, [False]), ((4, 4, 4), False, [False]), ((4096, 1024, 2), True, [])],
)
def test_a_small_run_with_pictures_starts_the_process_that_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cells: tuple[int, int, int], fields: bool, started: list[bool]
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(BackgroundRenderer, "__init__", lambda _, folder, in_space: asked.append(in_space))
    BackgroundRenderer.of(tmp_path / "run", cells, fields)
    assert asked == started


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_is_left_behind_of_a_run_that_fails(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    deadline = time.monotonic() + 60.0
    with BackgroundRenderer(folder, in_three_dimensions=False):
        while len(processes_with(folder)) < min(usable_cores(), 4) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(processes_with(folder)) == min(usable_cores(), 4)
    while processes_with(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not processes_with(folder)


def test_a_process_that_draws_ends_when_its_run_is_killed() -> None:
    program = (
        "import os, time\nfrom heatsim.render.background import draw_together\n"
        "draw_together(lambda numbers: (os.write(1, b'draws\\n'), time.sleep(30.0)), lambda stack: True)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"draws\n"
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(20.0) == 1


def test_windows_reports_a_process_that_has_failed_as_an_invalid_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(data: bytes) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    with DrawingProcess("heatsim.no_such_module") as process:
        monkeypatch.setattr(process, "_process", popen := mock.Mock(wraps=process._process, pid=process._process.pid))
        popen.stdin.write = refuse
        assert not process.draw(b"data")


def processes_with(argument: Path) -> list[str]:
    """The numbers of the running processes that have this argument."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(argument).encode() in (process / "cmdline").read_bytes().split(b"\0"):
                found.append(process.name)
    return found


def test_a_raster_gives_the_pixels_of_an_image_of_the_figure() -> None:
    image = np.random.default_rng(1).integers(0, 256, (40, 30, 3), dtype=np.uint8)
    drawn = []
    for raster in (False, True):
        figure = Figure(figsize=(0.5, 0.6), dpi=100)
        if raster:
            figure.add_artist(Raster(image, 5, 7))
        else:
            figure.figimage(image, 5, 7, origin="upper")
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        drawn.append(np.array(canvas.buffer_rgba()))
    np.testing.assert_array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal(drawn[1][60 - 7 - 40 : 60 - 7, 5:35, :3], image)


def test_pictures_are_drawn_here_if_the_process_beside_the_run_crashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(tmp_path / "run", Grid((8, 8, 1), (1.0, 1.0, 1.0)), probes=())
    (tmp_path / "pyvista.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with BackgroundRenderer(folder, in_three_dimensions=True) as pictures:
        pictures.render()
    assert (folder / "figures" / "energy.png").exists()


def test_sections_are_linear_in_between_and_at_the_right_place(tmp_path: Path) -> None:
    def linear(grid: Grid, time: float) -> np.ndarray:
        x, y, z = (grid.centres(axis) for axis in range(3))
        return 300.0 + 10.0 * x[None, None, :] + 100.0 * y[None, :, None] + 1000.0 * z[:, None, None]

    grid = Grid((7, 4, 5), (0.7, 0.8, 1.0), (0.1, 0.2, 0.3))
    folder = write_run(tmp_path / "run", grid, linear, dtype=np.float64)
    x, y, z = (grid.centres(axis) for axis in range(3))
    with FieldReader(folder / "fields.vtkhdf") as reader:
        sections = read_sections(reader, 1)
        samples = read_samples(reader, 1, most=3)
    centre = [grid.origin[axis] + 0.5 * grid.size[axis] for axis in range(3)]
    x_plane, y_plane, z_plane = (section.values for section in sections)
    np.testing.assert_allclose(x_plane, 300.0 + 10.0 * centre[0] + 100.0 * y + 1000.0 * z[:, None], rtol=1e-14)
    np.testing.assert_allclose(y_plane, 300.0 + 10.0 * x + 100.0 * centre[1] + 1000.0 * z[:, None], rtol=1e-14)
    np.testing.assert_allclose(z_plane, 300.0 + 10.0 * x + 100.0 * y[:, None] + 1000.0 * centre[2], rtol=1e-14)
    assert [list(indices) for indices in samples.indices] == [[0, 3, 6], [0, 2, 3], [0, 2, 4]]
    np.testing.assert_array_equal(samples.values, linear(grid, 1.0)[np.ix_([0, 2, 4], [0, 2, 3], [0, 3, 6])])


def test_times_are_chosen_evenly_with_both_ends() -> None:
    assert choose_times(13, 4) == [0, 4, 8, 12]
    assert choose_times(2, 4) == [0, 1]
    assert choose_times(1, 4) == [0]


def test_thin_bodies_are_stretched_and_say_so() -> None:
    assert drawn_size(Grid((9, 9, 9), (0.2, 0.2, 0.004))) == (1.0, 1.0, 0.125)
    assert describe_stretch(Grid((9, 9, 9), (0.2, 0.2, 0.004))) == "Not to scale: z is drawn 6.25 times as long."
    assert describe_stretch(Grid((9, 9, 9), (0.2, 0.1, 0.1))) == ""
    # The thickness of a plane is not drawn.
    assert drawn_size(Grid((9, 9, 1), (0.2, 0.1, 7.0)))[:2] == (1.0, 0.5)


def test_a_view_fits_the_box_and_keeps_directions() -> None:
    view = View.fitting(1000, 800, (120, 80, 150, 30), (1.0, 0.5, 0.25))
    corners = view.project(np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 0.5) for z in (0.0, 0.25)]))
    low, high = corners.min(axis=0), corners.max(axis=0)
    # In the middle of what the margins leave, and as large as it can be.
    np.testing.assert_allclose(0.5 * (low + high), [520.0, 460.0])
    assert (low >= np.array([120.0, 150.0]) - 1e-9).all()
    assert low[0] == pytest.approx(120.0) or low[1] == pytest.approx(150.0)
    origin, x, y, z = view.project(np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.25]]))
    assert x[0] > origin[0]
    assert y[0] > origin[0]
    assert z[0] == pytest.approx(origin[0])
    assert z[1] > origin[1]


def test_a_view_projects_where_pyvista_draws() -> None:
    from heatsim.render.spatial.scene import Scene
    from heatsim.render.spatial.sections import Section

    grid = Grid((4, 4, 4), (1.0, 1.0, 1.0))
    view = View.fitting(300, 260, (20, 20, 20, 20), drawn_size(grid))
    cold, hot = (Section(np.full((4, 4), value), np.zeros((4, 4), np.uint8), 0.5) for value in (0.0, 1.0))
    with Scene(grid, view) as scene:
        image = scene.slices((cold, cold, hot), TemperatureScale(0.0, 1.0))
    # A pixel near the corner x_min, y_min of the middle plane along z, which no other plane hides.
    column, row = view.project(np.array([[0.12, 0.06, 0.5]]))[0]
    assert tuple(image[view.height - 1 - int(row), int(column)]) == tuple(TemperatureScale(0.0, 1.0).colours([1.0])[0])


@pytest.mark.parametrize("size", [(1.0, 1.0, 1.0), (1.0, 0.7, 0.125), (1.0, 0.125, 0.125), (0.125, 0.125, 1.0)])
@pytest.mark.parametrize("with_view", [False, True])
@pytest.mark.parametrize("part", [None, (1.0, 0.4, 0.3), (0.125, 0.2, 1.0)])
@pytest.mark.parametrize("normals", [(0, 1, 2), (1, 2), (2,)])
def test_bodies_of_any_shape_fill_the_page(
    size: Size, with_view: bool, part: Size | None, normals: tuple[int, ...]
) -> None:
    page = arrange(size, with_view, below=50, normals=normals, part=part)
    assert [panel.normal for panel in sorted(page.panels, key=lambda panel: panel.normal)] == sorted(
        normals * (1 if part is None else 2)
    )
    for panel in page.panels:
        shown = part if part is not None and panel.enlarged else size
        # In proportion, on the page, and beside the colour bar.
        assert panel.width / panel.height == pytest.approx(shown[panel.across] / shown[panel.up])
        assert 0.0 < panel.x < panel.x + panel.width <= page.bar[0]
        assert 50.0 < panel.y < panel.y + panel.height < page.height
    boxes = [(panel.x, panel.y, panel.x + panel.width, panel.y + panel.height) for panel in page.panels]
    if page.view is not None:
        left, below = page.place
        boxes.append((left, below, left + page.view.width, below + page.view.height))
    for one, other in combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    # The body reaches over most of the page in one direction.
    low, high = (pick(box[i] for box in boxes) for pick, i in ((min, 0), (max, 2)))
    lowest, highest = (pick(box[i] for box in boxes) for pick, i in ((min, 1), (max, 3)))
    assert high - low > 0.75 * (WIDTH - 190) or highest - lowest > 0.75 * page.height
    assert page.height <= (1460 if part is None else 2010)


def test_texts_have_at_least_7_points_on_a_page_of_16_cm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: dict[str, float] = {}

    def note(figure: Figure, path: Path, **options: object) -> None:
        texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
        reduced = min(1.0, 16.0 / 2.54 / figure.get_size_inches()[0])
        sizes[Path(path).name] = min(text.get_fontsize() * reduced for text in texts)

    monkeypatch.setattr(Figure, "savefig", note)
    block = write_run(tmp_path / "block", BLOCK, probes=[f"probe {number}" for number in range(40)])
    render(block, PictureChoice(views=("sections",), times=(0.0,)))
    render(write_run(tmp_path / "plane", Grid((1500, 1, 70), (1.5, 0.1, 0.07)), times=[0.0]))
    render(write_run(tmp_path / "line", Grid((40, 1, 1), (1.5, 0.1, 0.7)), probes=[f"{n}" for n in range(40)]))
    assert set(sizes) >= {"sections_t0000.png", "plane_t0000.png", "profile.png", "probes.png", "energy.png"}
    assert min(sizes.values()) >= 6.999, sizes


def test_probes_of_other_units_have_pictures_of_their_unit(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", Grid((1, 1, 1), (1.0, 1.0, 1.0)))
    columns = ["time (s)", "centre (K)", "melt (1)", "width (m)", "depth (m)"]
    write_table(folder / "probes.csv", columns, [[float(t), 300.0, 0.1 * t, 1e-3 * t, 2e-3] for t in range(5)])
    assert names(render(folder)) == ["profile.png", "probes.png", "probes_1.png", "probes_2.png", "energy.png"]


def test_a_uniform_first_field_is_left_out(tmp_path: Path) -> None:
    def warming(grid: Grid, time: float) -> np.ndarray:
        return uniform(grid, time) + time * np.arange(grid.cells[0])

    folder = write_run(
        tmp_path / "run", Grid((8, 8, 1), (1.0, 1.0, 1.0)), warming, times=[0.0, *range(1, 8)], probes=()
    )
    assert names(render(folder))[:-1] == [f"plane_t{index:04d}.png" for index in (2, 4, 5, 7)]


@pytest.mark.parametrize(
    ("units", "value", "symbol"),
    [
        (LENGTHS, 0.1, "mm"),
        (LENGTHS, 12.0, "m"),
        (LENGTHS, 2e-5, "µm"),
        (TIMES, 60.0, "s"),
        (TIMES, 3600.0, "min"),
        (TIMES, 86400.0, "h"),
        (TIMES, 604800.0, "days"),
        (TIMES, 2e-3, "ms"),
        (ENERGIES, -1.5e5, "kJ"),
        (ENERGIES, 0.0, "J"),
        (ENERGIES, 1e-20, "pJ"),
    ],
)
def test_units_give_readable_numbers(units: tuple, value: float, symbol: str) -> None:
    assert choose_unit(units, value).symbol == symbol


def test_times_and_ticks_read_as_people_write_them() -> None:
    assert format_time(150.0, choose_unit(TIMES, 7200.0)) == "2.5 min"
    assert list(ticks(0.0, 100.0, 5).values()) == ["0", "20", "40", "60", "80", "100"]
    assert list(ticks(-0.2, 0.2, 4).values()) == ["−0.2", "−0.1", "0.0", "0.1", "0.2"]
    assert list(ticks(0.3, 0.7, 1).values()) == ["0.4", "0.6"]


def test_a_tiny_range_is_shown_as_a_difference() -> None:
    wide = TemperatureScale.spanning(290.0, 380.0)
    assert (wide.label, wide.limits) == ("Temperature (K)", (290.0, 380.0))
    tiny = TemperatureScale.spanning(300.0, 300.002)
    assert tiny.label == "Temperature − 300 K (mK)"
    np.testing.assert_allclose(tiny.limits, (0.0, 2.0), atol=1e-9)
    np.testing.assert_allclose(tiny.drawn([300.0005]), [0.5], atol=1e-9)


def test_rounding_alone_is_uniform() -> None:
    last = float(np.nextafter(np.float32(300.0), np.float32(400.0)))
    assert TemperatureScale.spanning(300.0, last, np.float32).uniform
    assert not TemperatureScale.spanning(300.0, last, np.float64).uniform
    assert gaussian(BLOCK, 0.0).max() > 330.0


def spot_on_top(grid: Grid, time: float) -> np.ndarray:
    """Warm where x, y, z are cells 2, 7 and the last one of BLOCK."""
    field = np.full(grid.shape, 300.0)
    field[-1, 7, 2] = 400.0
    return field


def test_sections_leave_the_centre_for_where_temperatures_differ(tmp_path: Path) -> None:
    def centred(grid: Grid, time: float) -> np.ndarray:
        x, y, z = (np.sin(np.pi * (grid.centres(axis) - grid.origin[axis]) / grid.size[axis]) for axis in range(3))
        return 300.0 + 80.0 * x[None, None, :] * y[None, :, None] * z[:, None, None]

    for field, cells in ((spot_on_top, (2, 7, 5)), (centred, (5.5, 4, 2.5)), (uniform, (5.5, 4, 2.5))):
        folder = write_run(tmp_path / field.__name__, BLOCK, field)
        with FieldReader(folder / "fields.vtkhdf") as reader:
            sections = read_sections(reader, 1)
        places = [section.place for section in sections]
        np.testing.assert_allclose(places, [(cell + 0.5) / n for cell, n in zip(cells, BLOCK.cells, strict=True)])
    with FieldReader(tmp_path / "spot_on_top" / "fields.vtkhdf") as reader:
        x, y, z = (section.values for section in read_sections(reader, 0))
    assert (x[5, 7], y[5, 2], z[7, 2]) == (400.0, 400.0, 400.0)
    assert [plane.sum() - 300.0 * plane.size for plane in (x, y, z)] == [100.0] * 3


@pytest.fixture(scope="module")
def part_in_void(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """A block of two materials in void, and its pictures; the void has the hottest and the coldest cells."""
    folder = write_run(tmp_path_factory.mktemp("part") / "run", BLOCK, times=[0.0], probes=())
    materials = np.ones(BLOCK.shape, dtype=np.uint8)
    materials[1:5, 2:7, 3:9] = 0
    materials[1:5, 2:7, 6:9] = 2
    field = np.where(materials == 1, 5000.0, 300.0 + 10.0 * np.arange(12))
    with FieldWriter.create(folder / "fields.vtkhdf", BLOCK, "float32", materials=("tin", "void", "lead")) as writer:
        writer.write_materials([materials])
        writer.append(0.0, [field])
    return folder, render(folder)


def test_void_is_in_no_picture_and_no_scale(part_in_void: tuple[Path, list[Path]]) -> None:
    folder, paths = part_in_void
    with FieldReader(folder / "fields.vtkhdf") as reader:
        assert reader.range(0) == (330.0, 380.0)
        z = read_sections(reader, 0)[2]
        assert np.isnan(z.values[0]).all()
        assert np.nanmax(z.values) == 380.0
        assert np.isnan(read_samples(reader, 0).values[0]).all()
    assert names(paths) == ["slices_t0000.png", "surface_t0000.png", "energy.png"]
    cold, hot = bytes_of([0.0, 1.0])
    flat = pixels(paths[0])[700:, :1400]
    assert (flat == cold).all(axis=-1).sum() > 1000
    assert (flat == hot).all(axis=-1).sum() > 1000
    # Most of each panel is void, and white.
    assert (flat == 255).all(axis=-1).mean() > 0.8


def test_lines_separate_the_materials(part_in_void: tuple[Path, list[Path]]) -> None:
    (grey,) = np.array([[0x8A, 0x9B, 0xA8]])
    assert count_colour(part_in_void[1][0], grey, within=40) > 500
