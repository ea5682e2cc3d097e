"""Draw photograph.png, the picture that photograph.toml smooths: mountains at a lake in the evening, with grain.

python scenarios/photograph.py
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

WIDTH, HEIGHT = 256, 192
SHORE = 128  # row of the waterline, counted from the top
GRAIN = 0.06  # standard deviation of the noise; 1 is the step from black to white


def ridge(x: NDArray[np.float64], rng: np.random.Generator, top: float, rise: float) -> NDArray[np.float64]:
    """Row of a mountain ridge at each column: waves of halving length, with random phases."""
    row = np.full_like(x, top)
    for octave in range(7):
        row += rise * 0.55**octave * np.abs(np.sin(np.pi * x * 2.0**octave / 180.0 + rng.uniform(0.0, np.pi)))
    return row


def draw(seed: int = 7) -> NDArray[np.uint8]:
    """The picture's grey values, shape (192, 256), row 0 at the top."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float64)
    columns = x[0]

    # 1. The sky brightens towards the horizon and around the sun.
    picture = 0.35 + 0.35 * y / SHORE
    from_sun = np.hypot(x - 182.0, y - 44.0)
    picture += 0.35 * np.exp(-from_sun / 38.0)
    picture[from_sun < 13.0] = 1.0

    # 2. Three ridges, the nearer the darker, each with haze at its foot.
    for top, rise, grey in ((46.0, 26.0, 0.46), (72.0, 22.0, 0.32), (96.0, 18.0, 0.16)):
        edge = ridge(columns, rng, top, rise)
        picture = np.where(y >= edge, grey + 0.12 * np.clip((y - edge) / 50.0, 0.0, 1.0), picture)

    # 3. The lake mirrors what stands above it, darker and rippled.
    rows = np.arange(SHORE, HEIGHT)
    ripple = np.round(1.5 * np.sin(rows[:, None] * 1.7 + columns / 9.0)).astype(int)
    mirrored = np.clip(2 * SHORE - rows[:, None] - 1 + ripple, 0, SHORE - 1)
    picture[SHORE:] = 0.75 * picture[mirrored, columns.astype(int)] + 0.05

    # 4. Two firs and a hut with a lit window on the near shore.
    for foot, centre, height in ((186.0, 44.0, 92.0), (180.0, 70.0, 56.0)):
        above = foot - y
        width = (height - above) * 0.24 * (0.75 + 0.25 * np.mod(above, 11.0) / 11.0)
        picture[(above > 6.0) & (above < height) & (np.abs(x - centre) < width)] = 0.05
        picture[(above >= -2.0) & (above <= 6.0) & (np.abs(x - centre) < 2.5)] = 0.05
    shore = y > 184.0 - 6.0 * np.cos((x - 60.0) / 70.0)
    picture[shore] = 0.09
    picture[(np.abs(x - 118.0) < 17.0) & (y > 156.0) & (y < 183.0)] = 0.13
    picture[(y > 140.0) & (y <= 157.0) & (np.abs(x - 118.0) < (y - 140.0) * 1.3)] = 0.62
    picture[(np.abs(x - 118.0) < 5.0) & (np.abs(y - 169.0) < 5.0)] = 0.97

    # 5. The grain of the film.
    picture += rng.normal(0.0, GRAIN, picture.shape)
    return np.round(255.0 * np.clip(picture, 0.0, 1.0)).astype(np.uint8)


if __name__ == "__main__":
    Image.fromarray(draw()).save(Path(__file__).with_suffix(".png"), optimize=True)
