"""Input files are read once: what was parsed is what is used, copied and checksummed, whatever happens to the files."""

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from refusals import mistakes_of
from scenario_text import write

from heatsim import Simulation
from heatsim import open as open_run
from heatsim.errors import ScenarioError, StorageError
from heatsim.scenario import Scenario, files, input_checksums, load, load_labels, write_resolved
from heatsim.scenario.documents.resolved import NAME
from heatsim.scenario.tables import labels
from heatsim.scenario.tables.initial import ArrayFile

CELLS = (4, 3, 2)
FIELD = np.linspace(300.0, 400.0, 24).reshape(2, 3, 4)
LABELS = (np.arange(24) // 5 % 3).astype(np.uint8).reshape(2, 3, 4)
REGION = '[[regions]]\nname = "part"\n'
LABELLED = 'labels = {{ file = "{}", materials = {{ "1" = "one", "2" = "void" }} }}\n'
TETRAHEDRON = """solid part
facet normal 0 0 0 outer loop vertex 0 0 0 vertex 0 9 0 vertex 9 0 0 endloop endfacet
facet normal 0 0 0 outer loop vertex 0 0 0 vertex 9 0 0 vertex 0 0 9 endloop endfacet
facet normal 0 0 0 outer loop vertex 0 0 0 vertex 0 0 9 vertex 0 9 0 endloop endfacet
facet normal 0 0 0 outer loop vertex 9 0 0 vertex 0 9 0 vertex 0 0 9 endloop endfacet
endsolid part
"""


def tiff(path: Path, pages: np.ndarray) -> None:
    first, *others = (Image.fromarray(page) for page in pages)
    first.save(path, save_all=True, append_images=others, compression="tiff_deflate")


def slices(path: Path, pages: np.ndarray) -> None:
    path.mkdir(exist_ok=True)
    for number, page in enumerate(pages):
        Image.fromarray(page).save(path / f"{number}.png")


AMBIENT = 'x_max = { type = "convection", coefficient = 5.0, ambient = { file = "w.csv", time = "h", column = "T" } }'
# The file, what writes it with one of two contents, and the scenario's text.
KINDS: dict[str, tuple[str, Callable[[Path, bool], object], str, str]] = {
    "CSV": ("w.csv", lambda path, new: path.write_text(f"h,T\n0,300\n2,{390 if new else 310}\n"), "300.0", AMBIENT),
    "array": ("start.npy", lambda path, new: np.save(path, FIELD + new), '{ file = "start.npy" }', ""),
    "picture": (
        "p.png",
        lambda path, new: Image.fromarray(LABELS[int(new)]).save(path),
        '{ image = "p.png", range = [300.0, 400.0] }',
        "",
    ),
    "STL": (
        "part.stl",
        lambda path, new: path.write_text(TETRAHEDRON.replace("9", "8" if new else "9")),
        "300.0",
        'stl = "part.stl"\nmaterial = "one"',
    ),
    "label array": ("ct.npy", lambda path, new: np.save(path, LABELS[:, ::-1] if new else LABELS), "300.0", LABELLED),
    "label TIFF": ("ct.tif", lambda path, new: tiff(path, LABELS[::-1] if new else LABELS), "300.0", LABELLED),
    "label slices": ("ct", lambda path, new: slices(path, LABELS[::-1] if new else LABELS), "300.0", LABELLED),
}


def scenario(folder: Path, kind: str) -> Path:
    """A scenario of CELLS in 4 m × 3 m × 2 m with an input file."""
    name, make, initial, extra = KINDS[kind]
    make(folder / name, False)
    of_face = f"[boundaries]\n{extra}\n" if extra == AMBIENT else ""
    of_region = "" if of_face or not extra else REGION + extra.format(name) + "\n"
    path = folder / "case.toml"
    path.write_text(f"""[domain]
size = [4.0, 3.0, 2.0]
cells = {list(CELLS)}
material = "one"
[materials.one]
conductivity = 1.0
density = 1.0
specific_heat = 1.0
[initial]
temperature = {initial}
[time]
end = 0.5
method = "euler"
[output]
figures = false
{of_face}{of_region}""")
    return path


def change(folder: Path, kind: str) -> None:
    name, make, *_ = KINDS[kind]
    make(folder / name, True)


def content(path: Path) -> dict[str, bytes]:
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_changes_after_reading_is_copied_as_it_was_read(kind: str, tmp_path: Path) -> None:
    read = load(scenario(tmp_path, kind))
    before = content(tmp_path)
    change(tmp_path, kind)
    assert content(tmp_path) != before
    write_resolved(read, tmp_path / "out")
    copies = content(tmp_path / "out")
    del copies[NAME]
    assert copies == {name: before[name] for name in copies}
    assert input_checksums(read) == {name: zlib.crc32(copy) for name, copy in copies.items()}
    assert load(tmp_path / "out" / NAME) == read
    assert load(tmp_path / "case.toml") != read


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_file_that_changes_after_reading_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large: its bytes are not kept in memory."""
    monkeypatch.setattr(files, "KEPT", 0)
    read = load(scenario(tmp_path, kind))
    write_resolved(read, tmp_path / "before")
    assert load(tmp_path / "before" / NAME) == read
    change(tmp_path, kind)
    with pytest.raises(StorageError, match=rf"{KINDS[kind][0]}.*: was changed while it was read; run again"):
        write_resolved(read, tmp_path / "out")
    assert content(tmp_path / "out") == {}


def test_rows_that_are_appended_to_a_large_file_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "KEPT", 0)
    read = load(scenario(tmp_path, "CSV"))
    before = (tmp_path / "w.csv").read_bytes()
    with open(tmp_path / "w.csv", "a") as log:
        log.write("3,500\n")
    write_resolved(read, tmp_path / "out")
    assert (tmp_path / "out" / "w.csv").read_bytes() == before


def test_all_parts_of_a_scenario_see_the_same_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two conditions and the hints read one file, which changes each time that it is read."""
    (tmp_path / "w.csv").write_text("h,T,U\n0,310,320\n5,310,320\n")
    both = "".join(
        f'{face} = {{ type = "temperature", value = {{ file = "w.csv", time = "h", column = "{column}" }} }}\n'
        for face, column in (("x_min", "T"), ("x_max", "U"))
    )
    path = write(tmp_path, extra=f"[boundaries]\n{both}")
    read = files._read

    def then_change(name: Path, kept: int) -> files.InputFile:
        found = read(name, kept)
        name.write_text(name.read_text().replace("310", "311").replace("320", "321"))
        return found

    monkeypatch.setattr(files, "_read", then_change)
    faces = load(path).boundaries
    assert (faces.x_min.value.values, faces.x_max.value.values) == ((310.0, 310.0), (320.0, 320.0))


@pytest.mark.parametrize("kind", ["CSV", "array", "picture", "STL", "label array"])
def test_a_run_and_its_scenario_give_the_same_results_if_a_file_changes_in_between(kind: str, tmp_path: Path) -> None:
    simulation = Simulation.from_scenario(scenario(tmp_path, kind), output=tmp_path / "a")
    change(tmp_path, kind)
    simulation.run()
    Simulation.from_scenario(tmp_path / "a" / NAME, output=tmp_path / "b").run()
    one, other = (open_run(tmp_path / name).energy.to_numpy() for name in "ab")
    np.testing.assert_array_equal(one, other)


def test_the_shape_of_a_label_image_is_compared_before_its_pixels_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = scenario(tmp_path, "label TIFF")
    tiff(tmp_path / "ct.tif", np.zeros((3, 3, 4), np.uint8))

    def read_pixels(file: labels.LabelFile) -> None:
        raise AssertionError(file)

    monkeypatch.setattr(labels, "_pieces", read_pixels)
    (found,) = mistakes_of(path)
    assert found[0] == "regions.0.labels.file"
    assert "has shape (3, 3, 4); domain.cells needs (nz, ny, nx) = (2, 3, 4)" in found[1]


def test_a_label_image_whose_pixels_are_damaged_is_refused(tmp_path: Path) -> None:
    path = scenario(tmp_path, "label slices")
    file = tmp_path / "ct" / "1.png"
    file.write_bytes(file.read_bytes()[:-24])
    (found,) = mistakes_of(path)
    assert found[0] == "regions.0.labels.file"
    assert 'got "ct", which holds 1.png, which cannot be read as a picture' in found[1]


def test_one_picture_is_the_label_image_of_a_body_of_one_layer(tmp_path: Path) -> None:
    path = scenario(tmp_path, "label TIFF")
    Image.fromarray(LABELS[0]).save(tmp_path / "ct.png")
    path.write_text(path.read_text().replace("ct.tif", "ct.png").replace("[4, 3, 2]", "[4, 3, 1]"))
    image = load(path).regions[0].labels
    assert image is not None
    np.testing.assert_array_equal(load_labels(image.file), LABELS[:1, ::-1])


def test_a_picture_in_pieces_gives_the_temperatures_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (41, 30), dtype=np.uint8)
    scenario(tmp_path, "picture")
    Image.fromarray(pixels).save(tmp_path / "p.png")
    picture = load(tmp_path / "case.toml").initial.temperature
    whole = picture.load(8, 7)
    monkeypatch.setattr("heatsim.scenario.tables.initial.CHUNK", 200)
    np.testing.assert_allclose(picture.load(8, 7), whole, rtol=1e-6)


VOID = REGION + 'material = "void"\nbox = { min = [0.0, 0.0, 0.0], max = [1.0, 1.0, 1.0] }\n'


def with_void(folder: Path, value: float, regions: str = VOID) -> Path:
    """A start from a file whose cell [0, 0, 0] has another value."""
    path = scenario(folder, "array")
    field = FIELD.copy()
    field[0, 0, 0] = value
    np.save(folder / "start.npy", field)
    path.write_text(path.read_text() + regions)
    return path


def test_nan_in_void_starts_a_run(tmp_path: Path) -> None:
    """Void takes part in nothing: the conducting cells are those of a file without NaN."""
    fields = []
    for value in (np.nan, 350.0):
        simulation = Simulation.from_scenario(with_void(tmp_path, value), output=tmp_path / str(value))
        simulation.run()
        fields.append(simulation.temperature.reshape(-1)[1:])
    np.testing.assert_allclose(fields[0], fields[1], rtol=1e-12)


@pytest.mark.parametrize(
    ("regions", "message"),
    [
        ("", 'got "start.npy", which holds nan at [0, 0, 0] (z, y, x); a temperature must be finite'),
        (
            VOID.replace("0.0, 0.0, 0.0", "1.0, 0.0, 0.0").replace("1.0, 1.0, 1.0", "2.0, 1.0, 1.0"),
            "is nan K at (0.5, ",
        ),
    ],
)
def test_nan_in_a_cell_that_conducts_is_refused(regions: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as refusal:
        Simulation.from_scenario(with_void(tmp_path, np.nan, regions), output=tmp_path / "out")
    assert message in str(refusal.value)


def test_temperatures_of_a_simulation_are_nan_in_void(tmp_path: Path) -> None:
    """As in the files, before and after the run."""
    simulation = Simulation.from_scenario(with_void(tmp_path, np.nan), output=tmp_path / "out")
    for _ in range(2):
        assert np.isnan(simulation.temperature).reshape(-1).tolist() == [True] + [False] * 23
        if not simulation.finished:
            simulation.run()
    found = open_run(tmp_path / "out").temperature[-1].values
    np.testing.assert_allclose(simulation.temperature, found, rtol=1e-6)


def of_run(folder: Path, time: str) -> Path:
    path = folder / "next.toml"
    start = f'{{ file = "a/fields.vtkhdf", time = {time} }}'
    path.write_text((folder / "case.toml").read_text().replace('{ file = "start.npy" }', start))
    return path


@pytest.mark.parametrize("kept", [0, files.KEPT])
def test_a_time_of_another_run_is_a_start(kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy in the folder is a .npy file of this time alone, with NaN in void."""
    monkeypatch.setattr("heatsim.scenario.stored_field.KEPT", kept)
    path = with_void(tmp_path, np.nan)
    path.write_text(path.read_text().replace("[output]", "[output]\nevery = 0.25"))
    first = Simulation.from_scenario(path, output=tmp_path / "a")
    first.run()
    second = Simulation.from_scenario(of_run(tmp_path, '"500 ms"'), output=tmp_path / "b")
    np.testing.assert_allclose(second.temperature.reshape(-1)[1:], first.temperature.reshape(-1)[1:], rtol=1e-7)
    second.run()
    copy = np.load(tmp_path / "b" / "fields.npy")
    assert copy.shape == FIELD.shape
    assert np.isnan(copy.reshape(-1)).tolist() == [True] + [False] * 23
    again = load(tmp_path / "b" / NAME)
    assert again.initial.temperature == second.plan.problem.scenario.initial.temperature
    Simulation.from_scenario(tmp_path / "b" / NAME, output=tmp_path / "c").run()
    one, other = (open_run(tmp_path / name).energy.to_numpy() for name in "bc")
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("time", "key", "message"),
    [
        ("0.3", "file", 'got "a/fields.vtkhdf", which has no field at t = 0.3 s; its times are 0, 0.5 s'),
        ("-1.0", "time", "a time must be at least 0 s"),
    ],
)
def test_a_time_that_a_run_does_not_have_is_refused(time: str, key: str, message: str, tmp_path: Path) -> None:
    Simulation.from_scenario(scenario(tmp_path, "array"), output=tmp_path / "a").run()
    (found,) = mistakes_of(of_run(tmp_path, time))
    assert found[0] == f"initial.temperature.{key}"
    assert message in found[1]


def test_a_time_of_a_run_in_another_domain_is_refused(tmp_path: Path) -> None:
    Simulation.from_scenario(scenario(tmp_path, "array"), output=tmp_path / "a").run()
    path = of_run(tmp_path, "0.5")
    load(path)
    path.write_text(path.read_text().replace("[domain]", "[domain]\norigin = [0.0, 0.0, 0.1]"))
    assert mistakes_of(path)[0] == (
        "initial.temperature.file",
        'got "fields.vtkhdf", which belongs to a domain of 4 × 3 × 2 m from (0, 0, 0) m, and this one has 4 × 3 × 2 m '
        "from (0, 0, 0.1) m; use the same domain, or save the array as a .npy file if its cells are meant whatever "
        "their places",
    )


def test_a_file_without_fields_is_refused(tmp_path: Path) -> None:
    path = scenario(tmp_path, "array")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "fields.vtkhdf").write_bytes(b"nothing")
    (found,) = mistakes_of(of_run(tmp_path, "0.0"))
    assert 'got "a/fields.vtkhdf", which cannot be read' in found[1]
    path.write_text(path.read_text().replace("start.npy", "a/fields.vtkhdf"))
    (found,) = mistakes_of(path)
    assert found == ("initial.temperature.time", "missing; write for example time = 60.0, one of the times in the file")


def test_the_temperature_of_a_simulation_cannot_be_changed(tmp_path: Path) -> None:
    simulation = Simulation.from_scenario(scenario(tmp_path, "array"), output=tmp_path / "a")
    with pytest.raises(ValueError, match="read-only"):
        simulation.temperature[:] = 350.0


def test_equal_files_are_kept_once(tmp_path: Path) -> None:
    """The scenarios of a study share the bytes of their files."""
    path = scenario(tmp_path, "array")

    def start(of: Scenario) -> files.InputFile:
        assert isinstance(of.initial.temperature, ArrayFile)
        return of.initial.temperature.file

    first, second = load(path), load(path)
    assert start(first) is start(second)
