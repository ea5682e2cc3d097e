"""What summary.json says of a run: what decided its numbers, what came out and where the time went."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np

from heatsim.grid import FACES
from heatsim.kernels.launch_shapes import Choice
from heatsim.observers import energy, heat_flows
from heatsim.observers.state import Record, RunState
from heatsim.physics.estimates.other_grids import seconds_to_converge
from heatsim.run.plan import Plan
from heatsim.run.timing import Timing
from heatsim.solver.stabilized.stepper import AdaptiveStepper
from heatsim.solver.steady.steady_state import METHOD, SteadyState
from heatsim.version import NUMERICS, version


def summarise(plan: Plan, state: RunState, timing: Timing, choice: Choice | None) -> dict[str, Any]:
    """The summary of a run that has come to its end.

    Args:
        plan: what the run was to do.
        state: after the last step.
        timing: where the wall-clock time went.
        choice: the kernel that did the steps, if one was tried out.
    """
    problem = plan.problem
    summary: dict[str, Any] = {
        "title": problem.scenario.title,
        "method": problem.scenario.time.method,
        "versions": _versions(plan.device.backend),
        "numerics": NUMERICS,
        "device": plan.device.name,
        "backend": plan.device.backend,
        "precision": problem.precision,
        "cells": list(problem.grid.cells),
        "time": state.time,
        "reference_temperature": state.field.reference,
        "temperature": _temperature(state),
        "highest_temperature": _describe_extreme(state, state.highest),
        "lowest_temperature": _describe_extreme(state, state.lowest),
        "probe_extremes": _of_probes(state),
        "wall_time": timing.preparing + timing.observing + timing.waiting + state.wall_time,
        "preparing_time": timing.preparing,
        "observing_time": timing.observing,
        "waiting_time": timing.waiting,
    }
    seconds = summary["wall_time"] - timing.waiting
    summary["converge_time"] = seconds_to_converge(problem.scenario, plan.device.backend, seconds)
    if state.steady is not None:
        summary |= _of_steady_state(plan, state, state.steady)
    else:
        summary |= _of_steps(plan, state, choice)
    if problem.scenario.channels:
        summary["channels"] = _of_channels(state)
    if state.beyond:
        summary["beyond_tables"] = [
            {which.kind: which.name, "temperature": record.temperature, "time": record.time}
            for which, record in state.beyond.items()
        ]
    return summary


def _temperature(state: RunState) -> dict[str, float]:
    extremes = state.statistics.extremes()
    return {"min": extremes.lowest, "max": extremes.highest, "mean": state.statistics.mean()}


def _describe_extreme(state: RunState, record: Record | None) -> dict[str, Any] | None:
    """A temperature in K with its time in s and its place: the cell (x, y, z), its centre in m, material and region."""
    if record is None or record.cell is None:
        return None
    problem, (x, y, z) = state.problem, record.cell
    materials = problem.materials
    material = materials.palette[materials.types[state.statistics.type_of(record.cell)].material].name
    owner = 0 if problem.parts is None else problem.parts.owner_at(x, y, z)
    return {
        **asdict(record),
        "point": list(
            record.point or (float(problem.grid.centres(axis)[place]) for axis, place in enumerate(record.cell))
        ),
        "material": material if material in problem.scenario.materials else None,
        "region": problem.scenario.regions[owner - 1].name if owner else None,
    }


def _of_probes(state: RunState) -> dict[str, dict[str, Any]]:
    """The extremes of probes by their names, as :func:`_describe_extreme`; places on a face lie on that face."""
    grid, found = state.problem.grid, {}
    for probe in state.problem.scenario.probes:
        extreme = _describe_extreme(state, state.of_probes.get(probe.name))
        if extreme is not None:
            if probe.surface in FACES:
                axis, end = divmod(FACES.index(probe.surface), 2)
                extreme["point"][axis] = grid.origin[axis] + end * grid.size[axis]
            found[probe.name] = extreme
    return found


def _of_channels(state: RunState) -> dict[str, dict[str, list[float]]]:
    """Of each channel the temperatures in K at which the fluid leaves its planes, from the inlet on, and where in m."""
    problem, found = state.problem, {}
    network = problem.boundary.network
    assert network is not None
    for nodes in network.channels:
        planes = np.array(nodes.planes[::-1] if nodes.backwards else nodes.planes)
        ends = problem.grid.axes[nodes.axis].borders[planes + (not nodes.backwards)]
        temperatures = network.temperatures[nodes.first : nodes.last + 1]
        found[nodes.channel.name] = {"position": ends.tolist(), "temperature": temperatures.tolist()}
    return found


def _of_steady_state(plan: Plan, state: RunState, steady: SteadyState) -> dict[str, Any]:
    progress = steady.progress
    return {
        "kernel": METHOD,
        "solving_time": state.wall_time,
        "tolerance": progress.tolerance,
        "last_correction": progress.correction,
        "newton_steps": progress.newton_steps,
        "cycles": progress.cycles,
        "equivalent_applications": progress.applications,
        "heat_flows": heat_flows.row(plan.problem, steady),
    }


def _of_steps(plan: Plan, state: RunState, choice: Choice | None) -> dict[str, Any]:
    problem = plan.problem
    implicit = problem.scenario.time.method == "implicit"
    summary: dict[str, Any] = {
        "kernel": METHOD if implicit else choice.shape.spec.name if choice else plan.kernel.name,
        "scheme": problem.scheme,
        "dt_limit": problem.limit.dt,
        "stepping_time": state.wall_time,
    }
    summary |= _chosen_steps(state, state.method) if state.method is not None else _equal_steps(state)
    if problem.scenario.time.stop_below is not None:
        summary["end_state"] = f"steady at t = {state.time:.10g} s" if state.stopped else "not steady"
    if plan.device.backend == "cuda" and choice:
        summary["launch"] = choice.describe()
    if problem.scenario.output.energy:
        row = energy.balance(state)
        summary["energy"] = row
        summary["energy_bound"] = energy.bound(state)
        summary |= energy.imbalance(state)
    return summary


def _equal_steps(state: RunState) -> dict[str, Any]:
    """The steps of Euler's method and their coefficients."""
    problem, names = state.problem, ("c0", "c1", "c2", "c3", "c4", "c5", "c6")
    lengths = problem.timeline.lengths_until(state.step)
    return {
        "tolerance": None,
        "steps": state.step,
        "stages": None,
        "rejected": None,
        "dt": list(lengths),
        "coefficients": [
            {"dt": dt, "steps": steps, **dict(zip(names, problem.coefficients[dt].c, strict=True))}
            for dt, steps in lengths.items()
        ],
        "coefficients_of": None if problem.materials.uniform else problem.materials.first_material.name,
        **({} if problem.grid.uniform else {"coefficients_cell": list(problem.grid.mean_spacing)}),
        "cells_per_second": state.step * problem.grid.cell_count / max(state.wall_time, 1e-9),
    }


def _chosen_steps(state: RunState, method: AdaptiveStepper) -> dict[str, Any]:
    """The steps of a method that chooses them itself."""
    work = method.work
    return {
        "tolerance": method.tolerance,
        "steps": work.steps,
        "stages": work.stages,
        "rejected": work.rejected,
        **method.counts,
        "cells_per_second": work.stages * state.problem.grid.cell_count / max(state.wall_time, 1e-9),
    }


@cache
def _versions(backend: str) -> Mapping[str, str]:
    """Versions of what decides the numbers."""
    import platform

    packages = ["numpy", "h5py"]
    packages += ["numba"] if backend == "cpu" else ["cupy-cuda13x", "cupy-cuda12x"]
    versions = {"heatsim": version(), "python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions
