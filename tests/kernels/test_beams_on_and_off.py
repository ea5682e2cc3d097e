"""Random beams that are on in some of the steps: CPU and CUDA kernels, rows of all steps or of single ones."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from composite_executor import NAIVE, CompositeResult, CompositeSteps, Executor, on_cpu, on_host
from executor import CPU

from heatsim.physics.problem import HeatProblem
from heatsim.scenario import parse

Document = dict[str, Any]

DT, STEPS, REFERENCE = 1e-3, 6, 300.0
FACES = "x_min", "y_max", "z_min", "z_max"
EXECUTORS = (CPU[0], on_cpu), (CPU[1], on_cpu), (NAIVE, on_host)


def random_beam(random: np.random.Generator, kind: int) -> Document:
    """Always on, never, in some steps, in pulses, or on its way; on a surface or in depth.

    It is off in the first step, in which kernels get no beam.
    """
    start, stop = (DT * np.sort(random.uniform(1.0, STEPS, 2))).tolist()
    beam: Document = {"face": str(random.choice(FACES)), "power": random.uniform(500.0, 5000.0), "radius": 2e-3}
    beam |= {"path": [random.uniform(0.0, 8e-3, 2).tolist()], "start": DT}
    if random.random() < 0.5:
        beam["absorption_depth"] = 2e-3
    source: Document = {"beam": beam}
    if kind == 0:
        source["during"] = [start, stop]
    elif kind == 1:
        source["during"] = [1.0, 2.0]
    elif kind == 2:
        source["scale"] = {"times": [start, start, stop, stop], "values": [0.0, 1.0, 1.0, 0.0]}
    elif kind == 3:
        source["scale"] = 0.0
    elif kind == 4:
        beam |= {"path": [*beam["path"], random.uniform(0.0, 8e-3, 2).tolist()], "speed": 4.0, "start": start}
    return source


def random_body(seed: int) -> Document:
    """A block with a notch, below which light falls on surfaces towards void; graded if the seed is odd."""
    random = np.random.default_rng(seed)
    counts, size, domain = (7, 6, 5), 0.01, dict[str, Any]()
    if seed % 2:
        for axis, count in zip("xyz", counts, strict=True):
            widths = random.uniform(1.0, 3.0, count)
            domain[axis] = {"widths": (widths / widths.sum() * size).tolist()}
    else:
        domain = {"size": [size] * 3, "cells": list(counts)}
    film = {"type": "convection", "coefficient": 50.0, "ambient": REFERENCE}
    notch = {"name": "notch", "material": "void", "box": {"min": [0.003, -1.0, 0.006], "max": [0.007, 1.0, 1.0]}}
    return {
        "domain": {**domain, "material": "steel"},
        "materials": {"steel": {"conductivity": 20.0, "density": 8000.0, "specific_heat": 500.0}},
        "regions": [notch],
        "boundaries": {"x_max": film, "z_max": film, "void": film},
        "sources": [random_beam(random, kind) for kind in random.permutation(6)[: random.integers(5, 7)].tolist()],
        "initial": {"temperature": REFERENCE},
        "time": {"end": 1.0, "method": "euler"},
        "solver": {"device": "cpu", "precision": "float64"},
    }


def crowded_body(seed: int, on: int, dark: int) -> Document:
    """Beams in depth through the same cells, which other sources and a gap heat too; dark ones stand between others."""
    random, document = np.random.default_rng(100 + seed), random_body(seed)
    beams = [random_beam(random, 5) for _ in range(on)]
    for source in beams:
        source["beam"] |= {"absorption_depth": random.uniform(5e-4, 5e-3), "face": str(random.choice(FACES))}
    brings_nothing = [random_beam(random, kind) for kind in random.choice([1, 3], dark)]
    for source in brings_nothing:
        source["beam"] |= {"absorption_depth": random.uniform(5e-4, 5e-3)}
    for source in brings_nothing:
        beams.insert(int(random.integers(0, len(beams) + 1)), source)
    document["sources"] = [*beams, {"power_density": "1e10*sin(300*x)"}, {"power_density": "1e7*(T - 300)/3"}]
    document["materials"]["copper"] = {"conductivity": 300.0, "density": 8900.0, "specific_heat": 400.0}
    half = {"name": "half", "material": "copper", "box": {"min": [-1.0] * 3, "max": [0.005, 1.0, 1.0]}}
    document["regions"].insert(0, half)
    law = {"temperatures": [300.0, 400.0], "values": [500.0, 900.0]}
    document["contacts"] = [{"between": ["steel", "copper"], "conductance": law}]
    return document


@cache
def case(seed: int, only: int | None = None) -> tuple[HeatProblem, CompositeSteps]:
    """A body with all of its beams or with one, and its steps without their changing numbers."""
    document = random_body(seed)
    if only is not None:
        document["sources"] = document["sources"][only : only + 1]
    return steps_of(document)


def steps_of(document: Document) -> tuple[HeatProblem, CompositeSteps]:
    """A body, and its steps without their changing numbers."""
    problem = HeatProblem.from_scenario(parse(document, "case.toml"))
    steps = CompositeSteps(
        materials=problem.materials,
        maps=tuple(problem.boundary.maps),
        rows=problem.rows(np.zeros(1), DT, REFERENCE),
        steps=0,
        dt=DT,
        periodic=problem.periodic,
        T=np.zeros(problem.grid.shape, np.float32),
        reference=REFERENCE,
        beams=len(problem.sources.tracks),
    )
    return problem, steps


def stepped(
    spec: Any, execute: Executor, of: tuple[HeatProblem, CompositeSteps], calls: Sequence[int], precision: str
) -> CompositeResult:
    """The field after all steps, and the sum of the ledgers; each call gets the changing numbers of its steps alone."""
    (problem, steps), first, sums = of, 0, 0.0
    for count in calls:
        times = DT * np.arange(first, first + count)
        one = replace(steps, rows=problem.rows(times, DT, REFERENCE), steps=count)
        result = execute(spec, one, precision, "increments")
        steps, first, sums = replace(steps, T=result.T), first + count, sums + result.ledger.values
    return CompositeResult(result.T, replace(result.ledger, values=np.asarray(sums)))


@pytest.mark.parametrize("seed", range(8))
def test_all_kernels_agree_however_many_beams_are_on(seed: int) -> None:
    body = case(seed)
    lit = [len(body[0].sources.beam_rows(np.array([DT * step]), DT)) for step in range(STEPS)]
    assert lit[0] == 0 < max(lit)
    exact = stepped(*EXECUTORS[0], body, [STEPS], "float64")
    assert np.abs(exact.T).max() > 1.0
    for precision, bound in (("float64", 1e-13), ("float32", 2e-6)):
        for spec, execute in EXECUTORS[: 3 if seed < 2 else 2]:
            whole, *parts = (stepped(spec, execute, body, calls, precision) for calls in ([STEPS], [1] * STEPS, [2, 4]))
            assert np.abs(whole.T - exact.T).max() <= bound * np.abs(exact.T).max()
            sums, known = whole.ledger.values, exact.ledger.values
            assert np.abs(sums - known).max() <= bound * np.abs(known).max()
            for part in parts:
                np.testing.assert_array_equal(part.T, whole.T)


@pytest.mark.parametrize(("on", "dark"), [(0, 40), (1, 40), (9, 40), (40, 3)])
@pytest.mark.parametrize("seed", range(2))
def test_dark_beams_in_depth_change_no_bit(seed: int, on: int, dark: int) -> None:
    with_dark, without = (steps_of(crowded_body(seed, on, count)) for count in (dark, 0))
    shining = with_dark[0].sources.beam_rows(DT * np.arange(STEPS), DT)
    assert len(shining) == on
    assert len(np.unique(with_dark[0].materials.heated.numbers)) > on + dark
    for spec, execute in EXECUTORS[1:]:
        for precision in ("float32", "float64"):
            found, alone = (stepped(spec, execute, body, [1, 2, 3], precision).T for body in (with_dark, without))
            assert np.abs(alone).max() > 1.0
            assert found.tobytes() == alone.tobytes()


@pytest.mark.parametrize("seed", range(4))
def test_several_beams_bring_the_sum_of_what_each_brings(seed: int) -> None:
    """Nothing is nonlinear here. A beam alone has another number, and no dark ones beside it."""
    spec, execute = EXECUTORS[1]
    together = stepped(spec, execute, case(seed), [3, 3], "float64").T
    count = len(case(seed)[0].sources.tracks)
    alone = [stepped(spec, execute, case(seed, number), [3, 3], "float64").T for number in range(count)]
    assert 1 < sum(bool(T.any()) for T in alone) < count
    assert np.abs(together - sum(alone)).max() <= 1e-13 * np.abs(together).max()
