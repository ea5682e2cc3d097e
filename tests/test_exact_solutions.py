"""What the solver calculates against what is known: published values, series, and the discrete problem itself."""

from math import cos, exp, pi, sqrt, tan

import numpy as np
import pytest
from conftest import Simulate
from exact import (
    GAUSSIAN,
    HELD_STEP,
    PERIODIC,
    PUBLISHED,
    QUENCHED_BLOCK,
    SLABS,
    ExactSolution,
    PublishedValues,
    convection,
    flux,
    held,
    scenario,
)
from numpy.typing import NDArray

from heatsim.kernels.catalog import KERNELS, KernelSpec
from heatsim.run.simulation import Simulation
from heatsim.storage import folder

pytestmark = pytest.mark.usefixtures("one_thread")


def at_centres(solution: ExactSolution, simulation: Simulation) -> NDArray[np.float64]:
    grid = simulation.plan.problem.grid
    x, y, z = (grid.centres(axis) for axis in range(3))
    T = solution.T(x[None, None, :], y[None, :, None], z[:, None, None], simulation.time)
    return np.broadcast_to(T, grid.shape)


def table(simulation: Simulation, name: str) -> NDArray[np.float64]:
    return np.loadtxt(simulation.folder / name, delimiter=",", skiprows=1, ndmin=2)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("published", PUBLISHED, ids=lambda case: case.name)
def test_published_values(published: PublishedValues, precision: str, simulate: Simulate) -> None:
    """To 0.05 % of the range of temperatures, a tenth of what published comparisons allow."""
    simulation = simulate(published.scenario, f"solver.precision={precision}")
    rows = {row[0]: row[1:] for row in table(simulation, folder.PROBES)}
    for time, expected in published.values.items():
        np.testing.assert_allclose(rows[time], expected, rtol=0, atol=5e-4 * published.range + published.digits)


# Tolerances as fractions of the range, from the square of spacing over the length on which the temperature changes.
@pytest.mark.parametrize(
    ("solution", "tolerance"),
    [
        *((slab, 5e-4) for slab in SLABS),
        (HELD_STEP, 5e-4),  # spacing 5 mm, √(4αt) = 200 mm
        (GAUSSIAN, 1e-3),  # spacing 0.3 σ
        (QUENCHED_BLOCK, 1e-3),  # 20 to 30 cells an edge
    ],
    ids=lambda value: getattr(value, "name", ""),
)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_exact_solutions(solution: ExactSolution, tolerance: float, precision: str, simulate: Simulate) -> None:
    simulation = simulate(solution.scenario, f"solver.precision={precision}")
    error = np.abs(simulation.temperature - at_centres(solution, simulation)).max()
    assert error <= tolerance * solution.range


def test_the_peak_of_a_spreading_gaussian(simulate: Simulate) -> None:
    """At 2αt = σ0² it is 2^(-3/2) of the first.

    The discrete kernel's fourth cumulants, dx²(1 − 6r) along an axis and −2r·dx² between two, change the peak by
    3·dx²·((1 − 6r)/8 − r/2)/σ⁴ of itself, 4e-3 at r = 0.15; at r = 0.1 they cancel.
    """
    simulation = simulate(GAUSSIAN.scenario)
    assert (simulation.temperature.max() - 300.0) / 100.0 == pytest.approx(0.353553, rel=1e-3)


def test_the_similarity_solution_at_its_tabled_points(simulate: Simulate) -> None:
    """erfc(1/2) = 0.479500 at 10 cm and erfc(1) = 0.157299 at 20 cm, where 2√(αt) is 20 cm."""
    text = HELD_STEP.scenario
    for number, x in enumerate((0.1, 0.2)):
        text += f'[[probes]]\nname = "{number}"\npoint = [{x}, 0.05, 0.05]\n'
    last = table(simulate(text), folder.PROBES)[-1]
    np.testing.assert_allclose((last[1:] - 300.0) / 100.0, [0.479500, 0.157299], rtol=0, atol=2e-4)


# The discrete problem: modes that a step multiplies by a number.


def cosine(cells: int, steps: int) -> str:
    """An insulated box of cells of 1 m, α = 1 m²/s, r = 1/6 on each axis, the mode (1, 1, 1)."""
    mode = "*".join(f"cos(pi*{axis}/{cells})" for axis in "xyz")
    size = (float(cells),) * 3
    return scenario(size, (cells,) * 3, initial=f"300 + 100*{mode}", end=steps / 6.0, dt=1.0 / 6.0)


def assert_mode(simulation: Simulation, factor: float, amplitude: float = 100.0) -> None:
    """The field is ``factor`` times the start, to the rounding of as many steps.

    A step rounds a cell by less than 8 units of 2⁻⁵³ of the largest deviation, which falls by a factor λ a step, and
    the temperature, a deviation and 300 K, is rounded to 2⁻⁵³ of itself.
    """
    start = Simulation.from_scenario(simulation.folder / folder.SCENARIO, output=simulation.folder / "again")
    expected = 300.0 + factor * (start.temperature - 300.0)
    steps = simulation.step
    lost = 1.0 - abs(factor) ** (1.0 / steps)
    units = 8.0 * min(steps, 1.0 / lost) + 2.0 * steps * abs(factor)
    bound = 2.0**-53 * (amplitude * units + 4.0 * 500.0)
    assert np.abs(simulation.temperature - expected).max() <= bound


@pytest.mark.parametrize(("cells", "steps"), [(64, 1), (64, 100), (20, 5000)])
def test_the_discrete_cosine_decays_by_its_factor(cells: int, steps: int, simulate: Simulate) -> None:
    simulation = simulate(cosine(cells, steps))
    assert simulation.step == steps
    a_step = 1.0 - (1.0 - cos(pi / cells))
    if cells == 64:
        assert a_step == pytest.approx(0.9987954562051724, rel=1e-15)
    assert_mode(simulation, a_step**steps)


@pytest.mark.parametrize(
    "spec",
    [pytest.param(spec, id=spec.name, marks=pytest.mark.gpu if spec.backend == "cuda" else ()) for spec in KERNELS],
)
def test_every_kernel_decays_the_discrete_cosine_by_its_factor(spec: KernelSpec, simulate: Simulate) -> None:
    chosen = (f"solver.device={spec.backend}", f"solver.kernel={spec.name}")
    assert_mode(simulate(cosine(64, 20), *chosen), 0.9987954562051724**20)


def test_a_periodic_wave_keeps_its_phase(simulate: Simulate) -> None:
    """cos(2πx/L + φ) cos(4πy/M + ψ) is an eigenvector of the wrapped stencil, whatever φ and ψ."""
    faces = "\n".join(f"{face} = {PERIODIC}" for face in ("x_min", "x_max", "y_min", "y_max"))
    initial = "300 + 50*cos(2*pi*x/3 + 0.7)*cos(4*pi*y/2 - 1.1)"
    simulation = simulate(scenario((3.0, 2.0, 1.0), (30, 25, 1), initial=initial, end=0.2, dt=0.001, boundaries=faces))
    rx, ry = 0.001 / 0.1**2, 0.001 / 0.08**2
    a_step = 1.0 - 2.0 * rx * (1.0 - cos(2.0 * pi / 30)) - 2.0 * ry * (1.0 - cos(4.0 * pi / 25))
    assert_mode(simulation, a_step**200, amplitude=50.0)


def test_anisotropic_decay_in_a_plane(simulate: Simulate) -> None:
    """Each axis with its own conductivity and spacing: exact in the discrete problem, near the continuous one."""
    text = scenario(
        (0.8, 0.6, 0.1),
        (32, 30, 1),
        initial="300 + 50*cos(pi*x/0.8)*cos(2*pi*y/0.6)",
        end=100.0,
        dt=0.25,
        k=(40.0, 10.0, 7.0),
        rho=1000.0,
        cp=50.0,
    )
    simulation = simulate(text)
    alpha_x, alpha_y = 40.0 / 5e4, 10.0 / 5e4
    rx, ry = alpha_x * 0.25 / 0.025**2, alpha_y * 0.25 / 0.02**2
    a_step = 1.0 - 2.0 * rx * (1.0 - cos(pi / 32)) - 2.0 * ry * (1.0 - cos(2.0 * pi / 30))
    assert_mode(simulation, a_step**400, amplitude=50.0)
    rate = alpha_x * (pi / 0.8) ** 2 + alpha_y * (2.0 * pi / 0.6) ** 2
    assert a_step**400 == pytest.approx(exp(-rate * 100.0), rel=0.02)


def test_held_faces_decay_a_sine_by_its_factor(simulate: Simulate) -> None:
    """The value mirrored at a held face makes the sine an eigenvector too."""
    faces = f"y_min = {held(300.0)}\ny_max = {held(300.0)}"
    initial = "300 + 50*sin(3*pi*y/2)"
    simulation = simulate(scenario((1.0, 2.0, 1.0), (1, 40, 1), initial=initial, end=0.1, dt=0.0005, boundaries=faces))
    a_step = 1.0 - 2.0 * (0.0005 / 0.05**2) * (1.0 - cos(3.0 * pi / 40))
    assert_mode(simulation, a_step**200, amplitude=50.0)


def test_a_plate_of_one_cell_is_a_lumped_body(simulate: Simulate) -> None:
    """Convection on both sides: each step multiplies the excess by 1 − 2cβ; for Bi ≪ 1 that is exp(−2ht/(ρ·cp·d))."""
    h, k, d, capacity = 10.0, 200.0, 0.002, 2e6
    faces = f"z_min = {convection(h, 300.0)}\nz_max = {convection(h, 300.0)}"
    simulation = simulate(
        scenario(
            (0.1, 0.1, d), (3, 4, 1), initial=400.0, end=100.0, dt=0.5, boundaries=faces, k=k, rho=2000.0, cp=1000.0
        )
    )
    beta = h / (k / d + h / 2.0)
    a_step = 1.0 - 2.0 * (k / capacity) * 0.5 / d**2 * beta
    assert simulation.temperature == pytest.approx(300.0 + 100.0 * a_step**200, rel=1e-13)
    lumped = 300.0 + 100.0 * exp(-2.0 * h * 100.0 / (capacity * d))
    # First order in time: rate²·t·dt/2 = 6e-4 of the excess; and Bi/2 of the rate for the half cells.
    assert simulation.temperature == pytest.approx(lumped, abs=100.0 * 2e-3)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(
    ("low", "high", "at_low", "gradient"),
    [
        (held(300.0), held(400.0), 300.0, 100.0),
        (flux(500.0), held(400.0), 450.0, -50.0),
        (convection(20.0, 500.0), held(300.0), 300.0 + 200.0 * 20.0 / 30.0, -200.0 * 20.0 / 30.0),
        (convection(20.0, 500.0), convection(5.0, 300.0), 500.0 - 200.0 / 3.5 * 0.5, -200.0 / 3.5),
    ],
    ids=["held-held", "flux-held", "convection-held", "convection-convection"],
)
def test_a_steady_wall_is_linear(
    low: str, high: str, at_low: float, gradient: float, precision: str, simulate: Simulate
) -> None:
    """k = 10 W/(m K), 1 m: resistances 1/h, 0.1 and 1/h in series; a linear profile has no error of discretisation.

    At a Fourier number of 20 what is left of the start is below 1e-11 of it.
    """
    faces = f"z_min = {low}\nz_max = {high}"
    text = scenario((1.0, 1.0, 1.0), (1, 1, 12), initial=350.0, end=2.0, boundaries=faces, k=10.0, precision=precision)
    simulation = simulate(text)
    z = simulation.plan.problem.grid.centres(2)
    tolerance = 1e-9 if precision == "float64" else 2e-2
    np.testing.assert_allclose(simulation.temperature[:, 0, 0], at_low + gradient * z, rtol=0, atol=tolerance)


# Orders: time steps ∝ spacing², so that an error of second order falls by 4 with the spacing.

L, LAMBDA, PHASE, AMPLITUDE, ALPHA, K = 1.0, 2.3, 0.4, 50.0, 0.5, 4.0


def decaying_wave(kind: str, axis: int, cells: int, r: float) -> str:
    """T = 300 + A·cos(λs + φ)·exp(−αλ²t) along an axis, with the conditions that this field sets at its faces."""
    wavenumber, phase = (2.0 * pi / L, PHASE) if kind == "periodic" else (LAMBDA, 0.0 if kind == "insulated" else PHASE)
    wavenumber = pi / L if kind == "insulated" else wavenumber
    decay = f"exp(-{ALPHA}*{wavenumber!r}^2*t)"
    conditions = []
    for s, inwards in ((0.0, -1.0), (L, 1.0)):
        surface = AMPLITUDE * np.cos(wavenumber * s + phase)
        into_body = -inwards * K * AMPLITUDE * wavenumber * np.sin(wavenumber * s + phase)
        h = 6.0
        conditions.append(
            {
                "temperature": held(f"300 + {float(surface)!r}*{decay}"),
                "flux": flux(f"{float(into_body)!r}*{decay}"),
                "convection": convection(h, f"300 + {float(surface + into_body / h)!r}*{decay}"),
                "insulated": '{ type = "insulated" }',
                "periodic": PERIODIC,
            }[kind]
        )
    name = "xyz"[axis]
    n = [1, 1, 1]
    n[axis] = cells
    dt = r * (L / cells) ** 2 / ALPHA
    steps = round(0.125 / dt)
    return scenario(
        (L, L, L),
        n,
        initial=f"300 + {AMPLITUDE}*cos({wavenumber!r}*{name} + {phase!r})",
        end=steps * dt,
        dt=dt,
        boundaries=f"{name}_min = {conditions[0]}\n{name}_max = {conditions[1]}",
        k=K,
        rho=K / ALPHA,
    )


def wave_error(kind: str, axis: int, cells: int, simulate: Simulate, r: float = 0.25) -> float:
    """Root mean square of the error in K; r = α·dt/d², which in one dimension must not be 1/6."""
    simulation = simulate(decaying_wave(kind, axis, cells, r))
    s = simulation.plan.problem.grid.centres(axis)
    wavenumber, phase = {"periodic": (2.0 * pi / L, PHASE), "insulated": (pi / L, 0.0)}.get(kind, (LAMBDA, PHASE))
    exact = 300.0 + AMPLITUDE * np.cos(wavenumber * s + phase) * exp(-ALPHA * wavenumber**2 * simulation.time)
    return sqrt(float(np.mean((simulation.temperature.ravel() - exact) ** 2)))


@pytest.mark.each_value
@pytest.mark.parametrize("axis", range(3), ids=["x", "y", "z"])
@pytest.mark.parametrize("kind", ["temperature", "flux", "convection", "insulated", "periodic"])
def test_half_the_spacing_leaves_a_quarter_of_the_error(kind: str, axis: int, simulate: Simulate) -> None:
    coarse, fine = (wave_error(kind, axis, cells, simulate) for cells in (32, 64))
    assert coarse / fine == pytest.approx(4.0, rel=0.025)


def test_a_sixth_is_of_fourth_order_in_one_dimension(simulate: Simulate) -> None:
    """The errors of space and time cancel at r = 1/6: a property of the scheme that a wrong one would not have."""
    coarse, fine = (wave_error("periodic", 0, cells, simulate, r=1.0 / 6.0) for cells in (18, 36))
    assert coarse / fine == pytest.approx(16.0, rel=0.025)


def test_three_dimensions_with_mixed_faces_are_of_second_order(simulate: Simulate) -> None:
    """Periodic along x, convection on both sides of y, held along z: a product of three exact decays."""
    zeta = 0.9
    h = zeta * tan(zeta) / (L / 2.0)  # ζ·tan ζ = h·(L/2)/k makes ζ an eigenvalue
    errors = []
    for cells in (16, 32):
        dt = 0.05 / cells**2  # at twice that the errors of space and time happen to cancel
        text = scenario(
            (L, L, L),
            (cells,) * 3,
            initial=f"300 + 100*cos(2*pi*x + 0.3)*cos({2.0 * zeta!r}*(y - 0.5))*sin(pi*z)",
            end=0.02,
            dt=0.02 / round(0.02 / dt),
            boundaries=f"x_min = {PERIODIC}\nx_max = {PERIODIC}\ny_min = {convection(h, 300.0)}\n"
            f"y_max = {convection(h, 300.0)}\nz_min = {held(300.0)}\nz_max = {held(300.0)}",
        )
        simulation = simulate(text)
        x, y, z = (simulation.plan.problem.grid.centres(axis) for axis in range(3))
        rate = (2.0 * pi) ** 2 + (2.0 * zeta) ** 2 + pi**2
        mode = (
            np.cos(2.0 * pi * x + 0.3)[None, None, :]
            * np.cos(2.0 * zeta * (y - 0.5))[None, :, None]
            * np.sin(pi * z)[:, None, None]
        )
        exact = 300.0 + 100.0 * mode * exp(-rate * 0.02)
        errors.append(sqrt(float(np.mean((simulation.temperature - exact) ** 2))))
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.025)
