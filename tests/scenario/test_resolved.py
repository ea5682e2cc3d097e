import struct
import tomllib

import numpy as np
import pytest
from covering import SLOW
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scenario_text import write

from heatsim.errors import StorageError
from heatsim.grid import FACES
from heatsim.scenario import ArrayFile, load, parse, write_resolved
from heatsim.scenario.files import InputFile


def read(folder):
    return tomllib.loads((folder / "scenario.toml").read_text(encoding="utf-8"))


def test_every_default_is_filled_in_and_auto_stays_auto(tmp_path):
    scenario = load(write(tmp_path, extra='[boundaries]\nx_min = { type = "temperature", value = "20 degC" }'))
    write_resolved(scenario, tmp_path / "out")
    tables = read(tmp_path / "out")
    assert tables["title"] == "rod"
    assert tables["domain"] == {"size": [0.1, 0.2, 0.3], "cells": [4, 5, 6], "origin": [0.0, 0.0, 0.0]}
    assert tables["material"]["conductivity"] == [237.0, 237.0, 237.0]
    assert tables["time"] == {"method": "auto", "end": 60.0}
    assert set(tables["boundaries"]) == {"default", *FACES, "void"}
    assert tables["boundaries"]["x_min"] == {"type": "temperature", "value": 293.15}
    assert tables["solver"] == {"device": "auto", "kernel": "auto", "precision": "auto"}
    assert tables["output"]["every"] == 60.0
    assert load(tmp_path / "out" / "scenario.toml") == scenario


def test_input_files_are_copied_and_named_by_their_base_names(tmp_path):
    (tmp_path / "data").mkdir()
    values = np.random.default_rng(1).uniform(300.0, 400.0, (6, 5, 4))
    np.save(tmp_path / "data" / "start.npy", values)
    scenario = load(write(tmp_path, ("= 300.0", '= { file = "data/start.npy" }')))
    assert scenario.input_files == (tmp_path / "data" / "start.npy",)
    out = tmp_path / "deep" / "out"
    write_resolved(scenario, out)
    assert read(out)["initial"] == {"temperature": {"file": "start.npy"}}
    again = load(out / "scenario.toml")
    assert again == scenario
    assert again.initial.temperature == ArrayFile(InputFile.of(out / "start.npy"))
    assert (again.initial.temperature.load() == values).all()
    assert sorted(path.name for path in out.iterdir()) == ["scenario.toml", "start.npy"]


def test_picture_is_copied(tmp_path):
    Image.fromarray(np.array([[0, 90]], np.uint8)).save(tmp_path / "photo.png")
    change = ("= 300.0", '= { image = "photo.png", range = ["20 degC", 400] }')
    scenario = load(write(tmp_path, change))
    write_resolved(scenario, tmp_path / "out")
    assert read(tmp_path / "out")["initial"]["temperature"] == {"image": "photo.png", "range": [293.15, 400.0]}
    assert load(tmp_path / "out" / "scenario.toml") == scenario
    assert load(tmp_path / "out" / "scenario.toml") != load(
        tmp_path / "rod.toml", ["initial.temperature.range=[0, 400]"]
    )


def test_writing_over_itself_changes_nothing(tmp_path):
    np.save(tmp_path / "start.npy", np.full((6, 5, 4), 300.0))
    path = write(tmp_path, ("= 300.0", '= { file = "start.npy" }'), name="scenario.toml")
    write_resolved(load(path), tmp_path)
    first = path.read_bytes()
    write_resolved(load(path), tmp_path)
    assert path.read_bytes() == first
    assert load(path).initial.temperature.load().shape == (6, 5, 4)


def test_folder_that_cannot_be_written_is_told(tmp_path):
    scenario = load(write(tmp_path))
    (tmp_path / "out").write_text("a file")
    with pytest.raises(StorageError, match="could not be written"):
        write_resolved(scenario, tmp_path / "out")


positive = st.floats(min_value=1e-30, max_value=1e30)
kelvin = st.floats(min_value=0.0, max_value=1e30)
texts = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1).filter(str.strip)


@st.composite
def in_time(draw, values):
    """A number, a table or an expression."""
    kind = draw(st.sampled_from(["number", "table", "expression"]))
    if kind == "number":
        return draw(values)
    if kind == "expression":
        return draw(st.sampled_from(["abs(sin(t)) + 2", "where(t < 5, 1, t^0.5)", "min(300, 1e3*t) % 7"]))
    count = draw(st.integers(2, 6))
    steps = draw(st.lists(st.floats(1e-3, 1e3), min_size=count - 1, max_size=count - 1))
    times = np.concatenate(([0.0], np.cumsum(steps))).tolist()
    return {
        "times": times,
        "values": draw(st.lists(values, min_size=count, max_size=count)),
        "repeat": draw(st.booleans()),
    }


faces = st.one_of(
    st.just({"type": "insulated"}),
    st.builds(lambda value: {"type": "temperature", "value": value}, in_time(kelvin)),
    st.builds(lambda value: {"type": "flux", "value": value}, in_time(st.floats(-1e30, 1e30))),
    st.builds(
        lambda coefficient, ambient: {"type": "convection", "coefficient": coefficient, "ambient": ambient},
        in_time(kelvin),
        in_time(kelvin),
    ),
)
documents = st.fixed_dictionaries(
    {
        "domain": st.fixed_dictionaries(
            {
                "size": st.lists(positive, min_size=3, max_size=3),
                "cells": st.lists(st.integers(1, 100), min_size=3, max_size=3),
            }
        ),
        "material": st.fixed_dictionaries({"conductivity": positive, "density": positive, "specific_heat": positive}),
        "initial": st.fixed_dictionaries({"temperature": st.one_of(kelvin, st.just("300 + abs(cos(x*y + z))"))}),
        "time": st.fixed_dictionaries({"end": positive}, optional={"dt": positive})
        | st.fixed_dictionaries({"end": positive, "safety": st.floats(1e-3, 1.0)}),
    },
    optional={
        "title": texts,
        "boundaries": st.dictionaries(st.sampled_from(["default", *FACES]), faces),
        "output": st.fixed_dictionaries({}, optional={"every": positive, "probe_every": positive}),
        "probes": st.lists(
            st.fixed_dictionaries(
                {"name": texts.filter(lambda name: name != "time"), "point": st.just([0.0, 0.0, 0.0])}
            ),
            max_size=3,
            unique_by=lambda probe: probe["name"],
        ),
    },
)


def bits(value):
    """Plain values with each float as its bytes, so that -0.0 and 0.0 differ."""
    if isinstance(value, float):
        return struct.pack("d", value)
    if isinstance(value, dict):
        return {key: bits(item) for key, item in value.items()}
    return [bits(item) for item in value] if isinstance(value, list) else value


@settings(max_examples=80 if SLOW else 45)
@given(documents)
def test_resolved_scenario_reads_back_to_the_same_bits(tmp_path_factory, document):
    folder = tmp_path_factory.mktemp("resolved")
    scenario = parse(document, folder / "any.toml")
    write_resolved(scenario, folder)
    first = read(folder)
    again = load(folder / "scenario.toml")
    assert again == scenario
    assert hash(again) == hash(scenario)
    write_resolved(again, folder)
    assert bits(read(folder)) == bits(first)
