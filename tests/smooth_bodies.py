"""Twenty small bodies whose temperatures change smoothly after the start, of all kinds that a run can have."""

from math import prod
from pathlib import Path
from typing import Any

Document = dict[str, Any]

STEEL = {"conductivity": 20.0, "density": 7000.0, "specific_heat": 500.0}
COPPER = {"conductivity": 390.0, "density": 8900.0, "specific_heat": 385.0}
_SPACING = 0.005  # m


def film(coefficient: Any = 500.0, ambient: Any = 300.0, **more: Any) -> Document:
    """A film on a face."""
    return {"type": "convection", "coefficient": coefficient, "ambient": ambient, **more}


def held(value: Any) -> Document:
    """A face held at a temperature."""
    return {"type": "temperature", "value": value}


def body(
    cells: list[int],
    end: float,
    boundaries: Document,
    initial: Any = 300.0,
    material: Document = STEEL,
    **more: Any,
) -> Document:
    """A box of steel in cells of 5 mm, with 50 rows, in float64."""
    assert prod(cells) <= 1000
    return {
        "domain": {"size": [_SPACING * count for count in cells], "cells": cells},
        "material": material,
        "initial": {"temperature": initial},
        "boundaries": boundaries,
        "time": {"end": end},
        "output": {"every": end, "probe_every": end / 50.0, "figures": False, "energy": False, "heat_flux": False},
        "solver": {"precision": "float64", "device": "cpu"},
        **more,
    }


def smooth_bodies(folder: Path) -> dict[str, Document]:
    """The bodies by name; one of them reads a file that is written to ``folder``."""
    hours = [f"{9.0 * step},{300.0 + 100.0 * (step / 40.0) ** 2 * (3.0 - step / 20.0)}" for step in range(41)]
    (folder / "ramp.csv").write_text("\n".join(["time,T", *hours, ""]), encoding="utf-8")
    ramp = {"file": str(folder / "ramp.csv"), "time": "time", "time_unit": "s", "column": "T", "unit": "K"}
    half = {"min": [0.0, 0.0, 0.0], "max": [0.04, 0.02, 0.005]}
    void = {"name": "hole", "material": "void", "box": {"min": [0.02, 0.02, 0.0], "max": [0.035, 0.03, 0.02]}}
    two = {"steel": STEEL, "copper": COPPER}
    in_two = {"materials": two, "regions": [{"name": "block", "material": "copper", "box": half}]}
    composite: dict[str, tuple[list[int], float, Document, Document]] = {
        "two materials": ([16, 4, 1], 300.0, {"x_min": film(2000.0, 400.0), "x_max": film(500.0)}, in_two),
        "contact": (
            [16, 4, 1],
            300.0,
            {"x_min": held("300 + 100*(1 - exp(-t/30))"), "x_max": film(500.0)},
            {**in_two, "contacts": [{"between": ["steel", "copper"], "resistance": 5e-4}]},
        ),
        "void": (
            [10, 8, 4],
            400.0,
            {"x_min": film(2000.0, 400.0), "void": film(200.0)},
            {"materials": two, "regions": [void]},
        ),
        "thin layer": (
            [12, 12, 4],
            400.0,
            {"z_max": film(100.0)},
            {
                "materials": two,
                "layers": [
                    {"name": "foil", "material": "copper", "thickness": 1e-4, "plane": {"axis": "z", "at": 0.01}}
                ],
                "sources": [
                    {"name": "heater", "power": 40.0, "box": {"min": [0.0, 0.0, 0.01], "max": [0.015, 0.02, 0.02]}}
                ],
            },
        ),
    }
    found = {name: body(cells, end, boundaries, **more) for name, (cells, end, boundaries, more) in composite.items()}
    for document in found.values():
        del document["material"]
        document["domain"]["material"] = "steel"
    beam = {"face": "z_max", "power": 400.0, "radius": 0.008, "speed": 4e-4, "path": [[0.01, 0.0225], [0.05, 0.0225]]}
    growing = {**STEEL, "conductivity": "20*(1 + (T - 300)/200)"}
    storing = {**STEEL, "specific_heat": "500*(1 + ((T - 300)/150)^2)"}
    return {
        "cube": body([8, 8, 8], 300.0, {"default": film()}, 400.0),
        "slab with films": body([40, 1, 1], 3000.0, {"x_min": film(100.0, 400.0), "x_max": film(1000.0)}, 320.0),
        "radiating face": body(
            [20, 1, 1], 600.0, {"x_max": {"type": "radiation", "emissivity": 0.9, "ambient": 900.0}}, 1000.0
        ),
        "orthotropic": body(
            [10, 9, 8], 200.0, {"default": film()}, 400.0, {**STEEL, "conductivity": [2.0, 20.0, 60.0]}
        ),
        "held face with sine": body([16, 1, 1], 400.0, {"x_min": held("350 + 50*sin(t/40)")}, 350.0),
        "held corner": body([20, 20, 1], 300.0, {"x_min": held(400.0), "y_min": held(300.0)}, 350.0),
        "sine source": body(
            [8, 6, 4], 400.0, {"x_max": film()}, sources=[{"power_density": 1.5e6, "scale": "1 + sin(t/25)"}]
        ),
        "pulse of a source": body(
            [16, 6, 1],
            300.0,
            {"x_max": film(), "y_min": film(200.0)},
            sources=[
                {
                    "power_density": 7e6,
                    "scale": "exp(-((t - 100)/20)^2)",
                    "box": {"min": [0.0, 0.0, 0.0], "max": [0.04, 0.02, 0.005]},
                }
            ],
        ),
        "moving beam": body([12, 9, 3], 100.0, {"z_min": film()}, sources=[{"name": "laser", "beam": beam}]),
        "film with sine": body(
            [12, 6, 1], 300.0, {"x_min": film("300*(1 + 0.9*sin(t/30))", 400.0), "x_max": film(100.0)}
        ),
        "law of a surface": body([20, 4, 1], 4000.0, {"x_min": film("5*(abs(T - Tamb))^0.25", 300.0)}, 400.0),
        "k(T)": body([16, 1, 1], 300.0, {"x_min": held("300 + 100*(1 - cos(t/60))/2")}, material=growing),
        "c(T)": body([10, 6, 2], 300.0, {"x_min": film(1000.0, 400.0)}, material=storing),
        "periodic": body(
            [10, 8, 6],
            60.0,
            {"default": {"type": "periodic"}},
            "350 + 50*cos(2*pi*x/0.05)*cos(2*pi*y/0.04)*cos(2*pi*z/0.03)",
        ),
        "one cell": body([1, 1, 1], 300.0, {"x_max": film(200.0)}, 400.0),
        "ramp of a table": body([16, 1, 1], 360.0, {"x_min": held(ramp)}),
        **found,
    }
