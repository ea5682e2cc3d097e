"""EnthalpyTables of materials that change with temperature: contents, potentials and what is made of them."""

from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heatsim.physics.matter.enthalpy import STEPS, EnthalpyTable, Thermometer, constant, tabulate
from heatsim.scenario import Material

LINEAR = Material(conductivity="10*(1 + 0.002*(T - 300))", density=1000.0, specific_heat="500*(1 + 0.001*(T - 300))")  # type: ignore[arg-type]
WAX = Material(
    conductivity={"temperatures": [320.0, 330.0], "values": [0.24, 0.15]},  # type: ignore[arg-type]
    density=850.0,
    specific_heat=2500.0,
    latent_heat=190e3,
    solidus=325.0,
    liquidus=329.0,
)


def test_contents_and_potentials_are_the_integrals() -> None:
    enthalpy = tabulate(LINEAR, 300.0, 250.0, 800.0)
    assert (enthalpy.conductivity, enthalpy.heat_capacity, enthalpy.followed) == ((10.0,) * 3, 5e5, (250.0, 800.0))
    u = np.linspace(-50.0, 500.0, 1001)
    span = float(np.ptp(enthalpy.contents))
    np.testing.assert_allclose(enthalpy.content_at(u), u + 0.0005 * u**2, atol=2e-6 * span)
    np.testing.assert_allclose(enthalpy.potential_at(u), u + 0.001 * u**2, atol=4e-6 * span)
    np.testing.assert_allclose(enthalpy.conductivity_at(u), 1.0 + 0.002 * u, atol=1e-3)
    assert enthalpy.conductivity_range == pytest.approx((9.0, 20.0), rel=1e-12)
    assert enthalpy.specific_heat_range == pytest.approx((475.0, 750.0), rel=1e-12)


def test_beyond_what_is_followed_the_last_values_hold() -> None:
    enthalpy = tabulate(LINEAR, 300.0, 300.0, 400.0)
    hotter = np.array([150.0, 160.0, 1000.0])
    contents, potentials = enthalpy.content_at(hotter), enthalpy.potential_at(hotter)
    assert np.diff(contents) / np.diff(hotter) == pytest.approx([1.1, 1.1], rel=1e-9)
    assert np.diff(potentials) / np.diff(hotter) == pytest.approx([1.2, 1.2], rel=1e-9)
    assert enthalpy.conductivity_at(hotter) == pytest.approx([1.2] * 3)
    colder = np.array([-200.0, -50.0])
    assert enthalpy.content_at(colder) == pytest.approx(colder, rel=1e-9)
    assert enthalpy.potential_at(colder) == pytest.approx(colder, rel=1e-9)


def test_melting_takes_up_the_latent_heat_between_solidus_and_liquidus() -> None:
    enthalpy = tabulate(WAX, 300.0, 300.0, 360.0)
    solid, molten, hot = enthalpy.content_at(np.array([24.0, 30.0, 40.0])) * enthalpy.heat_capacity
    assert molten - solid == pytest.approx(850.0 * (2500.0 * 6.0 + 190e3), rel=1e-9)
    assert hot - molten == pytest.approx(850.0 * 2500.0 * 10.0, rel=1e-9)
    half = enthalpy.content_at(np.array([27.0]))[0] - enthalpy.content_at(np.array([25.0]))[0]
    assert half == pytest.approx(2.0 + 190e3 / 2500.0 / 2.0, rel=2e-3)  # a step of the table at the bend
    # The slower temperature follows the content, the slower does potential: nothing is stiffer than the solid.
    assert enthalpy.warming == pytest.approx(1.0, rel=1e-9)
    assert enthalpy.driving == pytest.approx(1.0, rel=1e-9)


def test_tables_are_as_short_as_precision_allows() -> None:
    smooth, bent = tabulate(LINEAR, 300.0, 300.0, 800.0), tabulate(WAX, 300.0, 300.0, 360.0)
    assert smooth.steps < STEPS / 2 < bent.steps <= STEPS
    for enthalpy in (smooth, bent):
        assert log2(enthalpy.step).is_integer()
        assert enthalpy.contents[-enthalpy.first] == 0.0
        assert enthalpy.temperatures[-enthalpy.first] == 0.0 == enthalpy.potentials[-enthalpy.first]


def test_what_does_not_change_is_left_as_it_is_to_the_bit() -> None:
    enthalpy = constant((1.0, 2.0, 3.0), 4.0)
    rng = np.random.default_rng(1)
    contents = rng.uniform(-1e3, 1e3, (3, 4, 5))
    assert (enthalpy.content_at(contents) == contents).all()
    thermometer = Thermometer(np, (enthalpy,), lambda place: 0)
    assert (thermometer(contents, ...) == contents).all()


def test_a_thermometer_reads_each_cell_type_by_its_own_table() -> None:
    enthalpies = (tabulate(WAX, 300.0, 300.0, 360.0), constant((1.0,) * 3, 2.0), tabulate(LINEAR, 300.0, 300.0, 800.0))
    cell_types = np.array([0, 1, 2, 2, 1, 0], dtype=np.uint8)
    temperatures = np.array([26.0, -7.0, 250.0, -20.0, 900.0, 70.0])
    contents = np.array(
        [
            enthalpies[cell_type].content_at(np.array([T]))[0]
            for cell_type, T in zip(cell_types, temperatures, strict=True)
        ]
    )
    thermometer = Thermometer(np, enthalpies, lambda place: cell_types[place])
    np.testing.assert_allclose(thermometer(contents, slice(None)), temperatures, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(thermometer(contents[2:4], slice(2, 4)), temperatures[2:4], rtol=1e-12)
    strange = thermometer(np.array([np.nan, np.inf]), slice(0, 2))
    assert np.isnan(strange[0])
    assert not np.isfinite(strange[1])


@st.composite
def enthalpies(draw: st.DrawFn) -> EnthalpyTable:
    nodes = sorted(draw(st.lists(st.integers(20, 1500), min_size=2, max_size=8, unique=True)))
    values = st.floats(0.05, 50.0)
    table = [draw(st.lists(values, min_size=len(nodes), max_size=len(nodes))) for _ in range(2)]
    melting: dict[str, float] = {}
    if draw(st.booleans()):
        solidus = draw(st.floats(100.0, 900.0))
        width = draw(st.floats(0.1, 100.0))
        melting = {"latent_heat": draw(st.floats(1.0, 1e5)), "solidus": solidus, "liquidus": solidus + width}
    material = Material(
        conductivity={"temperatures": nodes, "values": table[0]},  # type: ignore[arg-type]
        density=1.0,
        specific_heat={"temperatures": nodes, "values": table[1]},  # type: ignore[arg-type]
        **melting,  # type: ignore[arg-type]
    )
    low, high = sorted((draw(st.floats(0.0, 2000.0)), draw(st.floats(0.0, 2000.0))))
    return tabulate(material, draw(st.floats(low, high)), low, high)


@settings(max_examples=40)
@given(enthalpies(), st.integers(0, 2**31))
def test_laws_ascend_and_reading_undoes_writing(enthalpy: EnthalpyTable, seed: int) -> None:
    assert enthalpy.steps <= STEPS + 2
    assert (np.diff(enthalpy.temperatures) > 0.0).all()
    assert (np.diff(enthalpy.potentials) > 0.0).all()
    span = float(np.ptp(enthalpy.temperatures)) + 1.0
    temperatures = np.random.default_rng(seed).uniform(
        enthalpy.temperatures[0] - span, enthalpy.temperatures[-1] + span, 50
    )
    contents = enthalpy.content_at(temperatures)
    read = Thermometer(np, (enthalpy,), lambda place: 0)(contents, slice(None))
    np.testing.assert_allclose(read, temperatures, rtol=1e-9, atol=1e-9 * span)
    # What limits the time step bounds every difference.
    order = np.argsort(contents)
    rise = np.diff(contents[order])
    assert (np.diff(temperatures[order]) <= enthalpy.warming * rise * (1 + 1e-9) + 1e-9 * span).all()
    potentials = enthalpy.potential_at(temperatures[order])
    assert (np.diff(potentials) <= enthalpy.driving * rise * (1 + 1e-9) + 1e-9 * np.ptp(potentials)).all()
    assert (enthalpy.conductivity_at(temperatures) <= enthalpy.conducting).all()
