"""The roofline plot: operations per second over operations per byte (intensity).

After Williams, Waterman and Patterson, *Communications of the ACM* 52(4), 2009. The roof is the copy measured in the
same run. The intensity is the ideal one: 13 operations per cell and step, divided by one value read and one written per
cell and sweep. A kernel that moves more bytes stays below the roof by that factor.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heatsim.benchmark.results import Measurement
from heatsim.render.page.figure import save

_DPI = 100
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "h")


def draw(path: Path, measurements: Sequence[Measurement]) -> None:
    """Write the plot, one panel for each precision.

    Raises:
        StorageError: it could not be written.
    """
    import matplotlib
    from matplotlib.figure import Figure

    # Dollar signs in a device's name are not math.
    with matplotlib.rc_context({"font.size": 13.0, "legend.frameon": False, "text.parse_math": False}):
        figure = Figure(figsize=(8.0 * len(measurements), 7.0), dpi=_DPI, layout="constrained")
        cells = " × ".join(f"{n:,}" for n in measurements[0].cells)
        figure.suptitle(f"{measurements[0].device}: {cells} cells")
        panels = figure.subplots(1, len(measurements), squeeze=False)[0]
        for axes, measurement in zip(panels, measurements, strict=True):
            _draw_panel(axes, measurement)
        save(figure, path, "Roofline")


def _draw_panel(axes: Any, measurement: Measurement) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    points = [
        (result, result.intensity, result.GFLOPs)
        for result in measurement.kernels
        if result.intensity is not None and result.GFLOPs is not None
    ]
    intensities = [intensity for _, intensity, _ in points] or [1.0]
    ends = (min(intensities) / 2.0, max(intensities) * 2.0)
    roof = [measurement.copy_GBps * intensity for intensity in ends]
    axes.plot(ends, roof, color="#444444", label=f"copy, {measurement.copy_GBps:,.4g} GB/s")
    for number, (result, intensity, speed) in enumerate(points):
        axes.plot(
            intensity,
            speed,
            linestyle="none",
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=10.0,
            color=_COLOURS[number % len(_COLOURS)],
            label=f"{result.name}, {result.GCells:,.4g} GCells/s",
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(*ends)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,g}")
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("Operations per byte of ideal memory traffic")
    axes.set_ylabel("GFLOP/s")
    axes.set_title(measurement.precision)
    axes.grid(which="both", alpha=0.25)
    axes.legend(loc="lower right")
