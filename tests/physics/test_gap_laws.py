"""Contacts whose conductance depends on temperature and time, and gaps that conduct and radiate."""

import csv
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
import runs
from cuda_host import gpu
from gap_bodies import AROUND, GAP, SIGMA, VARYING, Slabs
from problem_text import problem

import heatsim
from heatsim.errors import HeatsimError, Interrupted, ScenarioError
from heatsim.physics.conditions.gap_laws import GapLaw, GapLinks, enter_gaps
from heatsim.physics.readings.contact_links import contact_links, flow_through
from heatsim.scenario import parse
from heatsim.scenario.tables.library import library
from heatsim.scenario.values.materialfunction import MaterialTable
from heatsim.scenario.values.surfacefunction import SurfaceTable

METHODS = ("euler", "stabilized", "implicit", "steady")


def ran(at: Path, text: str, *overrides: str) -> Path:
    at.mkdir(exist_ok=True)
    heatsim.Simulation.from_scenario(runs.write(at, text), overrides, output=at / "run").run()
    return at / "run"


def rows(folder: Path, name: str = "energy.csv") -> list[dict[str, float]]:
    with (folder / name).open(encoding="utf-8", newline="") as table:
        return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(table)]


@pytest.mark.parametrize("method", METHODS)
def test_the_balance_of_two_slabs_is_exact(tmp_path: Path, method: str) -> None:
    slabs = Slabs()
    tight = [] if method in ("euler", "steady") else ["time.tolerance=1e-2"]
    folder = ran(tmp_path, slabs.text(), f"time.method={method}", *tight)
    row = rows(folder)[-1]
    exact = 1e-4 * slabs.flux()
    for name in ("x_min (W)", "contact left to right (W)"):
        assert row[name] == pytest.approx(exact, rel=1e-6)
    assert row["x_max (W)"] == pytest.approx(-exact, rel=1e-6)
    if method != "steady":
        summary = heatsim.open(folder).summary
        assert abs(row["residual (J)"]) <= summary["energy_bound"]
        # What passes the contact is what the right slab has stored and given away.
        through = row["contact left to right (J)"]
        assert through == pytest.approx(row["region right (J)"] - row["x_max (J)"], rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_random_slabs_have_exact_steady_states(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    left, right = np.exp(random.uniform(np.log(0.05), np.log(50.0), 2)).tolist()
    hot, cold = random.uniform(250.0, 1200.0, 2).tolist()
    slabs = Slabs(left, right, hot, cold)
    exact = _signed(slabs)
    row = rows(ran(tmp_path, slabs.text(), "time.method=steady"))[-1]
    assert row["contact left to right (W)"] == pytest.approx(1e-4 * exact, rel=1e-6)


def _signed(slabs: Slabs) -> float:
    """The flux from left to right; bisection wants it positive."""
    if slabs.hot >= slabs.cold:
        return _held_constant(slabs)
    return -_held_constant(Slabs(slabs.right, slabs.left, slabs.cold, slabs.hot))


def _held_constant(slabs: Slabs) -> float:
    """As :meth:`Slabs.flux`, with the table constant beyond its ends."""
    low, high = 0.0, (slabs.hot - slabs.cold) / (0.01 / slabs.left + 0.01 / slabs.right)
    for _ in range(200):
        q = 0.5 * (low + high)
        one, other = slabs.hot - q * 0.01 / slabs.left, slabs.cold + q * 0.01 / slabs.right
        k = np.interp(0.5 * (one + other), [300.0, 1000.0], [0.15, 0.36])
        passes = k / 1e-3 * (one - other) + SIGMA * (one**4 - other**4) / 2.25
        low, high = (q, high) if passes > q else (low, q)
    return q


@pytest.mark.quick("euler", "stabilized")
@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit"])
def test_two_lumps_follow_their_equation(tmp_path: Path, method: str) -> None:
    """Cells that conduct perfectly: C1·T1' = −A·Q, C2·T2' = A·Q, with a conductance that changes in T and t."""
    contact = 'conductance = "40*(T/300)^2*(1 + 0.5*sin(t/20))"'
    text = re.sub(r"x_m.. = .*\n", "", Slabs(4e5, 4e5).text(cells=2, end=50.0, contact=contact))
    text = text.replace("temperature = 400.0", 'temperature = "where(x < 0.01, 900, 300)"')
    text = text.replace("[initial]", _probes() + "[initial]")
    settings = {"euler": ["time.dt=2e-3"]}.get(method, ["time.tolerance=1e-2"])
    folder = ran(tmp_path, text, f"time.method={method}", *settings)
    T, step, t = np.array([900.0, 300.0]), 5e-3, 0.0

    def rate(t: float, T: np.ndarray) -> np.ndarray:
        q = 40.0 * (T.mean() / 300.0) ** 2 * (1.0 + 0.5 * np.sin(t / 20.0)) * (T[0] - T[1])
        return np.array([-q / (2000.0 * 500.0 * 0.01), q / (1000.0 * 300.0 * 0.01)])

    for row in rows(folder, "probes.csv"):
        while t < row["time (s)"] - 1e-9:  # the classical Runge–Kutta method
            a = rate(t, T)
            b = rate(t + step / 2, T + step / 2 * a)
            c = rate(t + step / 2, T + step / 2 * b)
            d = rate(t + step, T + step * c)
            T, t = T + step / 6 * (a + 2 * b + 2 * c + d), t + step
        assert [row["a (K)"], row["b (K)"]] == pytest.approx(T, abs=3e-2)


def _probes(*places: float) -> str:
    named = zip("ab", places or (0.005, 0.015), strict=True)
    return "".join(f'[[probes]]\nname = "{name}"\npoint = [{x}, 0.005, 0.005]\n' for name, x in named)


def test_the_order_in_space_is_two() -> None:
    """A slab with a source and a gap: the errors of the contact's heat fall by four with half the cell size."""
    found = []
    for cells in (8, 16, 32, 64):
        text = Slabs().text(cells=cells) + '[[sources]]\npower_density = "1e5*sin(200*x)"\n'
        simulation = heatsim.Simulation.from_dict(
            tomllib.loads(text) | {"time": {"method": "steady", "tolerance": 1e-7}}, in_memory=True
        )
        simulation.run()
        derived = problem(text)
        (links,) = contact_links(derived)
        T = simulation.temperature
        found.append(flow_through(derived, links, (T[tuple(links.first)], T[tuple(links.second)])))
    errors = np.abs(np.diff(found))
    assert (errors[:-1] / errors[1:] > 3.6).all()


BODIES = {
    "constant": AROUND.format(steel="40.0"),
    "varying": AROUND.format(steel=VARYING),
    "thin": AROUND.format(steel="40.0").replace("[12, 10, 15]", "[1, 10, 15]"),
    "graded": AROUND.format(steel=VARYING).replace(
        'material = "steel"\n[materials',
        'material = "steel"\n[domain.x]\nintervals = [{ to = 0.012, cells = 12, growth = 1.2 }]\n[materials',
        1,
    ),
}


@pytest.mark.quick("streamed-graded", "temporal-constant", "streamed-varying")
@pytest.mark.parametrize(
    ("kernel", "body"),
    [
        ("naive", "constant"),
        ("streamed", "constant"),
        ("temporal", "constant"),
        ("streamed", "varying"),
        ("naive", "thin"),
        ("streamed", "graded"),
    ],
)
def test_cuda_kernels_do_the_steps_of_the_cpu(monkeypatch: pytest.MonkeyPatch, kernel: str, body: str) -> None:
    document = tomllib.loads(BODIES[body]) | {"output": {"every": 0.05, "figures": False}}
    fields = []
    for device, own in (("cpu", "numpy"), ("cpu", "numba"), ("cuda", kernel)):
        if device == "cuda":
            gpu.play_gpu(monkeypatch)
        document["solver"] = {"device": device, "kernel": own, "precision": "float64"}
        simulation = heatsim.Simulation.from_dict(document, in_memory=True)
        simulation.run()
        fields.append(simulation.temperature)
    oracle, numba, cuda = fields
    assert numba.tobytes() == oracle.tobytes()
    assert np.nanmax(np.abs(cuda - oracle)) < 1e-9
    assert np.nanmax(oracle) > np.nanmin(oracle) + 10.0


def test_surfaces_are_those_of_bisection() -> None:
    """Random links with opposite, equal and extreme halves: q is the root of the balance, antisymmetric to the bit."""
    random = np.random.default_rng(5)
    law = _law("conductance = { temperatures = [300.0, 400.0, 401.0, 900.0], values = [5.0, 500.0, 480.0, 2.0] }")
    law = GapLaw(0, law.function, 1.0, 3e-8, 200.0, 1000.0, 1.0)
    table = enter_gaps(np.zeros((1, 4, 6)), 3, [law], np.zeros(1), 300.0)[0]
    count = 2000
    below, above = random.uniform(-100.0, 700.0, (2, count))
    low = np.exp(random.uniform(np.log(1e-6), np.log(1e-2), count))
    high, ratio = low * random.choice([1.0, 1.2, 0.8], count), random.uniform(0.4, 1.0, count)
    first = np.full(count, 18)
    links = GapLinks(table.reshape(-1), first, 300.0, low, high, ratio)
    q = links.flux(below, above)
    one, other = below + 300.0 - q * low, above + 300.0 + q * high
    H = np.interp(0.5 * (one + other), [300.0, 400.0, 401.0, 900.0], [5.0, 500.0, 480.0, 2.0])
    passes = ratio * (H * (one - other) + 3e-8 * (one**4 - other**4))
    scale = abs(q) + 1e-9 * abs(below - above) / (low + high)
    assert (abs(passes - q) <= 1e-9 * scale * (1.0 + ratio * (low + high) * 1e4)).all()
    assert (q * (below - above) >= 0.0).all()
    mirrored = GapLinks(table.reshape(-1), first, 300.0, high, low, ratio).flux(above, below)
    assert np.allclose(mirrored, -q, rtol=1e-12)
    # The slopes are those of differences.
    nothing = np.zeros(count)
    _, of_below, of_above = links.flux_and_slopes(below, above, (nothing, nothing))
    by_below, by_above = (
        (links.flux(below + s, above + t) - links.flux(below - s, above - t)) / 2e-4
        for s, t in ((1e-4, 0.0), (0.0, 1e-4))
    )
    smooth = np.abs(0.5 * (one + other) - 400.5) > 5.0
    for slope, difference in ((of_below, by_below), (-of_above, by_above)):
        assert np.allclose(slope[smooth], difference[smooth], rtol=1e-4, atol=1e-5 * np.abs(slope).max())


def _drawn(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A table that rises, falls, jumps and has kinks, with one to seven segments."""
    T = np.sort(random.uniform(250.0, 950.0, random.integers(2, 9)))
    return T, np.exp(random.uniform(np.log(1e-2), np.log(1e4), len(T)))


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_random_laws_have_the_flux_of_scalar_bisection(precision: str) -> None:
    """Laws that :meth:`GapLaw.steepest` lets pass."""
    random, tried = np.random.default_rng(11), 0
    while tried < 150:
        T, H = _drawn(random)
        table = SurfaceTable(MaterialTable(tuple(T.tolist()), tuple(H.tolist())))
        law = GapLaw(0, table, 1.0, random.choice([0.0, 4e-8]), 200.0, 1000.0, 1.0)
        low, ratio = np.exp(random.uniform(np.log(1e-6), np.log(1e-2))), random.uniform(0.4, 1.0)
        high = low * random.choice([1.0, 1.0 + 1e-3, 3.0])
        if law.steepest(low + high, high - low, ratio) is not None:
            continue
        tried += 1
        flat = enter_gaps(np.zeros((1, 1, 6)), 0, [law], np.zeros(1), 300.0)[0].reshape(-1).astype(precision)
        below, above = random.uniform(-100.0, 700.0, (2, 1)).astype(precision)
        given = (np.array([value], dtype=precision) for value in (low, high, ratio))
        found = float(GapLinks(flat, np.zeros(1, np.int64), np.float32(300.0), *given).state(below, above).part[0])
        difference, mean = float(below[0] - above[0]), 0.5 * float(below[0] + above[0]) + 300.0

        def surplus(f: float) -> float:
            middle = mean + 0.5 * f * (high - low) / (low + high) * difference  # noqa: B023
            apart = (1.0 - f) * difference  # noqa: B023
            passes = np.interp(middle, T, H) + law.emission * middle * (4.0 * middle**2 + apart**2)  # noqa: B023
            return float(ratio * (low + high) * passes * (1.0 - f) - f)  # noqa: B023

        first, last = 0.0, 1.0
        for _ in range(100):
            middle = 0.5 * (first + last)
            first, last = (middle, last) if surplus(middle) >= 0.0 else (first, middle)
        # A rounding of T moves H by its slope; near the steepest law that is allowed, f moves a hundred times as far.
        rounding = np.finfo(precision).eps * 1000.0 * (1.0 + float(np.abs(np.diff(H) / np.diff(T)).max()) / H.min())
        assert abs(found - first) <= 50.0 * rounding * max(first, 1e-6)


def test_a_jump_that_moves_is_refused_and_others_are_followed() -> None:
    for moving in ("where(T > 300 + t, 50, 5)", "5 + floor((T + t)/100)", "where(t > 5 and T*t > 900, 9, 1)"):
        with pytest.raises(ScenarioError, match="jumps at a temperature that changes in time"):
            problem(Slabs().text(contact=f'conductance = "{moving}"'))
    # A jump in T that is there only for a while, and a kink that moves.
    law = _law('conductance = "where(t > 100 and t < 110, where(T > 455.5, 50, 5), 7)"')
    found = law.conductances(np.array([99.0, 105.0, 111.0]))
    assert (found[[0, 2]] == 7.0).all()
    assert np.interp([455.499, 455.501], law.nodes, found[1]) == pytest.approx([5.0, 50.0], abs=1e-6)
    kink = _law('conductance = "5 + min(T, 400 + t)/100"')
    T, times = np.linspace(330.0, 890.0, 57), np.linspace(0.0, 300.0, 7)
    exact = 5.0 + np.minimum(T, 400.0 + times[:, None]) / 100.0
    for row, values in zip(kink.conductances(times), exact, strict=True):
        assert np.interp(T, kink.nodes, row) == pytest.approx(values, abs=5e-3)


@pytest.mark.parametrize("height", [-100.0, 1e6])
def test_a_peak_that_is_narrow_in_temperature_and_time_is_refused(height: float) -> None:
    """Between all nodes and moments, below 0 or far above; a wider one is followed."""
    peak = 'conductance = "10 + {}*exp(-((T-{})/{})^2)*exp(-((t-{})/{})^2)"'
    rng = np.random.default_rng(7)
    for _ in range(5):
        place, moment = rng.uniform(500.0, 800.0), rng.uniform(50.0, 250.0)
        with pytest.raises(ScenarioError, match=r"temperature and time to be followed|must be at least 0"):
            problem(Slabs().text(contact=peak.format(height, place, 0.02, moment, 0.01)))
    problem(Slabs().text(contact=peak.format(abs(height) / 1e5, 600.0, 50.0, 100.0, 40.0)))


@pytest.mark.parametrize(
    ("contact", "key"),
    [
        ("conductance = { temperatures = [300.0, 500.0], values = [50.0, 60.0] }", "conductance ends at 500 K"),
        (GAP.replace("1000.0]", "500.0]"), "conductivity ends at 500 K"),
        ('conductance = "50*(T/300)^0.5"\ntemperature_range = [350.0, 600.0]', "conductance ends at 600 K"),
    ],
)
@pytest.mark.parametrize("method", ["euler", "steady"])
def test_a_law_that_a_run_leaves_is_told(tmp_path: Path, contact: str, key: str, method: str) -> None:
    """The mean of both surfaces counts, not that of the cells beside them."""
    slabs = Slabs(left=3.0, right=3.0, hot=880.0, cold=400.0)
    folder = ran(tmp_path, slabs.text(contact=contact), f"time.method={method}", "time.end=200")
    (found,) = (text for text in heatsim.open(folder).summary["warnings"] if text.startswith("contact"))
    assert found.startswith('contact "left to right" reached ')
    assert key in found
    assert "the run used the nearest known value; extend the table or the temperature_range" in found
    wide = contact.replace("500.0", "1000.0").replace("350.0, 600.0", "300.0, 1000.0")
    quiet = ran(tmp_path / "quiet", slabs.text(contact=wide), f"time.method={method}", "time.end=200")
    assert not any(text.startswith("contact") for text in heatsim.open(quiet).summary["warnings"])


def test_a_material_and_a_region_of_it_have_a_contact_in_either_order(tmp_path: Path) -> None:
    flows = []
    for names in ('"block", "steel"', '"steel", "block"'):
        derived = problem(AROUND.format(steel="40.0").replace('"block", "steel"', names))
        _, links = contact_links(derived)
        T = np.fromfunction(lambda z, y, x: 300.0 + x + 2.0 * y + 3.0 * z, derived.grid.shape)
        flows.append(flow_through(derived, links, (T[tuple(links.first)], T[tuple(links.second)])))
    assert flows[0] == pytest.approx(-flows[1], rel=1e-12)
    assert flows[0] != 0.0


def test_helium_conducts_as_petersen_says() -> None:
    """Risø Report No. 224 (1970): k = 0.144·(1 + 2.7e-4·P)·(T/273.16 K)^(0.71·(1 − 2e-4·P)), P in bar."""
    for T, k, cp in library()["helium"].table:
        P = 1.01325
        exact = 0.144 * (1.0 + 2.7e-4 * P) * (T / 273.16) ** (0.71 * (1.0 - 2e-4 * P))
        assert k == pytest.approx(exact, rel=4e-4)
        assert cp == 5195.0


def _law(contact: str) -> GapLaw:
    return problem(Slabs(3.0, 3.0).text(contact=contact)).boundary.gaps[0]


def test_the_largest_conductance_limits_the_step() -> None:
    """Radiation at the hottest temperature, and conduction with its slope; a falling table adds its slope."""
    law = _law(GAP)
    slope = 0.21 / 700.0 / 1e-3
    assert law.largest == pytest.approx((0.33 / 1e-3 + slope * 290.0) + 4.0 * law.emission * 900.0**3, rel=0.2)
    assert law.largest >= 0.33 / 1e-3 + 4.0 * law.emission * 900.0**3
    assert law.emission == pytest.approx(SIGMA / 2.25)
    lumps = problem(
        Slabs(4e5, 4e5)
        .text(cells=2, contact=GAP)
        .replace('type = "temperature", value', 'type = "convection", coefficient = 1.0, ambient')
    )
    rate = 1e-4 * lumps.boundary.gaps[0].largest / (1000.0 * 300.0 * 1e-6) + 1.0 / (300.0 * 1000.0 * 0.01)
    assert lumps.limit.dt == pytest.approx(1.0 / rate, rel=1e-3)


def test_constant_contacts_are_resistances() -> None:
    same = [
        "resistance = 2e-4",
        "conductance = 5000.0",
        'conductance = "5 kW/(m^2 K)"',
        "gap = { width = 1e-4, conductivity = 0.5 }",
        "conductance = { temperatures = [300.0, 400.0], values = [5000.0, 5000.0] }",
    ]
    for contact in same:
        derived = problem(Slabs().text(contact=contact))
        assert not derived.boundary.gaps
        assert derived.materials.resistance[0, 1] == pytest.approx(2e-4)


def test_a_table_that_is_flat_in_the_range_is_a_resistance(tmp_path: Path) -> None:
    """Kelvins across a law that happens to be constant are those across the resistance, with every reading."""
    fields = []
    for number, contact in enumerate(("resistance = 2e-3", 'conductance = "500 + 0*T"')):
        text = (
            Slabs()
            .text(contact=contact, end=50.0)
            .replace("[initial]", _probes().replace("0.005,", "0.0099,", 1) + "[initial]")
        )
        folder = ran(
            tmp_path / str(number),
            text.replace("region_heat", "heat_flux = true\nregion_heat"),
            "time.method=euler",
            "time.dt=0.02",
        )
        row, probes = rows(folder)[-1], rows(folder, "probes.csv")[-1]
        opened = heatsim.open(folder)
        fields.append((opened.temperature.values, opened.heat_flux.values, [*row.values()], [*probes.values()]))
    for one, other in zip(*fields, strict=True):
        assert np.allclose(one, other, rtol=1e-9, atol=1e-8, equal_nan=True)


def test_a_resumed_run_has_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = "[solver]\ndevice = 'cpu'\n[output]\nevery = 0.0125\nfigures = false\nerror = 'none'\nregion_heat = true\n"
    text = AROUND.format(steel=VARYING) + _probes(0.0051, 0.0075) + output
    whole = ran(tmp_path / "whole", text)
    with monkeypatch.context() as patch:
        runs.after_step(patch, 3, runs.interrupt)
        with pytest.raises(Interrupted):
            heatsim.Simulation.from_scenario(runs.write(tmp_path, text), output=tmp_path / "cut").run()
    heatsim.Simulation.resume(tmp_path / "cut").run()
    assert runs.results(tmp_path / "cut") == runs.results(whole)


MISUSES = {
    "resistance = 1e-4\nconductance = 5.0": "resistance and conductance; write exactly one of",
    "": "resistance: missing",
    "conductance = -5.0": "must be at least 0",
    "gap = { width = 0.0, conductivity = 0.1 }": "must be greater than 0",
    "gap = { width = 1e-3, conductivity = 0.1, emissivities = [0.8, 1.2] }": "at most 1",
    "gap = { width = 1e-3, conductivity = 0.1, emissivities = [0.0, 0.5] }": "greater than 0",
    "gap = { width = 1e-3, conductivity = 0.1, emissivities = 0.5 }": "emissivities of both surfaces",
    'gap = { width = 1e-3, conductivity = "library:heliun" }': "library:helium",
    'gap = { width = 1e-3, conductivity = "0.1*x" }': "expression in T",
    'conductance = "5*x"': "expression in T",
    'conductance = "T - 600"': "temperature_range",
    'conductance = "t - 5"': "contacts.0.conductance",
    "conductance = 5.0\ntemperature_range = [300.0, 400.0]": "no expression in T",
}


@pytest.mark.parametrize("contact", MISUSES)
def test_misuses_have_messages(contact: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(MISUSES[contact])):
        problem(Slabs().text(contact=contact))


def test_a_range_that_nothing_limits_is_asked_for() -> None:
    heated = Slabs().text(contact='conductance = "50*(T/300)^0.7"') + "[[sources]]\npower = 1e6\n"
    with pytest.raises(ScenarioError, match="set temperature_range"):
        problem(heated)
    known = heated.replace('^0.7"', '^0.7"\ntemperature_range = [300.0, 1500.0]')
    assert problem(known).boundary.gaps[0].high == 1500.0


def test_steep_laws_are_refused_with_a_remedy() -> None:
    steep = "conductance = { temperatures = [599.0, 600.0], values = [1.0, 90000.0] }"
    with pytest.raises(ScenarioError, match="several temperatures"):
        problem(Slabs(left=30.0, right=0.1).text(contact=steep))
    problem(Slabs(left=3.0, right=3.0).text(contact=steep))  # equal halves: the middle temperature does not move


def test_a_falling_steady_state_is_refused(tmp_path: Path) -> None:
    """Heat that falls where the difference grows: T1 alone moves the middle into the falling part."""
    falling = "conductance = { temperatures = [500.0, 700.0], values = [100.0, 1.0] }"
    with pytest.raises(HeatsimError, match="may be unstable"):
        ran(tmp_path, Slabs(left=3.0, right=3.0).text(contact=falling), "time.method=steady")


def test_layers_beside_gaps_are_refused() -> None:
    layer = '[[layers]]\nmaterial = "left"\nthickness = 1e-5\nplane = { axis = "x", at = 0.005 }\n'
    with pytest.raises(ScenarioError, match="constant resistance"):
        problem(Slabs().text() + layer)


def test_cells_of_several_widths_have_the_same_balance(tmp_path: Path) -> None:
    slabs = Slabs()
    graded = "[domain.x]\nwidths = [0.004, 0.003, 0.002, 0.001, 0.0005, 0.002, 0.0035, 0.004]\n[materials.left]"
    text = slabs.text().replace("[materials.left]", graded)
    row = rows(ran(tmp_path, text, "time.method=steady"))[-1]
    assert row["contact left to right (W)"] == pytest.approx(1e-4 * slabs.flux(), rel=1e-6)


def test_the_scenario_can_be_written_and_read() -> None:
    from heatsim.scenario.documents.resolved import document

    scenario = parse(tomllib.loads(AROUND.format(steel="40.0")), "case.toml")
    assert parse(document(scenario), "case.toml") == scenario
