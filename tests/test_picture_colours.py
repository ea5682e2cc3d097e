"""Colours of pictures: materials by their names, scales without black, and values beyond a scale."""

from dataclasses import replace

import numpy as np
import pytest

from heatsim.render.page.material_colours import material_colours
from heatsim.render.page.scales import ABOVE, BELOW, TemperatureScale


def test_a_material_has_the_colour_of_its_name_in_every_body() -> None:
    copper = material_colours(("copper",))[0]
    assert material_colours(("gel", "unknown", "library:copper"))[2] == copper
    assert material_colours(("Copper of the bar", "void"))[0] == copper


@pytest.mark.parametrize("names", [("copper", "copper plate", "soft copper", "x"), tuple("abcdefghijkl")])
def test_no_two_materials_of_a_body_have_one_colour(names: tuple[str, ...]) -> None:
    assert len(set(material_colours(names))) == len(names)


def test_the_cold_end_of_a_scale_is_not_black() -> None:
    cold, *_, hot = TemperatureScale(300.0, 400.0).colours(np.linspace(300.0, 400.0, 5)).astype(float) @ np.array(
        [0.299, 0.587, 0.114]
    )
    assert 20.0 < cold < 60.0
    assert hot > 220.0


@pytest.mark.parametrize(
    ("beyond", "arrows"),
    [((False, False), "neither"), ((True, False), "min"), ((False, True), "max"), ((True, True), "both")],
)
def test_values_beyond_a_scale_have_other_colours(beyond: tuple[bool, bool], arrows: str) -> None:
    scale = replace(TemperatureScale(300.0, 400.0), beyond=beyond)
    shown = ["#" + bytes(colour).hex() for colour in scale.colours([299.0, 300.0, 400.0, 401.0])]
    assert scale.extend == arrows
    assert [shown[0] == BELOW, shown[3] == ABOVE] == list(beyond)
    assert {BELOW, ABOVE}.isdisjoint(shown[1:3])
