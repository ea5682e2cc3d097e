"""When what drives a body jumps or has a kink, and values on either side."""

from typing import NamedTuple

import numpy as np
import pytest
from problem_text import box

from heatsim.errors import ScenarioError
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.surface_balance import AMBIENT, FILM, FLUX
from heatsim.physics.drives.drives import Drives
from heatsim.physics.drives.jumps import Jumps, find_jumps
from heatsim.physics.time.stage_times import Side, StageTimes


class OfRun(NamedTuple):
    """A tolerance in K, where temperatures span 100 K."""

    of_run: float

    @property
    def fraction(self) -> float:
        return self.of_run / 100.0


def boundary(extra: str, end: float = 10.0) -> Boundary:
    return box(extra, end).boundary


def jumps(extra: str, end: float = 10.0, tolerance: float = 0.0) -> Jumps:
    driven = box(extra, end)
    return find_jumps(driven.scenario, Drives.of(driven), OfRun(tolerance))


def convection(ambient: str, coefficient: str = "50.0") -> str:
    return f'[boundaries]\ndefault = {{ type = "convection", coefficient = {coefficient}, ambient = {ambient} }}\n'


def test_constants_have_no_jumps():
    assert len(jumps(convection("290.0")).times) == 0
    assert len(jumps('[[sources]]\npower = 5.0\nduring = [0.0, 10.0]\nscale = "2 + 3"').times) == 0


def test_tables_have_jumps_and_kinks():
    found = jumps(convection("{ times = [0, 2, 3, 5, 5, 8], values = [300, 310, 315, 325, 300, 300] }"))
    assert found.times.tolist() == [5.0]
    assert found.kinks.tolist() == [False]
    found = jumps(convection("{ times = [0, 2, 3, 5, 5, 8], values = [300, 310, 330, 325, 300, 290] }"))
    assert found.times.tolist() == [2.0, 3.0, 5.0, 8.0]
    assert found.kinks.tolist() == [True, True, False, True]


def test_expressions_jump_where_their_operations_do():
    """A square wave and a floor, to rounding; a half wave has kinks."""
    square = jumps(convection('"where(sin(2*pi*t) > 0, 300, 400)"'))
    np.testing.assert_allclose(square.times, np.arange(0.5, 9.9, 0.5), rtol=1e-14)
    assert not square.kinks.any()
    floor = jumps(convection('"300 + floor(t/0.7)"'))
    np.testing.assert_allclose(floor.times, 0.7 * np.arange(1, 15), rtol=1e-15)
    assert not floor.kinks.any()
    half_wave = jumps('[[sources]]\npower = 3.0\nscale = "max(0, cos(2*pi*t))"', tolerance=1e-6)
    np.testing.assert_allclose(half_wave.times, np.arange(0.25, 10.0, 0.5), rtol=1e-14)
    assert half_wave.kinks.all()


def test_kinks_after_steep_slopes_of_heat_are_jumps():
    """The heat just before the end of such a slope is a part of the heat on it, which a step would go on with."""
    pulse = "[[sources]]\npower = {}\nscale = {{ times = [5.0, 5.0001, 5.0002], values = [0, 1, 0] }}"
    assert jumps(pulse.format(1e12), tolerance=1e-3).kinks.tolist() == [True, False, False]
    assert jumps(pulse.format(1e7), tolerance=1e-3).kinks.all()


def test_sources_jump_where_they_are_switched_and_not_while_they_are_off():
    found = jumps('[[sources]]\npower = 3.0\nduring = [2.0, 4.5]\nscale = "1 + floor(t)"')
    assert found.times.tolist() == [2.0, 3.0, 4.0, 4.5]
    assert len(jumps("[[sources]]\npower = 3.0\nduring = [12.0, 14.5]").times) == 0


def test_beams_start_and_stop():
    """They are averaged along their way, so steps pass their corners."""
    beam = """[sources.beam]
face = "z_max"
power = 5.0
radius = 0.01
speed = 0.02
start = 1.0
path = [[0.01, 0.01], [0.03, 0.01], [0.05, 0.01], [0.05, 0.04], [0.02, 0.04]]
"""
    beam = f"[[sources]]\n{beam}"
    found = jumps(beam)
    np.testing.assert_allclose(found.times, [1.0, 6.0], rtol=1e-15)
    assert not found.kinks.any()
    assert jumps(beam.replace("start = 1.0", "start = 8.0")).times.tolist() == [8.0]
    spot = '[[sources]]\nbeam = { face = "z_max", power = 5.0, radius = 0.01, path = [[0.01, 0.01]], start = 2.0 }\n'
    assert jumps(spot).times.tolist() == [2.0]


def test_what_happens_at_one_time_is_one_jump():
    """0.3 is 3·0.1 but for rounding; a kink beside a jump is a jump."""
    found = jumps(
        convection("{ times = [0, 0.1], values = [300, 310], repeat = true }")
        + "[[sources]]\npower = 1.0\nduring = [0.3, 7.0]\n"
    )
    np.testing.assert_allclose(found.times, 0.1 * np.arange(1, 100), rtol=1e-14)
    found = jumps(
        convection("{ times = [0, 3, 10], values = [300, 310, 300] }")
        + "[[sources]]\npower = 1.0\nduring = [3.0, 10.0]\n"
    )
    assert found.times.tolist() == [3.0]
    assert found.kinks.tolist() == [False]


def test_only_values_with_an_effect_count():
    ambient = "{ times = [0, 2, 10], values = [300, 310, 300] }"
    surroundings = "{ times = [0, 7, 10], values = [300, 310, 300] }"
    face = f'[boundaries]\nx_min = {{ type = "convection", coefficient = 5.0, ambient = {ambient}, '
    assert jumps(face + f"surroundings = {surroundings} }}").times.tolist() == [2.0]
    assert jumps(face + f"emissivity = 0.5, surroundings = {surroundings} }}").times.tolist() == [2.0, 7.0]


def test_kinks_within_half_the_tolerance_are_left_out():
    """Without its corner at 8 s this table would be 1.33 K off, without that at 4 s 39 K.

    Tables of other quantities are simplified by the same part of their range: here the temperatures span 100 K, and
    1.33 of 40 MW/m² are a thirtieth of the range.
    """
    wave = convection("{ times = [0, 2, 4, 8, 10], values = [300, 320, 340, 316, 302] }")
    assert jumps(wave).times.tolist() == [4.0, 8.0]
    assert jumps(wave, tolerance=2.6).times.tolist() == [4.0, 8.0]
    assert jumps(wave, tolerance=2.7).times.tolist() == [4.0]
    assert len(jumps(wave, tolerance=80.0).times) == 0
    flux = "{ times = [0, 2, 4, 8, 10], values = [0, 2e7, 4e7, 1.6e7, 2e6] }"
    flux = f'[boundaries]\nx_min = {{ type = "flux", value = {flux} }}'
    assert jumps(flux, tolerance=6.6).times.tolist() == [4.0, 8.0]
    assert jumps(flux, tolerance=6.7).times.tolist() == [4.0]


def test_jumps_of_heat_that_cannot_matter_are_left_out():
    """A source that is switched each second warms the body by 0.5 K meanwhile; a held face is not averaged."""
    square = "where(t % 2 < 1, 1, 0)"
    source = f'[[sources]]\npower_density = 1.5e5\nscale = "{square}"'
    assert jumps(source, tolerance=0.9).times.tolist() == list(range(1, 10))
    assert len(jumps(source, tolerance=1.1).times) == 0
    long = f'[[sources]]\npower_density = 1.5e5\nscale = "{square.replace("t % 2 < 1", "t < 1.5")}"'
    assert jumps(long, tolerance=1.1).times.tolist() == [1.5]
    face = f'[boundaries]\nx_min = {{ type = "temperature", value = "300 + 0.5*{square}" }}'
    assert jumps(face, tolerance=1.1).times.tolist() == list(range(1, 10))


@pytest.mark.slow
def test_weather_of_a_year_and_an_unreadable_oscillation():
    """A table of 8,760 hours takes no time; 10⁷ jumps are refused, with the key and what to do."""
    hours = np.arange(8761)
    values = 280.0 + 10.0 * np.cos(hours * np.pi / 12.0) + np.random.default_rng(0).normal(size=len(hours))
    table = f"{{ times = {[3600.0 * hour for hour in hours.tolist()]}, values = {values.tolist()} }}"
    found = jumps(convection(table), end=3600.0 * 8760.0)
    assert len(found.times) == 8759
    assert found.kinks.all()
    for wave in (
        '"300 + 10*sign(sin(1e7*t))"',
        '"300 + 10*sin(1e7*t)"',
        "{ times = [0, 1e-6], values = [300, 310], repeat = true }",
    ):
        with pytest.raises(ScenarioError, match=r"boundaries\.x_min\.ambient.*100,000 times.*euler"):
            jumps(convection(wave))
    # A smooth oscillation of a source is averaged.
    assert len(jumps('[[sources]]\npower = 3.0\nscale = "sin(1e7*t)"').times) == 0
    with pytest.raises(ScenarioError, match=r"sources\.0\.scale.*100,000 times"):
        jumps('[[sources]]\npower = 3.0\nscale = "floor(t*20000) % 2"')


def test_the_next_jump():
    found = jumps(convection("{ times = [0, 2, 5, 5, 10], values = [300, 310, 300, 290, 290] }"))
    assert found.next(0.0) == (2.0, True)
    assert found.next(2.0) == (5.0, False)
    assert found.next(5.0) is None


@pytest.mark.parametrize(
    ("ambient", "time", "before", "after"),
    [
        ("{ times = [0, 5, 5, 10], values = [300, 310, 350, 340] }", 5.0, 310.0, 350.0),
        ("{ times = [0, 0.1], values = [300, 310], repeat = true }", 0.1 * 73, 310.0, 300.0),
        ('"300 + floor(t/0.7)"', 0.7 * 11, 310.0, 311.0),
        ('"where(t > 0, 350, 300)"', 0.0, None, 350.0),
        ('"300 + floor(t)"', 10.0, 309.0, None),
        ('"300 + t"', 4.0, 304.0, 304.0),
    ],
)
def test_both_sides_of_a_jump(ambient, time, before, after):
    """Conditions see the values that hold before it or after it, the film of the same face too.

    The time is moved by 1e-11 s, in which the steepest table changes by 1e-9 K.
    """
    conditions = boundary(convection(ambient, '"where(t < 5, 10, 20)"'))
    for side, value in ((Side.BEFORE, before), (Side.AFTER, after)):
        if value is not None:
            stage = StageTimes.beside(time, side, 1.0, 10.0)
            row = conditions.rows(stage.times, 300.0, stage)[0, 0]
            assert row[AMBIENT] + 300.0 == pytest.approx(value, abs=2e-9)
            assert row[FILM] == (10.0 if time < 5.0 or (time, side) == (5.0, Side.BEFORE) else 20.0)


def test_fluxes_sources_and_beams_on_both_sides():
    """What is averaged over stages has at one moment the value of that moment.

    The mean is taken over 1e-8 s: the changes in it, and the rounding of the times in parts of it, are the errors.
    """
    body = box(
        """
[boundaries]
x_min = { type = "flux", value = { times = [0, 4, 4, 8], values = [0, 400, 0, 800] } }
[[sources]]
power = 6.0
during = [1.0, 4.0]
scale = "t"
[[sources]]
beam = { face = "z_max", power = 5.0, radius = 0.002, path = [[0.05, 0.05], [0.07, 0.05]], speed = 0.01, start = 2.0 }
"""
    )
    for time, side, flux, power, beam in (
        (4.0, Side.BEFORE, 400.0, 24.0, 5.0),
        (4.0, Side.AFTER, 0.0, 0.0, 0.0),
        (2.0, Side.BEFORE, 200.0, 12.0, 0.0),
        (2.0, Side.AFTER, 200.0, 12.0, 5.0),
        (6.0, Side.AFTER, 400.0, 0.0, 0.0),
    ):
        stage = StageTimes.beside(time, side, 0.25, 10.0)
        assert body.boundary.rows(stage.times, 300.0, stage)[0, 0, FLUX] == pytest.approx(flux, rel=1e-7, abs=2e-6)
        heat = body.sources.heat(stage.starts, 0.25, stage.lengths)
        # 10 litres … 1e-3 m³ of 3e5 J/(m³ K).
        assert heat[0] == pytest.approx(0.25 * power / (1e-3 * 3e5), rel=1e-7)
        weights = [rows.weights for rows in body.sources.beam_rows(stage.starts, stage.lengths)]
        flux = sum(float((u.sum(axis=2) * v.sum(axis=2)).sum()) for u, v in weights)
        assert flux * 0.02 * 0.025 == pytest.approx(beam, rel=1e-6)


def test_the_first_stage_after_a_jump_sees_what_holds_after_it():
    conditions = boundary(convection('"where(t > 5, 350, 300)"'))
    stages = StageTimes(*(np.array(numbers) for numbers in ([5.0, 5.5], [5.0, 5.5], [0.5, 0.5], [0.5, 0.5])))
    assert conditions.rows(stages.times, 300.0)[:, 0, AMBIENT].tolist() == [0.0, 50.0]
    assert conditions.rows(stages.after(5.0, 10.0).times, 300.0)[:, 0, AMBIENT].tolist() == [50.0, 50.0]
