"""The field at the start: slab by slab the same as at once, its range, and the reference temperature."""

from pathlib import Path

import numpy as np
import pytest
from exact import scenario
from numpy.typing import NDArray
from PIL import Image

from heatsim.errors import ScenarioError
from heatsim.physics.estimates import initial
from heatsim.physics.estimates.initial import InitialField
from heatsim.scenario import load

CELLS = (5, 4, 7)
HILL = "300 + 40*x + 3*y - 20*z^2 + 5*sin(7*x*y*z)"


def field(folder: Path, temperature: float | str, cells: tuple[int, int, int] = CELLS) -> InitialField:
    path = folder / "case.toml"
    path.write_text(scenario((1.0, 2.0, 3.0), cells, initial=temperature, end=1.0), encoding="utf-8")
    return InitialField.from_scenario(load(path))


def whole(start: InitialField) -> NDArray[np.float64]:
    firsts, slabs = zip(*start.slabs(), strict=True)
    assert list(firsts) == np.cumsum([0, *(len(slab) for slab in slabs[:-1])]).tolist()
    return np.concatenate(slabs)


def test_an_expression_is_evaluated_at_the_cell_centres(tmp_path: Path) -> None:
    T = whole(field(tmp_path, HILL))
    assert T.shape == CELLS[::-1]
    for k, j, i in np.ndindex(T.shape):
        x, y, z = (i + 0.5) / 5.0, 2.0 * (j + 0.5) / 4.0, 3.0 * (k + 0.5) / 7.0
        expected = 300 + 40 * x + 3 * y - 20 * z**2 + 5 * np.sin(7 * x * y * z)
        assert T[k, j, i] == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("cells_per_slab", [1, 20, 40, 60, 1000])
def test_slabs_make_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cells_per_slab: int) -> None:
    at_once = field(tmp_path, HILL)
    expected = whole(at_once)
    monkeypatch.setattr(initial, "_CELLS_PER_SLAB", cells_per_slab)
    slab_by_slab = field(tmp_path, HILL)
    assert whole(slab_by_slab).tobytes() == expected.tobytes()
    assert (slab_by_slab.lowest, slab_by_slab.highest) == (at_once.lowest, at_once.highest)
    slabs = [slab for _, slab in slab_by_slab.slabs()]
    assert max(slab.size for slab in slabs) <= max(cells_per_slab, 20)


def test_the_reference_is_the_value_of_a_uniform_start_or_the_middle(tmp_path: Path) -> None:
    assert field(tmp_path, 321.7).reference == 321.7
    ramp = field(tmp_path, "300 + 100*x")
    assert (ramp.lowest, ramp.highest) == (pytest.approx(310.0), pytest.approx(390.0))
    assert ramp.reference == pytest.approx(350.0, rel=1e-15)


def test_an_array_lies_in_the_file_as_z_y_x(tmp_path: Path) -> None:
    values = 300.0 + np.arange(140.0).reshape(7, 4, 5)
    np.save(tmp_path / "start.npy", values)
    path = tmp_path / "case.toml"
    text = scenario((1.0, 2.0, 3.0), CELLS, initial=300.0, end=1.0)
    path.write_text(text.replace("temperature = 300.0", 'temperature = { file = "start.npy" }'), encoding="utf-8")
    start = InitialField.from_scenario(load(path))
    np.testing.assert_array_equal(whole(start), values)
    assert start.reference == 300.0 + 139.0 / 2.0


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("start.npy", "removed"),
        ("start.npy", "cut"),
        ("start.npy", "shape"),
        ("photo.png", "removed"),
        ("photo.png", "cut"),
    ],
)
def test_a_large_file_that_changes_after_it_was_checked_gets_a_message(
    tmp_path: Path, name: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large: its bytes are not kept in memory."""
    monkeypatch.setattr("heatsim.scenario.files.KEPT", 0)
    file, path = tmp_path / name, tmp_path / "case.toml"
    if name == "start.npy":
        np.save(file, np.full((7, 4, 5), 300.0))
        value = '{ file = "start.npy" }'
    else:
        Image.fromarray(np.zeros((4, 5), np.uint8)).save(file)
        value = '{ image = "photo.png", range = [300.0, 400.0] }'
    text = scenario((1.0, 2.0, 3.0), CELLS, initial=300.0, end=1.0)
    path.write_text(text.replace("temperature = 300.0", f"temperature = {value}"), encoding="utf-8")
    checked = load(path)
    if change == "removed":
        file.unlink()
    elif change == "cut":
        file.write_bytes(file.read_bytes()[:20])
    else:
        np.save(file, np.full((7, 4, 6), 300.0))
    with pytest.raises(ScenarioError, match=r"case\.toml: initial\.temperature: .* was changed or removed") as refusal:
        InitialField.from_scenario(checked)
    assert str(file) in str(refusal.value)


@pytest.mark.parametrize("value", [-5.0, float("nan"), float("inf")])
def test_what_is_no_temperature_is_refused_with_its_place(tmp_path: Path, value: float) -> None:
    values = np.full((7, 4, 5), 300.0)
    values[6, 1, 2] = value
    np.save(tmp_path / "start.npy", values)
    path = tmp_path / "case.toml"
    text = scenario((1.0, 2.0, 3.0), CELLS, initial=300.0, end=1.0)
    path.write_text(text.replace("temperature = 300.0", 'temperature = { file = "start.npy" }'), encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"initial\.temperature.*") as refusal:
        InitialField.from_scenario(load(path))
    message = str(refusal.value)
    assert repr(value) in message
    assert "[2, 1, 6]" in message or "[6, 1, 2]" in message


@pytest.mark.parametrize("cells_per_slab", [1, 60, 10_000])
def test_neighbours_and_faces_are_those_of_the_whole_field(
    cells_per_slab: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = field(tmp_path, HILL)
    monkeypatch.setattr(initial, "_CELLS_PER_SLAB", cells_per_slab)
    T, (steps, slopes, faces) = whole(start), start.unevenness()
    assert steps.tolist() == slopes.tolist() == [np.abs(np.diff(T, axis=axis)).max() for axis in (2, 1, 0)]
    of_faces = [T.take(end, axis=axis) for axis in (2, 1, 0) for end in (0, -1)]
    assert faces.tolist() == [[of.min(), of.max()] for of in of_faces]


def test_an_even_field_has_no_steps(tmp_path: Path) -> None:
    steps, slopes, faces = field(tmp_path, 350.0).unevenness()
    assert steps.tolist() == slopes.tolist() == [0.0, 0.0, 0.0]
    assert (faces == 350.0).all()
