"""From where pictures in space are seen: named cameras, angles, and the side that is warm."""

import re
from pathlib import Path

import numpy as np
import pytest
from run_folders import write_run

from heatsim.errors import InputError
from heatsim.grid import Grid
from heatsim.render import render
from heatsim.render.choice import PictureChoice, read_camera
from heatsim.render.page.view import CAMERAS, DEFAULT_CAMERA, Camera, View
from heatsim.render.spatial.warm_side import warm_side

SIZE = (1.0, 0.6, 0.3)


@pytest.mark.parametrize(
    ("name", "direction", "right", "up"),
    [
        ("front", [0, -1, 0], [1, 0, 0], [0, 0, 1]),
        ("back", [0, 1, 0], [-1, 0, 0], [0, 0, 1]),
        ("top", [0, 0, 1], [1, 0, 0], [0, 1, 0]),
        ("below", [0, 0, -1], [1, 0, 0], [0, -1, 0]),
    ],
)
def test_cameras_look_along_an_axis(name: str, direction: list[int], right: list[int], up: list[int]) -> None:
    camera = read_camera(name)
    assert camera is not None
    np.testing.assert_array_equal(camera.direction(), direction)
    np.testing.assert_array_equal(camera.screen_axes(), [right, up])


def test_angles_are_read_and_others_refused() -> None:
    assert read_camera(None) is None
    assert read_camera("-57, 26") == Camera(303.0, 26.0)
    np.testing.assert_allclose(Camera(303.0, 26.0).direction(), DEFAULT_CAMERA.direction())
    for text in ("left", "20", "20, 91", "20, x", "1, 2, 3", ""):
        with pytest.raises(
            InputError, match=re.escape(f'--camera: got "{text}"; one of front, back, top, below is expected, or the')
        ):
            read_camera(text)


@pytest.mark.parametrize("azimuth", range(0, 360, 40))
@pytest.mark.parametrize("elevation", [-90.0, -35.0, 0.0, 60.0])
def test_the_outline_is_that_of_the_silhouette(azimuth: float, elevation: float) -> None:
    """The ends of the edges that bound the outline reach as far as the box in the image, in all directions."""
    view = View.fitting(800, 700, (50, 50, 50, 50), SIZE, Camera(azimuth, elevation))
    corners = view.project(np.array([[x, y, z] for x in (0, 1.0) for y in (0, 0.6) for z in (0, 0.3)]))
    ends = []
    for axis in range(3):
        for sides in view.camera.silhouette(axis):
            for end in (0.0, SIZE[axis]):
                place = [side * SIZE[other] for side, other in zip(sides, sorted({0, 1, 2} - {axis}), strict=True)]
                place.insert(axis, end)
                ends.append(place)
    for found in (corners, view.project(np.array(ends))):
        np.testing.assert_allclose([found.min(axis=0), found.max(axis=0)], [corners.min(axis=0), corners.max(axis=0)])
    assert corners.min() == pytest.approx(50.0)


@pytest.mark.parametrize(("axis", "end"), [(axis, end) for axis in range(3) for end in (0, -1)])
def test_the_camera_sees_the_warm_face(axis: int, end: int) -> None:
    values = np.full((6, 8, 10), 300.0)
    np.moveaxis(values, 2 - axis, 0)[end, 2:5, 2:5] = 350.0
    camera = warm_side(values, SIZE)
    assert np.sign(camera.direction()[axis]) == (1.0 if end else -1.0)
    usual = np.sign(DEFAULT_CAMERA.direction()[axis]) == np.sign(camera.direction()[axis])
    assert (camera == DEFAULT_CAMERA) == usual
    void = np.where(np.arange(8)[:, None] < 4, values, np.nan)
    void[:, :, 0] = np.nan
    assert isinstance(warm_side(void, SIZE), Camera)


@pytest.mark.parametrize("values", [np.full((3, 3, 3), 300.0), np.full((3, 3, 3), np.nan)])
def test_a_field_without_a_warm_side_is_seen_from_the_usual_corner(values: np.ndarray) -> None:
    assert warm_side(values, SIZE) == DEFAULT_CAMERA


def test_a_camera_is_refused_where_nothing_is_seen_in_space(tmp_path: Path) -> None:
    plane = write_run(tmp_path / "plane", Grid((8, 8, 1), (1.0, 1.0, 1.0)), probes=())
    body = write_run(tmp_path / "body", Grid((4, 4, 4), (1.0, 1.0, 1.0)), probes=())
    with pytest.raises(InputError, match="--camera: this run has no 3-D views"):
        render(plane, PictureChoice(camera=CAMERAS["top"]))
    with pytest.raises(InputError, match="--camera: sections are flat"):
        render(body, PictureChoice(camera=CAMERAS["top"], views=("sections",)))
