"""Tables of benchmark results for a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from heatsim.benchmark.ensembles import EnsembleMeasurement
from heatsim.benchmark.method_results import MethodResult, WorkPrecision
from heatsim.benchmark.primers import PrimerMeasurement
from heatsim.benchmark.reductions import ReductionMeasurement
from heatsim.benchmark.results import KernelResult, Measurement, StageTimings
from heatsim.counts import counted

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table


def describe(measurement: Measurement) -> "Group":
    """The kernels, the copy, and the stages of a computation, within 100 columns."""
    from rich.console import Group
    from rich.text import Text

    cells = " × ".join(f"{n:,}" for n in measurement.cells)
    heading = Text.assemble(
        (f"{measurement.device}, {measurement.precision}, {cells} cells", "bold"),
        f"\ncopy {measurement.copy_GBps:,.4g} GB/s (spread {measurement.copy_spread:.1%}); ceiling "
        f"{measurement.ceiling_GCells:,.4g} GCells/s for one step per sweep; "
        f"median of {counted(measurement.repeats, 'repeat')}{', with the energy ledger' if measurement.energy else ''}",
    )
    parts: list[RenderableType] = [heading, _kernel_table(measurement)]
    parts += [Text(f"{result.name} is wrong: {result.error}", "red") for result in measurement.kernels if result.error]
    parts += [Text(f"auto: {_launch(result.launch)}") for result in measurement.kernels if result.launch]
    if measurement.stages is not None:
        parts.append(_stage_table(measurement.stages))
    return Group(*parts)


def describe_reductions(measurement: ReductionMeasurement) -> "Group":
    """The ladder of sums, CuPy's sums and the fused pass, within 80 columns."""
    from rich.console import Group
    from rich.text import Text

    cells = " × ".join(f"{n:,}" for n in measurement.cells)
    heading = Text.assemble(
        (f"{measurement.device}, {measurement.precision}, {cells} cells", "bold"),
        f"\nreading {measurement.read_GBps:,.4g} GB/s (spread {measurement.read_spread:.1%}), copying "
        f"{measurement.copy_GBps:,.4g} GB/s; median of {counted(measurement.repeats, 'repeat')}",
    )
    table = _new_table("reduction", "GB/s", "of\nreading", "ms", "spread", "regs", "spills")
    for result in measurement.reductions:
        numbers = (
            (result.GBps, ",.4g"),
            (result.fraction, ".3f"),
            (result.milliseconds, ",.4g"),
            (result.spread, ".1%"),
            (result.registers, "d"),
            (result.spills, "d"),
        )
        shown = ("failed", *("",) * 5) if result.error else _formatted(numbers)
        table.add_row(result.name, *shown)
    faults = [
        Text(f"{result.name} is wrong: {result.error}", "red") for result in measurement.reductions if result.error
    ]
    return Group(heading, table, *faults)


def describe_primers(measurement: PrimerMeasurement) -> "Group":
    """The kernels of a primer, and the stages of the whole computation, within 80 columns."""
    from rich.console import Group
    from rich.text import Text

    shape, ms = " × ".join(f"{n:,}" for n in measurement.shape), measurement.milliseconds
    heading = Text.assemble(
        (f"{measurement.device}, {measurement.precision}, {measurement.primer}, {shape}", "bold"),
        f"\ngenerate {ms['generate']:,.4g} ms, to the GPU {ms['to the GPU']:,.4g} ms, to the host "
        f"{ms['to the host']:,.4g} ms; on {measurement.cores} CPU threads {ms['CPU']:,.4g} ms",
        f"\ncopy {measurement.copy_GBps:,.4g} GB/s; median of {counted(measurement.repeats, 'repeat')}",
    )
    table = _new_table("kernel", "GB/s", "of the\ncopy", "ms", "spread", "regs", "× CPU", "× CPU,\nwith copies")
    for result in measurement.kernels:
        numbers = (
            (result.GBps, ",.4g"),
            (result.fraction, ".3f"),
            (result.milliseconds, ",.4g"),
            (result.spread, ".1%"),
            (result.registers, "d"),
            (result.over_cpu, ",.3g"),
            (result.over_cpu_with_copies, ",.2g"),
        )
        table.add_row(result.name, *(("failed", *("",) * 6) if result.error else _formatted(numbers)))
    faults = [Text(f"{result.name} is wrong: {result.error}", "red") for result in measurement.kernels if result.error]
    return Group(heading, table, *faults)


def describe_ensembles(measurement: EnsembleMeasurement) -> "Group":
    """The ensemble compared with one large grid, within 80 columns."""
    from rich.console import Group
    from rich.text import Text

    members = counted(measurement.members, "member")
    cells, alone = (" × ".join(f"{n:,}" for n in each) for each in (measurement.cells, measurement.alone_cells))
    heading = Text.assemble(
        (
            f"{measurement.device}, {measurement.precision}, {members} of {cells} cells",
            "bold",
        ),
        f"\ncompared with one grid of {alone} cells; median of {counted(measurement.repeats, 'repeat')}"
        f"{', with the energy ledger' if measurement.energy else ''}",
    )
    table = _new_table("kernel", "members\nGCells/s", "spread", "one grid\nGCells/s", "spread", "of one\ngrid")
    for result in measurement.kernels:
        numbers = (
            (result.GCells, ",.4g"),
            (result.spread, ".1%"),
            (result.alone_GCells, ",.4g"),
            (result.alone_spread, ".1%"),
            (result.fraction, ".3f"),
        )
        shown = ("failed", *("",) * 4) if result.error else _formatted(numbers)
        table.add_row(result.name, *shown)
    faults = [Text(f"{result.name} is wrong: {result.error}", "red") for result in measurement.kernels if result.error]
    launched = [Text(f"auto: {_launch(result.launch)}") for result in measurement.kernels if result.launch]
    return Group(heading, table, *faults, *launched)


def describe_methods(found: WorkPrecision) -> "Group":
    """The methods in time on one scenario, within 80 columns."""
    from rich.console import Group
    from rich.text import Text

    cells, reference = " × ".join(f"{n:,}" for n in found.cells), found.reference
    heading = Text.assemble(
        (f"{found.title}: {cells} cells, {found.end:g} s, range {found.range:.4g} K", "bold"),
        f"\n{found.device}, {found.precision}; reference: float64, tolerance {reference.tolerance:.2g} K, "
        f"{counted(reference.stages or 0, 'stage')} in {reference.seconds:.3g} s",
    )
    table = _new_table("method", "tolerance\nK", "steps", "stages", "rejected", "error\nK", "time\ns", "Mcells/s")
    for result in found.methods:
        table.add_row(result.method, *_formatted([(result.tolerance, ".2g")]), *_numbers_of_method(result))
    skipped = [Text(f"{result.method}: {result.skipped}") for result in found.methods if result.skipped]
    return Group(heading, table, *skipped)


def _numbers_of_method(result: MethodResult) -> tuple[str, ...]:
    if result.cells_per_second is None:
        return ("left out", *("",) * 5)
    formats = (
        (result.steps, ",d"),
        (result.stages, ",d"),
        (result.rejected, ",d"),
        (result.error, ".2g"),
        (result.seconds, ",.3g"),
        (result.cells_per_second / 1e6, ",.4g"),
    )
    return _formatted(formats)


def _new_table(*columns: str) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    return table


def _kernel_table(measurement: Measurement) -> "Table":
    table = _new_table(
        "kernel", "GCells/s", "T_eff\nGB/s", "of the\nceiling", "spread", "regs", "spills", "× naive", "× CPU"
    )
    for result in measurement.kernels:
        table.add_row(result.name, *(("failed",) if result.error else _numbers(result)))
    return table


def _numbers(result: KernelResult) -> tuple[str, ...]:
    speed, effective, fraction, spread = result.GCells, result.effective_GBps, result.fraction, result.spread
    formats = (
        (speed, ",.4g"),
        (effective, ",.4g"),
        (fraction, ".3f"),
        (spread, ".1%"),
        (result.registers, "d"),
        (result.spills, "d"),
        (result.over_naive, ".2f"),
        (result.over_cpu, ".3g"),
    )
    return _formatted(formats)


def _formatted(formats: Sequence[tuple[float | None, str]]) -> tuple[str, ...]:
    return tuple("–" if value is None else format(value, how) for value, how in formats)


def _launch(launch: dict[str, Any]) -> str:
    """The choice of "auto" as text."""
    planes = "" if launch["planes"] is None else f", {counted(launch['planes'], 'plane')} per block"
    return f"{launch['kernel']}, {counted(launch['steps_a_sweep'], 'step')} per sweep{planes}, {launch['chosen']}"


def _stage_table(stages: StageTimings) -> "Table":
    table = _new_table(f"{stages.kernel}, {counted(stages.steps, 'step')}", "ms", "spread")
    for stage, seconds in stages.seconds.items():
        table.add_row(stage.replace("_", " "), f"{seconds * 1e3:,.4g}", f"{stages.spread[stage]:.1%}")
    return table
