"""Write weather.csv, the made-up weather of a year in a temperate climate at 48° north, hour by hour.

python scenarios/weather.py
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

HOURS = 8760
LATITUDE = np.radians(48.0)
ABSORPTIVITY, FILM = 0.6, 25.0  # of a grey render; W/(m² K) outside


def temperatures(rng: np.random.Generator, hour: Array) -> Array:
    """Air temperature in °C: a year, a day, and weather that lasts some days. The year ends as it begins."""
    year = 9.5 - 10.0 * np.cos(2.0 * np.pi * (hour / 24.0 - 20.0) / 365.0)
    day = -(3.0 - 1.5 * np.cos(2.0 * np.pi * hour / HOURS)) * np.cos(2.0 * np.pi * (hour - 3.0) / 24.0)
    # Fronts: waves of 2 to 12 days with random phases.
    fronts = np.zeros(len(hour))
    for cycles in range(30, 183, 3):
        fronts += rng.normal(0.0, 3.0 / np.sqrt(cycles)) * np.cos(
            2.0 * np.pi * cycles * hour / HOURS + rng.uniform(0.0, 2.0 * np.pi)
        )
    return np.asarray(year + day + 2.2 * fronts)


def sun_on_south_wall(rng: np.random.Generator, hour: Array) -> Array:
    """Solar irradiance in W/m² on a vertical wall that faces south, under clouds that change from day to day."""
    day, angle = np.floor(hour / 24.0), np.radians(15.0 * (hour % 24.0 - 12.0))
    declination = np.radians(23.45) * np.sin(2.0 * np.pi * (284.0 + day) / 365.0)
    height = np.sin(LATITUDE) * np.sin(declination) + np.cos(LATITUDE) * np.cos(declination) * np.cos(angle)
    towards_south = np.cos(declination) * np.cos(angle) * np.sin(LATITUDE) - np.sin(declination) * np.cos(LATITUDE)
    above = height > 0.02
    direct = np.where(above, 900.0 * np.exp(-0.15 / np.maximum(height, 0.02)) * np.maximum(towards_south, 0.0), 0.0)
    diffuse = np.where(above, 90.0 * np.sqrt(np.maximum(height, 0.0)), 0.0)
    clear = np.append(rng.beta(0.9, 1.1, HOURS // 24), 0.0)[day.astype(int)]
    return np.asarray(clear * direct + diffuse)


def write(file: Path, seed: int = 11) -> None:
    """Write the table. Row 8760 repeats row 0, so that the year can be repeated."""
    rng = np.random.default_rng(seed)
    hour = np.arange(HOURS, dtype=np.float64)
    outside, sun = temperatures(rng, hour), sun_on_south_wall(rng, hour)
    # The air that would give a wall as much heat as air and sun together.
    sol_air = outside + ABSORPTIVITY * sun / FILM
    rows = [f"{a:.1f},{b:.0f},{c:.1f}" for a, b, c in zip(outside, sun, sol_air, strict=True)]
    lines = ["hour,T_out,sun,T_sol_air", *(f"{number},{row}" for number, row in enumerate([*rows, rows[0]]))]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).with_suffix(".csv"))
