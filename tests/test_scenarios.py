"""The scenarios that come with heatsim: they run, and what their comments promise is so."""

import math
import runpy
import tomllib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import runs
from numpy.typing import NDArray

from heatsim.physics.geometry.regions import are_painted, paint
from heatsim.physics.matter.material_coefficients import material_coefficients
from heatsim.physics.problem import HeatProblem
from heatsim.run.plan import Plan
from heatsim.run.plan_text import describe
from heatsim.run.simulation import Simulation
from heatsim.scenario import load
from heatsim.storage import run_tables

SCENARIOS = Path(__file__).parents[1] / "scenarios"
# Studies have tests of their own.
FILES = sorted(path for path in SCENARIOS.glob("*.toml") if not path.stem.endswith("_study"))
PAINTED = [path for path in FILES if are_painted(load(path))]
NOT_PAINTED = [path for path in FILES if path not in PAINTED]
ZERO_CELSIUS = 273.15

Columns = Mapping[str, NDArray[np.float64]]


def run(name: str, tmp_path: Path, *overrides: str) -> tuple[Simulation, Columns]:
    """A scenario run to its end on the CPU, and its probes by name."""
    folder = tmp_path / name
    simulation = Simulation.from_scenario(
        SCENARIOS / f"{name}.toml", ["solver.device=cpu", *overrides], output=folder, overwrite=True
    )
    simulation.run()
    if not simulation.plan.problem.scenario.probes:
        return simulation, {}
    probes = run_tables.read_probes(folder)
    assert probes is not None
    return simulation, {"time": probes.times, **probes.in_unit("K")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario_opens_with_a_comment_and_can_be_planned(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("#:schema heatsim.schema.json\n# ")
    assert "What to look for" in text.split("\n\n", 1)[0]
    if path in NOT_PAINTED:
        problem = HeatProblem.from_scenario(load(path))
        assert problem.scenario.title in describe(Plan.of(problem))


@pytest.mark.parametrize("path", PAINTED, ids=lambda path: path.stem)
def test_all_regions_of_a_scenario_have_cells(path: Path) -> None:
    scenario = load(path)
    if any(region.stl for region in scenario.regions):
        pytest.importorskip("pyvista", reason="PyVista is not installed")
    parts = paint(scenario)
    assert sum(parts.material_cells) == scenario.grid.cell_count
    assert all(parts.region_cells)
    assert all(material.limit > 0.0 for material in material_coefficients(scenario))


@pytest.mark.parametrize("path", NOT_PAINTED, ids=lambda path: path.stem)
def test_scenario_runs_to_its_first_rows(path: Path, tmp_path: Path) -> None:
    soon = load(path).output.probe_every
    simulation, _ = run(path.stem, tmp_path, f"time.end={soon!r}")
    assert simulation.time == soon
    assert np.isfinite(simulation.temperature).all()


def test_cube_cools_as_the_product_of_three_plane_walls(tmp_path: Path) -> None:
    # 3 mK with 64 cells along an edge are 48 mK with 16: the error falls with the square of the spacing.
    simulation, probes = run("cube", tmp_path, "domain.cells=[16, 16, 16]")
    exact = {"centre": 355.1374, "base": 356.5621, "top corner": 345.0017}
    for name, temperature in exact.items():
        assert probes[name][-1] == pytest.approx(temperature, abs=0.055), name

    mean, lumped = simulation.temperature.mean(), 293.15 + 80.0 * math.exp(-30.0 / 97.2)
    assert lumped == pytest.approx(351.91, abs=0.005)
    assert mean == pytest.approx(352.57, abs=0.05)


def test_hot_spot_spreads_along_each_axis_by_its_own_conductivity(tmp_path: Path) -> None:
    simulation, probes = run("anisotropic_block", tmp_path)
    excess = simulation.temperature - 293.15
    grid = simulation.plan.problem.grid
    variances = []
    for axis in range(3):
        profile = excess.sum(axis=tuple(a for a in range(3) if a != 2 - axis))
        variances.append(float((profile * grid.centres(axis) ** 2).sum() / profile.sum()) * 1e6)
    # Second differences raise the variance by exactly 2·α·t; a trace has met the faces, 4.4 to 4.9 deviations out.
    assert np.sqrt(variances) == pytest.approx([4.500, 3.202, 2.062], abs=1.5e-3)
    gained = np.array(variances) - 1.5**2
    assert gained / gained[2] == pytest.approx([9.0, 4.0, 1.0], rel=2e-3)

    assert probes["centre"][-1] - 293.15 == pytest.approx(22.73, abs=0.03)
    for name in ("along x", "along y", "along z"):
        assert probes[name][-1] - 293.15 == pytest.approx(13.8, abs=0.06)


@pytest.mark.parametrize(
    ("overrides", "published", "within"),
    [
        ((), [66.61, 67.40, 69.74, 73.57, 78.77, 85.18], 0.01),
        (
            ("material.conductivity=0.1", "material.density=100", "time.end=1200"),
            [25.44, 28.00, 36.32, 51.76, 74.94, 104.32],
            0.025,  # 0.02 K, and half a unit of the last digit published
        ),
    ],
    ids=["Bi = 1", "Bi = 10"],
)
def test_slab_has_the_published_temperatures(
    overrides: tuple[str, ...], published: list[float], within: float, tmp_path: Path
) -> None:
    _, probes = run("slab_convection", tmp_path, "solver.kernel=numpy", *overrides)
    depths = ("0 cm", "2 cm", "4 cm", "6 cm", "8 cm", "10 cm")
    celsius = [probes[depth][-1] - ZERO_CELSIUS for depth in depths]
    assert celsius == pytest.approx(published, abs=within)


def test_swing_of_the_day_fades_and_lags_in_the_wall(tmp_path: Path) -> None:
    _, probes = run("day_night_wall", tmp_path)
    day = probes["time"] > 5 * 86400.0
    phase = np.exp(2j * np.pi * probes["time"][day] / 86400.0)

    half_swing, lag = [], []
    for name in ("outer surface", "one depth in", "two depths in", "inner surface"):
        wave = 2.0 * np.mean(probes[name][day] * np.conj(phase))
        half_swing.append(abs(wave))
        lag.append((-np.angle(wave) * 24.0 / (2.0 * np.pi) - 15.0) % 24.0)
    assert half_swing == pytest.approx([5.4448, 1.9932, 0.7486, 0.24646], rel=5e-3)
    assert lag == pytest.approx([0.774, 4.596, 8.534, 11.756], abs=0.02)
    assert half_swing[1] / half_swing[0] == pytest.approx(math.exp(-1.0), rel=0.01)
    assert lag[1] - lag[0] == pytest.approx(24.0 / (2.0 * math.pi), rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["euler", pytest.param("auto", marks=pytest.mark.slow)])
def test_a_wall_loses_the_heat_of_a_year_that_its_comment_says(tmp_path: Path, method: str) -> None:
    """21.2 kWh/m² through the inner surface: U times the mean difference, as if the year were steady."""
    # Cells of half the number have the same resistances.
    overrides = ["domain.cells=[19, 1, 1]", "output.fields=false", "output.figures=false", f"time.method={method}"]
    run("wall_year", tmp_path, *overrides)
    energy = run_tables.read_energy(tmp_path / "wall_year")
    assert energy is not None
    kwh = energy.in_unit("J")["x_max"][-1] / 3.6e6
    assert kwh == pytest.approx(21.2, abs=0.1)


def test_the_weather_is_what_its_script_writes(tmp_path: Path) -> None:
    script = runpy.run_path(str(SCENARIOS / "weather.py"))
    script["write"](tmp_path / "weather.csv")
    assert (tmp_path / "weather.csv").read_bytes() == (SCENARIOS / "weather.csv").read_bytes()


def test_table_given_in_the_wall_can_be_used(tmp_path: Path) -> None:
    text = (SCENARIOS / "day_night_wall.toml").read_text(encoding="utf-8")
    table = next(line for line in text.splitlines() if line.startswith("#     ambient = "))
    value = table.removeprefix("#     ambient = ")
    assert tomllib.loads(f"ambient = {value}")["ambient"]["repeat"] is True
    overrides = ["solver.kernel=numpy", f"boundaries.x_min.ambient={value}", "time.end=129600"]
    _, probes = run("day_night_wall", tmp_path, *overrides)
    hours = probes["time"] / 3600.0
    assert hours[np.argmax(probes["outer surface"][hours <= 24.0])] == pytest.approx(15.0, abs=2.0)
    assert probes["outer surface"].max() < 285.0


def test_cosine_loses_the_same_part_in_every_step(tmp_path: Path) -> None:
    simulation, probes = run("periodic_cosine", tmp_path)
    factor = 0.9918537171123094
    assert factor == pytest.approx(1.0 - sum(1.0 - math.cos(2.0 * math.pi / n) for n in (64, 48, 32)) / 4.0, rel=1e-15)
    assert simulation.step == 400
    first, last = probes["crest"][0] - 300.0, probes["crest"][-1] - 300.0
    assert first == pytest.approx(9.91858, abs=5e-6)
    # 400 steps of one rounding each of temperatures near 300 K, whose last place is 6e-14 K.
    assert last == pytest.approx(first * factor**400, abs=1e-12)
    assert last == pytest.approx(0.37627, abs=5e-6)


def test_photograph_is_blurred_by_a_gaussian(tmp_path: Path) -> None:
    start = Simulation.from_scenario(SCENARIOS / "photograph.toml", ["solver.device=cpu"]).temperature[0]
    simulation, _ = run("photograph", tmp_path)
    end = simulation.temperature[0]
    difference = end - gaussian_blur(start, sigma=3.0)
    assert np.sqrt(np.mean(difference**2)) < 0.025
    assert np.abs(difference).max() < 0.25
    assert end.mean() == pytest.approx(start.mean(), abs=1e-3)

    # The grain: what is left of independent noise in an even part of the sky, its slow gradient taken out.
    sky = (slice(150, 190), slice(10, 120))
    grain = [np.std(np.diff(picture[sky], axis=1)[:, ::3]) for picture in (start, end)]
    assert grain[1] < 0.05 * grain[0]


def gaussian_blur(picture: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """Convolution with a sampled Gaussian, mirrored at the edges."""
    reach = math.ceil(8.0 * sigma)
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2.0 * sigma**2))
    weights /= weights.sum()
    for axis in (0, 1):
        n = picture.shape[axis]
        padded = np.pad(picture, [(reach, reach) if a == axis else (0, 0) for a in (0, 1)], mode="symmetric")
        picture = sum(weight * np.take(padded, np.arange(i, i + n), axis=axis) for i, weight in enumerate(weights))
    return picture


def test_photograph_is_what_its_script_draws() -> None:
    from PIL import Image

    drawn = runpy.run_path(str(SCENARIOS / "photograph.py"))["draw"]()
    with Image.open(SCENARIOS / "photograph.png") as picture:
        stored = np.asarray(picture)
    assert drawn.shape == stored.shape == (192, 256)
    # The last bits of sines differ between machines, and with them a grey value here and there.
    assert np.mean(np.abs(drawn.astype(int) - stored) > 1) < 1e-3


def test_the_gear_is_made_by_its_script_and_loses_its_heat_to_the_air(tmp_path: Path) -> None:
    pytest.importorskip("pyvista", reason="PyVista is not installed")
    made = runpy.run_path(str(SCENARIOS / "gear.py"))
    stored = np.frombuffer((SCENARIOS / "gear.stl").read_bytes()[84:], dtype=made["TRIANGLE"])
    np.testing.assert_array_equal(stored["corners"], made["gear"]().astype(np.float32))

    simulation, probes = run("cooling_gear", tmp_path, "time.end=60")
    assert probes["hub"][-1] > probes["tooth"][-1] > probes["coldest"][-1]
    # 1185.7 K with 96 × 96 × 24 cells, 1183.8 K with 144 × 144 × 36.
    assert probes["tooth"][-1] == pytest.approx(1183.0, abs=20.0)
    energy = runs.energy_rows(simulation.folder)[-1]
    assert energy["void"] < 0.0
    assert abs(energy["residual"]) < 1e-3 * abs(energy["void"])
    # By volume and area alone, as if at one temperature: hotter parts radiate more than that, colder ones less.
    assert probes["mean"][-1] == pytest.approx(1284.0, abs=15.0)


def test_a_circuit_board_spreads_its_heat_in_copper(tmp_path: Path) -> None:
    """In cells of twice the width, whose temperatures differ by up to 0.4 K from those that the comment promises."""
    coarse = ("output.figures=false", "domain.cells=[100, 80, 15]")
    simulation, probes = run("circuit_board", tmp_path, *coarse)
    for name, degrees in (("processor", 67.9), ("driver 1", 68.2), ("regulator", 58.7)):
        assert probes[f"{name}, hottest"][0] - ZERO_CELSIUS == pytest.approx(degrees, abs=0.5)
    assert probes["corner of the board"][0] - ZERO_CELSIUS == pytest.approx(40.4, abs=0.5)
    assert simulation.state.steady is not None
    flows = simulation.state.steady.flows
    assert abs(flows.imbalance) < 1e-5 * 6.0
    assert flows.faces["z_min"] == pytest.approx(-2.7, abs=0.06)
    assert flows.void == pytest.approx(-2.7, abs=0.06)
    thin = [f"layers.{number}.thickness=1e-6" for number in range(10)]
    _, without = run("circuit_board", tmp_path, *coarse, *thin)
    assert without["processor, hottest"][0] - ZERO_CELSIUS == pytest.approx(101.3, abs=1.5)
    assert without["corner of the board"][0] - ZERO_CELSIUS == pytest.approx(28.7, abs=1.0)


@pytest.mark.slow
def test_busbars_pass_an_overload(tmp_path: Path) -> None:
    """With cells of 5 mm; and painting the second bar too cools the neck."""
    coarse = ("output.figures=false", "domain.cells=[60, 12, 20]", "time.method=implicit")
    _, probes = run("busbar", tmp_path, *coarse)
    at_2_h = int(np.searchsorted(probes["time"], 7200.0))
    assert probes["neck"][at_2_h] - ZERO_CELSIUS == pytest.approx(104.8, abs=0.3)
    assert probes["neck"][at_2_h] - probes["joint"][at_2_h] == pytest.approx(1.25, abs=0.1)
    assert probes["neck"].max() - ZERO_CELSIUS == pytest.approx(128.5, abs=0.4)
    energy = run_tables.read_energy(tmp_path / "busbar")
    assert energy is not None
    flows = {name: values[-1] for name, values in energy.in_unit("W").items()}
    assert flows["surface painted bar"] == pytest.approx(-21.6, abs=0.1)
    assert flows["sources"] == pytest.approx(34.1, abs=0.1)
    _, painted = run("busbar", tmp_path, *coarse, "surfaces.1.emissivity=0.9", "time.end=7200")
    assert painted["neck"][-1] - ZERO_CELSIUS == pytest.approx(90.4, abs=0.3)


def test_a_sheet_absorbs_light_in_its_depth(tmp_path: Path) -> None:
    _, probes = run("heated_sheet", tmp_path, "output.figures=false", "domain.cells=[60, 60, 20]")
    after = int(np.searchsorted(probes["time"], 10.0))
    # On this grid implicit, stabilized and Euler's steps agree to 0.2 K.
    for name, degrees in (("lit face", 155.0), ("middle", 98.2), ("other face", 57.4)):
        assert probes[name][after] - ZERO_CELSIUS == pytest.approx(degrees, abs=0.2)
    assert probes["middle"][-1] > probes["lit face"][-1] > probes["other face"][-1]
    energy = run_tables.read_energy(tmp_path / "heated_sheet")
    assert energy is not None
    # The 1/e² radius is 40 % of the way to the sides: 3e-6 of the light misses the sheet at each.
    absorbed = 55.0 * (1.0 - np.exp(-4.0 / 1.5))
    assert energy.in_unit("J")["sources"][-1] == pytest.approx(absorbed, rel=1e-5)


def test_the_power_module_settles_where_its_comment_s_steps_lead(tmp_path: Path) -> None:
    """After 3 s it is not quite there; the plate's time constant is 2.1 s."""
    _, probes = run("power_module", tmp_path, "time.method=steady", "output.figures=false")
    assert 112.0 < probes["IGBT, hottest"][0] - ZERO_CELSIUS < 126.0


def test_a_floor_on_the_ground_loses_as_much_as_with_half_a_million_equal_cells(tmp_path: Path) -> None:
    """In the mean year; the equal cells say 9.84 W, and four times as many cells along each axis 9.87 W."""
    simulation, _ = run(
        "slab_on_ground", tmp_path, "time.method=steady", "boundaries.z_max.ambient=282.15", "output.error=none"
    )
    assert simulation.state.steady is not None
    flows = simulation.state.steady.flows
    assert flows.patches["floor"] == pytest.approx(9.818, abs=2e-3)
    assert abs(flows.imbalance) < 1e-4


@pytest.mark.parametrize("time", ["steady", pytest.param("a minute", marks=pytest.mark.slow)])
def test_the_water_of_the_cold_plate_takes_the_heat_of_the_modules(time: str, tmp_path: Path) -> None:
    overrides = ['time={ method = "steady" }'] if time == "steady" else []
    _, probes = run("cold_plate", tmp_path, *overrides, "output.figures=false", "output.error=none")
    nodes = run_tables.read_nodes(tmp_path / "cold_plate")
    energy = run_tables.read_energy(tmp_path / "cold_plate")
    assert nodes is not None
    assert energy is not None
    there, back = (nodes.in_unit("K")[f"water {way}"][-1] - ZERO_CELSIUS for way in ("there", "back"))
    taken = -energy.of_body(run_tables.WATT)["void"][-1]
    if time == "steady":
        assert back - 20.0 == pytest.approx(19.1, abs=0.05)
        assert taken == pytest.approx(799.0, abs=0.5)
        assert taken == pytest.approx(0.01 * 4180.0 * (back - 20.0), rel=1e-6)
    else:
        assert (there, back) == pytest.approx((31.3, 38.6), abs=0.05)
        assert taken == pytest.approx(776.0, abs=1.0)
        assert probes["second module"][-1] - probes["first module"][-1] == pytest.approx(0.8, abs=0.05)
