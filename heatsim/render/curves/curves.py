"""Curves of probes: temperatures over time, and the profiles of probes along lines."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from textwrap import fill, shorten
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.amounts import LENGTHS, TIMES, Unit, choose_unit, readable_unit
from heatsim.counts import plain
from heatsim.limits import SIGNS, Limits
from heatsim.render.page.caption import Caption
from heatsim.render.page.dates import label_times, moment
from heatsim.render.page.figure import TICK_SIZE, WIDTH, add_axes, new_figure, text_width
from heatsim.render.page.legend import LINE, Entry
from heatsim.render.page.scales import Scale, TemperatureScale, colour_map
from heatsim.storage.run_tables import RunTable, header
from heatsim.temperature_units import KELVIN, TemperatureUnit

# Lines differ by colour; when the colours repeat, they differ by dashes.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31")
_DASHES = ("-", "--", ":", "-.")
_MOST_IN_LEGEND = 60
_TALL, _LEGEND_LINE, _LEGEND_GAP = 705, 33, 14  # pixels
_MOST_PROFILES = 8
_TIMES_BELOW, _DATES_BELOW = 90, 135  # pixels: the legend of two rows of profiles, or of three with dates
# Labels of axes for several probes with one unit.
_NAMES_OF_NUMBERS = {"m": "Length", "s": "Duration", "1": "Fraction"}
LIMIT_OF_ALL = "#b03020"  # the colour of a limit of all curves
BAND = 0.25  # opacity of materials behind profiles, and of errors around curves


class Band(NamedTuple):
    """The error around a curve.

    Attributes:
        times: in s, shape (n,).
        low: the curve less its error at these times.
        high: the curve and its error.
    """

    times: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def error_bands(summary: Mapping[str, Any], table: RunTable) -> dict[str, Band]:
    """The errors of probes in space around their temperatures in K, by name; empty if they are not known.

    Args:
        summary: the content of summary.json.
        table: of the probes.
    """
    found = (summary.get("error_in_space") or {}).get("bands") or {"times": [], "errors": {}}
    times, columns, bands = np.array(found["times"]), table.in_unit(KELVIN.name), {}
    for name in (name for name in found["errors"] if name in columns and len(table.times) > 1):
        within = (table.times >= times[0]) & (table.times <= times[-1])
        values, errors = columns[name][within], np.interp(table.times[within], times, found["errors"][name])
        bands[name] = Band(table.times[within], values - errors, values + errors)
    return bands


class MeasuredPoints(NamedTuple):
    """Measured values: times in s and values, shape (n,) each."""

    times: NDArray[np.float64]
    values: NDArray[np.float64]


def measured_points(summary: Mapping[str, Any]) -> dict[str, MeasuredPoints]:
    """What was measured at probes, in SI units, by name.

    Args:
        summary: the content of summary.json.
    """
    found = summary.get("measured", [])
    return {each["probe"]: MeasuredPoints(np.array(each["times"]), np.array(each["values"])) for each in found}


def title_with_signs(title: str, bands: Collection[str], points: Collection[str]) -> str:
    """The title of curves that says what the bands and the points beside them are."""
    with_bands = f"{title} with their errors in space" if bands else title
    return f"{with_bands}; circles: measured" if points else with_bands


class LimitLine(NamedTuple):
    """A limit as a line across curves: a text such as "≤ 85 °C", and the value, in SI units or those of the axis.

    The curve is the name of the one that it belongs to; empty for a limit of all.
    """

    curve: str
    text: str
    value: float


def limit_lines(
    curves: Mapping[str, NDArray[np.float64]], limits: Mapping[str, Limits], text: Callable[[float], str]
) -> list[LimitLine]:
    """The limits of curves that lie within their range, or as far from it as it is wide: others would flatten them.

    Args:
        curves: in SI units, by name.
        limits: by the names of curves.
        text: a value in SI units as text with its unit.
    """
    low, high = min(float(values.min()) for values in curves.values()), max(float(v.max()) for v in curves.values())
    return [
        LimitLine(name, f"{SIGNS[key]} {text(value)}", value)
        for name in curves
        for key, value in (limits[name].given if name in limits else {}).items()
        if 2.0 * low - high <= value <= 2.0 * high - low
    ]


def line_style(number: int) -> dict[str, Any]:
    """Colour and dashes of a line by its number."""
    dashes = _DASHES[number // len(COLOURS) % len(_DASHES)]
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": dashes}


class NumberGroup(NamedTuple):
    """The probes with one unit: the label of the axis; curves, limits and measured points in a readable unit."""

    label: str
    curves: dict[str, NDArray[np.float64]]
    marks: list[LimitLine]
    points: dict[str, MeasuredPoints]


def number_groups(
    table: RunTable, limits: Mapping[str, Limits], measured: Mapping[str, MeasuredPoints]
) -> Iterator[NumberGroup]:
    """The probes that are not temperatures, by unit."""
    for unit in dict.fromkeys(unit for _, unit in table.columns if unit != KELVIN.name):
        values = table.in_unit(unit)
        shown = readable_unit(unit, np.concatenate(list(values.values())))
        name = next(iter(values)) if len(values) == 1 else _NAMES_OF_NUMBERS.get(unit, "Probes")
        lines = [
            line._replace(value=line.value / shown.size)
            for line in limit_lines(values, limits, partial(in_readable_unit, shown=shown))
        ]
        curves = {name: numbers / shown.size for name, numbers in values.items()}
        points = {
            name: MeasuredPoints(of.times, of.values / shown.size) for name, of in measured.items() if name in values
        }
        yield NumberGroup(header(name, shown.symbol), curves, lines, points)


def in_readable_unit(value: float, shown: Unit) -> str:
    """A value in SI units as text in a unit."""
    return f"{plain(value / shown.size, 4)} {shown.symbol}".rstrip()


def finish_times(axes: Any, unit: Unit, times: NDArray[np.float64], start: datetime | None) -> None:
    """Label the axis of times, with dates if the run has a date of its start, and draw a grid."""
    label_times(axes.xaxis, unit, (float(times[0]), float(times[-1])), start)
    if times[-1] > times[0]:
        axes.set_xlim(times[0] / unit.size, times[-1] / unit.size)
    axes.grid(alpha=0.25)


def draw_temperatures(
    path: Path,
    title: str,
    times: NDArray[np.float64],
    curves: Mapping[str, NDArray[np.float64]],
    shown_in: TemperatureUnit = KELVIN,
    bands: Mapping[str, Band] | None = None,
    start: datetime | None = None,
    limits: Mapping[str, Limits] | None = None,
    points: Mapping[str, MeasuredPoints] | None = None,
) -> None:
    """Draw temperatures in K over times in s, one curve for each name, in the unit ``shown_in``.

    Args:
        path: the picture.
        title: its title.
        times: in s, shape (rows,).
        curves: the temperatures by name, shape (rows,) each.
        shown_in: the unit.
        bands: of some curves, in K.
        start: the date of the start, for an axis of dates.
        limits: of some curves, in K.
        points: measured in K at some curves.
    """
    measured = {name: of for name, of in (points or {}).items() if name in curves}
    everything = np.concatenate([*curves.values(), *(of.values for of in measured.values())])
    scale = TemperatureScale.spanning(float(everything.min()), float(everything.max()), np.float32, shown_in)
    drawn = {name: scale.drawn(values) for name, values in curves.items()}
    around = {
        name: Band(band.times, scale.drawn(band.low), scale.drawn(band.high)) for name, band in (bands or {}).items()
    }
    lines = [
        line._replace(value=float(scale.drawn(line.value))) for line in limit_lines(curves, limits or {}, shown_in.text)
    ]
    ends = scale.limits if scale.uniform and not lines else None
    circles = {name: MeasuredPoints(of.times, scale.drawn(of.values)) for name, of in measured.items()}
    _draw_curves(path, title, times, drawn, scale.label, ends, bands=around, start=start, marks=lines, points=circles)


def draw_numbers(
    path: Path,
    title: str,
    times: NDArray[np.float64],
    curves: Mapping[str, NDArray[np.float64]],
    label: str,
    limits: tuple[float, float] | None = None,
    styles: Mapping[str, Mapping[str, Any]] | None = None,
    start: datetime | None = None,
    marks: Sequence[LimitLine] = (),
    points: Mapping[str, MeasuredPoints] | None = None,
) -> None:
    """Draw numbers other than temperatures over times in s, one curve for each name.

    Args:
        path: the picture.
        title: its title.
        times: in s, shape (rows,).
        curves: the numbers by name, shape (rows,) each.
        label: of the axis of numbers.
        limits: ends of this axis; None for those that fit the curves.
        styles: the looks of the curves by name; None for the usual ones.
        start: the date of the start, for an axis of dates.
        marks: limits, in the unit of the numbers.
        points: measured at some curves, in this unit.
    """
    _draw_curves(path, title, times, curves, label, limits, styles, start=start, marks=marks, points=points)


def _draw_curves(
    path: Path,
    title: str,
    times: NDArray[np.float64],
    curves: Mapping[str, NDArray[np.float64]],
    label: str,
    limits: tuple[float, float] | None,
    styles: Mapping[str, Mapping[str, Any]] | None = None,
    bands: Mapping[str, Band] | None = None,
    start: datetime | None = None,
    marks: Sequence[LimitLine] = (),
    points: Mapping[str, MeasuredPoints] | None = None,
) -> None:
    """Draw curves over times in s, with their legend beside them, or below if there are many."""
    looks = styles or {name: line_style(number) for number, name in enumerate(curves)}
    unit = choose_unit(TIMES, float(times[-1]))
    texts = [fill(shorten(name, 60, placeholder=" …"), 20) for name in curves]
    beside = sum(_LEGEND_GAP + _LEGEND_LINE * (text.count("\n") + 1) for text in texts) <= _TALL
    caption = _legend_below({name: looks[name] for name in curves}, title)
    below = 0 if beside else caption.height()
    with new_figure(path, title, WIDTH, 900 + below) as figure:
        axes = add_axes(figure, 150, 105 + below, 1050 if beside else 1400, _TALL)
        marker = "o" if len(times) == 1 else None
        lines = [
            axes.plot(times / unit.size, values, marker=marker, **looks[name])[0] for name, values in curves.items()
        ]
        for name, band in (bands or {}).items():
            axes.fill_between(
                band.times / unit.size, band.low, band.high, color=looks[name]["color"], alpha=BAND, linewidth=0.0
            )
        for name, (when, measured) in (points or {}).items():
            colour = looks[name]["color"]
            hollow = {"color": colour, "markerfacecolor": "none", "markersize": 3.0, "clip_on": False}
            axes.plot(when / unit.size, measured, "o", **hollow)
        for curve, text, value in marks:
            axes.axhline(value, color=looks[curve]["color"], linestyle=(0, (6, 2, 1, 2)), linewidth=1.0)
            # At the left: the ends of curves are at the right.
            across = axes.get_yaxis_transform()
            axes.text(0.01, value, text, transform=across, color=looks[curve]["color"], va="bottom", fontsize=7.0)
        if limits is not None:
            axes.set_ylim(*limits)
        axes.set_ylabel(label)
        finish_times(axes, unit, times, start)
        if beside:
            axes.legend(lines, texts, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
        else:
            caption.draw(figure)


def _legend_below(looks: Mapping[str, Mapping[str, Any]], title: str) -> Caption:
    """A legend of curves in rows. If there are too many curves, it has only the first ones, and a remark."""
    remark = f"The legend has {_MOST_IN_LEGEND} of {len(looks)} curves." if len(looks) > _MOST_IN_LEGEND else ""
    entries = [
        Entry(name, look["color"], LINE, dashes=look.get("linestyle", "-"))
        for name, look in islice(looks.items(), _MOST_IN_LEGEND)
    ]
    return Caption(title, [remark], entries)


def draw_line_probe(
    path: Path,
    title: str,
    times: NDArray[np.float64],
    length: float,
    temperatures: NDArray[np.float64],
    shown_in: TemperatureUnit = KELVIN,
    start: datetime | None = None,
) -> None:
    """Draw a probe along a line: profiles at several times, and a map over place and time; one profile of a single row.

    Args:
        path: the picture.
        title: its title.
        times: in s, shape (rows,).
        length: of the line in m.
        temperatures: in K, shape (rows, points), at equal distances from the line's first point to its last.
        shown_in: the unit of the temperatures in the picture.
        start: the date of the start, for dates instead of times.
    """
    low, high = float(temperatures.min()), float(temperatures.max())
    scale = TemperatureScale.spanning(low, high, np.float32, shown_in)
    lengths, time_unit = choose_unit(LENGTHS, length), choose_unit(TIMES, float(times[-1]))
    place = np.linspace(0.0, length, temperatures.shape[1]) / lengths.size
    chosen = profile_times(temperatures)
    several = len(times) > 1
    below = (_TIMES_BELOW if start is None else _DATES_BELOW) if several else 0
    with new_figure(path, title, 1600, 900 + below) as figure:
        axes = add_axes(figure, 150, 105 + below, 560 if several else 1400, 705)
        colours = colours_of_times(len(chosen))
        marker = "o" if len(place) <= 50 else None
        for row, colour in zip(chosen, colours, strict=True):
            text = moment(float(times[row]), float(times[-1]), start, 3)
            axes.plot(place, scale.drawn(temperatures[row]), color=colour, marker=marker, label=text)
        axes.set_xlabel(f"Distance along the line ({lengths.symbol})")
        axes.set_ylabel(scale.label)
        axes.margins(x=0.0)
        if scale.uniform:
            axes.set_ylim(*scale.limits)
        axes.grid(alpha=0.25)
        if several:
            # Below, where it hides no curve.
            axes.legend(
                loc="upper left",
                bbox_to_anchor=(-0.02, -0.13),
                ncols=4 if start is None else 3,
                fontsize=7.0,
                columnspacing=1.0,
                handlelength=1.5,
            )
            _draw_map(figure, place, times / time_unit.size, scale, temperatures, below)
            figure.axes[1].set_xlabel(f"Distance along the line ({lengths.symbol})")
            label_times(figure.axes[1].yaxis, time_unit, (float(times[0]), float(times[-1])), start)


def _draw_map(
    figure: Any, place: NDArray[np.float64], times: NDArray[np.float64], scale: Scale, values: Any, below: int
) -> None:
    from heatsim.render.page.figure import add_colour_bar

    axes = add_axes(figure, 860, 105 + below, 500, 705)
    low, high = scale.limits
    axes.pcolormesh(
        place,
        times,
        scale.drawn(values),
        cmap=scale.colour_map,
        vmin=low,
        vmax=high,
        shading="nearest",
        rasterized=True,
    )
    axes.set_xlim(place[0], place[-1])
    axes.set_ylim(times[0], times[-1])
    add_colour_bar(figure, scale, (1385, 105 + below, 26, 705))


def profile_times(temperatures: NDArray[np.float64]) -> list[int]:
    """The rows to draw as profiles: from each to the next the profile changes by about as much.

    Args:
        temperatures: shape (rows, points).
    """
    changes = np.abs(np.diff(temperatures, axis=0)).max(axis=1)
    path = np.concatenate([[0.0], np.cumsum(changes)])
    if path[-1] == 0.0:
        return sorted({0, len(path) - 1})
    wanted = np.linspace(0.0, path[-1], _MOST_PROFILES)
    return sorted({0, len(path) - 1, *(int(np.abs(path - place).argmin()) for place in wanted)})


def colours_of_times(count: int) -> Sequence[Any]:
    """Colours from early to late."""
    colours: Sequence[Any] = colour_map()(np.linspace(0.0, 0.85, count))
    return colours


def draw_profile(
    path: Path,
    title: str,
    axis: str,
    ends: tuple[float, float],
    unit: Unit,
    scale: Scale,
    places: NDArray[np.float64],
    curves: Sequence[tuple[str, NDArray[np.floating[Any]]]],
    whole_scale: bool = False,
    bands: Sequence[tuple[float, float, str]] = (),
    legend: Sequence[Entry] = (),
) -> None:
    """Draw temperatures along a line of cells, one curve for each time.

    Args:
        path: the picture.
        title: its title.
        axis: the name of the axis.
        ends: of the domain along the axis, in ``unit``.
        unit: of lengths.
        scale: of temperatures.
        places: of the cells' centres, in ``unit``.
        curves: legend texts, and values in K.
        whole_scale: whether the axis spans the whole scale; if not, it fits the curves.
        bands: the materials along the line: both ends of each in ``unit``, and its colour.
        legend: of the materials.
    """
    caption = Caption(title, legend=legend)
    below = caption.height() if legend else 0
    with new_figure(path, title, 1600, 900 + below) as figure:
        longest = max(text_width(text, TICK_SIZE) for text, _ in curves)
        axes = add_axes(figure, 150, 105 + below, min(1150.0, 1310.0 - longest), 705)
        if legend:
            caption.draw(figure)
        for start, end, colour in bands:
            axes.axvspan(start, end, color=colour, alpha=BAND, linewidth=0.0, zorder=0.5)
        marker = "o" if len(places) <= 50 else None
        for (text, values), colour in zip(curves, colours_of_times(len(curves)), strict=True):
            axes.plot(places, scale.drawn(values), color=colour, marker=marker, label=text)
        axes.set_xlim(*ends)
        if scale.uniform or whole_scale:
            axes.set_ylim(*scale.limits)
        axes.set_xlabel(f"{axis} ({unit.symbol})")
        axes.set_ylabel(scale.label)
        axes.grid(alpha=0.25)
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), title="Time")
