"""The command line: arguments in, exit code out."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from heatsim.errors import HeatsimError, InputError, RunError
from heatsim.terminal import no_traceback, show_table, usable_streams, warn
from heatsim.version import version

if TYPE_CHECKING:
    from heatsim.simulation import Simulation

app = App(
    name="heatsim",
    help="3-D heat conduction: `heatsim SCENARIO.toml` runs a scenario and writes what it finds to outputs/.",
    help_format="markdown",
    version=version,
    version_flags=["--version"],
)

Overrides = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set", help="Replace one value of the scenario, KEY.PATH=VALUE; can be given many times.", negative=""
    ),
]
Device = Annotated[Literal["auto", "cuda", "cpu"] | None, Parameter(help="Instead of the scenario's solver.device.")]
Kernel = Annotated[str | None, Parameter(help="Instead of solver.kernel; `heatsim kernels` lists them.")]
Precision = Annotated[Literal["float32", "float64"] | None, Parameter(help="Instead of solver.precision.")]
Folder = Annotated[Path, Parameter(help="A folder that a run has written.")]


@app.default
@app.command(name="run")
def run(
    scenario: Annotated[Path, Parameter(help="A TOML file.")],
    /,
    *,
    overrides: Overrides = (),
    output: Annotated[Path | None, Parameter(help="Folder to write to; outputs/<file's stem> if not given.")] = None,
    overwrite: Annotated[bool, Parameter(help="Replace what an unfinished run left there.", negative="")] = False,
    device: Device = None,
    kernel: Kernel = None,
    precision: Precision = None,
    quiet: Annotated[bool, Parameter(help="Print errors and warnings only.", negative="")] = False,
) -> int:
    """Run a scenario (the same as `heatsim SCENARIO`)."""
    _check_is_file(scenario)
    from heatsim.simulation import Simulation

    simulation = Simulation.from_scenario(
        scenario, _all_overrides(overrides, device, kernel, precision), output=output, overwrite=overwrite
    )
    return _run(simulation, quiet)


@app.command
def resume(
    folder: Folder, /, *, quiet: Annotated[bool, Parameter(help="Print errors and warnings only.", negative="")] = False
) -> int:
    """Go on with an interrupted run from its last good checkpoint."""
    from heatsim.simulation import Simulation

    simulation = Simulation.resume(folder)
    if simulation.finished:
        if not quiet:
            print(f"{folder}: the run is complete; there is nothing to go on with")
        return 0
    return _run(simulation, quiet)


@app.command
def plan(
    scenario: Annotated[Path, Parameter(help="A TOML file.")],
    /,
    *,
    overrides: Overrides = (),
    output: Annotated[Path | None, Parameter(help="Folder that the run would write to.")] = None,
    device: Device = None,
    kernel: Kernel = None,
    precision: Precision = None,
) -> int:
    """Show what a run would do and need, without running it: c0…c6, time step, memory, disk, time."""
    _check_is_file(scenario)
    from heatsim.physics.problem import HeatProblem
    from heatsim.plan import Plan, describe
    from heatsim.scenario import load

    problem = HeatProblem.from_scenario(load(scenario, _all_overrides(overrides, device, kernel, precision)))
    planned = Plan.of(problem)
    print(describe(planned))
    planned.check_capacity(output or Path("outputs") / scenario.stem)
    return 0


@app.command
def study(
    scenario: Annotated[Path, Parameter(help="A TOML file with a table [study].")],
    /,
    *,
    overrides: Overrides = (),
    output: Annotated[Path | None, Parameter(help="Folder to write to; outputs/<file's stem> if not given.")] = None,
    workers: Annotated[
        int | None, Parameter(help="Processes on this machine; as many as GPUs, or cores, if not given.")
    ] = None,
    cluster: Annotated[str | None, Parameter(help="Address of a Dask scheduler whose workers do the runs.")] = None,
    extend: Annotated[bool, Parameter(help="Add points to the study that is in the folder.", negative="")] = False,
    overwrite: Annotated[bool, Parameter(help="Replace another study in the folder.", negative="")] = False,
    device: Device = None,
    kernel: Kernel = None,
    precision: Precision = None,
    quiet: Annotated[bool, Parameter(help="Print errors and warnings only.", negative="")] = False,
) -> int:
    """Do all runs of a parameter study; given again, what is missing of them."""
    _check_is_file(scenario)
    from heatsim.study import Study

    planned = Study.from_scenario(
        scenario,
        _all_overrides(overrides, device, kernel, precision),
        output=output,
        workers=workers,
        cluster=cluster,
        extend=extend,
        overwrite=overwrite,
    )
    planned.run(progress=not quiet)
    if not quiet:
        show_table(planned.summary())
    if planned.failed:
        count = len(planned.definition.points)
        raise RunError(f"{planned.failed} of {count} runs failed; results.csv in {planned.folder} says why")
    return 0


@app.command
def render(folder: Folder, /) -> int:
    """Draw pictures from what a run wrote, into its folder figures/."""
    from heatsim.render import render

    for path in render(folder):
        print(path)
    return 0


@app.command
def export(
    folder: Folder,
    /,
    *,
    format: Annotated[
        Literal["vti", "pvd"], Parameter(help="pvd adds an index of all times to the VTI files.")
    ] = "pvd",
) -> int:
    """Write the fields as VTI files, one a time, into the folder export/."""
    from heatsim.export import export

    for path in export(folder, format):
        print(path)
    return 0


@app.command
def kernels() -> int:
    """List the kernels and say which of them this machine can run."""
    from rich.table import Table

    from heatsim.device import choose
    from heatsim.errors import DeviceError
    from heatsim.kernels.catalog import AUTO, KERNELS

    table = Table("kernel", "device", "here", "idea")
    for kernel in KERNELS:
        try:
            here = choose(kernel.backend).name
        except DeviceError:
            here = "no GPU or no CuPy"
        is_auto = kernel.backend == "cpu" and AUTO["cpu"] == kernel.name
        name = f"{kernel.name} (auto)" if is_auto else kernel.name
        table.add_row(name, kernel.backend, here, kernel.idea)
    show_table(table)
    print("On a GPU auto takes what is fastest on the run's grid, tried out at its start.")
    return 0


@app.command
def bench(
    *,
    cells: Annotated[
        tuple[int, ...] | None,
        Parameter(
            help="One number for a cube, or three along x, y, z; 512 on a GPU, 256 on a CPU if not given.",
            consume_multiple=True,
            negative="",
        ),
    ] = None,
    precision: Annotated[Literal["float32", "float64"] | None, Parameter(help="Only this one.")] = None,
    kernel: Annotated[tuple[str, ...], Parameter(help="Only this one; can be given many times.", negative="")] = (),
    device: Annotated[Literal["auto", "cuda", "cpu"], Parameter(help="Where.")] = "auto",
    repeats: Annotated[int, Parameter(help="Of every time, at least 5.")] = 7,
    energy: Annotated[bool, Parameter(help="Sum the heat through the faces too.", negative="")] = False,
    reductions: Annotated[
        bool,
        Parameter(
            help="Measure sums over a field on a GPU instead: the textbook ladder and the fused pass.", negative=""
        ),
    ] = False,
    members: Annotated[
        int | None,
        Parameter(
            help="Measure so many grids, of 64³ cells if --cells is not given, stepped together on a GPU instead."
        ),
    ] = None,
    json: Annotated[Path | None, Parameter(help="File for the numbers.")] = None,
    plot: Annotated[Path | None, Parameter(help="PNG file for a roofline plot.")] = None,
) -> int:
    """Verify the kernels against the NumPy oracle, then measure how fast they are."""
    from rich.console import Console

    from heatsim.benchmark import benchmark, check_writable
    from heatsim.benchmark.roofline import draw
    from heatsim.benchmark.table import describe

    for path in (json, plot):
        if path is not None:
            check_writable(path)
    precisions = (precision,) if precision else ("float32", "float64")
    if reductions:
        if kernel or energy or plot is not None:
            raise InputError("--reductions measures no kernels: --kernel, --energy and --plot do not go with it")
        if members is not None:
            raise InputError("--reductions and --members exclude each other")
        return _bench_reductions(cells, precisions, device, repeats, json)
    if members is not None:
        if plot is not None:
            raise InputError("--members draws no roofline: --plot does not go with it")
        return _bench_ensembles(cells, members, precisions, kernel, device, repeats, energy, json)
    with Console(stderr=True).status("…") as status:
        measurements = benchmark(cells, precisions, kernel, device, repeats, energy, say=status.update)
    _tell(measurements, describe, json)
    if plot is not None:
        draw(plot, measurements)
    return _judge("kernels", [(found, found.kernels) for found in measurements])


def _bench_reductions(
    cells: tuple[int, ...] | None, precisions: Sequence[str], device: str, repeats: int, json: Path | None
) -> int:
    from rich.console import Console

    from heatsim.benchmark import benchmark_reductions
    from heatsim.benchmark.table import describe_reductions

    with Console(stderr=True).status("…") as status:
        measurements = benchmark_reductions(cells, precisions, device, repeats, say=status.update)
    _tell(measurements, describe_reductions, json)
    return _judge("reductions", [(found, found.reductions) for found in measurements])


def _bench_ensembles(
    cells: tuple[int, ...] | None,
    members: int,
    precisions: Sequence[str],
    kernel: Sequence[str],
    device: str,
    repeats: int,
    energy: bool,
    json: Path | None,
) -> int:
    from rich.console import Console

    from heatsim.benchmark import benchmark_ensembles
    from heatsim.benchmark.table import describe_ensembles

    with Console(stderr=True).status("…") as status:
        measurements = benchmark_ensembles(
            cells, members, precisions, kernel, device, repeats, energy, say=status.update
        )
    _tell(measurements, describe_ensembles, json)
    return _judge("kernels", [(found, found.kernels) for found in measurements])


def _tell(measurements: Sequence[Any], describe: Callable[[Any], Any], json: Path | None) -> None:
    """Print what was measured, and write it to a file if there is one."""
    from heatsim.benchmark import to_json

    for measurement in measurements:
        show_table(describe(measurement))
    if json is not None:
        json.write_text(to_json(measurements), encoding="utf-8")


def _judge(what: str, found: Iterable[tuple[Any, Iterable[Any]]]) -> int:
    """The exit code where all results of all measurements are right; else a RunError that names those that are not."""
    wrong = [f"{one.name} in {measurement.precision}" for measurement, results in found for one in results if one.error]
    if wrong:
        raise RunError(f"{what} that are wrong, and were not timed: {', '.join(wrong)}")
    return 0


@app.command
def verify(
    cases: Annotated[tuple[str, ...], Parameter(help="Only these; all if none is given.", negative="")] = (),
    /,
    *,
    device: Device = None,
    kernel: Kernel = None,
    precision: Precision = None,
    json: Annotated[Path | None, Parameter(help="File for the numbers.")] = None,
    show: Annotated[
        bool, Parameter(name="--list", help="Show the cases and their scenario files; run nothing.", negative="")
    ] = False,
) -> int:
    """Run cases with published and exact answers and compare what comes out; nothing is written but the JSON."""
    from heatsim.verification import check_writable, choose, to_json
    from heatsim.verification import verify as run_cases

    if show:
        for case in choose(cases):
            print(f"{case.name:<26}{case.path}")
        return 0
    if json is not None:
        check_writable(json)
    from rich.console import Console

    from heatsim.verification.table import describe

    with Console(stderr=True).status("…") as status:
        verdicts = run_cases(cases, _all_overrides((), device, kernel, precision), say=status.update)
    show_table(describe(verdicts))
    if json is not None:
        json.write_text(to_json(verdicts), encoding="utf-8")
    failed = [verdict.name for verdict in verdicts if not verdict.passed]
    if failed:
        raise RunError(f"{len(failed)} of {len(verdicts)} cases failed: {', '.join(failed)}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 failed, 2 wrong input, 130 interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    with usable_streams():
        return _main(words)


def _main(words: Sequence[str]) -> int:
    try:
        with no_traceback():
            if words and not words[0].startswith("-") and words[0] not in _commands():
                _check_is_file(Path(words[0]))
            code = int(app(words, exit_on_error=False, print_error=False, result_action="return_value") or 0)
            sys.stdout.flush()
            return code
    except HeatsimError as error:
        print(f"heatsim: {error}", file=sys.stderr)
        return error.exit_code
    except UnusedCliTokensError as error:
        unused = " ".join(error.unused_tokens or ())
        print(f'heatsim: "{unused}" is more than is wanted here.\nTry `heatsim --help`.', file=sys.stderr)
        return 2
    except CycloptsError as error:
        print(f"heatsim: {error}\nTry `heatsim --help`.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("heatsim: interrupted", file=sys.stderr)
        return 130


def _run(simulation: "Simulation", quiet: bool) -> int:
    from heatsim.report import summarise

    for warning in simulation.warnings:
        warn(warning)
    told = len(simulation.warnings)
    simulation.run(progress=not quiet)
    for warning in simulation.warnings[told:]:
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


def _commands() -> list[str]:
    return [name for name in app if not name.startswith("-")]


def _check_is_file(scenario: Path) -> None:
    """A word that is neither a file nor a command gets a hint at both."""
    if os.path.exists(scenario) or scenario.suffix:
        return
    from heatsim.scenario import suggest

    commands = _commands()
    near = suggest(str(scenario), commands)
    hint = f'; did you mean the command "{near}"?' if near else ""
    raise InputError(f'"{scenario}" is neither a file nor a command; commands: {", ".join(commands)}{hint}')


def _all_overrides(
    overrides: Sequence[str], device: str | None, kernel: str | None, precision: str | None
) -> list[str]:
    options = {"solver.device": device, "solver.kernel": kernel, "solver.precision": precision}
    return [*overrides, *(f"{key}={value}" for key, value in options.items() if value is not None)]
