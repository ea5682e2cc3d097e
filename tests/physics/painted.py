"""Bodies painted from shapes in void, or in a first material."""

import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from heatsim.physics.problem import HeatProblem
from heatsim.scenario import parse

MATERIAL = """[materials.{name}]
conductivity = {conductivity}
density = 1.0
specific_heat = 1.0
"""


def region(shape: str, material: str = "one", name: str = "part") -> str:
    """The text of a region; ``shape`` as in ``sphere = { … }``."""
    return f'[[regions]]\nname = "{name}"\nmaterial = "{material}"\n{shape}\n'


def sphere(radius: float, centre: Sequence[float] = (0.5, 0.5, 0.5)) -> str:
    return f"sphere = {{ centre = {list(centre)!r}, radius = {radius!r} }}"


def cylinder(radius: float, start: Sequence[float], end: Sequence[float]) -> str:
    return f"cylinder = {{ from = {list(start)!r}, to = {list(end)!r}, radius = {radius!r} }}"


def box(low: Sequence[float], high: Sequence[float]) -> str:
    return f"box = {{ min = {list(low)!r}, max = {list(high)!r} }}"


def write_turned_box(path: Path, size: Sequence[float], degrees: Sequence[float]) -> None:
    """An STL file of a box around (0.5, 0.5, 0.5), turned around x, then z."""
    a, b = np.radians(degrees)
    turn = np.array([[np.cos(b), -np.sin(b), 0.0], [np.sin(b), np.cos(b), 0.0], [0.0, 0.0, 1.0]]) @ np.array(
        [[1.0, 0.0, 0.0], [0.0, np.cos(a), -np.sin(a)], [0.0, np.sin(a), np.cos(a)]]
    )
    lines = ["solid box"]
    for axis in range(3):
        for side in (-1.0, 1.0):
            ring = np.empty((4, 3))
            ring[:, axis] = side
            ring[:, axis - 2], ring[:, axis - 1] = [-1.0, 1.0, 1.0, -1.0], [-1.0, -1.0, 1.0, 1.0]
            corners = 0.5 + (ring * np.array(size) / 2.0) @ turn.T
            for triangle in ((0, 1, 2), (0, 2, 3)) if side > 0 else ((2, 1, 0), (3, 2, 0)):
                lines += ["facet normal 0 0 0", "outer loop"]
                lines += ["vertex {!r} {!r} {!r}".format(*map(float, corners[corner])) for corner in triangle]
                lines += ["endloop", "endfacet"]
    path.write_text("\n".join([*lines, "endsolid box"]), encoding="ascii")


def body(
    regions: str,
    cells: int | Sequence[int] = 24,
    *,
    size: Sequence[float] = (1.0, 1.0, 1.0),
    outside: str = "void",
    conductivities: tuple[float, float] = (1.0, 1.0),
    resistance: float | None = None,
    boundaries: str = 'void = { type = "convection", coefficient = 1.0, ambient = 300.0 }',
    folder: Path | None = None,
) -> HeatProblem:
    """The body of regions of the materials "one", "two" and "void" in a box of another.

    Args:
        regions: their text.
        cells: along x, y, z; one number where they are equal.
        size: of the box in m.
        outside: the material around the regions.
        conductivities: of "one" and "two" in W/(m K); ρ·cp is 1.
        resistance: of a contact between these in m² K/W.
        boundaries: the conditions.
        folder: where STL files and label images are.
    """
    numbers = [cells] * 3 if isinstance(cells, int) else list(cells)
    materials = zip(("one", "two"), conductivities, strict=True)
    text = f"""title = "Painted"
[domain]
size = {list(size)!r}
cells = {numbers!r}
material = "{outside}"
{"".join(MATERIAL.format(name=name, conductivity=conductivity) for name, conductivity in materials)}
[initial]
temperature = 300.0
[time]
end = 1.0
[boundaries]
{boundaries}
{regions}
"""
    if resistance is not None:
        text += f'[[contacts]]\nbetween = ["one", "two"]\nresistance = {resistance!r}\n'
    path = (folder or Path()) / "case.toml"
    return HeatProblem.from_scenario(parse(tomllib.loads(text), path))


def area(of: HeatProblem, *materials: str) -> float:
    """The area in m² of all surfaces between two materials."""
    names = [substance.name for substance in of.materials.palette]
    return of.materials.surface_areas.get(frozenset(names.index(name) for name in materials), 0.0)
