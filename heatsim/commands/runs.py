"""`heatsim run`, `resume` and `plan`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from heatsim.commands.options import Device, Folder, Kernel, Overrides, Precision, Quiet, Scenario, all_overrides
from heatsim.commands.terminal import show_table, warn
from heatsim.errors import HeatsimError

if TYPE_CHECKING:
    from heatsim.run.simulation import Simulation


def run(
    scenario: Scenario,
    /,
    *,
    overrides: Overrides = (),
    output: Annotated[Path | None, Parameter(help="Output folder. Default: outputs/<name of the scenario>.")] = None,
    overwrite: Annotated[bool, Parameter(help="Replace the files of an unfinished run.", negative="")] = False,
    device: Device = None,
    kernel: Kernel = None,
    precision: Precision = None,
    quiet: Quiet = False,
) -> int:
    """Run a scenario (the same as `heatsim SCENARIO`)."""
    from heatsim.run.simulation import Simulation

    simulation = Simulation.from_scenario(
        scenario, all_overrides(overrides, device, kernel, precision), output=output, overwrite=overwrite
    )
    return _run(simulation, quiet)


def resume(folder: Folder, /, *, quiet: Quiet = False) -> int:
    """Continue an interrupted run from its last valid checkpoint."""
    from heatsim.run.simulation import Simulation

    simulation = Simulation.resume(folder)
    if simulation.finished:
        if not quiet:
            print(f"{folder}: the run is complete; nothing to resume")
        return 0
    return _run(simulation, quiet)


def plan(
    scenario: Scenario,
    /,
    *,
    overrides: Overrides = (),
    output: Annotated[Path | None, Parameter(help="Folder that the run would write to.")] = None,
    device: Device = None,
    kernel: Kernel = None,
    precision: Precision = None,
) -> int:
    """Show a run's coefficients c0…c6, time step, memory, disk space and time, without running it."""
    from heatsim.physics.problem import HeatProblem
    from heatsim.run.capacity import check_room
    from heatsim.run.plan import Plan
    from heatsim.run.plan_text import describe
    from heatsim.scenario import load

    read = load(scenario, all_overrides(overrides, device, kernel, precision))
    check_room(read)
    planned = Plan.of(HeatProblem.from_scenario(read))
    print(describe(planned))
    planned.check_capacity(output or Path("outputs") / scenario.stem)
    return 0


def _run(simulation: "Simulation", quiet: bool) -> int:
    from heatsim.report.tables import summarise

    for warning in simulation.warnings:
        warn(warning)
    shown = len(simulation.warnings)
    simulation.run(progress=not quiet)
    for warning in simulation.warnings[shown:]:
        warn(warning)
    scenario = simulation.plan.problem.scenario
    if scenario.output.figures:
        from heatsim.render import render
        from heatsim.storage.folder import FIGURES

        try:
            render(simulation.folder)
        except HeatsimError as error:
            some = any((simulation.folder / FIGURES).glob("*.png"))
            warn(f"{'not all' if some else 'no'} pictures: {error}")
    if not quiet:
        show_table(summarise(simulation.folder))
    return 0
