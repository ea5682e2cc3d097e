"""`heatsim run`, `resume` and `plan`."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from heatsim.commands.options import (
    PICTURES,
    Device,
    Folder,
    Kernel,
    Overrides,
    Precision,
    Quiet,
    Ranks,
    Scenario,
    Verbose,
    all_overrides,
)
from heatsim.commands.terminal import show_lines, show_table, showing_work, warn
from heatsim.errors import HeatsimError, InputError, RanksError
from heatsim.parallel import environment

if TYPE_CHECKING:
    from heatsim.commands.pictures import BackgroundRenderer
    from heatsim.parallel.team import Team
    from heatsim.run.simulation import Simulation
    from heatsim.scenario import Scenario as ScenarioModel


def run(
    scenario: Scenario,
    /,
    *,
    overrides: Overrides = (),
    output: Annotated[Path | None, Parameter(help="Output folder. Default: outputs/NAME of the scenario.")] = None,
    overwrite: Annotated[
        bool, Parameter(help="Also replace an unfinished run; a finished one is always replaced.", negative="")
    ] = False,
    device: Device = None,
    kernel: Kernel = None,
    precision: Precision = None,
    ranks: Ranks = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Run a scenario (the same as `heatsim SCENARIO`)."""
    changes = all_overrides(overrides, device, kernel, precision)
    target = output or Path("outputs") / scenario.stem
    with ExitStack() as stack:
        early = None
        if ranks is None and environment.is_first():
            from heatsim.commands.pictures import BackgroundRenderer

            # It gets ready while this process imports its modules, reads the scenario and calculates.
            early = BackgroundRenderer.from_preview(scenario, changes, target)
            if early is not None:
                stack.enter_context(early)
        from heatsim.scenario import load

        read = load(scenario, changes)
        count = _ranks_to_start(ranks, read)
        if count > 1:
            from heatsim.commands.ranks import start_ranks

            arguments = ["run", str(scenario), "--output", str(target), *(f"--set={change}" for change in changes)]
            flags = [*["--overwrite"] * overwrite, *["--quiet"] * quiet, *["--verbose"] * verbose]
            return start_ranks(count, [*arguments, *flags], target)
        draw = _prepare_pictures(stack, read, target, early)
        from heatsim.parallel import job
        from heatsim.run.simulation import Simulation

        simulation = Simulation.from_model(read, target, overwrite=overwrite, team=job.join())
        return _run(simulation, draw, quiet, verbose)


def resume(folder: Folder, /, *, ranks: Ranks = None, quiet: Quiet = False, verbose: Verbose = False) -> int:
    """Continue an interrupted run from its last valid checkpoint."""
    from heatsim.parallel import job
    from heatsim.run.simulation import Simulation

    if ranks is not None:
        from heatsim.commands.ranks import ranks_to_start, start_ranks
        from heatsim.scenario import load
        from heatsim.storage.folder import SCENARIO, require_run

        count = ranks_to_start(ranks, load(require_run(folder) / SCENARIO))
        if count > 1:
            flags = {"--quiet": quiet, "--verbose": verbose}
            return start_ranks(
                count, ["resume", str(folder), *(flag for flag, given in flags.items() if given)], folder, resumes=True
            )
    simulation = Simulation.resume(folder, team=job.join())
    if simulation.finished:
        if not quiet:
            print(f"{folder}: the run is complete; nothing to resume")
        return 0
    with ExitStack() as stack:
        draw = _prepare_pictures(stack, simulation.plan.problem.scenario, simulation.folder)
        return _run(simulation, draw, quiet, verbose)


def plan(
    scenario: Scenario,
    /,
    *,
    overrides: Overrides = (),
    output: Annotated[Path | None, Parameter(help="Folder that the run would write to.")] = None,
    picture: Annotated[
        Path | None, Parameter(help="Draw the geometry into this file: .png, .pdf or .svg.", show_default=False)
    ] = None,
    device: Device = None,
    kernel: Kernel = None,
    precision: Precision = None,
    ranks: Annotated[
        str | None,
        Parameter(help="Also show memory, halo exchange and efficiency for N ranks, or `all`.", show_default=False),
    ] = None,
) -> int:
    """Show a run's model, method, memory, disk space, time and numerics, without running it.

    For a scenario with a table [study]: what would run, and how much it needs; a picture shows its first run.
    """
    from heatsim.scenario import read_document
    from heatsim.storage.disk import check_writable

    if picture is not None:
        check_writable(picture, PICTURES)
    target = output or Path("outputs") / scenario.stem
    changes = all_overrides(overrides, device, kernel, precision)
    if "study" in read_document(scenario):
        if ranks is not None:
            raise InputError(f"{scenario}: has a table [study]; --ranks plans single runs only, so leave it out")
        return _plan_study(scenario, changes, target, picture)
    return _plan_run(scenario, changes, target, picture, ranks)


def _plan_study(scenario: Path, changes: list[str], target: Path, picture: Path | None) -> int:
    from heatsim.study.definition import read
    from heatsim.study.plan_text import describe

    definition, problems = read(scenario, changes)
    for hint in dict.fromkeys(hint for problem in problems.values() for hint in problem.scenario.hints):
        warn(hint)
    if picture is not None:
        _draw_geometry(definition.scenario(1), picture, "run 1")
    show_lines(describe(definition, problems, target))
    return 0


def _plan_run(scenario: Path, changes: list[str], target: Path, picture: Path | None, ranks: str | None) -> int:
    from heatsim.parallel import job
    from heatsim.physics.problem import HeatProblem
    from heatsim.run.capacity import check_room
    from heatsim.run.plan import Plan
    from heatsim.run.plan_text import describe
    from heatsim.run.step_times import measure_methods
    from heatsim.scenario import load

    read = load(scenario, changes)
    if environment.is_first():
        for hint in read.hints:
            warn(hint)
    count = _ranks_to_start(ranks, read)
    if environment.size() > 1:
        return _plan_in_job(read, target, picture, job.join())
    if count > 1:
        return _plan_ranks(read, picture, count)
    check_room(read)
    if picture is not None:
        _draw_geometry(read, picture)
    planned = Plan.of(HeatProblem.from_scenario(read))
    show_lines(describe(planned, measure_methods(planned.problem)))
    planned.check_capacity(target)
    return 0


def _plan_ranks(read: "ScenarioModel", picture: Path | None, count: int) -> int:
    """Show the plan of a run on several ranks, which this process plans one after the other."""
    from heatsim.parallel.rehearsal import RehearsedTeam, rehearse
    from heatsim.parallel.team import ALONE
    from heatsim.run.capacity import check_room
    from heatsim.run.plan_ranks import describe_job
    from heatsim.run.ranks import plane_costs
    from heatsim.run.step_times import measure_any_grid

    # A rank in the middle has the most planes.
    check_room(read, elsewhere=True, painter=RehearsedTeam(count // 2, [()] * count))
    if picture is not None:
        _draw_geometry(read, picture)
    with showing_work() as show:
        show("timing steps …")
        times = measure_any_grid(read)
        show("counting what each plane of the grid contains …")
        costs = plane_costs(read, ALONE)
        texts = rehearse(
            count,
            lambda team: describe_job(read, team, costs, times)[1],
            lambda number, rank: show(f"planning rank {rank} of {count}, pass {number} …"),
        )
    show_lines(texts[0])
    return 0


def _plan_in_job(read: "ScenarioModel", target: Path, picture: Path | None, team: "Team") -> int:
    """Show the plan of a run on the ranks of this job."""
    from heatsim.run.capacity import check_room
    from heatsim.run.plan_ranks import describe_job
    from heatsim.run.ranks import plane_costs

    check_room(read, team=team)
    planned, text = describe_job(read, team, plane_costs(read, team))
    if team.first:
        if picture is not None:
            _draw_geometry(read, picture)
        show_lines(text)
    planned.check_capacity(target)
    return 0


def _draw_geometry(scenario: "ScenarioModel", path: Path, run: str = "") -> None:
    """Draw what a scenario describes; ``run``: of a study. Where OpenGL does not work, draw its sections and warn."""
    from heatsim.commands.geometry import geometry_of
    from heatsim.render import geometry
    from heatsim.render.opengl import finish_trial, start_trial

    described = geometry_of(scenario)
    if run:
        described = replace(described, title=f"{described.title}, {run}")
    in_space = min(scenario.grid.cells) > 1
    if in_space:
        try:
            with start_trial() as trial:
                finish_trial(trial)
        except InputError as error:
            warn(f"{path}: only sections: {error}")
            in_space = False
    geometry.draw(path, described, in_space)
    print(f"geometry{f' of {run}' if run else ''}: {path}\n")


def _ranks_to_start(ranks: str | None, scenario: "ScenarioModel") -> int:
    """The number of processes to start; 1 without --ranks, where nothing of it needs to be imported."""
    if ranks is None:
        return 1
    from heatsim.commands.ranks import ranks_to_start

    return ranks_to_start(ranks, scenario)


def _prepare_pictures(
    stack: ExitStack, scenario: "ScenarioModel", folder: Path, early: "BackgroundRenderer | None" = None
) -> Callable[[], object]:
    """Return what draws the pictures after the run. For a small grid it gets ready while the run calculates.

    Args:
        stack: ends what gets ready.
        scenario: the scenario.
        folder: the output folder.
        early: what has been started for the run already.
    """
    if not scenario.output.figures or not environment.is_first():
        return lambda: None
    if early is None:
        from heatsim.commands.pictures import BackgroundRenderer

        early = BackgroundRenderer.of(folder, scenario.grid.cells, scenario.output.fields)
        if early is None:
            from heatsim.render import render

            return lambda: render(folder)
        stack.enter_context(early)
    return early.render


def _run(simulation: "Simulation", draw: Callable[[], object], quiet: bool, verbose: bool) -> int:
    from heatsim.report.tables import summarise

    for warning in simulation.warnings:
        warn(warning)
    shown = len(simulation.warnings)
    simulation.run(progress=not quiet and environment.is_first())
    _end_together(simulation)
    if not environment.is_first():
        return 0
    for warning in simulation.warnings[shown:]:
        warn(warning)
    if simulation.plan.problem.scenario.output.figures:
        _show(simulation.folder, draw)
    if not quiet:
        show_table(summarise(simulation.folder, verbose))
    return 0


def _end_together(simulation: "Simulation") -> None:
    """Wait until all ranks have finished a run. Only rank 0 continues."""
    team = simulation.state.team
    code, text = team.end(0, "")
    if code:
        raise RanksError(text)
    team.leave(0)


def _show(folder: Path, draw: Callable[[], object]) -> None:
    """Draw the pictures of a finished run and write its report; what fails becomes a warning."""
    from heatsim.report.page import write_report
    from heatsim.storage.folder import FIGURES

    try:
        draw()
    except HeatsimError as error:
        warn(f"{'not all' if any((folder / FIGURES).glob('*.png')) else 'no'} pictures: {error}")
    try:
        write_report(folder)
    except HeatsimError as error:
        warn(f"no report: {error}")
