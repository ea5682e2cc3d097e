"""Pictures of a melt: where its front is drawn, when, and enlarged where it is small."""

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.typing import NDArray
from run_folders import write_run

from heatsim.amounts import Unit
from heatsim.grid import Grid
from heatsim.render.choice import ISOSURFACE, SECTIONS, PictureChoice
from heatsim.render.page.levels import melt_fronts
from heatsim.render.page.scales import PlainScale, TemperatureScale
from heatsim.render.spatial.body_pictures import BodyPictures
from heatsim.render.spatial.field_pictures import frames_of
from heatsim.render.spatial.fields import Fields
from heatsim.render.spatial.zoom import find_part, moved_to
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.run_settings import read_settings

PLATE = Grid((80, 40, 6), (0.08, 0.04, 0.006))
MELTS = "\n[material]\nsolidus = 1400.0\nliquidus = 1500.0\n"
PLACES = (0.02, 0.04, 0.06)  # of the beam, in m


def weld(grid: Grid, time: float) -> NDArray[np.float64]:
    """A pool under a moving beam, and a long warm tail behind it; colder after t = 2 s."""
    x, y, z = (grid.centres(axis) for axis in range(3))
    beam = PLACES[min(int(time), 2)]
    across = (y[None, :, None] - 0.02) ** 2 + (z[:, None, None] - 0.006) ** 2
    pool = np.exp(-((x[None, None, :] - beam) ** 2 + across) / 0.003**2)
    tail = np.where(x[None, None, :] < beam, 0.25, 0.0) * np.exp(-across / 0.012**2)
    return 300.0 + (1500.0 if time < 3.0 else 600.0) * np.maximum(pool, tail)


@pytest.fixture
def welded(tmp_path: Path) -> Path:
    folder = write_run(tmp_path / "weld", PLATE, weld, [0.0, 1.0, 2.0, 3.0], probes=())
    with (folder / "scenario.toml").open("a") as file:
        file.write(MELTS)
    return folder


def fields_of(folder: Path, stack: ExitStack) -> Fields:
    reader = stack.enter_context(FieldReader(folder / "fields.vtkhdf"))
    return Fields(reader, read_settings(folder), PictureChoice())


def contours(monkeypatch: pytest.MonkeyPatch) -> list[NDArray[np.float64]]:
    """The points of the melt front of each picture that is drawn from now on, in mm."""
    found: list[NDArray[np.float64]] = []

    def note(figure: Figure, path: Path, **options: object) -> None:
        from matplotlib.contour import ContourSet

        for contour in figure.findobj(ContourSet):
            found.append(np.concatenate([path.vertices for path in contour.get_paths()]))

    monkeypatch.setattr(Figure, "savefig", note)
    return found


def test_sections_show_the_melt_front(welded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = contours(monkeypatch)
    with ExitStack() as stack:
        fields = fields_of(welded, stack)
        BodyPictures(fields, stack).at(SECTIONS, 1).draw(tmp_path / "a.png")
        assert len(found) == 6  # three sections and their enlarged parts
        # 1450 K lies where exp(−r²/3²) = 1150/1500, r = 1.55 mm; cells of 1 mm, linear between their centres.
        radius = 3.0 * np.sqrt(np.log(1500.0 / 1150.0))
        largest = max(found, key=lambda points: float(np.ptp(points[:, 0])))
        assert np.ptp(largest[:, 0]) == pytest.approx(2.0 * radius, abs=0.5)
        assert largest[:, 0].mean() == pytest.approx(40.0, abs=0.5)
        found.clear()
        BodyPictures(fields, stack).at(SECTIONS, 3).draw(tmp_path / "b.png")
        assert not found


def test_isosurfaces_are_drawn_while_there_is_a_melt(welded: Path) -> None:
    with ExitStack() as stack:
        assert fields_of(welded, stack).interesting == 2


def test_the_pool_is_enlarged_although_its_tail_is_long() -> None:
    values = weld(PLATE, 1.0)
    part = find_part({0: values[:, :, 40], 1: values[:, 20], 2: values[5]}, PLATE)
    assert part is not None
    (first, last), (low, high), _ = part
    assert first <= 37 < 43 <= last
    assert low <= 17 < 23 <= high
    assert (last - first) * (high - low) <= 0.1 * 80 * 40


def test_a_wide_gradient_is_not_enlarged() -> None:
    """Half of a cube above the median, as after a quench, is not a small part. Its cold rim is not one either."""
    grid = Grid((20, 20, 20), (0.1, 0.1, 0.1))
    x = np.linspace(-1.0, 1.0, 20)
    bowl = 400.0 - 50.0 * (x[:, None] ** 4 + x[None, :] ** 4)
    assert find_part(dict.fromkeys(range(3), bowl), grid) is None


def test_an_animation_enlarges_a_part_of_one_size_that_follows_the_beam(welded: Path, tmp_path: Path) -> None:
    pages = []
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:

        def note(path: Path, caption: object, scale: object, shown: object, page: object, image: object) -> None:
            pages.append((shown.part, page.height))

        patch.setattr("heatsim.render.spatial.body_pictures.draw_slices", note)
        fields = fields_of(welded, stack)
        fields.choice = PictureChoice(views=(SECTIONS,))
        _, frames, _ = frames_of(fields, range(3), stack)
        for frame in frames:
            frame.draw(tmp_path / "frame.png")
    assert len({height for _, height in pages}) == 1
    assert len({part.cells for part, _ in pages}) == 1
    for (part, _), place in zip(pages, PLACES, strict=True):
        assert part.origin[0] < place < part.origin[0] + part.size[0]
    assert moved_to((10, 4, 2), (0.99, 0.5, 0.0), PLATE) == ((70, 80), (18, 22), (0, 2))


def test_a_flat_grid_shows_its_part_and_its_front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = Grid((160, 1, 80), (0.08, 1.0, 0.04))

    def spot(grid: Grid, time: float) -> NDArray[np.float64]:
        x, z = grid.centres(0), grid.centres(2)
        squares = (x[None, None, :] - 0.02) ** 2 + (z[:, None, None] - 0.01) ** 2
        return 300.0 + 1500.0 * np.exp(-squares / 0.003**2)

    folder = write_run(tmp_path / "run", grid, spot, [0.0], probes=())
    with (folder / "scenario.toml").open("a") as file:
        file.write(MELTS)
    found = contours(monkeypatch)
    from heatsim.render.spatial.field_pictures import field_pictures

    with ExitStack() as stack:
        fields = fields_of(folder, stack)
        _, (picture,) = field_pictures(fields.reader, fields.run, fields.choice, stack)
        picture.draw(tmp_path / "plane.png")
    assert len(found) == 2
    radius = 3.0 * np.sqrt(np.log(1500.0 / 1150.0))
    for points in found:
        assert np.ptp(points, axis=0) == pytest.approx([2.0 * radius] * 2, abs=0.1)


def test_a_front_belongs_to_its_material_and_differs_from_what_is_behind_it() -> None:
    scale = TemperatureScale(300.0, 400.0)
    (cold,) = melt_fronts(scale, {"wax": (310.0, 320.0)}, ["steel", "wax"])
    (hot,) = melt_fronts(scale, {"material": (385.0, 395.0)}, [])
    assert (cold.material, cold.text) == (1, "melt front of wax, 315 K")
    assert (hot.material, hot.text, hot.colour) == (None, "melt front, 390 K", "black")
    assert cold.colour != "black"
    assert not melt_fronts(scale, {"iron": (1800.0, 1810.0)}, [])
    assert not melt_fronts(PlainScale(0.0, 1.0, "Liquid fraction", Unit("", 1.0, 0.0)), {"wax": (0.2, 0.4)}, [])


def test_flat_bodies_of_several_materials_have_no_isosurfaces_unless_asked_for(tmp_path: Path) -> None:
    for names, expected in ((["a"], True), (["a", "b"], False)):
        folder = write_run(tmp_path / str(len(names)), PLATE, times=[0.0], probes=())
        with ExitStack() as stack:
            fields = fields_of(folder, stack)
            object.__setattr__(fields.reader, "materials", tuple(names))
            found = [picture.name for picture in BodyPictures(fields, stack).pictures()]
            assert (ISOSURFACE in found) is expected
            fields.choice = PictureChoice(views=(ISOSURFACE,))
            assert ISOSURFACE in [picture.name for picture in BodyPictures(fields, stack).pictures()]
