"""How well the stated errors of `heatsim converge` hold: in the cases of `heatsim verify`, and in random bodies.

`python tests/study/converge_errors.py cases`, `… bodies 40` and `… curved 20` print the statistics.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from inspect import getclosurevars
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import tomli_w

from heatsim.converge.convergence import converge
from heatsim.converge.factors import Factors
from heatsim.converge.result import FoundErrors
from heatsim.run.error.values import read_values
from heatsim.run.interrupt import Stop
from heatsim.run.method_override import method_override
from heatsim.run.simulation import Simulation
from heatsim.scenario import load
from heatsim.study import folder as study_folder
from heatsim.study.definition import derive
from heatsim.study.points import Point
from heatsim.study.run_group import run_group
from heatsim.verification import CASES
from heatsim.verification.case import Case

FLOOR = 1e-4  # of the range of temperatures
# Cases whose answer is that of another problem (one grid, published digits), or that compare something else.
LEFT_OUT = ("discrete_cosine", "iso_10211_1", "iso_10211_2", "nafems_t2", "nafems_t4", "steady_plate", "slab_")
_POINTS = 6


@dataclass(frozen=True)
class Sample:
    """A value with its stated and its true error."""

    name: str
    stated: float
    true: float
    floor: float
    verdict: str

    @property
    def holds(self) -> bool:
        return self.true <= max(self.stated, self.floor)

    @property
    def ratio(self) -> float | None:
        """Stated over true error; None where the true error is below the floor."""
        return self.stated / self.true if self.true > self.floor else None


def in_this_process(factors: Factors, points: Sequence[Point], folder: Path) -> None:
    """Do the runs of a study one after the other."""
    definition, _ = derive(factors.definition(points), elsewhere=False)
    folder.mkdir(exist_ok=True)
    study_folder.write_study(folder, definition)
    for outcome in run_group(folder, list(definition.numbers), lambda number, step: None, Stop()):
        if outcome.message:
            print(f"  run {outcome.number}: {outcome.message}", file=sys.stderr)


def converged(path: Path, overrides: Sequence[str]) -> FoundErrors:
    with TemporaryDirectory() as folder:
        return converge(Factors.read(path, overrides), Path(folder) / "study", "cpu", in_this_process)


def probed(points: Sequence[Sequence[float]]) -> str:
    """The override that gives a scenario probes at points."""
    texts = (f'{{name="p{n}",point=[{", ".join(map(repr, map(float, point)))}]}}' for n, point in enumerate(points))
    return f"probes=[{','.join(texts)}]"


def samples_of_case(case: Case, method: str | None) -> Iterator[Sample]:
    """The values of a case with a method; None for a steady state."""
    scenario = load(case.path)
    overrides = [] if method is None else [method_override(scenario, method, None)]
    known = getclosurevars(case.quantity).nonlocals
    if "temperature" in known:
        grid, generator = scenario.grid, np.random.default_rng(sum(map(ord, case.name)))
        low, high = (np.array([grid.centres(axis)[end] for axis in range(3)]) for end in (0, -1))
        points = low + (high - low) * generator.random((_POINTS, 3))
        overrides.append(probed(points.tolist()))
        end = 0.0 if scenario.steady else scenario.time.end
        exact = [float(np.ravel(known["temperature"](*(np.array([c]) for c in point), end))[0]) for point in points]
    elif "values" in known:
        exact = list(known["values"].values())[-1]
    else:
        return
    found = converged(case.path, overrides)
    by_name = {value.name: value for value in found.values}
    names = [probe.name for probe in found.factors.problem.scenario.probes][: len(exact)]
    for name, answer in zip(names, exact, strict=True):
        value = by_name[name]
        stated = value.total if value.total is not None else np.inf
        yield Sample(
            f"{case.name} {method} {name}", stated, abs(value.value - answer), FLOOR * case.range, value.space.verdict
        )


def of_cases(names: Sequence[str] = ()) -> Iterator[Sample]:
    """The values of all cases with exact answers, with each of their methods."""
    for case in CASES:
        if case.name.startswith(LEFT_OUT) or (names and case.name not in names):
            continue
        steady = load(case.path).steady
        methods = (None,) if steady else ("euler",) if case.euler_only else ("euler", "stabilized", "implicit")
        for method in methods:
            try:
                yield from samples_of_case(case, method)
            except Exception as error:
                print(f"{case.name} {method}: {type(error).__name__}: {error}", file=sys.stderr)


def report(samples: Sequence[Sample]) -> str:
    """The statistics of some values."""
    holds = sum(sample.holds for sample in samples)
    ratios = [sample.ratio for sample in samples if sample.ratio is not None]
    share = holds / max(len(samples), 1)
    deviation = (share * (1.0 - share) / max(len(samples), 1)) ** 0.5
    return (
        f"{holds} of {len(samples)} values within the stated error: {100 * share:.1f} % ± {196 * deviation:.1f} %; "
        f"stated over true error, median of {len(ratios)}: {np.median(ratios) if ratios else np.nan:.2f}"
    )


def random_body(number: int, curved: bool) -> dict[str, Any]:
    """A body of several materials with a heat source, steady or in time; its planes lie on faces of cells."""
    draw = np.random.default_rng([number, curved])
    cells = np.array([16, 16, 16]) if curved else draw.choice([8, 10, 12, 16], 3)
    size = cells * draw.choice([1e-3, 2e-3])
    spacing = size / cells
    multiple = 1 if curved else int(draw.choice([1, 2, 4]))

    def planes(axis: int) -> list[float]:
        step = multiple if cells[axis] % multiple == 0 else 2
        low, high = sorted(draw.choice(cells[axis] // step + 1, 2, replace=False) * step)
        return [float(low * spacing[axis]), float(high * spacing[axis])]

    def shape() -> dict[str, Any]:
        if curved:
            middle, radius = size * (0.3 + 0.4 * draw.random(3)), float(size[0] * (0.15 + 0.15 * draw.random()))
            if draw.random() < 0.5:
                return {"sphere": {"centre": middle.tolist(), "radius": radius}}
            ends = [[*middle[:2].tolist(), 0.0], [*middle[:2].tolist(), float(size[2])]]
            return {"cylinder": {"from": ends[0], "to": ends[1], "radius": radius}}
        corners = [planes(axis) for axis in range(3)]
        return {"box": {"min": [low for low, _ in corners], "max": [high for _, high in corners]}}

    regions = [
        {"name": f"r{n}", "material": f"m{draw.integers(3)}", **shape()} for n in reversed(range(1 if curved else 2))
    ]
    steady = draw.random() < 0.5
    slowest = float(size.max() ** 2 / 1e-5)
    points = (size * (0.1 + 0.8 * draw.random((4, 3)))).tolist()
    return {
        "domain": {"size": size.tolist(), "cells": cells.tolist(), "material": "m0"},
        "materials": {
            f"m{n}": {
                "conductivity": float(10.0 ** draw.uniform(0.5, 2.5)),
                "density": 5000.0,
                "specific_heat": float(draw.uniform(300.0, 900.0)),
            }
            for n in range(3)
        },
        "regions": regions,
        "sources": [{"name": "heat", "region": "r0", "power": float(draw.uniform(1.0, 20.0))}],
        "initial": {"temperature": 300.0},
        "boundaries": {
            "default": {"type": "convection", "coefficient": float(10.0 ** draw.uniform(1.0, 3.5)), "ambient": 290.0},
            "x_min": {"type": "temperature", "value": float(draw.uniform(300.0, 350.0))},
        },
        "time": {"method": "steady"} if steady else {"end": slowest * float(draw.uniform(0.02, 0.3))},
        "probes": [{"name": f"p{n}", "point": point} for n, point in enumerate(points)],
    }


def of_body(number: int, curved: bool) -> Iterator[Sample]:
    """The values of a random body, compared with those of a grid of four times the cells along each axis."""
    with TemporaryDirectory() as folder:
        body = random_body(number, curved)
        path = Path(folder) / "body.toml"
        path.write_text(tomli_w.dumps(body))
        found = converged(path, [])
        finer = [4 * n for n in body["domain"]["cells"]]
        document = {**found.factors.document, "domain": {**body["domain"], "cells": finer}}
        del document["study"]
        path.write_text(tomli_w.dumps(document))
        Simulation.from_scenario(path, [], output=Path(folder) / "finer").run()
        exact = read_values(Path(folder) / "finer")
    largest = max(abs(value) for (_, unit), value in exact.items() if unit == "W")
    for value in found.values:
        key = value.name, value.unit
        if key in exact:
            floor = FLOOR * (found.range if value.unit == "K" else largest)
            stated = np.inf if value.total is None else value.total
            name = f"{'curved ' * curved}{number} {value.name}"
            yield Sample(name, stated, abs(value.value - exact[key]), floor, value.space.verdict)


def show(samples: Iterable[Sample]) -> list[Sample]:
    """Print samples as they come, and return them."""
    gathered = []
    for each in samples:
        gathered.append(each)
        mark = "" if each.holds else "   OUTSIDE"
        print(
            f"{each.name:45s} stated {each.stated:.3g} true {each.true:.3g} floor {each.floor:.3g} "
            f"{each.verdict}{mark}",
            flush=True,
        )
    return gathered


if __name__ == "__main__":
    if sys.argv[1] == "cases":
        print(report(show(of_cases(sys.argv[2:]))))
    else:
        curved, count = sys.argv[1] == "curved", int(sys.argv[2])
        print(report(show(sample for number in range(count) for sample in of_body(number, curved))))
