"""The largest time step of a composite body: the point where one step stops being an average of what was there."""

import numpy as np
import pytest
from exact import convection, held, scenario
from numpy.typing import NDArray
from problem_text import problem

from heatsim import device
from heatsim.errors import ScenarioError
from heatsim.kernels.catalog import KERNELS
from heatsim.physics.problem import HeatProblem
from heatsim.solver.field.field import Field
from heatsim.solver.ledger.energy_ledger import Ledger
from heatsim.solver.make_stepper import make_stepper

MATERIALS = """
[materials.copper]
conductivity = [400.0, 350.0, 300.0]
density = 8900.0
specific_heat = 385.0
[materials.foam]
conductivity = 0.04
density = 30.0
specific_heat = 1400.0
[materials.steel]
conductivity = 15.0
density = 7900.0
specific_heat = 500.0
"""
REGIONS = """
[[regions]]
name = "shell"
material = "foam"
box = { min = [0.0, 0.0, 0.0], max = [0.5, 1.0, 1.0] }
[[regions]]
name = "bolt"
material = "steel"
sphere = { centre = [0.5, 0.5, 0.5], radius = 0.3 }
[[regions]]
name = "hole"
material = "void"
box = { min = [0.7, 0.0, 0.4], max = [1.0, 0.7, 1.0] }
[[contacts]]
between = ["copper", "steel"]
resistance = 1e-4
"""


def text(boundaries: str = "", dt: float | str = "auto") -> str:
    plain = scenario((1.0, 1.0, 1.0), (5, 4, 6), initial=300.0, end=1000.0, boundaries=boundaries, dt=dt)
    several = "\n".join(line for line in plain.splitlines() if not line.startswith("material ="))
    return several.replace("domain = {", 'domain = { material = "copper",') + MATERIALS + REGIONS


def one_step_matrix(derived: HeatProblem, dt: float) -> NDArray[np.float64]:
    """What one step makes of the cells: column j is the step of a field that is 1 in cell j, ambient and sources 0."""
    grid = derived.grid
    from heatsim.kernels.composite.arrays import make_tables
    from heatsim.kernels.cpu.composite_body import CompositeCall
    from heatsim.kernels.cpu.composite_oracle import COMPOSITE_KERNELS
    from heatsim.physics.operator.heat_sums import no_sums
    from heatsim.solver.kernels.kernel_arguments import composite_arrays

    field = Field(device.choose("cpu"), grid, "float64", 0.0)
    arrays = composite_arrays(derived, field)
    rows = derived.rows(np.zeros(1), dt, 300.0)
    steps = arrays.steps(rows, 1)
    tables = make_tables(derived.materials, (0.0,) * 7, dt, "float64")
    call = CompositeCall(derived.periodic, arrays.body, tables, steps, no_sums(), "increments")
    matrix = np.empty((grid.cell_count, grid.cell_count))
    for j in range(grid.cell_count):
        T, T_new = np.zeros(grid.shape), np.empty(grid.shape)
        T.ravel()[j] = 1.0
        COMPOSITE_KERNELS["numpy"](T, T_new, call)
        matrix[:, j] = T_new.ravel()
    return matrix


@pytest.mark.quick("convection", "held")
@pytest.mark.parametrize(
    "boundaries",
    [
        "",
        f"default = {held(300.0)}\nvoid = {held(300.0)}",
        f"default = {convection(50.0, 300.0)}\nvoid = {convection(3.0, 300.0)}",
        'x_min = { type = "periodic" }\nx_max = { type = "periodic" }\nz_min = { type = "temperature", value = 300.0 }',
    ],
    ids=["insulated", "held", "convection", "periodic"],
)
def test_at_the_limit_a_step_is_just_still_an_average(boundaries: str) -> None:
    derived = problem(text(boundaries))
    nx, ny, _ = derived.grid.cells
    x, y, z = derived.limit.cell
    worst = (z * ny + y) * nx + x
    own = np.diag(one_step_matrix(derived, derived.limit.dt))
    assert own.min() >= -1e-12
    assert own[worst] == pytest.approx(0.0, abs=1e-12)
    assert np.diag(one_step_matrix(derived, 1.01 * derived.limit.dt))[worst] < -1e-3


def test_radiating_faces_are_limited_as_held_ones() -> None:
    def limit(condition: str) -> float:
        return problem(text(f"x_max = {condition}")).limit.dt

    assert limit('{ type = "radiation", emissivity = 0.1, ambient = 4000.0 }') == limit(held(300.0))


def test_a_dt_beyond_the_limit_is_refused_with_cell_and_material() -> None:
    limit = problem(text()).limit.dt
    with pytest.raises(ScenarioError, match=r'set by cell \[\d, \d, \d\], material "copper"'):
        problem(text(dt=2.0 * limit))


@pytest.mark.parametrize("spec", [spec for spec in KERNELS if spec.backend == "cpu"], ids=lambda spec: spec.name)
@pytest.mark.parametrize(
    "faces",
    [
        f'x_min = {held(380.0)}\ny_min = {convection(120.0, "290 + t")}\nz_max = {{ type = "flux", value = -2000.0 }}',
        'y_min = { type = "periodic" }\ny_max = { type = "periodic" }',
    ],
    ids=["faces", "periodic"],
)
def test_one_material_in_several_regions_is_one_material(spec, faces: str) -> None:  # type: ignore[no-untyped-def]
    """The general kernels give what the plain ones give, but for rounding; in one type and in two of one material."""
    plain = scenario(
        (0.1, 0.08, 0.06),
        (9, 8, 7),
        initial="300 + 50*sin(40*x)*cos(50*y) + 200*z",
        end=5.0,
        boundaries=faces,
        k=(30.0, 20.0, 10.0),
        rho=2000.0,
        cp=500.0,
        precision="float64",
    )
    patched = (
        '\n[[patches]]\nface = "x_max"\nrectangle = { min = [0.0, 0.0], max = [0.08, 0.06] }\ntype = "insulated"\n'
    )
    split = "\n[[sources]]\npower = 0.0\nsphere = { centre = [0.05, 0.04, 0.03], radius = 0.03 }\n"
    results = []
    for extra in ("", patched, split):
        derived = problem(plain + extra)
        cpu = device.choose("cpu")
        field = Field(cpu, derived.grid, "float64", 300.0)
        x, y, z = (derived.grid.centres(axis) for axis in range(3))
        T = 50 * np.sin(40 * x)[None, None, :] * np.cos(50 * y)[None, :, None] + 200 * z[:, None, None]
        field.load_deviations(T)
        ledger = Ledger(cpu, derived, True)
        make_stepper(derived, field, ledger, spec).advance(derived.timeline.last_step)
        sums = ledger.heats().faces[0]
        results.append((field.deviation.copy(), sums))
        assert derived.linear == (extra == "")
    for T, sums in results[1:]:
        np.testing.assert_allclose(T, results[0][0], atol=1e-11)
        np.testing.assert_allclose(sums, results[0][1], atol=1e-9)


def test_a_convection_too_weak_for_floating_point_lets_nothing_through() -> None:
    """Its resistance overflows, which is as it should be."""

    def limit(h: float) -> float:
        faces = f"default = {convection(h, 300.0)}"
        text = scenario((1.0, 1.0, 1.0), (2, 2, 2), initial=300.0, end=1.0, boundaries=faces)
        return problem(text + "[[sources]]\npower = 1.0\n").limit.dt

    assert limit(1e-320) == limit(0.0)
