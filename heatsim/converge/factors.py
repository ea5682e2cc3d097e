"""The runs that show how large the errors of a scenario are: each differs from the given run in one factor."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from heatsim.errors import ScenarioError
from heatsim.physics.estimates.other_grids import Cells, GridChoice
from heatsim.physics.problem import HeatProblem
from heatsim.run.error.refinement import refuse_accuracy
from heatsim.run.error.values import MEAN_OF
from heatsim.scenario import ADAPTIVE, parse
from heatsim.scenario.documents.load import read_with_overrides
from heatsim.scenario.tables.time import KEYS_OF_EULER
from heatsim.solver.field.cell_parts import conducting_regions
from heatsim.storage.study_hint import CONVERGENCE_KEYS
from heatsim.study.definition import Definition
from heatsim.study.points import Point

CELLS, TIME, PRECISION = CONVERGENCE_KEYS
_FLOAT64 = "float64"
_SMALLER = 10.0  # how many times smaller the tolerance is


@dataclass(frozen=True)
class Factors:
    """A scenario, and what its runs may differ in.

    Attributes:
        path: the scenario's file.
        document: its tables, with overrides, a probe for the mean of each region, and without fields and pictures.
        problem: the given run.
        choice: the grids on which it can be computed.
        draws: whether a picture and a report are wanted.
    """

    path: Path
    document: Mapping[str, Any]
    problem: HeatProblem
    choice: GridChoice
    draws: bool

    @classmethod
    def read(cls, path: Path, overrides: Sequence[str]) -> "Factors":
        """Read a scenario; the parameters of a table [study] do not count, its responses do.

        Raises:
            ScenarioError: lists every mistake.
            InputError: the scenario has no other grid.
        """
        document, _, mistakes = read_with_overrides(path, overrides)
        if mistakes:
            raise ScenarioError(path, mistakes)
        table = document.pop("study", None)
        responses = table.get("responses", []) if isinstance(table, Mapping) else []
        scenario = parse(document, path)
        refuse_accuracy(scenario, "converge compares grids with the given cells")
        choice = GridChoice.of(scenario)
        problem = HeatProblem.from_scenario(parse(document, path))
        document = _with_means(document, problem)
        draws = problem.scenario.output.figures
        document["output"] = {**document.get("output", {}), "fields": False, "figures": False, "error": "none"}
        document["study"] = {"method": "zip", "responses": responses}
        return cls(path, document, problem, choice, draws)

    @property
    def method(self) -> str:
        """The method in time of all runs."""
        return self.problem.scenario.time.method

    @property
    def knows_tolerance(self) -> bool:
        """Whether the tolerance of the given run is known before it has run."""
        return not self._has_tolerance or self.problem.scenario.time.tolerance is not None

    @property
    def _has_tolerance(self) -> bool:
        return self.method in ADAPTIVE or self.problem.scenario.steady

    @property
    def given(self) -> Point:
        """The point of the given run."""
        return self._point(self.choice.given, dict(self.document["time"]), self._precision)

    @property
    def double(self) -> Point:
        """The point of the run in float64."""
        return self._point(self.choice.given, self._time(), _FLOAT64)

    def on_grid(self, cells: Cells) -> Point:
        """The point of a run on another grid."""
        return self._point(cells, self._time(self.choice.ratio(cells)), self._precision)

    def smaller_steps(self, tolerance: float | None) -> Point:
        """The point of the run in float64 with a tenth of the tolerance, or half of the steps of "euler".

        Float32 may hide a small tolerance.

        Args:
            tolerance: of the given run in K; None for "euler".
        """
        time = self._time()
        if tolerance is not None:
            time["tolerance"] = tolerance / _SMALLER
        elif "dt" in time and time["dt"] != "auto":
            time["dt"] = self._dt / 2.0
        else:
            time["safety"] = self.problem.scenario.time.safety / 2.0
        return self._point(self.choice.given, time, _FLOAT64)

    @property
    def error_of_steps(self) -> float:
        """The error in time of the given run, in parts of its difference from that with smaller steps."""
        return 1.0 / (1.0 - 1.0 / _SMALLER) if self._has_tolerance else 2.0

    def definition(self, points: Sequence[Point]) -> Definition:
        """The study of some runs."""
        table = {
            **self.document["study"],
            "parameters": {key: [point[key] for point in points] for key in self.given},
        }
        return Definition(self.path, {**self.document, "study": table}, tuple(points))

    @property
    def _precision(self) -> str:
        return str(self.problem.scenario.solver.precision)

    @property
    def _dt(self) -> float:
        dt = self.problem.scenario.time.dt
        assert isinstance(dt, float), "the scenario sets it"
        return dt

    def _time(self, ratio: float = 1.0) -> dict[str, Any]:
        """The table [time] of a run with the method of the given one, on a grid with a ratio of spacings."""
        time = {**self.document["time"], "method": self.method}
        if self.method == "euler":
            time.pop("tolerance", None)
            if time.get("dt", "auto") != "auto" and ratio < 1.0:
                time["dt"] = self._dt / ceil(ratio**-2 * (1.0 - 1e-9))
        else:
            for key in KEYS_OF_EULER:
                time.pop(key, None)
        return time

    def _point(self, cells: Cells, time: Mapping[str, Any], precision: str) -> Point:
        tables = {
            f"domain.{name}": (self._table(name) if cells == self.choice.given else None) or {"widths": widths}
            for name, widths in self.choice.widths(cells).items()
        }
        return {CELLS: list(cells), TIME: dict(time), PRECISION: precision, **tables}

    def _table(self, axis: str) -> dict[str, Any] | None:
        """The cells along an axis as the document has them."""
        table = self.document["domain"].get(axis)
        return dict(table) if isinstance(table, Mapping) else None


def _with_means(document: Mapping[str, Any], problem: HeatProblem) -> dict[str, Any]:
    """The document with a probe for the mean of each region that conducts and has cells."""
    probes = copy.deepcopy(list(document.get("probes", [])))
    taken = {probe.name for probe in problem.scenario.probes}
    for name in conducting_regions(problem):
        if MEAN_OF + name not in taken:
            probes.append({"name": MEAN_OF + name, "region": name, "statistic": "mean"})
    return {**document, "probes": probes} if probes else dict(document)
