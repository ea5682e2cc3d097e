"""Scenarios of composite bodies: a wall with an exact answer, and one with everything that there is."""

WALL = """
title = "Composite wall"
[domain]
size = [0.8, 1.0, 1.0]
cells = [16, 1, 1]
material = "copper"
[materials.copper]
conductivity = 401.0
density = 8960.0
specific_heat = 385.0
[materials.iron]
conductivity = 80.2
density = 7870.0
specific_heat = 447.0
[[regions]]
name = "iron"
material = "iron"
box = { min = [0.4, 0.0, 0.0], max = [0.8, 1.0, 1.0] }
[initial]
temperature = "600 - 750*x"
[boundaries]
x_min = { type = "temperature", value = 600.0 }
x_max = { type = "temperature", value = 0.0 }
[time]
end = 60000.0
[solver]
device = "cpu"
precision = "float64"
[output]
figures = false
[[probes]]
name = "interface"
point = [0.4, 0.5, 0.5]
"""

EVERYTHING = """
title = "Everything"
[domain]
size = [0.02, 0.015, 0.012]
cells = [12, 9, 12]
material = "copper"
[materials.copper]
conductivity = 400.0
density = 8900.0
specific_heat = 385.0
[materials.silicon]
conductivity = 150.0
density = 2330.0
specific_heat = 700.0
[materials.glass]
conductivity = [1.0, 1.2, 0.9]
density = 2500.0
specific_heat = 800.0
[[regions]]
name = "air"
material = "void"
box = { min = [0.0, 0.0, 0.008], max = [0.02, 0.015, 0.012] }
[[regions]]
name = "die"
material = "silicon"
box = { min = [0.005, 0.005, 0.006], max = [0.01, 0.01, 0.009] }
[[regions]]
name = "lens"
material = "glass"
sphere = { centre = [0.015, 0.0075, 0.007], radius = 0.003 }
initial_temperature = 320.0
[[contacts]]
between = ["copper", "silicon"]
resistance = 1e-5
[initial]
temperature = "300 + 100*x/0.02"
[time]
end = 0.2
method = "euler"
[boundaries]
default = { type = "convection", coefficient = 50.0, ambient = 300.0, emissivity = 0.9, surroundings = 250.0 }
x_max = { type = "radiation", emissivity = 0.8, ambient = "600 + 10*t" }
y_min = { type = "temperature", value = 310.0 }
void = { type = "convection", coefficient = 20.0, ambient = 295.0, emissivity = 0.5 }
[[patches]]
face = "z_min"
rectangle = { min = [0.005, 0.005], max = [0.01, 0.01] }
type = "flux"
value = 2e4
[[patches]]
name = "cold strip"
face = "x_min"
rectangle = { min = [0.0, 0.0], max = [0.015, 0.003] }
type = "temperature"
value = { times = [0.0, 0.1], values = [300.0, 280.0] }
[[sources]]
region = "die"
power = 5.0
during = [0.03, 0.13]
[[sources]]
name = "everywhere"
power_density = 1e6
scale = "1 + sin(30*t)"
[[sources]]
[sources.beam]
face = "z_min"
power = 40.0
absorptivity = 0.5
radius = 2e-3
path = [[0.005, 0.01], [0.015, 0.012]]
speed = 0.1
start = 0.01
[solver]
device = "cpu"
precision = "float64"
[output]
probe_every = 0.05
figures = false
[[probes]]
name = "line"
line = { from = [0.0, 0.0075, 0.005], to = [0.02, 0.0075, 0.005], count = 3 }
[[probes]]
name = "hottest of the die"
region = "die"
statistic = "max"
[[probes]]
name = "lens"
region = "lens"
statistic = "mean"
"""

# A beam that stays, in place of one that moves.
STILL = EVERYTHING.replace(
    "path = [[0.005, 0.01], [0.015, 0.012]]\nspeed = 0.1\nstart = 0.01", "path = [[0.005, 0.01]]"
)

# Whole faces of one material: each face has one condition, and each kind of it occurs.
ONE_MATERIAL = """
[domain]
material = "steel"
size  = [0.12, 0.1, 0.08]
cells = [12, 10, 9]
[materials.steel]
conductivity = 15.0
density = 7900.0
specific_heat = 500.0
[initial]
temperature = 300.0
[boundaries]
x_min = { type = "radiation", emissivity = 0.8, ambient = 700.0 }
x_max = { type = "convection", coefficient = 50.0, ambient = 350.0 }
y_min = { type = "flux", value = 2e3 }
y_max = { type = "insulated" }
z_min = { type = "temperature", value = 400.0 }
z_max = { type = "convection", coefficient = 20.0, ambient = 320.0, emissivity = 0.5 }
[time]
end = 1.0
"""

VARYING = """
title = "Three materials, two of which vary"
domain = { size = [0.1, 0.05, 0.04], cells = [15, 8, 7], material = "steel" }
materials.steel = { conductivity = { temperatures = [300.0, 800.0], values = [20.0, 60.0] }, density = 8000.0, specific_heat = "450 + 0.3*(T - 300)" }
materials.brick = { conductivity = "4 - 0.003*(T - 300)", density = 2000.0, specific_heat = 900.0, latent_heat = 1e5, solidus = 400.0, liquidus = 401.0, temperature_range = [200.0, 1300.0] }
materials.glass = { conductivity = [1.0, 2.0, 1.5], density = 2500.0, specific_heat = 800.0 }
regions = [
    { name = "core", material = "brick", sphere = { centre = [0.045, 0.025, 0.02], radius = 0.014 } },
    { name = "pane", material = "glass", box = { min = [0.06, 0.0, 0.0], max = [0.08, 0.03, 0.04] } },
    { name = "hole", material = "void", box = { min = [0.04, 0.02, 0.01], max = [0.05, 0.05, 0.02] } },
]
contacts = [{ between = ["steel", "brick"], resistance = 1e-4 }]
sources = [{ region = "core", power = 50.0 }]
time = { method = "steady" }
initial = { temperature = 350.0 }

[boundaries]
x_min = { type = "temperature", value = 300.0 }
x_max = { type = "convection", coefficient = 200.0, ambient = 900.0, emissivity = 0.8 }
void = { type = "radiation", emissivity = 0.5, ambient = 400.0 }
"""  # noqa: E501
