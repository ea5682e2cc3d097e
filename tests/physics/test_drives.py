"""How far a step may go before it misses something of what drives the body."""

from itertools import pairwise
from math import pi, sqrt

import numpy as np
import pytest
from problem_text import BOX, box, problem

from heatsim.physics.drives.drives import PART, Drives, heating
from heatsim.physics.time.tolerance import Tolerance

TOLERANCE = Tolerance(None, 100.0, 300.0, 300.0)  # 20 mK
ALLOWED = PART * TOLERANCE.of_run


def drives(extra: str) -> Drives:
    return Drives.of(box(extra, 1000.0)).watched(TOLERANCE)


def face(kind: str = "convection", **values: str) -> Drives:
    keys = {"coefficient": "5.0", "ambient": "300.0", **values} if kind == "convection" else values
    lines = [f'type = "{kind}"', *(f"{key} = {value}" for key, value in keys.items())]
    return drives("[boundaries.x_min]\n" + "\n".join(lines))


def source(extra: str) -> Drives:
    return drives(f"[[sources]]\n{extra}")


@pytest.mark.parametrize("amplitude", [0.5, 50.0])
def test_a_step_may_be_as_long_as_the_cubic_follows_a_temperature(amplitude: float) -> None:
    """A cubic misses a·sin(ω·t) by a·(ω·h)⁴/384 in the middle of a step around its peak."""
    period = 100.0
    found = face(ambient=f'"350 + {amplitude}*sin(2*pi*t/{period})"')
    expected = period / (2.0 * pi) * (384.0 * ALLOWED / amplitude) ** 0.25
    for h in (expected, 1000.0):
        length = found.longest(period / 4.0 - expected / 2.0, h, TOLERANCE)
        assert 0.6 * expected <= length <= 1.3 * expected


@pytest.mark.parametrize("film", ["max(0, sin(t) - 2)", "1e-300*t*exp(-t)"])
def test_a_film_that_is_never_there_drives_nothing(film: str) -> None:
    assert face(coefficient=f'"{film}"').longest(0.0, 1000.0, TOLERANCE) == 1000.0


def test_a_short_peak_of_a_face_is_not_stepped_over() -> None:
    """50 ms in 1,000 s: steps before it end where it begins, and one step does not contain it."""
    found = face("temperature", value='"300 + 80*exp(-((t - 500)/0.05)^2)"')
    for time in (0.0, 250.0, 499.0):
        reached = time + found.longest(time, 1000.0 - time, TOLERANCE)
        assert 499.85 - 0.07 * (500.0 - time) <= reached <= 499.95
    assert found.longest(499.9, 500.1, TOLERANCE) < 0.1
    assert found.longest(500.5, 499.5, TOLERANCE) == 499.5


def test_a_pulse_of_heat_counts_if_it_warms_a_cell() -> None:
    """K of the pulse: √π·w·q/(ρ·c). One of half the allowed heat is free, at any place of a step; ten times are not."""
    width, capacity = 0.2, 1000.0 * 300.0
    free = 0.5 * ALLOWED * capacity / (sqrt(pi) * width)
    for factor, longest in ((1.0, 1000.0), (20.0, 500.0)):
        found = source(f'power_density = {factor * free!r}\nscale = "exp(-((t - 500)/{width})^2)"')
        assert found.longest(0.0, 1000.0, TOLERANCE) <= longest
    assert (
        source(f'power_density = {free!r}\nscale = "exp(-((t - 500)/{width})^2)"').longest(0.0, 1e3, TOLERANCE) == 1e3
    )


@pytest.mark.parametrize(
    "scale",
    ["1 + t/1000", "{ times = [0, 500, 1000], values = [0, 1, 0] }", "1 + t/1000 + (t/1000)^2"],
)
def test_smooth_heat_costs_nothing(scale: str) -> None:
    """The cubic through ∫ f dt and f at both ends is exact for lines and parabolas; a table's corners are step ends."""
    quoted = scale if scale.startswith("{") else f'"{scale}"'
    found = source(f"power_density = 1e9\nscale = {quoted}")
    assert found.longest(0.0, 500.0, TOLERANCE) == 500.0


def test_heat_bends_by_what_the_values_at_both_ends_miss_of_it() -> None:
    """Of a·t² the trapezoidal rule misses a·h³/6."""
    found = source('power_density = 3e5\nscale = "1 + t + 0.01*t^2"')
    assert found.bent(40.0, 10.0) == pytest.approx(0.01 * 10.0**3 / 6.0, rel=1e-6)
    assert face(ambient='"300 + t^2"').bent(40.0, 10.0) == 0.0
    # Sources of different cells do not add up.
    halves = [f"box = {{ min = [{low}, 0, 0], max = [{low + 0.04}, 0.1, 0.1] }}" for low in (0.0, 0.06)]
    scale = 'power_density = 3e5\nscale = "1 + t + 0.01*t^2"'
    both = drives("\n".join(f"[[sources]]\n{scale}\n{half}\n" for half in halves))
    assert both.bent(40.0, 10.0) == pytest.approx(found.bent(40.0, 10.0))


def test_steps_pass_jumps_of_heat_that_is_switched_fast_if_it_is_little() -> None:
    """Rates at both ends of a step have the heat of that moment: the cubic misses up to 4/27 of it, over the step."""
    for part, least, most in ((0.004, 999.0, 1000.0), (0.4, 20.0, 100.0), (40.0, 0.1, 1.0)):
        found = source(f'power_density = {part * ALLOWED * 3e5!r}\nscale = "where(t % 2 < 1, 1, 0)"')
        assert least <= found.longest(0.5, 999.5, TOLERANCE) <= most


def test_a_flux_warms_the_cells_behind_its_face() -> None:
    """Cells of wool elsewhere, whose heat capacity is a hundred times smaller, do not count."""
    text = BOX.replace("cells = [5, 4, 2]", 'cells = [5, 4, 2]\nmaterial = "brick"').replace(
        "[material]", "[materials.brick]"
    )
    wool = """[materials.wool]
conductivity = 0.04
density = 10.0
specific_heat = 300.0
[[regions]]
name = "core"
material = "wool"
box = { min = [0.04, 0, 0], max = [0.1, 0.1, 0.1] }
[boundaries]
x_min = { type = "flux", value = "100*sin(t/100)^2" }
"""
    body = problem(f"{text}end = 1000.0\n{wool}")
    found = Drives.of(body)
    (flux,) = found.drives
    assert flux.kelvin == pytest.approx(1.0 / (300e3 * 0.02))
    assert heating(body, 1000.0) == pytest.approx(100.0 * flux.kelvin)


def test_films_and_emissivities_count_by_parts_of_themselves() -> None:
    for found in (
        face(coefficient='"5 + sin(t)"'),
        face("radiation", emissivity='"0.5 + 0.1*sin(t)"', ambient="300.0"),
    ):
        assert 0.2 < found.longest(1.0, 900.0, TOLERANCE) < 2.0


def test_films_count_by_what_half_cells_behind_them_feel() -> None:
    """Half cells of 1,667 W/(m² K): films far above are as good as none, and a short fall below cuts the heat off."""
    assert face(coefficient='"5e9 + 1e9*sin(t)"').longest(1.0, 900.0, TOLERANCE) == 900.0
    # The film falls below 1,667 W/(m² K) for 0.05 s only, at a kink and in a table: 0.1 % of its largest value.
    at = 100.0 * pi
    found = face(coefficient='"16 + 1.6e6*abs(sin(t/100))"')
    assert found.longest(at - 10.0, 10.0, TOLERANCE) < 9.99
    assert found.longest(at, 10.0, TOLERANCE) < 0.05
    table = face(coefficient="{ times = [0, 500, 1000], values = [1.6e6, 16.0, 1.6e6] }")
    assert table.longest(500.0, 10.0, TOLERANCE) < 0.2
    assert face(coefficient="{ times = [0, 500, 1000], values = [25, 5, 25] }").drives == ()


def test_a_contact_counts_by_what_half_cells_beside_it_feel() -> None:
    halves = BOX.replace("cells = [5, 4, 2]", 'cells = [5, 4, 2]\nmaterial = "a"').replace(
        "[material]", "[materials.a]"
    )
    text = halves[halves.index("[materials.a]") :].split("[", 2)[1].split("]", 1)[1]
    region = '[[regions]]\nname = "r"\nmaterial = "b"\nbox = { min = [0.04, 0, 0], max = [0.1, 0.1, 0.1] }\n'
    contact = '[[contacts]]\nbetween = ["a", "b"]\nconductance = "16 + 1.6e6*abs(sin(t/100))"\n'
    body = problem(f"{halves}end = 1000.0\n[materials.b]{text}\n{region}{contact}")
    assert Drives.of(body).watched(TOLERANCE).longest(100.0 * pi, 10.0, TOLERANCE) < 0.1


def test_a_moving_beam_bounds_steps_if_it_matters() -> None:
    """A cell on its way takes a pulse of radius/speed; a weak beam may pass within a step."""
    beam = 'beam = {{ face = "z_max", power = {}, radius = 0.01, path = [[0.02, 0.05], [0.08, 0.05]], speed = 0.01 }}'
    assert source(beam.format(1e-4)).longest(0.0, 100.0, TOLERANCE) == 100.0
    assert source(beam.format(100.0)).longest(0.0, 100.0, TOLERANCE) < 1.0
    assert source(beam.format(100.0)).longest(7.0, 100.0, TOLERANCE) == 100.0
    # On a way of 500 radii a step has 64 spots, half a radius apart.
    slow = beam.format(1e-4).replace("speed = 0.01", "speed = 0.0001").replace("radius = 0.01", "radius = 0.00012")
    assert source(slow).longest(100.0, 400.0, TOLERANCE) == pytest.approx(64 * 0.5 * 1.2)


def test_a_moving_beam_bounds_steps_while_it_is_on() -> None:
    """It moves for 6 s; a scale of 0 or times without it do not count, and a step may go up to the next light."""
    beam = 'beam = { face = "z_max", power = 100, radius = 0.01, path = [[0.02, 0.05], [0.08, 0.05]], speed = 0.01 }\n'
    always = source(beam)
    twice = source(beam + "scale = { times = [1, 1, 2, 2, 4, 4, 5, 5], values = [0, 1, 1, 0, 0, 1, 1, 0] }")
    never = source(beam + "during = [7.0, 9.0]")
    (moving,) = twice.beams
    spans = [[1.0, 2.0], [4.0, 5.0]]
    np.testing.assert_allclose(moving.spans, spans, rtol=1e-12)
    assert not never.beams
    random = np.random.default_rng(0)
    for time, h in zip(random.uniform(0.0, 8.0, 200), random.uniform(0.01, 3.0, 200), strict=True):
        meets = any(start < time + h and time < stop for start, stop in spans)
        allowed = PART * TOLERANCE.of_run
        assert (moving.longest(time, h, allowed) < h) == (meets and always.beams[0].longest(2.0, h, allowed) < h)
    edges = np.sort(random.uniform(0.0, 8.0, 40))
    fine = np.linspace(0.0, 8.0, 800_001)[:-1] + 5e-6
    on = ((fine > 1.0) & (fine < 2.0)) | ((fine > 4.0) & (fine < 5.0))
    sums = [1e-5 * on[(fine > low) & (fine < high)].sum() for low, high in pairwise(edges)]
    np.testing.assert_allclose(moving.moves(edges), sums, atol=4e-5)


def test_all_drives_bound_a_step() -> None:
    wave = '"350 + 50*sin(2*pi*t/100)"'
    both = drives(
        f'[boundaries.x_min]\ntype = "temperature"\nvalue = {wave}\n'
        '[boundaries.x_max]\ntype = "temperature"\nvalue = "300 + exp(-((t - 3)/0.1)^2)"\n'
    )
    times = np.linspace(0.0, 100.0, 11)
    alone = face("temperature", value=wave)
    lengths = [(both.longest(time, 50.0, TOLERANCE), alone.longest(time, 50.0, TOLERANCE)) for time in times.tolist()]
    assert lengths[0][0] < 3.0
    assert all(one <= other for one, other in lengths)


def test_sources_that_change_alike_are_one_drive() -> None:
    """Steps follow the stronger one; in the cells that both heat, their heats add up."""
    scale = '\nscale = "sin(t/40)"\n'
    weak, strong = (source(f"power_density = {power}{scale}") for power in (2e4, -5e4))
    both = source(f"power_density = 2e4{scale}[[sources]]\npower_density = -5e4{scale}")
    other = source(f'power_density = 2e4{scale}[[sources]]\npower_density = -5e4\nscale = "cos(t/40)"')
    assert [len(found.drives) for found in (weak, both, other)] == [1, 1, 2]
    assert both.longest(10.0, 500.0, TOLERANCE) == strong.longest(10.0, 500.0, TOLERANCE) < 500.0
    assert both.bent(10.0, 50.0) == pytest.approx(weak.bent(10.0, 50.0) + strong.bent(10.0, 50.0), rel=1e-12)
