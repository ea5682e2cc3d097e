"""A small scenario with a study: 8 × 4 cells that cool; a run takes at most 1/6 s."""

from pathlib import Path

BASE = """
title = "Plate that cools"

[domain]
size = [0.04, 0.02, 0.01]
cells = [8, 4, 1]

[material]
conductivity = 40.0
density = 2000.0
specific_heat = 500.0

[initial]
temperature = 400.0

[boundaries]
x_min = { type = "convection", coefficient = 500.0, ambient = "20 degC" }
x_max = { type = "temperature", value = 320.0 }

[time]
end = 8.0
method = "euler"

[solver]
device = "cpu"
kernel = "numpy"

[output]
probe_every = 0.5
figures = false

[[probes]]
name = "middle"
point = [0.02, 0.01, 0.005]
"""

COOLED = """
[[study.responses]]
name = "cooled"
probe = "middle"
statistic = "time_below"
threshold = "390 K"
"""

STUDY = f"""
[study]
method = "grid"

[study.parameters]
"material.conductivity" = [20.0, 40.0]
"boundaries.x_min.coefficient" = [100.0, 300.0, 900.0]
{COOLED}
[[study.responses]]
name = "warmest"
probe = "middle"
statistic = "max"
"""


def write(at: Path, study: str = STUDY, base: str = BASE, name: str = "plate.toml") -> Path:
    at.mkdir(parents=True, exist_ok=True)
    path = at / name
    path.write_text(base + study, encoding="utf-8")
    return path


def without_times(table: Path) -> list[str]:
    """The lines of results.csv without the last column, the wall time."""
    return [line.rsplit(",", 1)[0] for line in table.read_text(encoding="utf-8").splitlines()]
