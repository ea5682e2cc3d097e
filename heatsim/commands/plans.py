"""`heatsim plan`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from heatsim.commands.options import (
    PICTURES,
    Device,
    Kernel,
    Overrides,
    Overwrite,
    Precision,
    Scenario,
    all_overrides,
    requested_ranks,
)
from heatsim.commands.terminal import show_lines, showing_work, waiting_for, warn
from heatsim.errors import InputError
from heatsim.outputs import output_folder
from heatsim.parallel import environment

if TYPE_CHECKING:
    from heatsim.parallel.team import Team
    from heatsim.scenario import Scenario as ScenarioModel


def plan(
    scenario: Scenario,
    /,
    *,
    overrides: Overrides = (),
    output: Annotated[Path | None, Parameter(help="Folder that the run would write to.")] = None,
    picture: Annotated[
        Path | None, Parameter(help="Draw the geometry into this file: .png, .pdf or .svg.", show_default=False)
    ] = None,
    overwrite: Overwrite = False,
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
    from heatsim.storage.single_file import check_replaceable

    if picture is not None:
        check_replaceable(picture, PICTURES, overwrite)
    target = output_folder(scenario, output)
    changes = all_overrides(overrides, device, kernel, precision)
    if "study" in read_document(scenario):
        if ranks is not None:
            raise InputError(f"{scenario}: has a table [study]; --ranks plans single runs only, so leave it out")
        return _plan_study(scenario, changes, target, picture)
    return _plan_run(scenario, changes, target, picture, ranks)


def _plan_study(scenario: Path, changes: list[str], target: Path, picture: Path | None) -> int:
    from heatsim.storage.single_file import refuse_inputs
    from heatsim.study.definition import read
    from heatsim.study.plan_text import describe

    with waiting_for("checking the runs"):
        definition, problems = read(scenario, changes)
    for hint in dict.fromkeys(hint for problem in problems.values() for hint in problem.scenario.hints):
        warn(hint)
    if picture is not None:
        for problem in problems.values():
            refuse_inputs(picture, (scenario, *problem.scenario.input_files))
        _draw_geometry(definition.scenario(1), picture, "run 1")
    show_lines(describe(definition, problems, target))
    return 0


def _plan_run(scenario: Path, changes: list[str], target: Path, picture: Path | None, ranks: str | None) -> int:
    from heatsim.parallel import job
    from heatsim.physics.problem import HeatProblem
    from heatsim.run.capacity import check_room
    from heatsim.run.error.foreseen import foreseen_error
    from heatsim.run.plan import Plan
    from heatsim.run.plan_text import describe
    from heatsim.run.step_times import measure_methods
    from heatsim.scenario import load
    from heatsim.storage.single_file import refuse_inputs

    with waiting_for("reading the scenario"):
        read = load(scenario, changes)
    if environment.is_first():
        for hint in read.hints:
            warn(hint)
    if picture is not None:
        refuse_inputs(picture, (read.path, *read.input_files))
    count = requested_ranks(ranks, read)
    if environment.size() > 1:
        return _plan_in_job(read, target, picture, job.join())
    if count > 1:
        return _plan_ranks(read, picture, count)
    check_room(read)
    if picture is not None:
        _draw_geometry(read, picture)
    with waiting_for("planning the run, and timing its steps"):
        planned = Plan.of(HeatProblem.from_scenario(read))
        measured = measure_methods(planned.problem)
        error = foreseen_error(planned, measured.times)
    show_lines(describe(planned, measured.times, measured.process, error))
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
    from heatsim.render.geometry import picture as geometry
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
    with waiting_for("drawing the geometry"):
        geometry.draw(path, described, in_space)
    show_lines(f"geometry{f' of {run}' if run else ''}: {path}\n")
