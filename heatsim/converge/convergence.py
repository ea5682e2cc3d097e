"""Running what shows the errors of a scenario: a small study of up to five runs, and more for finer grids."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

from heatsim.converge.estimate import ORDER, SMOOTH
from heatsim.converge.factors import Factors
from heatsim.converge.result import FoundErrors, evaluate, run_of, tolerance_of
from heatsim.counts import duration, plain
from heatsim.errors import CapacityError, FolderError, RunError, StorageError
from heatsim.physics.estimates.other_grids import GROWTH, LEAST_RATIO, Cells
from heatsim.physics.problem import HeatProblem
from heatsim.storage.study_hint import STUDY
from heatsim.study import folder as study_folder
from heatsim.study.definition import derive
from heatsim.study.points import Point, identity
from heatsim.study.study import Study

# Cells of a finer grid where the user asks for an error, for each backend, and the longest time of its run.
_MOST_CELLS_REFINED = {"cpu": 2**26, "cuda": 2**31}
_LONGEST = 600.0  # s
# A finer grid for an error: how much finer than expected, and at most.
_MARGIN, _MOST_FINER = 1.1, 2.0

# Does the runs of some points in a folder; may add points to the study there.
Runner = Callable[[Factors, Sequence[Point], Path], None]


def converge(factors: Factors, folder: Path, backend: str, run: Runner, until: float | None = None) -> FoundErrors:
    """Do the runs that show the errors of a scenario; those that are done in the folder stay.

    Args:
        factors: the scenario.
        folder: of the study.
        backend: "cpu" or "cuda".
        run: does the runs.
        until: refine the grid until all temperatures are within this error in K. The values are then those of the
            finest grid.

    Raises:
        RunError: the given run has failed.
    """
    grids = factors.choice.usual(backend, factors.problem.scenario.steady)
    while True:
        there = _points_there(folder, factors, first_points(factors, grids))
        try:
            run(factors, there, folder)
            break
        except CapacityError:
            if grids[0] == factors.choice.given:
                raise
            grids = grids[1:]  # without the finest
    definition = factors.definition(there)
    given = run_of(folder, definition, factors.given)
    if given is None:
        raise RunError(f"{folder}: the given run has failed; results.csv there has the reason")
    steps = factors.smaller_steps(tolerance_of(factors, given))
    if identity(steps) not in map(identity, there):
        there = [*there, steps]
        run(factors, there, folder)

    def look(answer: Cells) -> FoundErrors:
        return evaluate(factors, factors.definition(there), folder, grids[:3], answer)

    found = look(factors.choice.given)
    while until is not None and _exceeds(found, until):
        found = look(grids[0])  # the finest grid may have a smaller error than the given one
        if not _exceeds(found, until):
            break
        need = what_it_takes(found, until, backend)
        if need.cells is None:
            return replace(found, unmet=need.text)
        points = [*there, factors.on_grid(need.cells)]
        there = list({identity(point): point for point in points}.values())
        try:
            run(factors, there, folder)
        except CapacityError as error:
            return replace(found, unmet=f"{need.text}, which does not fit: {error}")
        if run_of(folder, factors.definition(there), factors.on_grid(need.cells)) is None:
            return replace(found, unmet=f"the run with {_times(need.cells)} cells failed; {need.text}")
        grids = [need.cells, *grids]
    return found


def _exceeds(found: FoundErrors, until: float) -> bool:
    return any(value.total is None or value.total > until for value in found.temperatures)


@dataclass(frozen=True)
class Remedy:
    """What an error takes.

    Attributes:
        text: in words.
        cells: the next grid to compute; None if it would take too long, or would not help.
    """

    text: str
    cells: Cells | None = None


def what_it_takes(found: FoundErrors, until: float, backend: str) -> Remedy:
    """What it takes to have all temperatures of the finest grid within an error in K."""
    factors, choice = found.factors, found.factors.choice
    unknown = [value for value in found.temperatures if value.total is None]
    if unknown:
        return Remedy(f'the error of "{unknown[0].name}" is not known')
    others = max(found.temperatures, key=lambda value: (value.time or 0.0) + (value.rounding or 0.0))
    left = until - (others.time or 0.0) - (others.rounding or 0.0)
    if left <= 0.0:
        remedy = "float64" if (others.rounding or 0.0) > (others.time or 0.0) else "a smaller time.tolerance or time.dt"
        return Remedy(f'"{others.name}" alone errs more in time and by rounding; it takes {remedy}')
    need = 1.0
    for value in found.temperatures:
        order = min(max(value.space.order or 1.0, 1.0), ORDER) if value.space.verdict == SMOOTH else 1.0
        room = until - (value.time or 0.0) - (value.rounding or 0.0)
        need = max(need, (value.space.finest / room) ** (1.0 / order))
    finest = choice.ratio(found.grids[0])
    cells = prod(choice.given) * (need / finest) ** choice.dimensions
    seconds = found.seconds * need ** (choice.dimensions + GROWTH[factors.method])
    text = f"it takes about {plain(cells, 2)} cells and {duration(seconds).removeprefix('about ')} for that run"
    target = finest / min(need * _MARGIN, _MOST_FINER)
    grid = next((cells for cells in (choice.near(target * 0.97**n) for n in range(24)) if _finer(cells, found)), None)
    if grid is None or prod(grid) > _MOST_CELLS_REFINED[backend]:
        return Remedy(text)
    seconds = found.seconds * (finest / choice.ratio(grid)) ** (choice.dimensions + GROWTH[factors.method])
    return Remedy(text, grid if seconds <= _LONGEST else None)


def _finer(cells: Cells | None, found: FoundErrors) -> bool:
    """Whether a grid is finer than the finest by a ratio that shows an order."""
    ratio = found.factors.choice.ratio
    return cells is not None and ratio(found.grids[0]) / ratio(cells) >= LEAST_RATIO


def _times(cells: Cells) -> str:
    return " × ".join(map(str, cells))


def first_points(factors: Factors, grids: Sequence[Cells]) -> list[Point]:
    """The points of the runs that can be given before any has run, the longest first."""
    others = [cells for cells in grids if cells != factors.choice.given]
    points = [factors.on_grid(cells) for cells in others if factors.choice.ratio(cells) < 1.0]
    if factors.knows_tolerance:
        points.append(factors.smaller_steps(factors.problem.scenario.time.tolerance))
    points += [factors.double, factors.given]
    points += [factors.on_grid(cells) for cells in others if factors.choice.ratio(cells) > 1.0]
    return list({identity(point): point for point in points}.values())


def with_study(workers: int | None, cluster: str | None, overwrite: bool, progress: bool) -> Runner:
    """Runs that are the runs of a study; arguments as for :class:`Study`."""
    first = True

    def run(factors: Factors, points: Sequence[Point], folder: Path) -> None:
        nonlocal first
        definition, problems = derive(factors.definition(points), elsewhere=cluster is not None)
        some = workers if cluster is not None else workers or _workers(problems.values())
        study = Study.of(definition, problems, folder, some, cluster, extend=True, overwrite=overwrite and first)
        study.run(progress=progress)
        first = False

    return run


def _workers(problems: Iterable[HeatProblem]) -> int | None:
    """One worker with all cores if one run has most of all cells; else None, the default of a study."""
    cells = [problem.grid.cell_count for problem in problems]
    return 1 if 2 * max(cells) > sum(cells) else None


def _points_there(folder: Path, factors: Factors, points: Sequence[Point]) -> list[Point]:
    """The points of the study in a folder, if it began with these points; else these."""
    if not (folder / STUDY).is_file():
        return list(points)
    # Otherwise the study refuses the folder, and says why.
    with suppress(FolderError, StorageError):
        there = study_folder.read_study(folder).points
        ids = {identity(point) for point in points}
        if ids <= {identity(point) for point in there}:
            return list(there)
    return list(points)
