"""The work–precision diagram: the largest error of each run over the time of its steps, both logarithmic."""

from pathlib import Path
from typing import Any

from heatsim.benchmark.method_results import MethodResult, WorkPrecision
from heatsim.counts import counted
from heatsim.render.page.figure import save

_DPI = 100
_STYLES = {"stabilized": ("#0072b2", "o"), "implicit": ("#009e73", "^"), "euler": ("#d55e00", "s")}


def draw(path: Path, found: WorkPrecision) -> None:
    """Write the diagram, in the format of the file's suffix.

    Raises:
        StorageError: it could not be written.
    """
    import matplotlib
    from matplotlib.figure import Figure

    # Dollar signs in a title are not math.
    with matplotlib.rc_context({"font.size": 13.0, "legend.frameon": False, "text.parse_math": False}):
        figure = Figure(figsize=(9.0, 6.5), dpi=_DPI, layout="constrained")
        axes = figure.subplots()
        for method in _STYLES:
            _draw_method(axes, method, [result for result in found.methods if result.method == method])
        _label(axes, found)
        save(figure, path, "Work and precision")


def _draw_method(axes: Any, method: str, results: list[MethodResult]) -> None:
    """The runs of one method, joined by a line; each has its tolerance beside it."""
    colour, marker = _STYLES[method]
    # A logarithmic axis has no place for 0.
    shown = [result for result in results if result.seconds and result.error]
    if not shown:
        return
    times, errors = [result.seconds for result in shown], [result.error for result in shown]
    axes.plot(times, errors, color=colour, marker=marker, markersize=9.0, label=method)
    for result in shown:
        text = counted(result.steps or 0, "step") if result.tolerance is None else f"{result.tolerance:.2g} K"
        axes.annotate(
            text,
            (result.seconds, result.error),
            xytext=(9.0, 6.0),
            textcoords="offset points",
            color=colour,
            fontsize=11.0,
        )


def _label(axes: Any, found: WorkPrecision) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    cells = " × ".join(f"{n:,}" for n in found.cells)
    axes.set_title(f"{found.title}\n{cells} cells, {found.precision}, {found.device}", fontsize=13.0)
    axes.set_xlabel("Time of all steps in s")
    axes.set_ylabel("Largest error in K")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(x=0.25, y=0.15)  # room for the texts
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(NullFormatter())
    axes.grid(which="both", alpha=0.25)
    if axes.lines:
        axes.legend(title="Method; tolerance", loc="best")
