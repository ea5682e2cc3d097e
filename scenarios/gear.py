"""Make gear.stl, the surface of the gear blank in cooling_gear.toml.

python scenarios/gear.py

The outline and the bore have as many points each, so that quadrilaterals join them, cut into two triangles. Metres;
the axis is z, from 0 to the width.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TEETH, TIP, ROOT, BORE, WIDTH = 16, 0.120, 0.096, 0.036, 0.050
# Of the angle between two teeth: where the flanks begin and end.
ROOT_HALF, TIP_HALF = 0.28, 0.14
TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def ring(radii: NDArray[np.float64], angles: NDArray[np.float64], z: float) -> NDArray[np.float64]:
    """Points around the axis, shape (n, 3)."""
    return np.stack([radii * np.cos(angles), radii * np.sin(angles), np.full(len(angles), z)], axis=1)


def band(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Triangles between two rings; seen from outside they turn left where ``other`` lies to the left of ``one``."""
    one_next, other_next = np.roll(one, -1, axis=0), np.roll(other, -1, axis=0)
    return np.concatenate([np.stack([one, one_next, other_next], axis=1), np.stack([one, other_next, other], axis=1)])


def gear() -> NDArray[np.float64]:
    """The triangles of the surface, corners in metres, shape (n, 3, 3)."""
    pitch = 2.0 * np.pi / TEETH
    in_tooth = np.array([-ROOT_HALF, -TIP_HALF, TIP_HALF, ROOT_HALF]) * pitch
    angles = (np.arange(TEETH)[:, None] * pitch + in_tooth).reshape(-1)
    outline = np.tile([ROOT, TIP, TIP, ROOT], TEETH)
    bore = np.full(len(angles), BORE)
    outer_low, outer_high = ring(outline, angles, 0.0), ring(outline, angles, WIDTH)
    inner_low, inner_high = ring(bore, angles, 0.0), ring(bore, angles, WIDTH)
    return np.concatenate(
        [
            band(outer_low, outer_high),
            band(outer_high, inner_high),
            band(inner_high, inner_low),
            band(inner_low, outer_low),
        ]
    )


if __name__ == "__main__":
    corners = gear()
    triangles = np.zeros(len(corners), dtype=TRIANGLE)
    triangles["corners"] = corners
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    triangles["normal"] = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    header = b"gear blank, metres".ljust(80) + np.uint32(len(triangles)).tobytes()
    Path(__file__).with_name("gear.stl").write_bytes(header + triangles.tobytes())
