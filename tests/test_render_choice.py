"""What the options of `heatsim render` choose: views, times, planes, ranges, quantities, formats and animations."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import runs
from PIL import Image
from run_folders import gaussian, uniform, write_run

from heatsim.cli import main
from heatsim.errors import InputError
from heatsim.grid import Grid
from heatsim.render import render
from heatsim.render.choice import PictureChoice, read_planes, read_span, read_times
from heatsim.render.spatial.quantities import HeatFluxReader, LiquidFractionReader, MaterialReader
from heatsim.render.spatial.sections import read_sections
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.field_writer import FieldWriter
from heatsim.storage.run_settings import read_settings
from heatsim.temperature_units import CELSIUS, KELVIN

BLOCK = Grid((12, 9, 6), (0.1, 0.06, 0.03), (0.5, 0.0, -0.01))
PLANE = Grid((16, 12, 1), (0.16, 0.12, 1.0))
TIMES = [0.0, 1.0, 2.0, 3.0]


def test_texts_are_read_with_units() -> None:
    assert read_times("0, 2.5, 10 min") == (0.0, 150.0, 600.0)
    assert read_times("2, 10, 20 h") == read_times("2 h, 10, 20") == (7200.0, 36000.0, 72000.0)
    assert read_times("0, 30 s, 2 min") == (0.0, 30.0, 120.0)
    assert read_times("0, 2.5") == (0.0, 2.5)
    assert read_times(None) == ()
    assert read_planes("x = 520 mm, z=0", BLOCK) == {0: 0.52, 2: 0.0}
    assert read_span("20 degC, 80 degC", "temperature", KELVIN) == (293.15, 353.15)
    assert read_span("20, 80 degC", "temperature", KELVIN) == (293.15, 353.15)
    assert read_span("20, 80", "temperature", CELSIUS) == (293.15, 353.15)
    assert read_span("20, 80", "temperature", KELVIN) == (20.0, 80.0)
    assert read_span("0, 1 kW/m^2", "heat_flux", CELSIUS) == (0.0, 1000.0)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: read_times("soon"), r'--times: got "soon"; a number in s, or one with its unit'),
        (lambda: read_times("30 s, 2, 3 h"), r'--times: got "2" beside s and h; write its unit, as in "2 h"'),
        (lambda: read_times("3 mm"), r"--times: .*mm.*s"),
        (lambda: read_planes("w = 3", BLOCK), r'--planes: got "w = 3"; write for example'),
        (lambda: read_planes("x = 0.1", BLOCK), r"--planes: got .*; the domain reaches from 0.5 to 0.6 m along x"),
        (lambda: read_span("20", "temperature", KELVIN), r"--range: .*two ends"),
        (lambda: read_span("80, 20", "temperature", KELVIN), r"--range: .*below the second"),
    ],
)
def test_what_cannot_be_read_is_refused_with_an_example(read: object, message: str) -> None:
    assert callable(read)
    with pytest.raises(InputError, match=message):
        read()


def test_a_plane_is_that_of_its_coordinate(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", BLOCK, probes=())
    with FieldReader(folder / "fields.vtkhdf") as reader:
        x, y, z = read_sections(reader, 0, {0: 0.5 + 0.1 * 10.3 / 12.0, 2: -0.01 + 0.03})
        field = reader.read(0)
        np.testing.assert_array_equal(x.values, field[:, :, 10])
        np.testing.assert_array_equal(z.values, field[5])
        assert y.place == pytest.approx(read_sections(reader, 0)[1].place)


@pytest.fixture(scope="module")
def melting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wax that melts from 310 to 330 K beside steel and void, with heat flux vectors."""
    folder = write_run(tmp_path_factory.mktemp("melting") / "run", BLOCK, times=[0.0], probes=())
    (folder / "scenario.toml").write_text(
        'title = "wax"\n[materials.wax]\nsolidus = 310.0\nliquidus = 330.0\n[materials.steel]\nconductivity = 15.0\n'
    )
    labels = np.zeros(BLOCK.shape, dtype=np.uint8)
    labels[:, :, 6:] = 1
    labels[:, :, 10:] = 2
    field = np.broadcast_to(300.0 + 5.0 * np.arange(12.0), BLOCK.shape)
    flux = np.stack([3.0 * np.ones(BLOCK.shape), np.zeros(BLOCK.shape), -4.0 * np.ones(BLOCK.shape)], axis=-1)
    names = ("wax", "steel", "void")
    with FieldWriter.create(folder / "fields.vtkhdf", BLOCK, "float64", heat_flux=True, materials=names) as writer:
        writer.write_materials([labels])
        writer.append(0.0, [field], [flux])
    return folder


def test_quantities_are_those_of_the_field(melting: Path) -> None:
    path, settings = melting / "fields.vtkhdf", read_settings(melting)
    with LiquidFractionReader(path, settings) as reader:
        np.testing.assert_allclose(reader.read(0)[2, 3, :8], [0.0, 0.0, 0.0, 0.25, 0.5, 0.75, 0.0, 0.0], atol=1e-15)
    with HeatFluxReader(path) as reader:
        np.testing.assert_array_equal(reader.read(0), 5.0)
        assert reader.range(0) == (5.0, 5.0)
        np.testing.assert_array_equal(reader.read_plane(0, 2, 1), 5.0)
    with MaterialReader(path) as reader:
        np.testing.assert_array_equal(reader.read(0)[0, 0], [0.0] * 6 + [1.0] * 4 + [2.0] * 2)


@pytest.mark.parametrize(
    "materials", ["[material]\n", '[domain]\nmaterial = "wax"\n[materials.wax]\n'], ids=["no name", "one name"]
)
def test_liquid_fraction_of_a_body_of_one_material(tmp_path: Path, materials: str) -> None:
    folder = write_run(tmp_path / "run", BLOCK, times=[0.0], probes=())
    (folder / "scenario.toml").write_text(f'title = "wax"\n{materials}solidus = 310.0\nliquidus = 330.0\n')
    with FieldWriter.create(folder / "fields.vtkhdf", BLOCK, "float64") as writer:
        writer.append(0.0, [np.broadcast_to(300.0 + 5.0 * np.arange(12.0), BLOCK.shape)])
    with LiquidFractionReader(folder / "fields.vtkhdf", read_settings(folder)) as reader:
        np.testing.assert_allclose(reader.read(0)[2, 3, 2:8], [0.0, 0.25, 0.5, 0.75, 1.0, 1.0], atol=1e-15)


def test_each_quantity_is_drawn_beside_the_usual_pictures(melting: Path) -> None:
    (melting / "figures").mkdir()
    (melting / "figures" / "energy.png").write_bytes(b"kept")
    for quantity in ("heat_flux", "liquid_fraction", "material"):
        (path,) = render(melting, PictureChoice(views=("sections",), quantity=quantity, times=(0.0,)))
        assert path.name == f"{quantity}_sections_t0000.png"
    assert (melting / "figures" / "energy.png").read_bytes() == b"kept"
    with pytest.raises(InputError, match=r"no material of this run melts"):
        render(write_run(melting.parent / "plain", BLOCK), PictureChoice(quantity="liquid_fraction"))
    with pytest.raises(InputError, match=r"has no heat flux; run the scenario with output\.heat_flux = true"):
        render(melting.parent / "plain", PictureChoice(quantity="heat_flux"))


def test_times_choose_the_nearest_fields(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", PLANE, times=TIMES)
    assert [path.name for path in render(folder, PictureChoice(times=(0.9, 1.1, 2.9)))] == [
        "plane_t0001.png",
        "plane_t0003.png",
    ]
    with pytest.raises(InputError, match=r"--times: 50 s is after the last field, which is at 3 s; choose earlier"):
        render(folder, PictureChoice(times=(0.0, 50.0)))
    with pytest.raises(InputError, match=r"--times: -1 s is before the start; choose later times"):
        render(folder, PictureChoice(times=(-1.0, 1.0)))


@pytest.mark.slow
def test_a_chosen_range_is_the_scale_of_every_time(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", PLANE, times=TIMES, probes=())
    paths = render(folder, PictureChoice(span=(0.0, 1000.0)))
    images = [np.asarray(Image.open(path).convert("RGB")) for path in paths]
    bars = [image[120:, -190:] for image in images]
    assert all(np.array_equal(bar, bars[0]) for bar in bars)


@pytest.mark.quick("svg")
@pytest.mark.parametrize("suffix", ["pdf", "svg"])
def test_vector_formats_hold_texts_and_the_view(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("pyvista", reason="PyVista is not installed")
    folder = write_run(tmp_path / "run", BLOCK, times=[0.0], probes=())
    (folder / "figures").mkdir()
    (folder / "figures" / "energy.png").write_bytes(b"kept")
    paths = render(folder, PictureChoice(views=("slices",), format=suffix))
    assert [path.name for path in paths] == [f"slices_t0000.{suffix}"]
    assert (folder / "figures" / "energy.png").read_bytes() == b"kept"
    content = paths[0].read_bytes()
    if suffix == "svg":
        text = content.decode()
        assert "Temperature (K)" in text
        # The view in space and three sections are images; the width is 16 cm.
        assert text.count("<image ") >= 4
        assert f'width="{1600 * 72 / 254:.6f}' in text
    else:
        assert b"/MediaBox [ 0 0 453.54" in content


def test_an_animation_has_a_frame_for_each_time_and_one_scale(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", PLANE, gaussian, times=TIMES, probes=())
    assert main(["render", str(folder), "--animate"]) == 0
    with Image.open(folder / "figures" / "plane.gif") as animation:
        frames = []
        for number in range(animation.n_frames):
            animation.seek(number)
            frames.append(np.asarray(animation.convert("RGB")))
    assert len(frames) == len(TIMES)
    # The colour bar stays the same to the rounding of the palette; the field changes.
    width = frames[0].shape[1]
    bars, fields = zip(*((frame[120:, -width // 9 :], frame[:, : width // 2]) for frame in frames), strict=True)
    assert all(np.array_equal(bar, bars[0]) for bar in bars)
    assert not any(np.array_equal(fields[0], other) for other in fields[1:])
    assert "data:image/gif" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.skipif(
    shutil.which("ffmpeg") is None and find_spec("imageio_ffmpeg") is None, reason="neither ffmpeg nor imageio-ffmpeg"
)
def test_an_animation_is_written_as_mp4(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", Grid((40, 1, 1), (0.1, 1.0, 1.0)), times=TIMES, probes=())
    assert main(["render", str(folder), "--animate", "--format", "mp4", "--times", "0, 2"]) == 0
    assert (folder / "figures" / "profile.mp4").read_bytes()[4:8] == b"ftyp"


@pytest.mark.quick("2")
@pytest.mark.parametrize("still", [0, 2])
def test_an_animation_of_isosurfaces_has_a_frame_without_any(still: int, tmp_path: Path) -> None:
    """As at the start of most runs, whose initial temperature is one number."""
    pytest.importorskip("pyvista", reason="PyVista is not installed")

    def field(grid: Grid, time: float) -> np.ndarray:
        return uniform(grid, time) if time == TIMES[still] else gaussian(grid, time)

    folder = write_run(tmp_path / "run", BLOCK, field, times=TIMES[:3], probes=())
    assert main(["render", str(folder), "--animate", "--view", "isosurface"]) == 0
    with Image.open(folder / "figures" / "isosurface.gif") as animation:
        assert animation.n_frames == 3
    none = PictureChoice(views=("isosurface",), times=(TIMES[still],), span=(310.0, 320.0))
    assert [path.name for path in render(folder, none)] == [f"isosurface_t{still:04d}.png"]


def test_what_is_missing_for_an_animation_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_run(tmp_path / "run", PLANE, times=[0.0])
    assert main(["render", str(folder), "--animate"]) == 2
    assert "has 1 field; an animation needs two" in capsys.readouterr().err
    assert main(["render", str(folder), "--animate", "--quantity", "material"]) == 2
    assert "materials are the same at all times" in capsys.readouterr().err
    (folder / "scenario.toml").write_text('title = "steady"\ntime.method = "steady"\n')
    assert main(["render", str(folder), "--animate"]) == 2
    assert "a steady state, which has one time" in capsys.readouterr().err
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setitem(__import__("sys").modules, "imageio_ffmpeg", None)
    assert main(["render", str(folder), "--animate", "--format", "mp4"]) == 2
    assert "MP4 needs ffmpeg" in capsys.readouterr().err
    for options, message in (
        (["--format", "gif"], "add --animate"),
        (["--animate", "--format", "pdf"], "an animation is written as gif or mp4"),
        (["--view", "surface"], "this run has no 3-D views"),
        (["--times", "soon"], "--times"),
    ):
        assert main(["render", str(folder), *options]) == 2
        assert message in capsys.readouterr().err


def test_a_run_of_many_quantities_can_be_rendered_from_the_command_line(tmp_path: Path) -> None:
    pytest.importorskip("pyvista", reason="PyVista is not installed")
    folder = runs.run(tmp_path, "output.heat_flux=true")
    options = ["--quantity", "heat_flux", "--view", "sections", "--times", "5", "--planes", "z = 0.03"]
    assert main(["render", str(folder), *options]) == 0
    assert (folder / "figures" / "heat_flux_sections_t0002.png").exists()
