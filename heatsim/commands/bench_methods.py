"""`heatsim bench SCENARIO --methods`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from heatsim.commands.options import all_overrides
from heatsim.commands.terminal import show_table
from heatsim.errors import InputError


def bench_methods(
    scenario: Path | None,
    overrides: Sequence[str],
    patience: float | None,
    device: str,
    kernel: Sequence[str],
    precision: str | None,
    json: Path | None,
    plot: Path | None,
    kernel_only: Mapping[str, object],
) -> int:
    """Run a scenario with each method in time, and print their errors and times.

    Args:
        scenario: the file.
        overrides: the texts of ``--set``.
        patience: in s; None for the default.
        device: replaces that of the scenario, except "auto".
        kernel: one name, which replaces that of the scenario, or none.
        precision: replaces that of the scenario, except None.
        json: the file for the numbers, or None.
        plot: the file for the diagram, or None.
        kernel_only: options for measurements of kernels alone, with their values.

    Raises:
        InputError: the options do not fit, or the scenario cannot be run.
    """
    if scenario is None:
        raise InputError("--methods runs a scenario: give its file, such as `heatsim bench cube.toml --methods`")
    for option, value in kernel_only.items():
        if value:
            raise InputError(f"{option} is for kernels: leave it out with --methods")
    if len(kernel) > 1:
        raise InputError(f"--kernel {' '.join(kernel)}: give one kernel with --methods")
    from rich.console import Console

    from heatsim.benchmark.method_results import to_json
    from heatsim.benchmark.table import describe_methods
    from heatsim.benchmark.work_precision import PATIENCE, measure_methods
    from heatsim.benchmark.work_precision_plot import draw
    from heatsim.run.error.refinement import refuse_accuracy
    from heatsim.scenario import load
    from heatsim.storage.single_file import refuse_inputs, write_text

    settings = all_overrides(overrides, None if device == "auto" else device, kernel[0] if kernel else None, precision)
    read = load(scenario, settings)
    refuse_accuracy(read, "all methods take the same cells")
    for file in filter(None, (json, plot)):
        refuse_inputs(file, (read.path, *read.input_files))
    with Console(stderr=True).status("…") as status:
        found = measure_methods(scenario, settings, PATIENCE if patience is None else patience, say=status.update)
    show_table(describe_methods(found))
    if json is not None:
        write_text(json, to_json(found))
    if plot is not None:
        draw(plot, found)
    return 0
