"""`heatsim converge`."""

from contextlib import suppress
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
    Scenario,
    Workers,
    all_overrides,
)
from heatsim.commands.terminal import show_table, warn
from heatsim.errors import InputError, RunError


def converge(
    scenario: Scenario,
    /,
    *,
    until: Annotated[
        str | None,
        Parameter(help='Refine until all temperatures are within this error, such as "0.5 K".', show_default=False),
    ] = None,
    overrides: Overrides = (),
    output: Annotated[
        Path | None, Parameter(help="Output folder. Default: outputs/NAME_converge for the scenario NAME.")
    ] = None,
    workers: Workers = None,
    cluster: Cluster = None,
    overwrite: Annotated[bool, Parameter(help="Replace other runs in the folder.", negative="")] = False,
    device: Device = None,
    kernel: Kernel = None,
    precision: Precision = None,
    quiet: Quiet = False,
) -> int:
    """Find the error of a scenario's results: run it on other grids, with smaller steps and in float64.

    Repeat the command to finish it.
    """
    from heatsim.converge.convergence import converge as find_errors
    from heatsim.converge.convergence import with_study
    from heatsim.converge.factors import Factors
    from heatsim.converge.report import summarise, write
    from heatsim.device import choose
    from heatsim.outputs import output_folder

    most = _error(until)
    target = output_folder(scenario.with_name(f"{scenario.stem}_converge{scenario.suffix}"), output)
    factors = Factors.read(scenario, all_overrides(overrides, device, kernel, precision))
    for hint in factors.problem.scenario.hints:
        warn(hint)
    backend = "cpu" if cluster is not None else choose(factors.problem.scenario.solver.device).backend
    runner = with_study(workers, cluster, overwrite, progress=not quiet)
    found = find_errors(factors, target, backend, runner, most)
    write(found)
    if not quiet:
        show_table(summarise(found))
    if found.unmet:
        raise RunError(f"--until {until}: {found.unmet}")
    if found.failed:
        raise RunError(f"{len(found.failed)} of {len(found.definition.points)} runs failed; {target} has the reasons")
    return 0


def _error(text: str | None) -> float | None:
    """An error in K from the command line.

    Raises:
        InputError: the text is no temperature difference above 0.
    """
    from heatsim.scenario.tables.fields import read_tolerance

    if text is None:
        return None
    number: object = text
    with suppress(ValueError):
        number = float(text)
    try:
        return read_tolerance(number)
    except ValueError as problem:
        raise InputError(f"--until: {problem}") from None
