"""`heatsim bench`."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from heatsim.commands.bench_methods import bench_methods
from heatsim.commands.options import PICTURES, Overrides, Overwrite, whole_numbers
from heatsim.commands.terminal import show_table
from heatsim.errors import InputError, RunError

_REPEATS = 7

Methods = Annotated[
    bool,
    Parameter(
        help="Instead, run SCENARIO with each method in time, and compare the errors with the times.", negative=""
    ),
]
Patience = Annotated[
    float | None,
    Parameter(help="With --methods: leave out Euler's method if it takes longer than this in s. Default: 120."),
]
Cells = Annotated[
    tuple[int, ...] | None,
    Parameter(
        help="Cells: one number for a cube, or three along x, y, z. Default: 512 on a GPU, 256 on a CPU.",
        converter=whole_numbers,
        consume_multiple=True,
        negative="",
    ),
]
Reductions = Annotated[
    bool,
    Parameter(help="Instead, measure sums over a field on a GPU: the textbook ladder and the fused pass.", negative=""),
]
Primers = Annotated[
    bool,
    Parameter(
        help="Instead, measure small stencils on a GPU: a moving sum, the mean of 3 × 3 pixels, two steps.", negative=""
    ),
]
Emulate = Annotated[
    bool,
    Parameter(
        help="With --primers: check the kernels without a GPU. g++ compiles them; no speeds are printed.", negative=""
    ),
]
Members = Annotated[
    int | None,
    Parameter(
        help="Instead, measure an ensemble of this many grids on a GPU, each of 64³ cells or of --cells.",
        converter=whole_numbers,
    ),
]

Repeats = Annotated[int, Parameter(help="Repeats of each measurement, at least 5.", converter=whole_numbers)]


def bench(
    scenario: Annotated[Path | None, Parameter(help="With --methods: a TOML file.")] = None,
    /,
    *,
    methods: Methods = False,
    overrides: Overrides = (),
    patience: Patience = None,
    cells: Cells = None,
    precision: Annotated[Literal["float32", "float64"] | None, Parameter(help="Measure only this precision.")] = None,
    kernel: Annotated[tuple[str, ...], Parameter(help="Measure only this kernel; may be repeated.", negative="")] = (),
    device: Annotated[Literal["auto", "cuda", "cpu"], Parameter(help="Device to measure.")] = "auto",
    repeats: Repeats = _REPEATS,
    energy: Annotated[bool, Parameter(help="Also sum the heat through the faces.", negative="")] = False,
    reductions: Reductions = False,
    primers: Primers = False,
    emulate: Emulate = False,
    members: Members = None,
    json: Annotated[Path | None, Parameter(help="Write the numbers to this JSON file.")] = None,
    plot: Annotated[
        Path | None,
        Parameter(help="Write a roofline plot, or a work–precision diagram, to this file: .png, .pdf or .svg."),
    ] = None,
    overwrite: Overwrite = False,
) -> int:
    """Verify the kernels against the NumPy oracle, then measure their speed."""
    from heatsim.benchmark import benchmark, benchmark_ensembles, benchmark_primers, benchmark_reductions, table
    from heatsim.benchmark.roofline import draw
    from heatsim.storage.single_file import check_replaceable

    if json is not None:
        check_replaceable(json, (".json",), overwrite)
    if plot is not None:
        check_replaceable(plot, PICTURES, overwrite)
    if methods:
        kernel_only = {"--cells": cells, "--energy": energy, "--reductions": reductions, "--members": members}
        kernel_only |= {"--primers": primers, "--emulate": emulate, "--repeats": repeats != _REPEATS}
        return bench_methods(scenario, overrides, patience, device, kernel, precision, json, plot, kernel_only)
    if scenario is not None or overrides or patience is not None:
        raise InputError("a scenario, --set and --patience are for --methods: add --methods, or leave them out")
    precisions = (precision,) if precision else ("float32", "float64")
    if emulate and (not primers or device != "auto" or repeats != _REPEATS):
        raise InputError("--emulate checks --primers and measures nothing: leave out --device and --repeats")
    if reductions or primers:
        one = "--reductions" if reductions else "--primers"
        if kernel or energy or plot is not None:
            raise InputError(f"{one} measures no kernels of steps: leave out --kernel, --energy and --plot")
        if members is not None or (reductions and primers):
            raise InputError(f"{one} and {'--members' if members is not None else '--primers'} exclude each other")
        if emulate:
            return _emulate(cells, precisions, json)
        bench_these = benchmark_reductions if reductions else benchmark_primers
        describe = table.describe_reductions if reductions else table.describe_primers
        sums = _shown(describe, json, lambda say: bench_these(cells, precisions, device, repeats, say))
        return _exit_code(
            f"{'reductions' if reductions else 'primers'}, which were not timed",
            [(each, each.reductions if reductions else each.kernels) for each in sums],
        )
    if members is not None:
        if plot is not None:
            raise InputError("--members draws no roofline: leave out --plot")
        ensembles = _shown(
            table.describe_ensembles,
            json,
            lambda say: benchmark_ensembles(cells, members, precisions, kernel, device, repeats, energy, say),
        )
        return _exit_code("kernels, which were not timed", [(each, each.kernels) for each in ensembles])
    measurements = _shown(
        table.describe, json, lambda say: benchmark(cells, precisions, kernel, device, repeats, energy, say)
    )
    if plot is not None:
        draw(plot, measurements)
    return _exit_code("kernels, which were not timed", [(each, each.kernels) for each in measurements])


def _emulate(cells: tuple[int, ...] | None, precisions: Sequence[str], json: Path | None) -> int:
    """Check the primers without a GPU."""
    from heatsim.benchmark import check_primers, table

    found = _shown(table.describe_emulated, json, lambda say: check_primers(cells, precisions, say))
    return _exit_code("primers", [(each, each.kernels) for each in found])


def _shown(
    describe: Callable[[Any], Any], json: Path | None, measure: Callable[[Callable[[str], None]], Sequence[Any]]
) -> Sequence[Any]:
    """Measure, print the measurements, and write them to the JSON file if there is one."""
    from rich.console import Console

    from heatsim.benchmark import to_json
    from heatsim.storage.single_file import write_text

    with Console(stderr=True).status("…") as status:
        measurements = measure(status.update)
    for measurement in measurements:
        show_table(describe(measurement))
    if json is not None:
        write_text(json, to_json(measurements))
    return measurements


def _exit_code(what: str, found: Iterable[tuple[Any, Iterable[Any]]]) -> int:
    """Exit code 0 if all results are correct.

    Raises:
        RunError: names the results that are wrong.
    """
    wrong = [f"{one.name} in {measurement.precision}" for measurement, results in found for one in results if one.error]
    if wrong:
        raise RunError(f"wrong {what}: {', '.join(wrong)}")
    return 0
