"""heatsim.open: the results of runs and studies in folders, finished or not."""

from pathlib import Path

import numpy as np
import pandas
import pytest
import runs
import xarray

import heatsim
from heatsim.errors import FolderError, InputError, ScenarioError, at_command_line
from heatsim.render.notebook import ShownPictures
from heatsim.scenario import load
from heatsim.storage import folder
from heatsim.storage.field_reader import FieldReader

VOID = '[[regions]]\nname = "hole"\nmaterial = "void"\nbox = { min = [0, 0, 0], max = [0.03, 0.05, 0.02] }\n'


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    return runs.run(tmp_path_factory.mktemp("run"), "output.heat_flux=true", "output.temperature=degC")


def opened(path: Path) -> heatsim.Run:
    run = heatsim.open(path)
    assert isinstance(run, heatsim.Run)
    return run


def test_the_temperature_has_coordinates_units_and_the_bits_of_the_file(done: Path) -> None:
    T = opened(done).temperature
    assert T.dims == ("time", "z", "y", "x")
    assert T.attrs["units"] == "K"
    assert [T[name].attrs["units"] for name in T.dims] == ["s", "m", "m", "m"]
    grid = load(done / folder.SCENARIO).grid
    for axis, name in enumerate("xyz"):
        np.testing.assert_array_equal(T[name], grid.centres(axis))
    with FieldReader(done / folder.FIELDS) as reader:
        np.testing.assert_array_equal(T.time, reader.times)
        for i in range(len(reader)):
            np.testing.assert_array_equal(T[i], reader.read(i))


@pytest.mark.parametrize(
    "index",
    [
        (0,),
        (-1, 3),
        (slice(None), 2, slice(1, 4)),
        (slice(4, None, -2), [3, 0, 0], 1, slice(None, None, 3)),
        ([2, 0], slice(None), [4, 1], slice(5, None)),
        (np.array([True, False, True, False, True]),),
    ],
)
def test_a_part_is_that_of_the_whole_and_no_more_is_read(
    index: tuple[object, ...], done: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, read = opened(done).temperature, []
    values = whole.values
    part_of = FieldReader.read_part

    def counted(self: FieldReader, name: str, at: tuple[object, ...]) -> np.ndarray:  # type: ignore[type-arg]
        found = part_of(self, name, at)
        read.append(found.size)
        return found

    monkeypatch.setattr(FieldReader, "read_part", counted)
    part = whole[index]
    assert not read
    expected = values
    for axis, each in reversed(list(enumerate(index))):
        expected = expected[(slice(None),) * axis + (each,)]
    np.testing.assert_array_equal(part.values, expected)
    # Lists along more than one axis are read as slices or lists of all but one.
    assert sum(read) <= max(expected.size, values.size // 2)


def test_it_selects_and_calculates_by_coordinates(done: Path) -> None:
    T = opened(done).temperature
    simulation = heatsim.Simulation.resume(done)
    last = T.sel(time=10.0)
    np.testing.assert_array_equal(last, simulation.temperature.astype(np.float32))
    assert float(T.sel(x=0.031, y=0.024, z=0.001, time=10.0, method="nearest")) == last.values[0, 2, 3]
    assert T.max("time").shape == (6, 5, 7)
    assert xarray.testing.assert_equal(T.isel(time=[0, 2]).load(), T[[0, 2]]) is None


def test_heat_flux_has_components_and_void_is_not_a_number(tmp_path: Path) -> None:
    path = runs.write(tmp_path, runs.TEXT.replace("[material]", "[materials.steel]") + VOID)
    heatsim.Simulation.from_scenario(path, ["output.heat_flux=true"], output=tmp_path / "out").run()
    run = opened(tmp_path / "out")
    void = run.material == "void"
    assert int(void.sum()) == 3 * 5 * 2
    assert run.heat_flux.dims == ("time", "z", "y", "x", "component")
    assert run.heat_flux.attrs["units"] == "W/m^2"
    for values in (run.temperature, run.heat_flux.sel(component="y")):
        np.testing.assert_array_equal(values.isnull(), np.broadcast_to(void, values.shape))
    with FieldReader(tmp_path / "out" / folder.FIELDS) as reader:
        flux = reader.read_heat_flux(2)
        T = reader.read(4)
    np.testing.assert_array_equal(run.heat_flux[2, 5, :, 2, 1], flux[5, :, 2, 1])
    assert float(run.temperature[-1].mean()) == pytest.approx(T[~void.values].mean(), rel=1e-6)
    # An index of one cell, and one of a row that is partly void.
    assert np.isnan(run.temperature[0, 0, 0, 0])
    assert np.isnan(run.temperature[1, 0, 2]).values.tolist() == 3 * [True] + 4 * [False]


def test_tables_are_data_frames_with_the_headers_of_the_files(done: Path) -> None:
    run = opened(done)
    for frame, name in ((run.probes, folder.PROBES), (run.energy, folder.ENERGY)):
        expected = pandas.read_csv(done / name, index_col="time (s)")
        pandas.testing.assert_frame_equal(frame, expected, rtol=1e-15)
    assert "inside (degC)" in run.probes
    assert run.summary["steps"] == runs.LAST_STEP


def test_a_run_that_goes_on_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def look(stepper: object) -> None:
        run = opened(tmp_path / "whole")
        seen.append((run.finished, run.temperature.sizes["time"], len(run.probes), run.time, repr(run)))
        with pytest.raises(FolderError, match="has not finished"):
            run.summary  # noqa: B018

    runs.write_at_once(monkeypatch)
    runs.after_step(monkeypatch, 9, look)
    done = opened(runs.run(tmp_path))
    # Fields after 0, 4 and 8 steps; rows after 0, 2, 4, 6 and 8.
    assert seen[0][:4] == (False, 3, 5, 5.0)
    assert seen[0][4].endswith("not finished, t = 5 s>")
    assert (done.finished, done.temperature.sizes["time"], len(done.probes)) == (True, 5, 9)
    assert repr(done) == f'<heatsim run "Every kind of face" in {done.folder}: finished, t = 10 s>'
    assert "Every kind of face" in done._repr_html_()


def test_a_steady_state_has_one_time(tmp_path: Path) -> None:
    overrides = ["time.method=steady", "boundaries.x_min.value=300.0", "boundaries.x_max.coefficient=100.0"]
    run = opened(runs.run(tmp_path, *overrides))
    assert run.temperature.time.values.tolist() == [0.0]
    assert "y_min (W)" in run.energy
    assert repr(run).endswith("finished, steady state>")


def test_pictures_are_shown_in_a_notebook(done: Path) -> None:
    pytest.importorskip("pyvista")
    pictures = opened(done).plot("probes")
    assert [path.name for path in pictures] == ["probes.png"]
    assert repr(pictures) == str(done / folder.FIGURES / "probes.png")
    assert pictures._repr_html_().startswith('<img src="data:image/png;base64,iVBOR')
    assert repr(ShownPictures(())) == "no pictures"
    before = {path: path.stat().st_mtime_ns for path in (done / folder.FIGURES).iterdir()}
    with pytest.raises(InputError, match=r"got 'nonsense'; the names of its pictures begin with .*'slices'.*'energy'"):
        opened(done).plot("nonsense")
    assert {path: path.stat().st_mtime_ns for path in (done / folder.FIGURES).iterdir()} == before


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ((), "is not there"),
        (("notes.txt",), "is not the folder of a heatsim run or study; give"),
        (("cube/scenario.toml",), "not the folder of a heatsim run or study, but it contains cube; give"),
    ],
)
def test_a_folder_of_something_else_is_a_message(files: tuple[str, ...], message: str, tmp_path: Path) -> None:
    for name in files:
        (tmp_path / "a" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "a" / name).write_text("")
    with pytest.raises(FolderError, match=message):
        heatsim.open(tmp_path / "a")


@pytest.mark.parametrize(
    ("name", "override", "message"),
    [
        ("temperature", "output.fields=false", "output.fields = true"),
        ("heat_flux", "output.fields=true", "output.heat_flux = true"),
        ("energy", "output.energy=false", "output.energy = true"),
    ],
)
def test_what_a_run_did_not_write_is_a_message(name: str, override: str, message: str, tmp_path: Path) -> None:
    run = opened(runs.run(tmp_path, override))
    with pytest.raises(FolderError, match=message):
        getattr(run, name)


def test_a_scenario_can_be_a_dictionary(tmp_path: Path) -> None:
    np.save(tmp_path / "start.npy", np.full((1, 2, 4), 310.0))
    document = {
        "title": "Bar",
        "domain": {"size": (0.04, 0.02, 0.01), "cells": np.array([4, 2, 1])},
        "material": {"conductivity": np.float64(40.0), "density": 2000, "specific_heat": 500.0, "solidus": None},
        "initial": {"temperature": {"file": Path("start.npy")}},
        "boundaries": {"x_min": {"type": "temperature", "value": "20 degC"}},
        "time": {"end": np.int64(5)},
        "output": {"figures": False},
    }
    simulation = heatsim.Simulation.from_dict(document, tmp_path / "out", folder=tmp_path)
    simulation.run()
    assert simulation.temperature.min() < 310.0
    assert repr(simulation) == f'<heatsim simulation "Bar": 4 × 2 × 1 cells, t = 5 of 5 s, in {tmp_path / "out"}>'
    assert "&quot;Bar&quot;" in simulation._repr_html_()
    resumed = heatsim.Simulation.resume(tmp_path / "out")
    np.testing.assert_array_equal(resumed.temperature, simulation.temperature)
    with pytest.raises(ScenarioError, match=r"domain\.cell: got .* unknown key") as raised:
        heatsim.Simulation.from_dict({**document, "domain": {"size": [1, 1, 1], "cell": [1, 1, 1]}}, tmp_path / "no")
    assert 'did you mean "cells"' in str(raised.value)
    assert not (tmp_path / "no").exists()
    with pytest.raises(
        ScenarioError, match=r"got str; a dictionary is expected; Simulation\.from_scenario reads a file"
    ):
        heatsim.Simulation.from_dict("bar.toml", tmp_path / "no")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"takes no scenario; write Simulation\.from_scenario for a file"):
        heatsim.Simulation("cube.toml")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"got a dictionary; .*; Simulation\.from_dict reads a dictionary"):
        heatsim.Simulation.from_scenario(document)  # type: ignore[arg-type]
    array = {**document, "initial": {"temperature": np.full((1, 2, 4), 310.0)}}
    with pytest.raises(
        ScenarioError, match=r'initial\.temperature: got an array; .* numpy\.save\("start\.npy", array\)'
    ):
        heatsim.Simulation.from_dict(array, tmp_path / "no")


def test_warnings_are_shown_in_a_notebook(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """20 K beside 100 °C: a line before the run with progress, and below the simulation."""
    document = {
        "title": "Bar",
        "domain": {"size": [0.04, 0.01, 0.01], "cells": [4, 1, 1]},
        "material": {"conductivity": 40.0, "density": 2000.0, "specific_heat": 500.0},
        "initial": {"temperature": "100 degC"},
        "boundaries": {"x_min": {"type": "temperature", "value": 20}},
        "time": {"end": 5.0},
        "output": {"figures": False},
    }
    simulation = heatsim.Simulation.from_dict(document, tmp_path / "out")
    (warning,) = simulation.warnings
    assert "−253" in warning
    assert repr(simulation).endswith(", 1 warning>")
    assert "<br>Warning: boundaries.x_min.value" in simulation._repr_html_()
    assert repr(simulation.plan) == '<heatsim plan "Bar">'
    assert "4 × 1 × 1 cells of 10 × 10 × 10 mm" in str(simulation.plan)
    assert simulation.plan._repr_html_().startswith("<pre>Bar\n")
    simulation.run(progress=True)
    assert capsys.readouterr().err == f"warning: {warning}\n"
    with at_command_line():  # which shows warnings itself
        heatsim.Simulation.from_dict(document, tmp_path / "other").run(progress=True)
    assert capsys.readouterr().err == ""


def test_pictures_are_drawn_on_request(tmp_path: Path) -> None:
    flat = ["domain.cells=[7, 5, 1]", "output.figures=false"]
    simulation = heatsim.Simulation.from_scenario(runs.write(tmp_path), flat, output=tmp_path / "out")
    simulation.run()
    assert not (tmp_path / "out" / folder.FIGURES).exists()
    heatsim.Simulation.resume(tmp_path / "out").run(pictures=True)
    assert (tmp_path / "out" / folder.FIGURES / "probes.png").is_file()


MELTING = """
title = "Wax in a steel cup"
[domain]
size = [0.04, 0.03, 0.02]
cells = [4, 3, 2]
material = "steel"
[materials.steel]
conductivity = 40.0
density = 7800.0
specific_heat = 500.0
[materials.wax]
conductivity = 2.0
density = 900.0
specific_heat = 2000.0
latent_heat = 2e5
solidus = 310.0
liquidus = 330.0
[[regions]]
name = "wax"
material = "wax"
box = { min = [0.01, 0.01, 0.0], max = [0.03, 0.02, 0.02] }
[[regions]]
name = "hole"
material = "void"
box = { min = [0.0, 0.0, 0.0], max = [0.01, 0.01, 0.01] }
[initial]
temperature = "305 + 1000*x"
[time]
method = "euler"
end = 1.0
[output]
every = 0.5
figures = false
[solver]
device = "cpu"
kernel = "numpy"
precision = "float64"
"""


@pytest.fixture(scope="module")
def molten(tmp_path_factory: pytest.TempPathFactory) -> heatsim.Run:
    """A run with wax of 320 and 330 K at the start, half and all of it liquid."""
    at = tmp_path_factory.mktemp("molten")
    (at / "wax.toml").write_text(MELTING)
    heatsim.Simulation.from_scenario(at / "wax.toml", output=at / "out").run()
    return opened(at / "out")


def test_the_coefficients_are_those_of_the_named_material(molten: heatsim.Run) -> None:
    """α·dt/dx² of steel, the material of the domain, although wax has other cells."""
    summary = molten.summary
    assert summary["coefficients_of"] == "steel"
    (row,) = summary["coefficients"]
    assert row["c1"] == pytest.approx(40.0 / (7800.0 * 500.0) * row["dt"] / 0.01**2, rel=1e-12)


def test_the_liquid_fraction_is_that_of_the_temperatures(molten: heatsim.Run) -> None:
    part, T = molten.liquid_fraction, molten.temperature
    assert part.dims == T.dims
    assert part.attrs == {"units": "1", "long_name": "Liquid fraction"}
    np.testing.assert_allclose(part[0, 0, 1], [0.0, 0.5, 1.0, 0.0], atol=1e-12)
    wax = molten.material == "wax"
    expected = xarray.where(wax, ((T - 310.0) / 20.0).clip(0.0, 1.0), T * 0.0)
    np.testing.assert_allclose(part, expected.transpose(*T.dims), atol=1e-12)
    assert part.isnull().sum() == 3  # the void cell at three times
    # A list along one axis and numbers along others.
    np.testing.assert_array_equal(part[2, :, 1, [0, 1, 3]], part.values[2][:, 1][:, [0, 1, 3]])
    np.testing.assert_array_equal(part[[2, 0], 1, :, 2], part.values[[2, 0]][:, 1, :, 2])


def test_a_run_without_latent_heat_has_no_liquid_fraction(done: Path) -> None:
    with pytest.raises(FolderError, match="no material of this run melts"):
        opened(done).liquid_fraction  # noqa: B018


def test_options_choose_pictures_as_those_of_render(molten: heatsim.Run) -> None:
    drawn = molten.plot(quantity="liquid_fraction", view="sections", times="1 s, 0.5 s", planes="y = 15 mm")
    assert [path.name for path in drawn] == [
        "liquid_fraction_sections_t0001.png",
        "liquid_fraction_sections_t0002.png",
    ]
    # The materials are the same at all times.
    assert [path.name for path in molten.plot(quantity="material", view=["sections"])] == [
        "material_sections_t0000.png"
    ]
    for options, message in (
        ({"quantity": "pressure"}, r'--quantity: got "pressure"; one of temperature, heat_flux'),
        ({"view": "front"}, r'--view: got "front"; one of slices, sections'),
        ({"times": "soon"}, r'--times: got "soon"; a number in s'),
        ({"zoom": "wax cup"}, "its regions are wax, hole"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            molten.plot(**options)  # type: ignore[arg-type]
        assert caught.value.__notes__ == [f"In Python: {next(iter(options))}=…"]


def test_a_notebook_shows_an_animation(molten: heatsim.Run) -> None:
    drawn = molten.plot(view="sections", animate=True)
    assert [path.name for path in drawn] == ["sections.gif"]
    assert drawn[0].read_bytes().startswith(b"GIF8")
    assert drawn._repr_html_().startswith('<img src="data:image/gif;base64,R0lG')
    with pytest.raises(InputError, match="plot: got 'probes', which chooses among pictures, beside animate"):
        molten.plot("probes", animate=True)


def test_nodes_are_those_of_nodes_csv(tmp_path: Path, done: Path) -> None:
    text = runs.TEXT.replace("ambient = 280.0", 'ambient = { node = "air" }') + '[[nodes]]\nname = "air"\n'
    heatsim.Simulation.from_scenario(runs.write(tmp_path, text), output=tmp_path / "run").run()
    run = opened(tmp_path / "run")
    assert [*run.nodes.columns] == ["air (K)", *(f"air {heat} (J)" for heat in ("surfaces", "links", "flows", "power"))]
    assert run.nodes.index[-1] == 10.0
    with pytest.raises(FolderError, match=r"nodes\.csv: is not there; the run writes it with \[\[nodes\]\]"):
        _ = opened(done).nodes
