"""Run a case with heatsim, and compare every row of every cell, and the heats, with the equations of its cells."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from adversary.random_cases import Case
from adversary.semi_discrete import Body, Solution, of_time, solve
from numpy.typing import NDArray

from heatsim import Simulation
from heatsim.errors import HeatsimError, Interrupted
from heatsim.observers.observer import Observer
from heatsim.observers.state import RunState
from heatsim.storage import folder, run_tables

MOST_SECONDS = 120
UNIT_ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53}


class Fields(Observer):
    """Keeps the temperatures of all cells at all rows, and ends a run that takes longer than any of these should."""

    def __init__(self) -> None:
        self.times, self.temperatures = list[float](), list[NDArray[np.float64]]()
        self._started = process_time()

    def due(self, state: RunState) -> NDArray[np.int64]:
        return state.problem.timeline.steps_at(state.problem.scenario.output.probe_every)

    def handle(self, state: RunState) -> None:
        self.times.append(state.time)
        self.temperatures.append(state.field.temperature().ravel())

    def poll(self, state: RunState) -> None:
        if process_time() - self._started > MOST_SECONDS:
            raise HeatsimError(f"takes more than {MOST_SECONDS} s; at t = {state.time:.6g} s")


class Run(NamedTuple):
    """What heatsim computed."""

    times: NDArray[np.float64]
    T: NDArray[np.float64]
    hottest: NDArray[np.float64]
    energy: dict[str, NDArray[np.float64]]
    summary: dict[str, Any]


class Verdict(NamedTuple):
    """How a case went.

    Attributes:
        case: the case.
        faults: what is wrong; empty if nothing is.
        error: the largest error of a temperature as a part of the tolerance; in K with Euler's method.
        method: the one that ran.
    """

    case: Case
    faults: tuple[str, ...]
    error: float = 0.0
    method: str = ""

    def __str__(self) -> str:
        """One line."""
        return f"{self.case.seed} {self.method} ({', '.join(self.case.kinds)}): {'; '.join(self.faults) or 'right'}"


def run(document: dict[str, Any]) -> Run:
    """Do all steps of a scenario."""
    with TemporaryDirectory() as name:
        watcher = Fields()
        simulation = Simulation.from_dict(document, Path(name, "run"))
        simulation.run(watchers=[watcher])
        summary = json.loads(Path(name, "run", folder.SUMMARY).read_text())
        energy, probes = run_tables.read_energy(Path(name, "run")), run_tables.read_probes(Path(name, "run"))
    assert energy is not None
    assert probes is not None
    T, hottest = np.array(watcher.temperatures), probes.in_unit("K")["hottest"]
    return Run(np.array(watcher.times), T, hottest, energy.in_unit("J"), summary)


def judge(case: Case) -> Verdict:
    """Run a case and compare it with the exact solution."""
    try:
        return _judge_euler(case) if case.document["time"]["method"] == "euler" else _judge_adaptive(case)
    except Interrupted:
        raise
    except HeatsimError as error:
        if "falls below 0 K" in str(error) and _falls_below_zero(case):
            return Verdict(case, (), 0.0, "refused")
        if "float32 resolves errors of" in str(error):
            return Verdict(case, (), 0.0, "refused")
        return Verdict(case, (f"refused: {error}",), np.inf)


def _falls_below_zero(case: Case) -> bool:
    """Whether the sources take out more heat than there is: no such body exists."""
    return extremes(case, Body(case.document))[0] < 0.0


def _judge_adaptive(case: Case) -> Verdict:
    """A method with a tolerance: every row has to be within three tolerances, plus rounding."""
    found, body = run(case.document), Body(case.document)
    exact, summary = solve(body, found.times, case.marks), found.summary
    default = _largest_default(case, body, exact)
    # Without one in the summary "auto" took Euler's method, which has to keep the same.
    tolerance = summary["tolerance"] or case.document["time"].get("tolerance", default)
    faults = []
    if tolerance > 1.2 * default and "tolerance" not in case.document["time"]:
        faults.append(f"the tolerance is {tolerance:.3g} K instead of {default:.3g} K")
    allowed = 3.0 * tolerance + _rounding(found, exact)
    errors = np.abs(found.T - exact.T).max(axis=1)
    worst = int(np.argmax(errors))
    if not errors[worst] <= allowed:
        faults.append(
            f"off by {errors[worst]:.4g} K at t = {found.times[worst]:.8g} s, {errors[worst] / tolerance:.3g} times "
            f"the tolerance; {errors[-1]:.4g} K at the end"
        )
    if np.abs(found.hottest - found.T.max(axis=1)).max() > 1e-6 * found.T.max():
        faults.append("the column of the hottest cell differs from the field")
    faults += heat_faults(body, exact, found, allowed)
    return Verdict(case, tuple(faults), float(errors[worst] / tolerance), _method(case, summary))


def _judge_euler(case: Case) -> Verdict:
    """Euler's method: given heats are exact; with an eighth of dt less than half of the error is left.

    Not where something is shorter than dt: then the error depends on its place in a step.
    """
    faults, body, method = [], Body(case.document), ""

    def error_with(safety: float, sharp: bool = False) -> tuple[float, float, float, float]:
        """The largest error in K; what rounding adds at random, and at most; the longest dt in s."""
        nonlocal method
        found = run({**case.document, "time": {**case.document["time"], "safety": safety}})
        exact, method = solve(body, found.times, case.marks, fine=sharp), _method(case, found.summary)
        faults.extend(heat_faults(body, exact, found, np.inf))
        rounding, most = (_rounding(found, exact, one_way) + 1e-9 * np.ptp(exact.T) for one_way in (False, True))
        return float(np.abs(found.T - exact.T).max()), rounding, most, max(map(float, found.summary["dt"]))

    (first, _, _, long), (fine, rounding, most, short) = error_with(0.8), error_with(0.1)
    resolved = all(width > 30.0 * short for _, width in case.marks)
    # Rows may divide steps otherwise than safety does: the error in parts of dt must not rise to more than four times.
    if resolved and fine > 4.0 * first / long * short + rounding:
        # The error of a jump depends on its place in a step, and may be zero by chance. Roundings of many small steps
        # may go one way. The exact solution of nonlinear bodies is known to 1e-9 of T or so.
        others = [error_with(safety, sharp=True) for safety in (0.8, 0.77, 0.73, 0.68)]
        slope, (fine, *_) = max(error / dt for error, _, _, dt in others), error_with(0.1, sharp=True)
        if fine > 4.0 * slope * short + most + (1e-9 * body.T0.max() if body.nonlinear else 0.0):
            faults.append(f"off by {first:.4g} K, and by {fine:.4g} K with {short / long:.3g} of dt")
    return Verdict(case, tuple(faults), fine, method)


def _rounding(found: Run, exact: Solution, one_way: bool = False) -> float:
    """10·u·D·√stages + 16·2⁻⁵³·T in K; u·D·stages if all roundings go one way, which the documents state as the most.

    D is the largest deviation from the reference temperature, u 2⁻²⁴ or 2⁻⁵³. T, in kelvin, is what both answers hold.
    """
    D = max(1.0, float(np.abs(exact.T - found.summary["reference_temperature"]).max()))
    stages = found.summary["stages"] or found.summary["steps"]
    of_kelvins = 16.0 * UNIT_ROUNDOFF["float64"] * float(np.abs(exact.T).max())
    size = stages if one_way else 10.0 * np.sqrt(stages)
    return float(UNIT_ROUNDOFF[found.summary["precision"]] * D * size) + of_kelvins


def heat_faults(body: Body, exact: Solution, found: Run, allowed: float) -> list[str]:
    """Heats that are wrong: of given ones 1e-6 at the end, of others what an error of temperatures explains.

    That is G·T·t, or what all cells store with it: the heat through a face that is off makes temperatures wrong. Heat
    that changes no temperature of the body in float64 does not count.
    """
    faults, energy = [], found.energy
    unseen = UNIT_ROUNDOFF["float64"] * float(np.abs(exact.T).max(axis=0) @ body.C)
    residual = np.abs(energy["residual"]).max()
    if residual > found.summary["energy_bound"]:
        faults.append(f"the residual is {residual:.3g} J, above its bound of {found.summary['energy_bound']:.3g} J")
    for name, heat in exact.heats.items():
        off = np.abs(energy[name] - heat)
        G = body.conductances.get(name, np.zeros(1)).sum()
        most, stored = 1e-6 * (exact.given + np.abs(heat).max()) + unseen, allowed * body.C.sum()
        most += G * allowed * found.times[-1] + stored if G else 0.0
        if off[-1] > most:
            faults.append(f"{name}: off by {off[-1]:.4g} J of {exact.given or np.abs(heat).max():.4g} J at the end")
        if off.max() > most + (0.0 if G else stored):
            faults.append(f"{name}: off by {off.max():.4g} J in a row, {off.max() / body.C.sum():.3g} K in all cells")
    return faults


def _largest_default(case: Case, body: Body, exact: Solution) -> float:
    """The largest default tolerance in K that the documents allow: 0.02 % of the range of the run.

    Where heat may widen the range it counts as if no heat flowed away, which is not known here: then 1 mK is allowed,
    and where nothing happens.
    """
    low, high = extremes(case, body)
    of_range = 2e-4 * max(max(exact.high, high) - min(exact.low, low), _range_of_conditions(case, body))
    conditions = case.document["boundaries"].values()
    heated = case.document.get("sources") or any("flux" in each or each["type"] == "flux" for each in conditions)
    still = of_range < 1e-14 * exact.high  # rounding
    return max(1e-3 if heated or still else 1e-9, of_range)


def extremes(case: Case, body: Body) -> tuple[float, float]:
    """Between which temperatures the cells lie all the time: drives that do something shortly are looked at closely."""
    near = [a + part * w for a, w in case.marks[:30] for part in np.arange(-1.0, 3.1, 0.25)]
    # Those of nonlinear bodies are known at all steps of the integration.
    inside = [] if body.nonlinear else np.clip([*np.linspace(0.0, body.end, 401), *near], 0.0, body.end)
    found = solve(body, np.unique([0.0, body.end, *inside]), case.marks)
    return found.low, found.high


def _range_of_conditions(case: Case, body: Body) -> float:
    """Between which temperatures the initial field and the surroundings lie, as far as samples tell."""
    peaks = [a + part * w for a, w in case.marks for part in (-0.5, 0.0, 0.5)]
    t = np.clip([*np.linspace(0.0, body.end, 2001), *peaks], 0.0, body.end)
    given = [condition for condition in case.document["boundaries"].values() if condition["type"] != "flux"]
    of_faces = [of_time(each[key])(t) for each in given for key in ("value", "ambient") if key in each]
    return float(np.ptp(np.concatenate([body.T0, *of_faces])))


def _method(case: Case, summary: dict[str, Any]) -> str:
    asked = case.document["time"]["method"]
    return f"{'auto: ' if asked == 'auto' else ''}{summary['method']}, {summary['precision']}"
