"""Two scenarios as text, one of a single material and one of several, which the tests here change."""

from pathlib import Path

TEXT = """
[domain]
size = [0.1, 0.2, 0.3]
cells = [4, 5, 6]

[material]
conductivity = 237.0
density = 2700.0
specific_heat = 900.0

[initial]
temperature = 300.0

[time]
end = 60.0
"""


COMPOSITE = """
[domain]
size = [0.04, 0.03, 0.02]
cells = [8, 6, 4]
material = "copper"

[materials.copper]
conductivity = 400.0
density = 8960.0
specific_heat = 385.0

[materials.silicon]
conductivity = { temperatures = ["300 K", 500.0], values = [148.0, 76.0] }
density = 2330.0
specific_heat = "700 + 0.4*(T - 300)"

[materials.wax]
conductivity = [0.2, 0.2, 0.3]
density = 900.0
specific_heat = 2000.0
latent_heat = "200 kJ/kg"
solidus = "50 degC"
liquidus = "54 degC"

[[regions]]
name = "die"
material = "silicon"
box = { min = [0.01, 0.01, 0.015], max = [0.03, 0.02, 0.02] }
initial_temperature = "60 degC"

[[regions]]
name = "ball"
material = "wax"
sphere = { centre = [0.02, 0.015, 0.01], radius = "4 mm" }

[[regions]]
name = "hole"
material = "void"
cylinder = { from = [0.005, 0.005, 0.0], to = [0.005, 0.005, 0.02], radius = 0.004 }

[[contacts]]
between = ["copper", "silicon"]
resistance = 1e-5

[time]
end = 60.0
stop_below = 1e-4

[initial]
temperature = 300.0

[boundaries]
default = { type = "convection", coefficient = 10.0, ambient = 300.0, emissivity = 0.5 }
x_max = { type = "radiation", emissivity = 0.9, ambient = "20 degC" }
y_min = { type = "periodic" }
y_max = { type = "periodic" }
void = { type = "convection", coefficient = 5.0, ambient = 290.0 }

[[patches]]
face = "z_max"
rectangle = { min = [0.0, 0.0], max = [0.01, 0.01] }
type = "flux"
value = 2e4

[[patches]]
name = "strip"
face = "z_max"
rectangle = { min = [0.01, 0.0], max = [0.04, 0.01] }
type = "radiation"
emissivity = 0.3
ambient = "300 + t"

[[sources]]
region = "die"
power = 120.0
during = [0.0, 5.0]

[[sources]]
name = "coil"
box = { min = [0.0, 0.0, 0.0], max = [0.01, 0.01, 0.01] }
power_density = "-1 MW/m^3"
scale = "sin(t)"

[[sources]]
name = "laser"
beam = { face = "z_max", power = 50.0, radius = 1e-3, path = [[0.005, 0.01], [0.035, 0.01]], speed = 0.2, start = 1.0 }

[output]
heat_flux = true

[[probes]]
name = "centre"
point = [0.02, 0.015, 0.01]

[[probes]]
name = "axis"
line = { from = [0.0, 0.015, 0.01], to = [0.04, 0.015, 0.01], count = 5 }

[[probes]]
name = "die, hottest"
region = "die"
statistic = "max"
"""


def write(folder: Path, *changes: tuple[str, str], extra: str = "", name: str = "rod.toml", text: str = TEXT) -> Path:
    """Write the scenario to a file, with each pair (old, new) replaced in its text and ``extra`` added at the end."""
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / name
    path.write_text(text + extra, encoding="utf-8")
    return path
