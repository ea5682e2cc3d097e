"""Figures of a study's responses: over parameters, as maps over two of them, and the curves of a probe."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.amounts import TIMES, choose_unit
from heatsim.counts import counted, minus, plain
from heatsim.limits import SIGNS
from heatsim.render.curves.curves import LIMIT_OF_ALL, LimitLine
from heatsim.render.page.dates import label_times
from heatsim.render.page.figure import new_figure, title_of
from heatsim.scenario.tables.library import PREFIX
from heatsim.study.report import column_texts
from heatsim.study.responses import Parameter, ResponseValues, rank_correlation

_MOST_PANELS = 6
_MOST_LINES = 10
_MOST_NUMBERS_IN_MAP = 100
_LETTERS_BESIDE = 30  # of the categories below a panel; longer ones are drawn obliquely
_POINT = {"linestyle": "none", "marker": "o", "color": "#0072b2"}


def draw_response(path: Path, title: str, response: ResponseValues, over: Sequence[Parameter], grid: bool) -> None:
    """Draw a panel for each parameter: a small grid as lines of runs that share all other parameters, else points."""
    shown = over[:_MOST_PANELS]
    columns = 2 if len(shown) == 4 else min(len(shown), 3)
    lines = -(-len(shown) // columns)
    others = [[other for other in over if other is not parameter] for parameter in shown]
    families = [_families(each) for each in others] if grid else []
    as_lines = grid and all(len(each) <= _MOST_LINES for each in families)
    with_legends = as_lines and len(over) > 1
    with new_figure(path, title_of(title, response.name), 1600, 900 if lines == 1 else 1200) as figure:
        panels = figure.subplots(lines, columns, squeeze=False, sharey=True)
        right, between = (0.84, 0.55) if with_legends else (0.97, 0.1)
        figure.subplots_adjust(left=0.1, right=right, top=0.87, bottom=0.13, wspace=between, hspace=0.5)
        for panel in panels.flat[len(shown) :]:
            panel.set_visible(False)
        for index, (panel, parameter) in enumerate(zip(panels.flat, shown, strict=False)):
            if as_lines:
                _draw_families(panel, parameter, response, families[index])
            else:
                panel.plot(parameter.values, response.values, markersize=2.5, alpha=0.6, **_POINT)
            if with_legends:
                heading = fill(", ".join(other.label for other in others[index]), 14)
                place = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0), "borderaxespad": 0.0}
                panel.legend(title=heading, alignment="left", **place)
            _draw_limits(panel, response.marks)
            _label(panel.xaxis, parameter)
            rank = None if parameter.categories else rank_correlation(parameter.values, response.values)
            if rank is not None:
                panel.set_title(f"rank correlation {minus(f'{rank:+.2f}')}")
            if index % columns == 0:
                panel.set_ylabel(response.label)
            panel.grid(alpha=0.25)


def _families(others: Sequence[Parameter]) -> dict[str, NDArray[np.bool_]]:
    """The runs that share the values of all other parameters, by their text in the legend."""
    if not others:
        return {}
    table = np.stack([other.values for other in others], axis=1)
    families = {}
    for values in np.unique(table, axis=0):
        text = ", ".join(_text(other, value) for other, value in zip(others, values, strict=True))
        families[text] = np.all(table == values, axis=1)
    return families


def _draw_families(
    panel: Any, parameter: Parameter, response: ResponseValues, families: dict[str, NDArray[np.bool_]]
) -> None:
    everything = families or {"": np.ones(len(parameter.values), dtype=bool)}
    for colour, (text, chosen) in zip(
        _colours()(np.linspace(0.0, 1.0, len(everything))), everything.items(), strict=True
    ):
        order = np.argsort(parameter.values[chosen])
        xs, ys = parameter.values[chosen][order], response.values[chosen][order]
        # Between categories there is nothing, so no line.
        line = "none" if parameter.categories else "-"
        panel.plot(xs, ys, marker="o", linestyle=line, color=colour, label=fill(text, 16))


def draw_map(path: Path, title: str, response: ResponseValues, across: Parameter, up: Parameter, grid: bool) -> None:
    """Draw a response over two parameters: the cells of a small grid, else points."""
    description = f"{response.name}, map over {across.short} and {up.short}"
    with new_figure(path, title_of(title, response.name), 1600, 1050, description=description) as figure:
        remarks = [_grey_cells(response, across, up) if grid else "", _red_edges(response)]
        figure.text(0.02, 0.02, " ".join(filter(None, remarks)), color="#404040")
        axes = figure.add_axes((0.12, 0.12, 0.71, 0.77))
        if grid:
            drawn = _draw_cells(axes, response, across, up)
        else:
            good = np.isfinite(response.values)
            drawn = axes.scatter(
                across.values[good],
                up.values[good],
                c=response.values[good],
                s=12,
                cmap=_colours(),
                edgecolors=np.where(response.beyond[good], LIMIT_OF_ALL, "white"),
                linewidths=np.where(response.beyond[good], 1.2, 0.4),
            )
            _label(axes.xaxis, across)
            _label(axes.yaxis, up)
            axes.grid(alpha=0.25)
        bar = figure.add_axes((0.86, 0.12, 0.02, 0.77))
        figure.colorbar(drawn, cax=bar, label=response.label)
        for _, _, value in response.marks:
            bar.axhline(value, color=LIMIT_OF_ALL, linewidth=2.0)


def _draw_cells(axes: Any, response: ResponseValues, across: Parameter, up: Parameter) -> Any:
    """Draw a cell for each pair of values, at equal distances."""
    from matplotlib.patches import Rectangle

    xs, ys = np.unique(across.values), np.unique(up.values)
    cells = np.full((len(ys), len(xs)), np.nan)
    places = np.searchsorted(ys, up.values), np.searchsorted(xs, across.values)
    cells[places] = response.values
    drawn = axes.imshow(cells, origin="lower", aspect="auto", cmap=_colours())
    axes.set_facecolor("#eeeeee")
    for row, column in np.stack(places, axis=1)[response.beyond].tolist():
        corner = column - 0.47, row - 0.47
        axes.add_patch(Rectangle(corner, 0.94, 0.94, fill=False, edgecolor=LIMIT_OF_ALL, linewidth=2.0))
    axes.set_xticks(range(len(xs)), [_text(across, x) for x in xs])
    axes.set_yticks(range(len(ys)), [_text(up, y) for y in ys])
    axes.set_xlabel(across.label)
    axes.set_ylabel(up.label)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    if cells.size <= _MOST_NUMBERS_IN_MAP:
        texts = iter(column_texts(cells.ravel(), response.unit))
        for (row, column), value in np.ndenumerate(cells):
            text = next(texts)
            if np.isfinite(value):
                colour = "white" if drawn.norm(value) < 0.6 else "black"
                axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=7.0)
    return drawn


def _draw_limits(axes: Any, marks: Sequence[LimitLine]) -> None:
    """Limits as lines across, with their texts."""
    for _, text, value in marks:
        axes.axhline(value, color=LIMIT_OF_ALL, linestyle=(0, (6, 2, 1, 2)), linewidth=1.0)
        across = axes.get_yaxis_transform()
        axes.text(0.01, value, text, transform=across, color=LIMIT_OF_ALL, va="bottom", fontsize=7.0)


def _red_edges(response: ResponseValues) -> str:
    """A sentence about values beyond limits; "" if there are none."""
    texts = [f"{SIGNS[key]} {plain(limit, 5)} {response.unit}" for key, limit in response.limits.given.items()]
    return f"Red: beyond the limit {' and '.join(texts)}." if response.beyond.any() else ""


def _grey_cells(response: ResponseValues, across: Parameter, up: Parameter) -> str:
    """A sentence about the cells of a map without a value; "" if there are none."""
    causes = []
    if len(response.values) < len(np.unique(across.values)) * len(np.unique(up.values)):
        causes.append("the run is not done")
    if not np.isfinite(response.values).all():
        causes.append("the curve does not pass the threshold")
    return f"Grey: {', or '.join(causes)}." if causes else ""


def draw_curves(
    path: Path,
    title: str,
    probe: str,
    curves: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
    over: Sequence[Parameter],
    label: str,
    start: datetime | None = None,
    marks: Sequence[LimitLine] = (),
) -> None:
    """Draw the curves of all runs, coloured by the parameter with the strongest rank correlation.

    Args:
        path: the picture.
        title: of the study.
        probe: its name.
        curves: times in s and values of each run.
        over: the parameters, each with a value for each run.
        label: of the axis of values.
        start: the date of the start, for an axis of dates.
        marks: limits of the probe, in the unit of the values.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LogNorm, Normalize

    final = np.array([temperatures[-1] for _, temperatures in curves])
    strengths = [abs(rank_correlation(parameter.values, final) or 0.0) for parameter in over]
    by = over[int(np.argmax(strengths))]
    low, high = float(by.values.min()), float(by.values.max())
    norm = LogNorm(low, high) if by.logarithmic and low < high else Normalize(low, high if low < high else low + 1.0)
    unit = choose_unit(TIMES, max(float(times[-1]) for times, _ in curves))
    mappable = ScalarMappable(norm, _colours())
    with new_figure(path, title_of(title, f'probe "{probe}" in {counted(len(curves), "run")}'), 1600, 1000) as figure:
        axes = figure.add_axes((0.095, 0.12, 0.75, 0.77))
        thin = {"linewidth": 1.0, "alpha": 0.9} if len(curves) <= 30 else {"linewidth": 0.5, "alpha": 0.5}
        lines = [np.stack([times / unit.size, temperatures], axis=1) for times, temperatures in curves]
        axes.add_collection(LineCollection(lines, colors=mappable.to_rgba(by.values), capstyle="projecting", **thin))
        axes.autoscale_view()
        _draw_limits(axes, marks)
        last = max(float(times[-1]) for times, _ in curves)
        label_times(axes.xaxis, unit, (min(float(times[0]) for times, _ in curves), last), start)
        axes.set_ylabel(label)
        axes.margins(x=0.0)
        axes.grid(alpha=0.25)
        bar = figure.colorbar(mappable, cax=figure.add_axes((0.865, 0.12, 0.02, 0.77)), label=by.label)
        if by.logarithmic:
            _plain_ticks(bar.ax.yaxis)
        if by.categories:
            bar.set_ticks(range(len(by.categories)), labels=list(by.categories))


def _label(axis: Any, parameter: Parameter) -> None:
    axis.set_label_text(parameter.label)
    if parameter.categories:
        names = [_shortened(text) for text in parameter.categories]
        axis.set_ticks(range(len(names)), labels=names)
        if axis.axis_name == "x" and sum(map(len, names)) > _LETTERS_BESIDE:
            axis.set_tick_params(rotation=25.0)
            for label in axis.get_ticklabels():
                label.set_horizontalalignment("right")
        return
    different = np.unique(parameter.values)
    if parameter.logarithmic:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
        _plain_ticks(axis)
    if len(different) <= 6:
        axis.set_ticks(different, labels=[_text(parameter, value) for value in different])
        axis.set_ticks([], minor=True)


def _plain_ticks(axis: Any) -> None:
    """Set ticks at round numbers of a logarithmic axis, as plain text."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(10.0, (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def _colours() -> Any:
    """Colours from dark to light, without the lightest, which are invisible on white."""
    import matplotlib
    from matplotlib.colors import ListedColormap

    return ListedColormap(matplotlib.colormaps["viridis"](np.linspace(0.0, 0.92, 256)))


def _text(parameter: Parameter, value: float) -> str:
    return _shortened(parameter.categories[int(value)]) if parameter.categories else plain(value, 6)


def _shortened(text: str) -> str:
    text = text.removeprefix(PREFIX)
    return text if len(text) <= 18 else text[:17] + "…"
