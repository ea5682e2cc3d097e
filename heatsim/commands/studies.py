"""`heatsim study`."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heatsim.commands.options import (
    Cluster,
    Device,
    Kernel,
    Overrides,
    Precision,
    Quiet,
    Verbose,
    Workers,
    all_overrides,
)
from heatsim.commands.terminal import show_table, waiting_for, warn
from heatsim.counts import counted
from heatsim.errors import RunError


def study(
    scenario: Annotated[Path, Parameter(help="A TOML file with a table [study].")],
    /,
    *,
    overrides: Overrides = (),
    output: Annotated[Path | None, Parameter(help="Output folder. Default: outputs/NAME of the scenario.")] = None,
    workers: Workers = None,
    cluster: Cluster = None,
    extend: Annotated[
        bool, Parameter(help="Add points to the study in the folder, or drop points without a run.", negative="")
    ] = False,
    overwrite: Annotated[bool, Parameter(help="Replace a different study in the folder.", negative="")] = False,
    device: Device = None,
    kernel: Kernel = None,
    precision: Precision = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Run a parameter study; repeat the command to finish it."""
    settings = all_overrides(overrides, device, kernel, precision)
    with ExitStack() as stack:
        early = None
        if cluster is None:
            # Workers start while this process imports its modules and reads the study.
            from heatsim.study.early_workers import EarlyWorkers

            early = EarlyWorkers.started(scenario, settings, output, workers)
            stack.callback(early.close)
        from heatsim.study import Study

        with waiting_for("checking the runs", not quiet):
            planned = Study.from_scenario(
                scenario,
                settings,
                output=output,
                workers=workers,
                cluster=cluster,
                extend=extend,
                overwrite=overwrite,
                early=early,
            )
        for hint in planned.hints:
            warn(hint)
        planned.run(progress=not quiet)
    if not quiet:
        show_table(planned.summary(verbose))
    if planned.not_done:
        count = counted(len(planned.definition.points), "run")
        raise RunError(f"{planned.not_done} of {count} failed; results.csv in {planned.folder} has the reasons")
    return 0
