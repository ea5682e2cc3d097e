"""The values of all runs side by side, and their errors in space, in time and by rounding."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite
from pathlib import Path

from heatsim.converge.estimate import SpaceError, space_error
from heatsim.converge.factors import Factors
from heatsim.physics.estimates.other_grids import Cells
from heatsim.run.error.values import OF_BODY, Values, read_values, temperature_range
from heatsim.storage.run_tables import WATT, read_probes
from heatsim.storage.summary_file import read_summary
from heatsim.study import folder as study_folder
from heatsim.study.definition import Definition
from heatsim.study.points import Point, identity
from heatsim.study.results import response_values
from heatsim.temperature_units import KELVIN

# The safety factor of the error in time.
_SAFE = 1.25
# A value that differs less between the grids, in parts of the range, does not depend on them.
_NOTHING = 1e-9


@dataclass(frozen=True)
class EstimatedValue:
    """A value with its error.

    Attributes:
        name: of the value.
        unit: K for temperatures, whose errors are differences in K.
        on_grids: the values on the grids, the finest first.
        value: the answer: that of the given run, or of the finest grid.
        space: its error in space.
        time: ± in time; None if the run that shows it has failed.
        rounding: ± by rounding; None if the run that shows it has failed.
    """

    name: str
    unit: str
    on_grids: tuple[float, ...]
    value: float
    space: SpaceError
    time: float | None
    rounding: float | None

    @property
    def parts(self) -> dict[str, float | None]:
        """The errors by their cause; None for those that are not known."""
        space = self.space.error if isfinite(self.space.error) else None
        return {"space": space, "time": self.time, "rounding": self.rounding}

    @property
    def total(self) -> float | None:
        """The sum of the errors; None if one is not known."""
        known = [part for part in self.parts.values() if part is not None]
        return sum(known) if len(known) == len(self.parts) else None

    @property
    def largest(self) -> str:
        """The cause of the largest error."""
        return max(self.parts, key=lambda cause: self.parts[cause] or 0.0)


@dataclass(frozen=True)
class FoundErrors:
    """What the runs of a scenario show.

    Attributes:
        factors: the scenario.
        definition: the study of its runs.
        folder: of the study.
        grids: the cells of the grids, the finest first.
        answer: the number of the grid whose values are the answer.
        values: with their errors.
        range: of the temperatures of the given run in K.
        tolerance: of the given run in K; None for "euler".
        seconds: that the run on the finest grid took to step or to solve.
        failed: the runs that failed, and why.
        unmet: why the error that the user asked for is not met, and what it takes; "" if it is met.
    """

    factors: Factors
    definition: Definition
    folder: Path
    grids: tuple[Cells, ...]
    answer: int
    values: tuple[EstimatedValue, ...]
    range: float
    tolerance: float | None
    seconds: float
    failed: Mapping[str, str] = field(default_factory=dict)
    unmet: str = ""

    @property
    def temperatures(self) -> list[EstimatedValue]:
        """The temperatures of probes and responses; without any, those of the body."""
        found = [value for value in self.values if value.unit == KELVIN.name]
        asked = [value for value in found if value.name not in OF_BODY]
        return asked or found

    @property
    def worst(self) -> EstimatedValue | None:
        """The temperature with the largest error; None without one that is known."""
        found = [value for value in self.temperatures if value.total is not None]
        return max(found, key=lambda value: value.total or 0.0, default=None)


def run_of(folder: Path, definition: Definition, point: Point) -> Path | None:
    """The folder of the finished run of a point in the folder of a study; None if there is none."""
    ids = [identity(each) for each in definition.points]
    if identity(point) not in ids:
        return None
    path = study_folder.run_path(folder, ids.index(identity(point)) + 1)
    return path if study_folder.is_done(path) else None


def tolerance_of(factors: Factors, folder: Path) -> float | None:
    """The tolerance in K that the given run has kept, in its folder; None for "euler"."""
    return None if factors.method == "euler" else float(read_summary(folder)["tolerance"])


def evaluate(
    factors: Factors, definition: Definition, folder: Path, grids: Sequence[Cells], answer: Cells
) -> FoundErrors:
    """What the finished runs in the folder of a study show, the given run among them.

    Args:
        factors: the scenario.
        definition: the study.
        folder: of the study.
        grids: the cells of the grids.
        answer: the grid whose values are the answer.
    """
    responses = definition.table.responses

    def values_of(point: Point) -> Values:
        path = run_of(folder, definition, point)
        if path is None:
            return {}
        return {**read_values(path, path != given_path), **response_values(read_probes(path), responses)}

    given_path = run_of(folder, definition, factors.given)
    assert given_path is not None, "the given run is done"
    given, double = values_of(factors.given), values_of(factors.double)
    tolerance = tolerance_of(factors, given_path)
    smaller = values_of(factors.smaller_steps(tolerance))
    of_grids = {cells: given if cells == factors.choice.given else values_of(factors.on_grid(cells)) for cells in grids}
    done = [cells for cells in sorted(grids, key=factors.choice.ratio) if of_grids[cells]]
    ratios = [factors.choice.ratio(coarse) / factors.choice.ratio(fine) for fine, coarse in pairwise(done)]
    which = done.index(answer) if answer in done else 0
    width = temperature_range(read_summary(given_path))
    # Heat flows have the range of the largest.
    largest = max((abs(value) for (_, unit), value in given.items() if unit == WATT), default=0.0)
    found = []
    for key, value in given.items():
        name, unit = key
        scale = {KELVIN.name: width, WATT: largest}.get(unit, abs(value))
        rounding = abs(double[key] - value) if key in double else None
        time = None
        if key in double and key in smaller:
            time = _SAFE * factors.error_of_steps * abs(smaller[key] - double[key])
        noise = (rounding or 0.0) + (time or 0.0) + _NOTHING * scale
        on_grids = tuple(of_grids[cells][key] for cells in done if key in of_grids[cells])
        if len(on_grids) < len(done) or not isfinite(value):
            continue
        if unit == WATT and max(on_grids) - min(on_grids) + (time or 0.0) + (rounding or 0.0) <= _NOTHING * scale:
            continue  # a condition or a power sets it
        space = space_error(on_grids, ratios, which, noise)
        found.append(EstimatedValue(name, unit, on_grids, on_grids[which], space, time, rounding))
    finest = None if done[0] == factors.choice.given else run_of(folder, definition, factors.on_grid(done[0]))
    summary = read_summary(finest or given_path)
    seconds = float(summary.get("stepping_time") or summary.get("solving_time") or 0.0)
    failures = (
        (number, study_folder.read_failure(study_folder.run_path(folder, number))) for number in definition.numbers
    )
    failed = {f"run {number}": failure[0] for number, failure in failures if failure is not None}
    return FoundErrors(factors, definition, folder, tuple(done), which, tuple(found), width, tolerance, seconds, failed)
