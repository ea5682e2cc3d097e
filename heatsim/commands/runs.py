"""`heatsim run` and `resume`."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from heatsim.commands.options import (
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
    requested_ranks,
)
from heatsim.commands.terminal import show_lines, show_table, waiting_for, warn
from heatsim.errors import HeatsimError, Interrupted, RanksError
from heatsim.outputs import output_folder
from heatsim.parallel import environment

if TYPE_CHECKING:
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
    target = output_folder(scenario, output)
    with ExitStack() as stack:
        from heatsim.scenario import load

        with waiting_for("reading the scenario", not quiet):
            read = load(scenario, changes)
        count = requested_ranks(ranks, read)
        if count > 1:
            from heatsim.commands.ranks import start_ranks

            arguments = ["run", str(scenario), "--output", str(target), *(f"--set={change}" for change in changes)]
            flags = [*["--overwrite"] * overwrite, *["--quiet"] * quiet, *["--verbose"] * verbose]
            return start_ranks(count, [*arguments, *flags], target)
        draw = _prepare_pictures(stack, read, target)
        from heatsim.parallel import job
        from heatsim.run.simulation import Simulation

        team = job.join()
        with waiting_for("preparing the run", not quiet and team.first):
            simulation = Simulation.from_model(read, target, overwrite=overwrite, team=team, progress=not quiet)
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
    team = job.join()
    with waiting_for("reading the checkpoint", not quiet and team.first):
        simulation = Simulation.resume(folder, team=team)
    if simulation.complete:
        if not quiet:
            show_lines(f"{folder}: the run is complete; nothing to resume{_missing_pictures(simulation)}")
        return 0
    with ExitStack() as stack:
        draw = _prepare_pictures(stack, simulation.plan.problem.scenario, simulation.folder)
        return _run(simulation, draw, quiet, verbose)


def _missing_pictures(simulation: "Simulation") -> str:
    """How to draw the pictures of a complete run that was interrupted before its report; else an empty text."""
    from heatsim.storage.disk import render_command
    from heatsim.storage.folder import REPORT

    if not simulation.plan.problem.scenario.output.figures or (simulation.folder / REPORT).exists():
        return ""
    return f"; draw its pictures with `{render_command(simulation.folder)}`"


def _prepare_pictures(stack: ExitStack, scenario: "ScenarioModel", folder: Path) -> Callable[[], object]:
    """Return what draws the pictures after the run. For a small grid it gets ready while the run calculates.

    Args:
        stack: ends what gets ready.
        scenario: the scenario.
        folder: the output folder.
    """
    if not scenario.output.figures or not environment.is_first():
        return lambda: None
    from heatsim.commands.pictures import BackgroundRenderer, draw_all

    renderer = BackgroundRenderer.of(folder, scenario.grid.cells, scenario.output.fields)
    if renderer is None:
        return lambda: draw_all(folder)
    return stack.enter_context(renderer).render


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
        try:
            with waiting_for("drawing the pictures", not quiet):
                _show(simulation.folder, draw)
        except KeyboardInterrupt:
            from heatsim.storage.disk import render_command

            raise Interrupted(
                f"the run in {simulation.folder} is complete, but its pictures are not; draw them with "
                f"`{render_command(simulation.folder)}`"
            ) from None
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
