"""Random bars whose temperatures lie within millikelvins, with laws that bend within a part of that, against LSODA."""

from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
from adversary.judge import run
from adversary.random_cases import log_uniform, short
from adversary.semi_discrete import STEFAN_BOLTZMANN, formula
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

Array = NDArray[np.float64]

KINDS = ("film", "emissivity", "thermostat", "melting")


def _bend(rng: Random, centre: float, width: float, low: float, high: float) -> str | dict[str, list[float]]:
    """A function of T between two values that bends within a width around a centre."""
    c, w = short(centre, 9), short(width, 4)
    if rng.random() < 0.25:
        T = sorted(short(c + w * rng.uniform(-2.0, 2.0), 9) for _ in range(rng.randint(2, 8)))
        return {"temperatures": sorted({*T}), "values": [short(rng.uniform(low, high)) for _ in {*T}]}
    x = f"(T - {c!r})/{w!r}"
    shapes = f"0.5 + 0.5*tanh({x})", f"1/(1 + exp({x}))", f"min(1, max(0, 0.5 + {x}))", f"exp(-({x})^2)"
    return f"{low!r} + {high - low!r}*({rng.choice(shapes)})"


def narrow_case(seed: int, kind: str) -> dict[str, Any]:
    """A scenario in float64 with an adaptive method."""
    rng, cells = Random(seed), 2 + seed % 12
    L = short(cells * log_uniform(rng, 2e-4, 1e-2))
    k, rho, cp = (short(rng.uniform(*of)) for of in ((15.0, 400.0), (7000.0, 9000.0), (350.0, 500.0)))
    T, reach = short(rng.uniform(280.0, 320.0), 6), log_uniform(rng, 1e-3, 5e-2)
    h = short(k / L * rng.uniform(0.01, 2.0))
    first, other = (short(T + sign * reach * rng.uniform(0.2, 1.0), 9) for sign in (rng.choice((-1, 1)), 1))
    low, high = min(T, first, other), max(T, first, other)
    centre, width = rng.uniform(low, high), (high - low) * log_uniform(rng, 0.02, 0.5)
    material: dict[str, Any] = {"conductivity": k, "density": rho, "specific_heat": cp}
    x_min: dict[str, Any] = {"type": "convection", "coefficient": h, "ambient": first}
    sources = []
    if kind == "film":
        x_min["coefficient"] = _bend(rng, centre, width, 0.1 * h, rng.choice((1.0, 3.0)) * h)
    elif kind == "emissivity":
        x_min, h = {"type": "radiation", "emissivity": _bend(rng, centre, width, 0.1, 0.9), "ambient": first}, 4.0
    elif kind == "thermostat":
        sources = [{"power_density": _bend(rng, centre, width, 0.0, short(h * (high - low) / L * rng.choice((-1, 1))))}]
    else:
        material |= {"solidus": short(centre, 9), "liquidus": short(centre + width, 9)}
        material["latent_heat"] = short(cp * (high - low) * log_uniform(rng, 10.0, 300.0))
    end = short((rho * cp * L / h + rho * cp * L * L / k) * rng.uniform(0.3, 3.0), 4)
    return {
        "domain": {"size": [L, 0.01, 0.01], "cells": [cells, 1, 1]},
        "material": material,
        "initial": {"temperature": T},
        "boundaries": {"x_min": x_min, "x_max": {"type": "convection", "coefficient": h, "ambient": other}},
        "sources": sources,
        "time": {"end": end, "method": rng.choice(("stabilized", "implicit"))},
        "solver": {"device": "cpu", "precision": "float64"},
        "output": {"figures": False, "fields": False, "error": "none", "probe_every": short(end / 7.5, 4)},
        "probes": [{"name": "hottest", "statistic": "max"}],
    }


def error_in_tolerances(document: dict[str, Any]) -> float:
    """The largest error of a run in any row and cell, as a part of its tolerance."""
    found = run(document)
    error = np.abs(found.T - _solved(document, found.times)).max()
    return float(error / found.summary["tolerance"])


def _of(value: Any, T: Array) -> Array:
    if isinstance(value, dict):
        return np.interp(T, value["temperatures"], value["values"])
    return np.asarray((formula(value, T=T) if isinstance(value, str) else value) + 0.0 * T)


def _solved(document: dict[str, Any], times: Array) -> Array:
    """Temperatures at some times, from enthalpies in J/kg; laws are evaluated as they are written."""
    (n, *_), (L, *_) = document["domain"]["cells"], document["domain"]["size"]
    material, start, d = document["material"], document["initial"]["temperature"], L / n
    k, mass, faces = material["conductivity"], material["density"] * d, [*document["boundaries"].values()]
    around = [start, *(face["ambient"] for face in faces)]
    ends = [start + sign * (2.0 * np.ptp(around) + 1e-4) for sign in (-1.0, 1.0)]
    melts, cp = [material[key] for key in ("solidus", "liquidus") if key in material], material["specific_heat"]
    grid = np.unique([*ends, *melts])
    enthalpy = cp * (grid - start)
    if melts:
        enthalpy += material["latent_heat"] * np.interp(grid, melts, [0.0, 1.0])

    def flux(face: dict[str, Any], T: float) -> float:
        def given(surface: float) -> float:
            if "emissivity" in face:
                blown = STEFAN_BOLTZMANN * (face["ambient"] ** 4 - surface**4)
                return float(_of(face["emissivity"], np.array(surface)) * blown)
            return float(_of(face["coefficient"], np.array(surface)) * (face["ambient"] - surface))

        def excess(surface: float) -> float:
            return given(surface) - 2.0 * k / d * (surface - T)

        return given(T if face["ambient"] == T else brentq(excess, T, face["ambient"], xtol=1e-14, rtol=1e-15))

    def rate(_: float, contents: Array) -> Array:
        T = np.interp(contents, enthalpy, grid)
        heat = np.zeros(n)
        heat[:-1] += k / d * np.diff(T)
        heat[1:] -= k / d * np.diff(T)
        heat[0] += flux(faces[0], float(T[0]))
        heat[-1] += flux(faces[1], float(T[-1]))
        for source in document["sources"]:
            heat += d * _of(source["power_density"], T)
        return heat / mass

    contents, found, absolute = np.full(n, np.interp(start, grid, enthalpy)), [np.full(n, start)], 1e-8 * np.ptp(around)
    for interval in pairwise(times):
        solved = solve_ivp(rate, interval, contents, "LSODA", lband=1, uband=1, rtol=1e-9, atol=absolute * cp)
        assert solved.success, solved.message
        contents = solved.y[:, -1]
        found.append(np.interp(contents, enthalpy, grid))
    return np.array(found)
