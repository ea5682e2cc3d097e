"""The names of the hottest regions in pictures."""

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import runs

from heatsim import Simulation
from heatsim.physics.geometry.part_owners import part_owners
from heatsim.render.choice import PictureChoice
from heatsim.render.spatial.fields import Fields
from heatsim.render.spatial.hottest_parts import PartOwners, hottest_parts, hottest_places
from heatsim.render.spatial.sections import read_sections
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.run_settings import read_settings


def test_parts_come_in_the_order_of_their_highest_temperatures() -> None:
    values = np.array([[[300.0, 350.0, np.nan, 320.0, 310.0, 400.0]]])
    owners = PartOwners(["a", "b", "c", "void"], np.array([[[1, 1, 4, 2, 3, 0]]], dtype=np.uint8))
    assert hottest_parts(values, owners) == [(1, 350.0), (2, 320.0), (3, 310.0)]
    assert hottest_parts(values, PartOwners(["a"], np.ones((1, 1, 6), np.uint8))) == []


def test_a_part_that_a_hotter_one_warms_has_no_name() -> None:
    values = np.array([[1.0, 5.0, 9.0, 5.0, 1.0, 4.0, 1.0], [np.nan, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]])
    numbers = np.array([[1, 1, 2, 1, 1, 3, 1], [4, 1, 1, 1, 1, 3, 1]], dtype=np.uint8)
    assert hottest_places(values, numbers, np.full(values.shape, 0.5)) == {2: (0.5, 0, 2), 3: (1.0, 0, 5)}


def test_sections_have_the_names_and_highest_temperatures_of_hot_regions(tmp_path: Path) -> None:
    block = """
[[regions]]
name = "%s"
material = "body"
box = { min = [%s, 0.01, 0.01], max = [%s, 0.05, 0.04] }
[[sources]]
region = "%s"
power = %s
"""
    parts = block % ("cool", 0.0, 0.02, "cool", 5.0) + block % ("hot", 0.04, 0.06, "hot", 50.0)
    Simulation.from_scenario(
        runs.write(tmp_path, runs.TEXT.replace("[material]", "[materials.body]") + parts), output=tmp_path / "out"
    ).run()
    with ExitStack() as stack:
        reader = stack.enter_context(FieldReader(tmp_path / "out" / "fields.vtkhdf"))
        fields, last = (
            Fields(reader, read_settings(tmp_path / "out"), PictureChoice(owners=part_owners)),
            len(reader) - 1,
        )
        sections = dict(enumerate(read_sections(reader, last)))
        (_, text, (x, y, z)), *_ = fields.names_on(sections, last)
        x_of, y_of, z_of = (reader.grid.centres(axis) for axis in range(3))
        hot = np.ix_((z_of > 0.01) & (z_of < 0.04), (y_of > 0.01) & (y_of < 0.05), (x_of > 0.04) & (x_of < 0.06))
        assert text == f"hot: {reader.read(last)[hot].max():.4g} K"
    assert (0.04 <= x <= 0.06) or x == 0.0
    assert max(x, y, z) < 0.07


def test_a_scenario_that_names_a_file_elsewhere_gives_no_names(tmp_path: Path) -> None:
    outside = tmp_path / "part.stl"
    outside.write_bytes(b"solid")
    (tmp_path / "run").mkdir()
    region = f'[[regions]]\nname = "a"\nmaterial = "body"\nstl = {{ file = "{outside}" }}\n'
    text = runs.TEXT.replace("[material]", "[materials.body]") + region
    (tmp_path / "run" / "scenario.toml").write_text(text)
    assert part_owners(tmp_path / "run") is None
