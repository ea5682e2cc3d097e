"""Bodies with gaps, and their exact balances."""

from dataclasses import dataclass

SIGMA = 5.670374419e-8

# Two slabs of one cell each, or of more, between two held faces.
SLABS = """
title = "Two slabs"
[domain]
size = [0.02, 0.01, 0.01]
cells = [{cells}, 1, 1]
material = "left"
[materials.left]
conductivity = {left}
density = 2000.0
specific_heat = 500.0
[materials.right]
conductivity = {right}
density = 1000.0
specific_heat = 300.0
[[regions]]
name = "right"
material = "right"
box = {{ min = [0.01, 0.0, 0.0], max = [0.02, 0.01, 0.01] }}
[[contacts]]
between = ["left", "right"]
{contact}
[initial]
temperature = {initial}
[boundaries]
x_min = {{ type = "temperature", value = {hot} }}
x_max = {{ type = "temperature", value = {cold} }}
[time]
end = {end}
[solver]
device = "cpu"
precision = "float64"
[output]
every = {end}
probe_every = {rows}
figures = false
error = "none"
region_heat = true
"""
GAP = "gap = { width = 1e-3, conductivity = { temperatures = [300.0, 1000.0], values = [0.15, 0.36] }, "
GAP += "emissivities = [0.8, 0.5] }"

# A ball and a block in steel, with gaps of two kinds; z wraps. Regions of one material touch too.
AROUND = """
[domain]
size = [0.012, 0.01, 0.015]
cells = [12, 10, 15]
material = "steel"
[materials.steel]
conductivity = {steel}
density = 7800.0
specific_heat = 470.0
[materials.tin]
conductivity = 65.0
density = 7000.0
specific_heat = 230.0
[[regions]]
name = "hole"
material = "void"
cylinder = {{ from = [0.0, 0.004, 0.006], to = [0.012, 0.004, 0.008], radius = 0.002 }}
[[regions]]
name = "ball"
material = "tin"
sphere = {{ centre = [0.008, 0.006, 0.012], radius = 0.0035 }}
[[regions]]
name = "block"
material = "steel"
box = {{ min = [0.001, 0.001, 0.0], max = [0.006, 0.005, 0.004] }}
[[contacts]]
between = ["steel", "tin"]
gap = {{ width = 2e-5, conductivity = "library:helium", emissivities = [0.9, 0.7] }}
[[contacts]]
between = ["block", "steel"]
conductance = "2000*(T/300)^0.5*(1 + 0.5*sin(40*t))"
[initial]
temperature = "320 + 20000*x + 10000*y"
[boundaries]
default = {{ type = "convection", coefficient = 300.0, ambient = 290.0, emissivity = 0.7 }}
z_min = {{ type = "periodic" }}
z_max = {{ type = "periodic" }}
void = {{ type = "convection", coefficient = 30.0, ambient = 300.0 }}
[[sources]]
power_density = "1e8*(400 - T)/300"
[time]
end = 0.05
method = "euler"
"""
VARYING = "{ temperatures = [300.0, 900.0], values = [60.0, 30.0] }"


@dataclass(frozen=True)
class Slabs:
    """Two slabs of 1 cm and 1 cm² with a gap of 1 mm that conducts and radiates, as :data:`GAP` says."""

    left: float = 3.0
    right: float = 0.7
    hot: float = 900.0
    cold: float = 320.0

    def text(self, cells: int = 8, end: float = 300.0, contact: str = GAP, initial: float = 400.0) -> str:
        return SLABS.format(cells=cells, end=end, contact=contact, initial=initial, rows=end / 10.0, **vars(self))

    def flux(self) -> float:
        """The heat flux of the steady state in W/m², by bisection of the balance of both surfaces."""
        low, high = 0.0, (self.hot - self.cold) / (0.01 / self.left + 0.01 / self.right)
        for _ in range(200):
            q = 0.5 * (low + high)
            one, other = self.hot - q * 0.01 / self.left, self.cold + q * 0.01 / self.right
            k = 0.15 + 0.21 * (0.5 * (one + other) - 300.0) / 700.0
            passes = k / 1e-3 * (one - other) + SIGMA * (one**4 - other**4) / (1.0 / 0.8 + 1.0 / 0.5 - 1.0)
            low, high = (q, high) if passes > q else (low, q)
        return q
