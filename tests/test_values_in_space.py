"""Values of conditions that vary over faces and patches."""

import csv
import tomllib
from pathlib import Path

import numpy as np
import pytest

import heatsim
from heatsim.errors import ScenarioError
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import load, parse, write_resolved

TEXT = """
[domain]
size = [0.08, 0.05, 0.04]
cells = [8, 5, 4]

[material]
conductivity = 5.0
density = 1000.0
specific_heat = 500.0

[initial]
temperature = 300.0

[time]
end = 20.0
method = "euler"

[solver]
device = "cpu"
precision = "float64"

[output]
figures = false
"""


def problem(extra: str, text: str = TEXT) -> HeatProblem:
    return HeatProblem.from_scenario(parse(tomllib.loads(text + extra), "plate.toml"))


def run(extra: str, folder: Path, *overrides: str, text: str = TEXT) -> heatsim.Simulation:
    folder.mkdir(exist_ok=True)
    path = folder / "plate.toml"
    path.write_text(text + extra, encoding="utf-8")
    simulation = heatsim.Simulation.from_scenario(path, overrides, output=folder / "out", overwrite=True)
    simulation.run()
    return simulation


def heats(folder: Path) -> dict[str, float]:
    with open(folder / "out" / "energy.csv", newline="", encoding="utf-8") as file:
        row = list(csv.DictReader(file))[-1]
    return {name.removesuffix(" (J)"): float(value) for name, value in row.items() if name.endswith(" (J)")}


def columns(condition: str, values: list[float]) -> str:
    """The face z_max as one patch for each column of cells along x; ``condition`` has VALUE in it."""
    return "".join(
        f'[[patches]]\nface = "z_max"\nrectangle = {{ min = [{0.01 * i}, 0.0], max = [{0.01 * (i + 1)}, 0.05] }}\n'
        + condition.replace("VALUE", repr(value))
        for i, value in enumerate(values)
    )


# Conditions whose parts are exact, and those that are mixtures of near values: error in K of about 20 K.
EXACT = [
    ('type = "flux"\nvalue = VALUE\n', "2e5*x - 6e3", 1e-9),
    ('type = "temperature"\nvalue = VALUE\n', "300 + 500*x", 1e-9),
    ('type = "convection"\ncoefficient = VALUE\nambient = 400.0\n', "5000*exp(-x/0.02)", 1e-9),
    ('type = "convection"\ncoefficient = 300.0\nambient = VALUE\n', "300 + 2e4*x^2", 1e-9),
    ('type = "radiation"\nemissivity = VALUE\nambient = 900.0\n', "0.1 + 10*x", 1e-3),
    ('type = "convection"\ncoefficient = VALUE\nambient = 700.0\nemissivity = 0.9\n', "2000*x", 1e-2),
    ('type = "convection"\ncoefficient = "6*abs(T - Tamb)^0.25"\nambient = VALUE\n', "280 + 3e3*x", 5e-3),
]


@pytest.mark.parametrize(
    ("condition", "expression", "error", "method"),
    [
        (*exact, method)
        for method in ("euler", "implicit", "steady")
        for exact in EXACT[:: 2 if method == "implicit" else 1]
    ],
)
def test_values_are_those_of_a_patch_for_each_cell(
    tmp_path: Path, condition: str, expression: str, error: float, method: str
) -> None:
    places, weights = np.polynomial.legendre.leggauss(8)
    x = 0.01 * (np.arange(8)[:, None] + 0.5 + 0.5 * places)
    values = eval(expression.replace("^", "**"), {"x": x, "exp": np.exp}) @ (0.5 * weights)
    overrides = [f'time={{ method = "{method}", tolerance = 1e-10 }}' if method == "steady" else "time.tolerance=1e-3"]
    overrides = [] if method == "euler" else [*overrides, f'time.method="{method}"']
    overrides += ["time.end=5.0"] * (method == "implicit")
    held = '[boundaries.z_min]\ntype = "temperature"\nvalue = 300.0\n'
    space = f"{held}[boundaries.z_max]\n{condition.replace('VALUE', repr(expression).replace(chr(39), chr(34)))}"
    found = run(space, tmp_path / "space", *overrides)
    known = run(held + columns(condition, values.tolist()), tmp_path / "patches", *overrides)
    assert np.ptp(known.temperature) > 1.0
    # The tolerance of implicit steps and of the steady state allow this much.
    slack = {"euler": 0.0, "implicit": 2e-3, "steady": 2e-3}[method]
    np.testing.assert_allclose(found.temperature, known.temperature, rtol=0.0, atol=error + slack)


def test_one_cell_of_a_large_face_is_not_lost(tmp_path: Path) -> None:
    """128² cells of 1 mm², of which one gets 1e5·t W/m² more than the others in a part of 0.16 mm²."""
    text = TEXT.replace("[0.08, 0.05, 0.04]", "[0.128, 0.128, 0.002]").replace("[8, 5, 4]", "[128, 128, 2]")
    one = "(abs(x - 0.1025) < 2e-4)*(abs(y - 0.0505) < 2e-4)"
    flux = f'[boundaries]\nz_max = {{ type = "flux", value = "VALUE + 1e5*t*{one}" }}\n'
    run(flux.replace("VALUE", "10"), tmp_path, "time.end=1.0", text=text)
    assert heats(tmp_path)["z_max"] == pytest.approx(10.0 * 0.128**2 + 1e5 * 0.16e-6 / 2.0, rel=1e-7)
    with pytest.raises(ScenarioError, match="shape over the face changes"):
        problem(flux.replace("VALUE", "1e3*x*(1 + t^2)"), text)


def test_heat_of_a_patch_is_its_own_and_the_balance_closes(tmp_path: Path) -> None:
    """A flux over a patch that divides cells: its integral over the patch."""
    run(
        '[boundaries]\nz_max = { type = "convection", coefficient = "100*y", ambient = "300 + 10*t*x" }\n'
        '[[patches]]\nname = "lamp"\nface = "z_max"\nrectangle = { min = [0.015, 0.0], max = [0.053, 0.05] }\n'
        'type = "flux"\nvalue = "1e5*x*(1 + sin(t))"\n',
        tmp_path,
    )
    found = heats(tmp_path)
    integral = 1e5 * (0.053**2 - 0.015**2) / 2.0 * 0.05
    assert found["lamp"] == pytest.approx(integral * (20.0 + 1.0 - np.cos(20.0)), rel=1e-5)
    assert abs(found["residual"]) < 1e-9 * found["stored"]
    assert found["z_max"] != found["lamp"]


@pytest.mark.parametrize("patch", [False, True])
def test_a_ramp_that_is_narrower_than_a_cell_keeps_its_heat(tmp_path: Path, patch: bool) -> None:
    """The heat is the integral of the flux, which bends within cells. A patch takes only what lies in its rectangle."""
    flux = "1e4*max(0, 1 - abs(x - 0.031)/0.0035)*(1 + 20*y)"
    condition = f'{{ type = "flux", value = "{flux}" }}'
    extra = f"[boundaries]\nz_max = {condition}\n"
    if patch:
        extra = "[[patches]]\nface = 'z_max'\nrectangle = { min = [0.031, 0.0], max = [0.063, 0.05] }\n"
        extra += f'type = "flux"\nvalue = "{flux}"\n'
    run(extra, tmp_path)
    exact = 1e4 * 0.0035 * (0.05 + 20 * 0.05**2 / 2) * (0.5 if patch else 1.0) * 20.0
    assert heats(tmp_path)["z_max"] == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(
    ("value", "integral"),
    [
        ("1e6*exp(-((x - 0.0312)/4e-4)^2)", 1e6 * 4e-4 * np.sqrt(np.pi) * 0.05),  # a peak within a cell
        ("1e9*exp(-((x - 0.0312)/4e-6)^2 - ((y - 0.0123)/4e-6)^2)", 1e9 * np.pi * 16e-12),
        ("1e4*where(abs(x - 0.0301) < 1e-4, 1, 0)", 1e4 * 2e-4 * 0.05),
        ("1e4*where(abs(x - 0.0301) < 1e-4, 0, 1)", 1e4 * (0.08 - 2e-4) * 0.05),
        ("1e4*where(x > y, 1, 0)", 1e4 * (0.05 * 0.08 - 0.05**2 / 2)),
        ("1e4*where((x - 0.03)^2 + (y - 0.02)^2 < 0.008^2, 1, 0)", 1e4 * np.pi * 0.008**2),
        ("1e4*sin(2000*x)", 5.0 * (1.0 - np.cos(160.0)) * 0.05),
        ("1e4*exp(x/0.03)*(1 + 20*y)", 300.0 * (np.exp(8 / 3) - 1.0) * 0.075),
        ("5/sqrt(x)", 10.0 * np.sqrt(0.08) * 0.05),
    ],
)
def test_a_face_takes_the_integral_of_its_flux(value: str, integral: float, tmp_path: Path) -> None:
    run(f'[boundaries.z_max]\ntype = "flux"\nvalue = "{value}"\n', tmp_path, "time.end=1")
    # Jumps along a circle or a diagonal are followed by squares, whose errors are of either sign.
    assert heats(tmp_path)["z_max"] == pytest.approx(integral, rel=5e-5 if "1, 0)" in value else 1e-6)


@pytest.mark.parametrize("value", ["1/(x - 0.0451)", "1/((x - 0.0312)^2 + (y - 0.0211)^2)"])
def test_a_flux_whose_integral_is_not_known_is_refused(value: str) -> None:
    with pytest.raises(
        ScenarioError, match=r"z_max.value: got .*is not bounded, or changes so finely .* known to 0.1%"
    ):
        problem(f'[boundaries.z_max]\ntype = "flux"\nvalue = "{value}"\n')


def test_a_narrow_value_that_is_not_physical_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"emissivity: got .* at x = 0.0312"):
        problem(
            '[boundaries.z_max]\ntype = "radiation"\nambient = 300.0\n'
            'emissivity = "0.5 + 0.6*exp(-((x - 0.0312)/1e-5)^2)"\n'
        )


def test_probes_on_a_face_see_the_value_there(tmp_path: Path) -> None:
    run(
        '[boundaries]\nz_max = { type = "temperature", value = "300 + 500*x + 2*t" }\n'
        '[[probes]]\nname = "face"\npoint = [0.035, 0.025, 0.04]\n',
        tmp_path,
    )
    with open(tmp_path / "out" / "probes.csv", newline="", encoding="utf-8") as file:
        last = list(csv.reader(file))[-1]
    assert float(last[1]) == pytest.approx(300.0 + 500.0 * 0.035 + 40.0, abs=1e-9)


def test_bounds_follow_the_extremes_over_the_face() -> None:
    """The largest coefficient sets the limit of the step; jumps are those of the expression."""
    space = problem('[boundaries.z_max]\ntype = "convection"\ncoefficient = "1e5*x"\nambient = 300.0\n')
    patch = problem(
        columns('type = "convection"\ncoefficient = VALUE\nambient = 300.0\n', [1e3 * (i + 0.5) for i in range(8)])
    )
    assert space.limit.dt == pytest.approx(patch.limit.dt, rel=1e-12)
    assert space.limit.cell[0] == 6  # the last cell has one neighbour less
    text = TEXT.replace('"euler"', '"stabilized"')
    jumps = problem('[boundaries.z_max]\ntype = "flux"\nvalue = "where(t < 7, 1e4*x, 0)"\n', text)
    from heatsim.physics.drives.drives import Drives
    from heatsim.physics.drives.jumps import find_jumps
    from heatsim.physics.time.tolerance import Tolerance

    found = find_jumps(jumps.scenario, Drives.of(jumps), Tolerance(0.1, 10.0, 300.0, 300.0))
    assert found.times.tolist() == pytest.approx([7.0])


def test_each_face_evaluates_a_default_for_itself() -> None:
    found = problem('[boundaries]\ndefault = { type = "flux", value = "1e3*(x + 10*y + 100*z)" }\n').boundary
    fluxes = [condition.value.at(np.zeros(1))[0] for condition in found.conditions if condition.type == "flux"]
    first = 0.01 * (0.5 + 0.5 * np.polynomial.legendre.leggauss(4)[0][0])  # point of a cell
    assert min(fluxes) == pytest.approx(1e3 * (11 * first + 0.0))  # z_min
    assert max(fluxes) == pytest.approx(1e3 * (0.08 + 10 * 0.05 - 11 * first + 4.0))  # z_max
    assert found.owners[:7] == (0, 1, 2, 3, 4, 5, 6)
    assert set(found.owners[7:]) == set(range(6))


def test_values_with_materials_that_vary(tmp_path: Path) -> None:
    """A held face over a material whose conductivity changes: as patches, to the error of the levels."""
    text = TEXT.replace("conductivity = 5.0", 'conductivity = "5*(1 + 0.002*(T - 300))"')
    values = [300.0 + 500.0 * 0.01 * (i + 0.5) for i in range(8)]
    condition = 'type = "temperature"\nvalue = VALUE\n'
    space = run('[boundaries.z_max]\ntype = "temperature"\nvalue = "300 + 500*x"\n', tmp_path / "space", text=text)
    patches = run(columns(condition, values), tmp_path / "patches", text=text)
    np.testing.assert_allclose(space.temperature, patches.temperature, rtol=0.0, atol=1e-3)


def test_the_resolved_scenario_gives_the_same_bits(tmp_path: Path) -> None:
    extra = '[boundaries]\nz_max = { type = "flux", value = "1e5*x*y + 10*t" }\n'
    # The resolved scenario has surroundings too; they are the ambient, and not one more value.
    extra += 'z_min = { type = "convection", coefficient = "5 + 100*x", ambient = "300 + 1e3*y + t" }\n'
    extra += 'x_min = { type = "convection", coefficient = 9.0, ambient = "300 + 1e3*y", emissivity = 0.5 }\n'
    scenario = parse(tomllib.loads(TEXT + extra), "plate.toml")
    write_resolved(scenario, tmp_path)
    assert load(tmp_path / "scenario.toml") == scenario
    first = run(extra, tmp_path / "first")
    again = heatsim.Simulation.from_scenario(tmp_path / "scenario.toml", output=tmp_path / "again")
    again.run()
    assert first.temperature.tobytes() == again.temperature.tobytes()


@pytest.mark.parametrize(
    ("extra", "key", "fragments"),
    [
        (
            '[boundaries.z_max]\ntype = "flux"\nvalue = "1e4*exp(-((x - 0.01*t)/0.01)^2)"',
            "boundaries.z_max.value",
            ["beam"],
        ),
        (
            '[boundaries.z_max]\ntype = "temperature"\nvalue = "300 - 1e4*x"',
            "boundaries.z_max.value",
            ["at x = 0.03", "t = 0.0 s", "at least 0 K"],
        ),
        (
            '[boundaries.z_max]\ntype = "flux"\nvalue = "sqrt(x - 0.045)"',
            "boundaries.z_max.value",
            ["nan at x = 0.00069431844203"],
        ),
        (
            '[boundaries.z_max]\ntype = "flux"\nvalue = "1 + w"',
            "boundaries.z_max.value",
            ["known are x, y, z, t, pi, e"],
        ),
        ('[boundaries.z_max]\ntype = "flux"\npower = "1 + x"', "boundaries.z_max.power", ["known are t, pi, e"]),
        ('[[sources]]\npower = 1.0\nscale = "x"', "sources.0.scale", ["known are t, pi, e"]),
        (
            '[[patches]]\nface = "z_max"\nrectangle = { min = [0, 0], max = [0.01, 0.01] }\ntype = "radiation"\n'
            'emissivity = "200*x"\nambient = 300.0',
            "patches.0.emissivity",
            ["which is 1.3399810", "at most 1"],
        ),
    ],
)
def test_mistakes_name_the_key_and_the_place(extra: str, key: str, fragments: list[str]) -> None:
    with pytest.raises(ScenarioError) as caught:
        problem(extra)
    (found,) = caught.value.mistakes
    assert found.key == key
    for fragment in fragments:
        assert fragment in found.message


# The plate with void above it.
BELOW_VOID = (
    TEXT.replace("[material]", "[materials.steel]").replace(
        "size = [0.08, 0.05, 0.04]\ncells = [8, 5, 4]",
        'size = [0.08, 0.05, 0.06]\ncells = [8, 5, 6]\nmaterial = "steel"',
    )
    + '[[regions]]\nname = "air"\nmaterial = "void"\nbox = { min = [0, 0, 0.04], max = [0.08, 0.05, 0.06] }\n'
)
TOWARDS_VOID = [
    *(condition.replace("VALUE", f'"{expression}"') for condition, expression, _ in EXACT),
    'type = "convection"\ncoefficient = "2000*x"\nambient = "700 + 1000*y + t"\nemissivity = 0.9\n',
]


@pytest.mark.parametrize(
    ("method", "condition"),
    [
        (method, condition)
        for method, conditions in (
            ("euler", TOWARDS_VOID),
            ("stabilized", TOWARDS_VOID[::2]),
            ("implicit", TOWARDS_VOID[-1:]),
            ("steady", [*TOWARDS_VOID[1:-1:2], TOWARDS_VOID[-1]]),
        )
        for condition in conditions
    ],
)
def test_values_towards_void_are_those_on_a_face(tmp_path: Path, method: str, condition: str) -> None:
    """A plane surface towards void, by either CPU kernel, against the same surface as a face of the box."""
    overrides = ['time={ method = "steady", tolerance = 1e-8 }'] if method == "steady" else [f'time.method="{method}"']
    overrides += {"stabilized": ["time.tolerance=1e-3"], "implicit": ["time.tolerance=1e-4", "time.end=0.5"]}.get(
        method, []
    )
    held = '[boundaries.z_min]\ntype = "temperature"\nvalue = 300.0\n'
    known = run(f"{held}[boundaries.z_max]\n{condition}", tmp_path / "face", *overrides).temperature
    slack = {"implicit": 1e-4, "steady": 1e-6}.get(method, 1e-9)
    for kernel in ("numba", "numpy") if method == "euler" else ("numba",):
        extra = f"{held}[boundaries.void]\n{condition}"
        found = run(extra, tmp_path / "void", *overrides, f'solver.kernel="{kernel}"', text=BELOW_VOID)
        np.testing.assert_allclose(found.temperature[:4], known, rtol=0.0, atol=slack)
    if method == "euler":
        on_face, towards_void = heats(tmp_path / "face"), heats(tmp_path / "void")
        assert towards_void["void"] == pytest.approx(on_face["z_max"], rel=1e-12)
        assert abs(towards_void["residual"]) < 1e-9 * abs(towards_void["stored"])


BALL = """
[domain]
size = [0.05, 0.05, 0.05]
origin = [-0.025, -0.025, -0.025]
cells = [20, 20, 20]
material = "void"
[materials.steel]
conductivity = 5.0
density = 1000.0
specific_heat = 500.0
[[regions]]
name = "ball"
material = "steel"
sphere = { centre = [0.0, 0.0, 0.0], radius = 0.02 }
[[regions]]
name = "block"
material = "steel"
box = { min = [0.02, 0.02, 0.02], max = [0.025, 0.025, 0.025] }
[initial]
temperature = 300.0
[time]
end = 2.0
method = "euler"
[solver]
device = "cpu"
precision = "float64"
[output]
figures = false
"""


def test_a_ball_in_air_that_is_warmer_above(tmp_path: Path) -> None:
    """Film h, air at 300 K + G·z around a ball of radius R: T = 300 K + z·G·h·R/(k + h·R). Voxels err by their size."""
    extra = '[[surfaces]]\nof = "ball"\ntype = "convection"\ncoefficient = 400.0\nambient = "300 + 2000*z"\n'
    extra += '[[surfaces]]\nof = "block"\ntype = "temperature"\nvalue = 300.0\n'
    slope, errors = 2000.0 * 8.0 / 13.0, []
    for n in (10, 40):
        steady = 'time={ method = "steady", tolerance = 1e-6 }'
        found = run(extra, tmp_path, steady, f"domain.cells=[{n}, {n}, {n}]", text=BALL).temperature
        x, y, z = (np.linspace(-0.025, 0.025, 2 * n + 1)[1::2].reshape(shape) for shape in ((-1,), (-1, 1), (-1, 1, 1)))
        inside = x**2 + y**2 + z**2 < 0.02**2
        errors.append(float(np.sqrt(np.mean(((found - 300.0 - slope * z)[inside]) ** 2))) / (0.04 * slope))
    assert errors[0] < 0.03
    assert errors[1] < errors[0] / 2.5


def test_a_flux_over_a_ball_has_its_integral(tmp_path: Path) -> None:
    """q = q0·(1 + z/R + z²/R²) over a ball: ∫ q dA = 4πR²·q0·4/3. Linear values are exact, squares of second order."""
    extra = '[[surfaces]]\nof = "ball"\ntype = "flux"\nvalue = "1e4*(1 + z/0.02 + (z/0.02)^2)"\n'
    whole, errors = 4.0 * np.pi * 0.02**2 * 1e4 * 2.0, []
    for n in (10, 20):
        run(extra, tmp_path, f"domain.cells=[{n}, {n}, {n}]", text=BALL)
        errors.append(abs(heats(tmp_path)["surface ball"] / (whole * 4.0 / 3.0) - 1.0))
    assert errors[0] < 0.02
    assert errors[1] < errors[0] / 3.0
    run(extra.replace(" + (z/0.02)^2", ""), tmp_path, text=BALL)
    assert heats(tmp_path)["surface ball"] == pytest.approx(whole, rel=1e-9)


def test_a_condition_without_cells_is_no_mistake(tmp_path: Path) -> None:
    """A face that a patch covers, and a region without a surface towards void."""
    condition = '{ type = "flux", value = "1e3*x" }'
    patch = '[[patches]]\nface = "z_min"\nrectangle = { min = [0, 0], max = [0.08, 0.05] }\ntype = "insulated"\n'
    region = '[[regions]]\nname = "inner"\nmaterial = "steel"\nbox = { min = [0, 0, 0], max = [0.02, 0.02, 0.02] }\n'
    surface = '[[surfaces]]\nof = "inner"\ntype = "flux"\nvalue = "1e3*x"\n'
    extra = f"[boundaries]\nz_min = {condition}\n{patch}{region}{surface}"
    run(extra, tmp_path, text=BELOW_VOID)
    assert heats(tmp_path)["stored"] == 0.0


def test_the_limit_of_the_step_follows_the_largest_film_towards_void() -> None:
    film = 'type = "convection"\nambient = 300.0\ncoefficient = '
    space = problem(f'[boundaries.void]\n{film}"1e5*x"\n', BELOW_VOID)
    face = problem(f'[boundaries.z_max]\n{film}"1e5*x"\n')
    assert space.limit.dt == pytest.approx(face.limit.dt, rel=1e-12)
    assert space.limit.cell == face.limit.cell


@pytest.mark.parametrize(
    ("value", "fragment"),
    [
        ('"1e4*exp(-((x - 0.01*t)/0.01)^2)"', "beam"),
        ('"sqrt(x - 0.045)"', "nan at x = 0.00069431844203"),
        ('"1e-9*x/(t - 3.21)"', "near t = 3.21 s"),
    ],
)
def test_mistakes_towards_void_name_the_key(value: str, fragment: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        problem(f'[[surfaces]]\nof = "plate"\ntype = "flux"\nvalue = {value}\n' + PLATE, BELOW_VOID)
    (found,) = caught.value.mistakes
    assert found.key == "surfaces.0.value"
    assert fragment in found.message


PLATE = '[[regions]]\nname = "plate"\nmaterial = "steel"\nbox = { min = [0, 0, 0], max = [0.08, 0.05, 0.04] }\n'
