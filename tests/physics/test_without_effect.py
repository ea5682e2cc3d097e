"""Contacts, surfaces and faces of the box without effect are reported; others are not."""

import pytest
from problem_text import problem

from heatsim.physics.readings.without_effect import notes_without_effect

# Two blocks with a gap of void between them; void around both except at z_min.
TEXT = """
[domain]
size = [0.07, 0.03, 0.02]
cells = [7, 3, 2]
material = "void"
[materials.steel]
conductivity = 50.0
density = 7800.0
specific_heat = 500.0
[[regions]]
name = "left"
material = "steel"
box = { min = [0.01, 0.01, 0.0], max = [0.03, 0.02, 0.01] }
[[regions]]
name = "right"
material = "steel"
box = { min = [0.04, 0.01, 0.0], max = [0.06, 0.02, 0.01] }
[[regions]]
name = "core"
material = "steel"
box = { min = [0.05, 0.01, 0.0], max = [0.06, 0.02, 0.01] }
[initial]
temperature = 300.0
[time]
end = 1.0
"""
AIR = '{ type = "convection", coefficient = 10.0, ambient = 290.0 }'


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ('[[contacts]]\nbetween = ["left", "right"]\nresistance = 1e-4\n', ['contacts.0 has no effect: "left"']),
        ('[[contacts]]\nbetween = ["core", "right"]\nresistance = 1e-4\n', []),
        ('[[contacts]]\nbetween = ["left", "right"]\nresistance = 0.0\n', []),
        (f"[boundaries]\ndefault = {AIR}\n", ["the conditions on x_min, x_max, y_min, y_max, z_max have no effect"]),
        (f"[boundaries]\nz_min = {AIR}\n", []),
        (f"[boundaries]\ndefault = {AIR}\nvoid = {AIR}\n", []),
        (f"[boundaries]\nvoid = {AIR}\n", ["the body touches z_min, where it is insulated"]),
        (f'[boundaries]\nz_min = {{ type = "insulated" }}\nvoid = {AIR}\n', []),
        (f'[boundaries]\ndefault = {AIR}\nvoid = {{ type = "insulated" }}\n', []),
        ('[[surfaces]]\nof = "left"\ntype = "flux"\nvalue = 5.0\n', []),
    ],
)  # fmt: skip
def test_conditions_without_effect_are_reported(extra: str, expected: list[str]) -> None:
    notes = notes_without_effect(problem(TEXT + extra))
    assert [note[: len(start)] for note, start in zip(notes, expected, strict=True)] == expected


def test_a_surface_condition_of_a_region_inside_another_is_reported() -> None:
    hole = '[[regions]]\nname = "hole"\nmaterial = "void"\nbox = { min = [0, 0, 0], max = [0.01, 0.01, 0.01] }\n'
    filled = TEXT.replace('material = "void"', 'material = "steel"').replace("[initial]", f"{hole}[initial]")
    surface = '[[surfaces]]\nof = "core"\ntype = "flux"\nvalue = 5.0\n'
    assert notes_without_effect(problem(filled + surface)) == [
        'surfaces.0 has no effect: "core" does not border on void'
    ]
