import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from heatsim.grid import Grid
from heatsim.scenario.files import InputFile
from heatsim.scenario.tables.initial import ArrayFile, ImageFile, read_initial, value_fault
from heatsim.scenario.values.expressions import Expression

GRID = Grid((2, 3, 4), (1.0, 1.0, 1.0))


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def save_array(folder, array, name="start.npy"):
    np.save(folder / name, array)
    return {"file": name}


def save_picture(folder, pixels, name="photo.png", **limits):
    Image.fromarray(np.asarray(pixels)).save(folder / name)
    return {"image": name, "range": limits.get("range", [300.0, 400.0])}


def message_at(value, folder):
    """The key and the message of the one mistake in a value."""
    with pytest.raises(ValueError, match=r".") as caught:
        read_initial(value, folder)
    if isinstance(caught.value, ValidationError):
        (error,) = caught.value.errors()
        return error["loc"], error["msg"]
    return (), str(caught.value)


def test_number_unit_and_expression(folder):
    assert read_initial(300, folder) == 300.0
    assert read_initial("20 degC", folder) == 293.15
    assert read_initial("300 + x*y", folder) == Expression("300 + x*y", ("x", "y", "z"))
    assert read_initial("300", folder) == Expression("300", ("x", "y", "z"))


@pytest.mark.parametrize(
    ("value", "fragments"),
    [
        (-1, ["got -1; a temperature must be at least 0 K"]),
        (False, ["got false", "start.npy"]),
        ("300 + t", ['"t" is not known; known are x, y, z']),
    ],
)
def test_wrong_value_is_refused(value, fragments, folder):
    _, message = message_at(value, folder)
    for fragment in fragments:
        assert fragment in message


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, ">f8"])
def test_array_is_mapped_as_it_is(folder, dtype):
    values = np.arange(24).reshape(4, 3, 2).astype(dtype)
    start = read_initial(save_array(folder, values), folder)
    assert start == ArrayFile(InputFile.of(folder / "start.npy"))
    array = start.load()
    assert array.dtype == values.dtype
    assert (array == values).all()


def with_one(value):
    array = np.full((4, 3, 2), 300.0)
    array[2, 1, 0] = value
    return array


@pytest.mark.parametrize(
    ("array", "fragment"),
    [
        (np.ones(24), "has shape (24,)"),
        (np.ones((4, 3, 2), dtype=complex), "holds complex128; real numbers"),
        (np.ones((4, 3, 2), dtype=bool), "holds bool; real numbers"),
        (np.full((4, 3, 2), None), "cannot be read as a .npy file"),
    ],
)
def test_wrong_array_is_refused(array, fragment, folder):
    place, message = message_at(save_array(folder, array), folder)
    assert place == ("file",)
    assert message.startswith('got "start.npy", which ')
    assert fragment in message


@pytest.mark.parametrize(
    ("array", "fragment"),
    [
        (with_one(-0.5), "holds -0.5 at [2, 1, 0] (z, y, x); a temperature must be at least 0 K"),
        (with_one(np.inf).astype(np.float16), "holds inf at [2, 1, 0]"),
        (with_one(np.nan), "holds nan at [2, 1, 0]"),
    ],
)
def test_wrong_values_are_found_at_their_place(array, fragment, folder, monkeypatch):
    monkeypatch.setattr("heatsim.scenario.tables.initial.CHUNK", 2)
    assert fragment in value_fault(read_initial(save_array(folder, array), folder), uses_void=False)


@pytest.mark.parametrize(
    ("table", "place", "fragment"),
    [
        ({}, ("file",), 'missing; write for example file = "start.npy"'),
        ({"file": "none.npy"}, ("file",), 'got "none.npy"; there is no such file in '),
        ({"file": "x" * 5000}, ("file",), "there is no such file"),
        ({"file": "folder.npy"}, ("file",), "this is a folder: name a file in it"),
        ({"file": "a\0b.npy"}, ("file",), "the name of a file is expected"),
        ({"file": 3}, ("file",), "got 3; the name of a file"),
        ({"file": "notes.txt"}, ("file",), "ending in .npy"),
        ({"file": "damaged.npy"}, ("file",), "cannot be read as a .npy file"),
        (
            {"file": "good.npy", "fill": 3},
            ("fill",),
            'unknown key: the keys allowed here are file; did you mean "file"?',
        ),
        ({"image": "photo.png"}, ("range",), "missing; write for example range"),
        ({"image": "photo.png", "range": [300]}, ("range",), "two temperatures"),
        ({"image": "photo.png", "range": [400, 300]}, ("range",), "black must be colder"),
        ({"image": "photo.png", "range": [-1, 300]}, ("range", 0), "at least 0 K"),
        ({"image": "photo.png", "range": [0, 300], "file": "x"}, ("file",), "unknown key"),
        (
            {"image": "damaged.png", "range": [0, 300]},
            ("image",),
            'got "damaged.png", which cannot be read as a picture',
        ),
        ({"image": "notes.txt", "range": [0, 300]}, ("image",), "ending in .png"),
        ({"image": "drawing.png", "range": [0, 300]}, ("image",), "cannot be read as a picture"),
        ({"image": "float.tif", "range": [0, 300]}, ("image",), "floating-point"),
    ],
)
def test_wrong_file_table_is_refused_at_its_place(table, place, fragment, folder):
    save_array(folder, np.ones((4, 3, 2)), "good.npy")
    save_picture(folder, np.zeros((3, 2), np.uint8))
    save_picture(folder, np.zeros((3, 2), np.float32), "float.tif")
    (folder / "folder.npy").mkdir()
    (folder / "notes.txt").write_text("notes")
    (folder / "damaged.npy").write_bytes((folder / "good.npy").read_bytes()[:-8])
    (folder / "damaged.png").write_bytes((folder / "photo.png").read_bytes()[:30])
    (folder / "drawing.png").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 2 3\n")
    where, message = message_at(table, folder)
    assert where == place
    assert fragment in message


def test_picture_black_to_white_with_its_top_at_y_max(folder):
    start = read_initial(save_picture(folder, np.array([[0, 255], [51, 102], [204, 153]], np.uint8)), folder)
    assert start == ImageFile(InputFile.of(folder / "photo.png"), (300.0, 400.0))
    np.testing.assert_allclose(start.load(2, 3), [[380, 360], [320, 340], [300, 400]], atol=1e-4)


def test_picture_is_averaged_over_the_cells_it_covers(folder):
    pixels = np.kron(np.array([[0, 255], [255, 0]]), np.array([[0.0, 0.4], [0.4, 0.8]]))
    start = read_initial(save_picture(folder, pixels.astype(np.uint8), range=["0 degC", "100 degC"]), folder)
    np.testing.assert_allclose(start.load(2, 2), [[313.15, 273.15], [273.15, 313.15]], atol=1e-4)


def test_picture_smaller_than_the_grid_gives_steps(folder):
    start = read_initial(save_picture(folder, np.array([[0, 255]], np.uint8)), folder)
    np.testing.assert_array_equal(start.load(4, 2), [[300, 300, 400, 400]] * 2)


@pytest.mark.parametrize(
    "pixels",
    [
        np.array([[0, 65535]], np.uint16),
        np.array([[[0, 0, 0], [255, 255, 255]]], np.uint8),
        np.array([[[0, 0, 0, 255], [255, 255, 255, 255]]], np.uint8),
        np.array([[False, True]]),
    ],
    ids=["16 bit", "RGB", "RGBA", "1 bit"],
)
def test_all_kinds_of_pixels_span_the_range(folder, pixels):
    start = read_initial(save_picture(folder, pixels), folder)
    np.testing.assert_array_equal(start.load(2, 1), [[300.0, 400.0]])


def test_palette_picture_is_taken_by_its_colours(folder):
    picture = Image.fromarray(np.array([[0, 255]], np.uint8)).convert("P")
    picture.save(folder / "photo.png", transparency=b"\x00\xff")
    start = read_initial({"image": "photo.png", "range": [300, 400]}, folder)
    np.testing.assert_array_equal(start.load(2, 1), [[300.0, 400.0]])


def test_photograph_is_turned_as_it_is_looked_at(folder):
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    Image.fromarray(np.array([[0], [255]], np.uint8)).save(folder / "photo.png", exif=exif)
    start = read_initial({"image": "photo.png", "range": [300, 400]}, folder)
    np.testing.assert_array_equal(start.load(1, 2), [[300.0], [400.0]])


def test_files_are_equal_by_name_and_content(folder, tmp_path):
    def read(where: str) -> InputFile:
        return InputFile.of(tmp_path / where / "start.npy")

    for name, value in (("one", 1.0), ("same", 1.0), ("other", 0.0)):
        (tmp_path / name).mkdir()
        save_array(tmp_path / name, np.full(3, value))
    assert ArrayFile(read("one")) == ArrayFile(read("same"))
    assert hash(ArrayFile(read("one"))) == hash(ArrayFile(read("same")))
    assert ArrayFile(read("one")) != ArrayFile(read("other"))
    assert ImageFile(read("one"), (0.0, 1.0)) == ImageFile(read("same"), (0.0, 1.0))
    assert ImageFile(read("one"), (0.0, 1.0)) != ImageFile(read("one"), (0.0, 2.0))
    assert ImageFile(read("one"), (0.0, 1.0)) != ImageFile(read("other"), (0.0, 1.0))
