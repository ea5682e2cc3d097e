"""The heat through surfaces by one launch has the bits of the operations on arrays: on the host and on a GPU."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from heatsim.device import Device
from heatsim.kernels.composite import surface_heat
from heatsim.physics.conditions.surface_laws import LawAtTime
from heatsim.physics.operator.surface_exchange import BalanceSurface, SameCondition

COUNT, NODES = 7777, 9
# film, ambient, flux, emission, surroundings of each cell, by their ranges; and whether the surface is free.
CONDITIONS: dict[str, tuple[list[tuple[float, float]], float]] = {
    "convection": ([(0.1, 1e3), (-50.0, 80.0), (-1e3, 1e4), (0.0, 0.0), (0.0, 0.0)], 1.0),
    "radiation": ([(0.0, 20.0), (-50.0, 80.0), (-1e5, 1e7), (0.0, 5.6e-8), (-310.0, 2000.0)], 1.0),
    "held": ([(1.0, 1.0), (-50.0, 80.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)], 0.0),
}


def surface_of(numbers: Any, condition: tuple[Any, ...], law: LawAtTime | None = None) -> BalanceSurface:
    """A surface; ``numbers``: its area, half, weight, beam."""
    area, half, weight, beam = numbers
    return BalanceSurface(
        xp=np,
        cells=None,
        name="void",
        conditions=(SameCondition(7, slice(None)),),
        grounded=True,
        radiates=law is None and bool(np.any(np.asarray(condition[3]) > 0.0)),
        cell_types=0,
        area=area,
        half=half,
        weight=weight,
        condition=condition,
        beam=beam,
        reference=310.0,
        law=law,
    )


def on(where_cuda: Device, value: Any) -> Any:
    """A value on the device, if it is an array."""
    return where_cuda.xp.asarray(value) if isinstance(value, np.ndarray) else value


def assert_same(where_cuda: Device, surface: BalanceSurface, T: Any, *arguments: Any) -> None:
    """Compare with the operations on NumPy's arrays."""
    with np.errstate(invalid="ignore"):
        heat, slope = surface.exchange(T, *arguments)
    there = replace(
        surface,
        xp=where_cuda.xp,
        condition=tuple(on(where_cuda, of) for of in surface.condition),
        law=surface.law and LawAtTime(*(on(where_cuda, of) for of in surface.law)),
        **{name: on(where_cuda, getattr(surface, name)) for name in ("area", "half", "weight", "beam")},
    )
    found = surface_heat.exchange(there, on(where_cuda, T), *(on(where_cuda, of) for of in arguments))
    np.testing.assert_array_equal(where_cuda.to_host(found[0]), np.broadcast_to(heat, T.shape))
    # The third power may be rounded differently.
    tolerance = 1e-14 if surface.radiates else 0.0
    np.testing.assert_allclose(where_cuda.to_host(found[1]), np.broadcast_to(slope, T.shape), rtol=tolerance)


@pytest.mark.parametrize("kind", CONDITIONS)
def test_conditions(where_cuda: Device, kind: str) -> None:
    rng, (ranges, free) = np.random.default_rng(5), CONDITIONS[kind]
    T = rng.uniform(-320.0, 900.0, COUNT)
    many = tuple(rng.uniform(low, high, COUNT) for low, high in ((1e-6, 1e-3), (0.1, 1e5), (0.3, 1.0), (0.0, 1e4)))
    condition = tuple(rng.uniform(low, high, COUNT) for low, high in ranges)
    assert_same(where_cuda, surface_of(many, (*condition, free)), T)
    conducting, below_held = rng.uniform(0.2, 2.0, COUNT), rng.uniform(-50.0, 50.0, COUNT)
    assert_same(where_cuda, surface_of(many, (*condition, free)), T, conducting, below_held)
    with_limits = np.where(np.arange(COUNT) % 10 < 3, np.array([np.nan, np.inf, -np.inf])[np.arange(COUNT) % 3], T)
    assert_same(where_cuda, surface_of(many, (*condition, free)), with_limits)
    alone = tuple(float(of[3]) for of in condition)
    assert_same(where_cuda, surface_of((1e-4, 200.0, 1.0, 0.0), (*alone, free)), T)
    assert_same(where_cuda, surface_of((1e-4, 200.0, 1.0, 0.0), (*alone, free)), T[:0])


def test_cells_without_radiation_beside_others(where_cuda: Device) -> None:
    rng = np.random.default_rng(6)
    emission = np.where(np.arange(COUNT) % 3 == 0, 0.0, 5e-8)
    condition = (np.full(COUNT, 9.0), np.zeros(COUNT), np.zeros(COUNT), emission, np.full(COUNT, 400.0), 1.0)
    assert_same(where_cuda, surface_of((1e-4, 30.0, 1.0, 0.0), condition), rng.uniform(-300.0, 900.0, COUNT))


@pytest.mark.parametrize("several", [False, True], ids=["one law", "laws"])
def test_laws(where_cuda: Device, several: bool) -> None:
    rng = np.random.default_rng(7)
    nodes = np.linspace(-500.0, 500.0, NODES)
    # They fall and rise, by less than the half cells conduct.
    fluxes = rng.uniform(-2e3, 2e3, 4 * NODES)
    law = LawAtTime(4.0, nodes, fluxes[:NODES])
    if several:
        law = LawAtTime(rng.uniform(-9.0, 9.0, COUNT), nodes, fluxes, rng.integers(0, 4, COUNT) * NODES)
    T = rng.uniform(-900.0, 900.0, COUNT)
    half = rng.uniform(1e2, 1e3, COUNT)
    assert_same(where_cuda, surface_of((1e-4, half, 1.0, rng.uniform(0.0, 2e4, COUNT)), (0.0,) * 6, law), T)
    assert_same(where_cuda, surface_of((1e-4, half, 0.8, 0.0), (0.0,) * 6, law), T, rng.uniform(0.5, 2.0, COUNT))


def test_a_whole_face(where_cuda: Device) -> None:
    """The cells are slices of the grid: arrays have three dimensions, and are not contiguous."""
    rng = np.random.default_rng(8)
    T, half = rng.uniform(-50.0, 50.0, (5, 6, 7))[:, 2:3, ::2], rng.uniform(1.0, 99.0, (5, 3, 4))[:, 1:2]
    assert_same(where_cuda, surface_of((1e-4, half, 1.0, 5.0), (9.0, -20.0, 100.0, 4e-8, -10.0, 1.0)), T)
