"""Tables of benchmark results for a terminal."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from heatsim.benchmark.emulated import PrimerEmulation
from heatsim.benchmark.ensembles import EnsembleMeasurement
from heatsim.benchmark.method_results import MethodResult, WorkPrecision
from heatsim.benchmark.primers import PrimerMeasurement
from heatsim.benchmark.reductions import ReductionMeasurement
from heatsim.benchmark.results import Measurement, StageTimings
from heatsim.counts import counted

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table


# The columns of a table: heading, field of the result, format of its values.
_Columns = Sequence[tuple[str, str, str]]
_KERNELS: _Columns = (
    ("GCells/s", "GCells", ",.4g"),
    ("T_eff\nGB/s", "effective_GBps", ",.4g"),
    ("of the\nceiling", "fraction", ".3f"),
    ("spread", "spread", ".1%"),
    ("regs", "registers", "d"),
    ("spills", "spills", "d"),
    ("× naive", "over_naive", ".2f"),
    ("× CPU", "over_cpu", ".3g"),
)
_REDUCTIONS: _Columns = (
    ("GB/s", "GBps", ",.4g"),
    ("of\nreading", "fraction", ".3f"),
    ("ms", "milliseconds", ",.4g"),
    ("spread", "spread", ".1%"),
    ("regs", "registers", "d"),
    ("spills", "spills", "d"),
)
_PRIMERS: _Columns = (
    ("GB/s", "GBps", ",.4g"),
    ("of the\ncopy", "fraction", ".3f"),
    ("ms", "milliseconds", ",.4g"),
    ("spread", "spread", ".1%"),
    ("regs", "registers", "d"),
    ("× CPU", "over_cpu", ",.3g"),
    ("× CPU,\nwith copies", "over_cpu_with_copies", ",.2g"),
)
_EMULATED: _Columns = (("result", "verdict", "s"), ("idea", "idea", "s"))
_ENSEMBLES: _Columns = (
    ("members\nGCells/s", "GCells", ",.4g"),
    ("spread", "spread", ".1%"),
    ("one grid\nGCells/s", "alone_GCells", ",.4g"),
    ("spread", "alone_spread", ".1%"),
    ("of one\ngrid", "fraction", ".3f"),
)


def describe(measurement: Measurement) -> "Group":
    """The kernels, the copy, and the stages of a computation, within 100 columns."""
    heading = (
        f"{measurement.device}, {measurement.precision}, {_times(measurement.cells)} cells",
        f"copy {measurement.copy_GBps:,.4g} GB/s (spread {measurement.copy_spread:.1%}); ceiling "
        f"{measurement.ceiling_GCells:,.4g} GCells/s for one step per sweep; {_median(measurement)}",
    )
    stages = [] if measurement.stages is None else [_stage_table(measurement.stages)]
    return _group(heading, "kernel", _KERNELS, measurement.kernels, *_launches(measurement), *stages)


def describe_reductions(measurement: ReductionMeasurement) -> "Group":
    """The ladder of sums, CuPy's sums and the fused pass, within 80 columns."""
    heading = (
        f"{measurement.device}, {measurement.precision}, {_times(measurement.cells)} cells",
        f"reading {measurement.read_GBps:,.4g} GB/s (spread {measurement.read_spread:.1%}), copying "
        f"{measurement.copy_GBps:,.4g} GB/s; {_median(measurement)}",
    )
    return _group(heading, "reduction", _REDUCTIONS, measurement.reductions)


def describe_primers(measurement: PrimerMeasurement) -> "Group":
    """The kernels of a primer, and the stages of the whole computation, within 80 columns."""
    ms = measurement.milliseconds
    heading = (
        f"{measurement.device}, {measurement.precision}, {measurement.primer}, {_times(measurement.shape)}",
        f"generate {ms['generate']:,.4g} ms, to the GPU {ms['to the GPU']:,.4g} ms, to the host "
        f"{ms['to the host']:,.4g} ms; on {measurement.cores} CPU threads {ms['CPU']:,.4g} ms",
        f"copy {measurement.copy_GBps:,.4g} GB/s; {_median(measurement)}",
    )
    return _group(heading, "kernel", _PRIMERS, measurement.kernels)


def describe_emulated(found: PrimerEmulation) -> "Group":
    """The kernels of a primer that are right, and what is wrong with the others, within 80 columns."""
    heading = (
        f"{found.primer}, {found.precision}, {_times(found.shape)}: the bits of NumPy",
        "compiled by g++, threads one after the other, forward and in reverse; no speeds",
    )
    return _group(heading, "kernel", _EMULATED, found.kernels)


def describe_ensembles(measurement: EnsembleMeasurement) -> "Group":
    """The ensemble compared with one large grid, within 80 columns."""
    members = counted(measurement.members, "member")
    heading = (
        f"{measurement.device}, {measurement.precision}, {members} of {_times(measurement.cells)} cells",
        f"compared with one grid of {_times(measurement.alone_cells)} cells; {_median(measurement)}",
    )
    return _group(heading, "kernel", _ENSEMBLES, measurement.kernels, *_launches(measurement))


def describe_methods(found: WorkPrecision) -> "Group":
    """The methods in time on one scenario, within 80 columns."""
    from rich.console import Group
    from rich.text import Text

    reference = found.reference
    heading = Text.assemble(
        (f"{found.title}: {_times(found.cells)} cells, {found.end:g} s, range {found.range:.4g} K", "bold"),
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


def _group(
    heading: Sequence[str], kind: str, columns: _Columns, results: Sequence[Any], *more: "RenderableType"
) -> "Group":
    """A heading, whose first line is bold; a row for each result; what is wrong with results; and ``more``."""
    from rich.console import Group
    from rich.text import Text

    table = _new_table(kind, *(name for name, _, _ in columns))
    for result in results:
        numbers = _formatted([(getattr(result, field), how) for _, field, how in columns])
        table.add_row(result.name, *(("failed",) if result.error else numbers))
    title, *lines = heading
    faults = [Text(f"{result.name} is wrong: {result.error}", "red") for result in results if result.error]
    return Group(Text.assemble((title, "bold"), *(f"\n{line}" for line in lines)), table, *faults, *more)


def _times(counts: Sequence[int]) -> str:
    return " × ".join(f"{n:,}" for n in counts)


def _median(measurement: Measurement | ReductionMeasurement | PrimerMeasurement | EnsembleMeasurement) -> str:
    ledger = isinstance(measurement, Measurement | EnsembleMeasurement) and measurement.energy
    return f"median of {counted(measurement.repeats, 'repeat')}{', with the energy ledger' if ledger else ''}"


def _new_table(*columns: str) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    return table


def _formatted(formats: Sequence[tuple[float | None, str]]) -> tuple[str, ...]:
    return tuple("–" if value is None else format(value, how) for value, how in formats)


def _launches(measurement: Measurement | EnsembleMeasurement) -> Iterator["RenderableType"]:
    """The choice of "auto" as text."""
    from rich.text import Text

    for launch in (result.launch for result in measurement.kernels if result.launch):
        planes = "" if launch["planes"] is None else f", {counted(launch['planes'], 'plane')} per block"
        steps = counted(launch["steps_a_sweep"], "step")
        yield Text(f"auto: {launch['kernel']}, {steps} per sweep{planes}, {launch['chosen']}")


def _stage_table(stages: StageTimings) -> "Table":
    table = _new_table(f"{stages.kernel}, {counted(stages.steps, 'step')}", "ms", "spread")
    for stage, seconds in stages.seconds.items():
        table.add_row(stage.replace("_", " "), f"{seconds * 1e3:,.4g}", f"{stages.spread[stage]:.1%}")
    return table
