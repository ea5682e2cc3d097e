"""Curves for report.html as SVG, with the numbers that a pointer over them shows.

The curves are drawn here, so that they are there in print and without JavaScript. A script of the page (page.js) reads
the numbers beside them and shows those under the pointer.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.render.curves.curves import BAND, COLOURS, LIMIT_OF_ALL, Band, LimitLine, MeasuredPoints, line_style
from heatsim.render.page.scales import ticks

_Floats = NDArray[np.float64]

_WIDTH, _HEIGHT = 900, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 880, 14, 330
_MOST_POINTS = 400  # for each curve; fewer than the pixels of a screen
_MOST_NAMED = 14  # curves in the legend
# Line styles of Matplotlib: dashes of SVG, and borders of CSS that can be told apart.
_DASHES = {"--": "8 4", ":": "2 3", "-.": "8 3 2 3"}
_BORDERS = {"-": "solid", "--": "dashed", ":": "dotted", "-.": "double"}
_DIGITS = 6
_ROUNDINGS = 1e-12  # relative to the values of a curve
_MARGIN = 0.04  # of the range of a curve, above and below it


@dataclass(frozen=True)
class Chart:
    """Curves over a common axis.

    Attributes:
        title: below the curves.
        x_label: name and unit of the horizontal axis.
        y_label: name and unit of the vertical axis.
        curves: x and y of each curve by name.
        band: half of the width of a grey band around zero; 0 for none.
        limits: ends of the vertical axis; None for those that fit the curves. Curves beyond are cut off.
        styles: colour and dashes of curves by name, as Matplotlib takes them; other curves get the next ones.
        around: the errors around curves by name, over the common axis.
        marks: limits of curves, in the unit of the vertical axis.
        points: measured at curves by name, over the common axis.
        dates: the texts of dates by their places on the horizontal axis; empty for numbers.
        start: with dates, that of x = 0.
        size: with dates, the seconds of 1 on the horizontal axis.
    """

    title: str
    x_label: str
    y_label: str
    curves: Mapping[str, tuple[_Floats, _Floats]]
    band: float = 0.0
    styles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    limits: tuple[float, float] | None = None
    around: Mapping[str, Band] = field(default_factory=dict)
    marks: Sequence[LimitLine] = ()
    points: Mapping[str, MeasuredPoints] = field(default_factory=dict)
    dates: Mapping[float, str] = field(default_factory=dict)
    start: datetime | None = None
    size: float = 1.0


@dataclass(frozen=True)
class _Frame:
    """The ranges of both axes, and where they lie in the picture."""

    low: float
    high: float
    y_low: float
    y_high: float

    def across(self, x: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (x - self.low) / (self.high - self.low)

    def up(self, y: float) -> float:
        within = min(max(y, self.y_low), self.y_high)
        return _BOTTOM - (_BOTTOM - _TOP) * (within - self.y_low) / (self.y_high - self.y_low)


def draw(chart: Chart) -> str:
    """The HTML of a chart: a figure with curves as SVG, a legend and its numbers; empty without a point."""
    thin = {name: _thin(x, y) for name, (x, y) in chart.curves.items()}
    curves = {name: points for name, points in thin.items() if len(points[0])}
    if not curves:
        return ""
    around = [end for band in chart.around.values() for end in (band.low, band.high)]
    marks = [np.array([mark.value]) for mark in chart.marks] + [of.values for of in chart.points.values()]
    upright = chart.limits or _upright_span([*(y for _, y in curves.values()), *around, *marks], chart.band)
    frame = _Frame(*_span([x for x, _ in curves.values()]), *upright)
    looks = _looks(chart, list(curves))
    parts = [*_axes(chart, frame), *_bands(chart, looks, frame), *_lines(curves, looks, frame)]
    parts += [*_limits(chart, looks, frame), *_points(chart, looks, frame)]
    numbers = {
        "x": chart.x_label,
        "start": None if chart.start is None else chart.start.isoformat() + "Z",
        "size": chart.size,
        "left": _LEFT,
        "right": _RIGHT,
        "top": _TOP,
        "bottom": _BOTTOM,
        "low": frame.low,
        "high": frame.high,
        "yLow": frame.y_low,
        "yHigh": frame.y_high,
        "curves": [
            {"name": name, "colour": looks[name][0], "x": _short(x), "y": _short(y)} for name, (x, y) in curves.items()
        ],
    }
    name = escape(f"{chart.title}: {chart.y_label} over {chart.x_label}", quote=True)
    return (
        f'<figure class="chart"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{name}">{"".join(parts)}'
        f'</svg><div class="shown" hidden></div>{_legend(looks)}<figcaption>{escape(chart.title)}</figcaption>'
        f'<script type="application/json">{as_json(numbers)}</script></figure>'
    )


def _axes(chart: Chart, frame: _Frame) -> Iterator[str]:
    """The frame, the grey band, ticks and labels."""
    yield f'<rect x="{_LEFT}" y="{_TOP}" width="{_RIGHT - _LEFT}" height="{_BOTTOM - _TOP}" class="area"/>'
    if chart.band:
        top, bottom = max(frame.up(chart.band), _TOP), min(frame.up(-chart.band), _BOTTOM)
        yield f'<rect x="{_LEFT}" y="{top:.1f}" width="{_RIGHT - _LEFT}" height="{bottom - top:.1f}" class="band"/>'
    for value, text in (chart.dates or ticks(frame.low, frame.high, 8)).items():
        x = f"{frame.across(value):.1f}"
        yield f'<line x1="{x}" x2="{x}" y1="{_TOP}" y2="{_BOTTOM}" class="grid"/>'
        yield f'<text x="{x}" y="{_BOTTOM + 18}" text-anchor="middle">{text}</text>'
    for value, text in ticks(frame.y_low, frame.y_high, 6).items():
        y = frame.up(value)
        yield f'<line x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
    centre, middle = (_LEFT + _RIGHT) / 2, (_TOP + _BOTTOM) / 2
    yield f'<text x="{centre}" y="{_HEIGHT - 12}" text-anchor="middle">{escape(chart.x_label)}</text>'
    turned = f'text-anchor="middle" transform="rotate(-90 16 {middle})"'
    yield f'<text x="16" y="{middle}" {turned}>{escape(chart.y_label)}</text>'


def _bands(chart: Chart, looks: Mapping[str, tuple[str, str]], frame: _Frame) -> Iterator[str]:
    """The errors around curves."""
    for name, band in chart.around.items():
        (upper, high), (lower, low) = _thin(band.times, band.high), _thin(band.times, band.low)
        x, y = np.concatenate([upper, lower[::-1]]).tolist(), np.concatenate([high, low[::-1]]).tolist()
        path = " ".join(f"{frame.across(a):.1f},{frame.up(b):.1f}" for a, b in zip(x, y, strict=True))
        yield f'<polygon points="{path}" fill="{looks[name][0]}" fill-opacity="{BAND}"/>'


def _limits(chart: Chart, looks: Mapping[str, tuple[str, str]], frame: _Frame) -> Iterator[str]:
    """The limits of curves as lines across the chart, with their texts at the left."""
    for curve, text, value in chart.marks:
        if curve in looks or not curve:
            y, colour = frame.up(value), looks[curve][0] if curve else LIMIT_OF_ALL
            yield f'<line class="limit" x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}"/>'
            # Beside the fill of the page's style for texts.
            yield f'<text x="{_LEFT + 6}" y="{y - 4:.1f}" style="fill:{colour}">{escape(text)}</text>'


def _points(chart: Chart, looks: Mapping[str, tuple[str, str]], frame: _Frame) -> Iterator[str]:
    """Circles at what was measured."""
    for name, of in chart.points.items():
        for x, y in zip(*(values.tolist() for values in _thin(*of)), strict=True):
            place = f'cx="{frame.across(x):.1f}" cy="{frame.up(y):.1f}"'
            yield f'<circle {place} r="3" fill="none" stroke="{looks[name][0]}"/>'


def _lines(
    curves: Mapping[str, tuple[_Floats, _Floats]], looks: Mapping[str, tuple[str, str]], frame: _Frame
) -> Iterator[str]:
    """The curves, and the line that follows the pointer."""
    for name, (x, y) in curves.items():
        colour, line = looks[name]
        points = [(frame.across(a), frame.up(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
        if len(points) == 1:
            yield f'<circle cx="{points[0][0]:.1f}" cy="{points[0][1]:.1f}" r="4" fill="{colour}"/>'
        else:
            path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
            dashed = f' stroke-dasharray="{_DASHES[line]}"' if line in _DASHES else ""
            yield f'<polyline points="{path}" stroke="{colour}"{dashed}/>'
    yield f'<line class="cursor" y1="{_TOP}" y2="{_BOTTOM}" x1="-9" x2="-9"/>'


def as_json(value: object) -> str:
    """JSON that can stand in an HTML script element, whatever texts it holds."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _legend(looks: Mapping[str, tuple[str, str]]) -> str:
    if len(looks) > _MOST_NAMED:
        return f'<div class="legend">{len(looks)} curves: point at one for its name.</div>'
    entries = [
        f'<span><i style="border-top:3px {_BORDERS[line]} {colour}"></i>{escape(name)}</span>'
        for name, (colour, line) in looks.items()
    ]
    return f'<div class="legend">{"".join(entries)}</div>'


def _looks(chart: Chart, names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The colour and the line style of each curve.

    Without styles, many curves run from blue to red, so that neighbours look alike.
    """
    if not chart.styles and len(names) > len(COLOURS):
        return {
            name: (f"hsl({round(240.0 - 240.0 * number / (len(names) - 1))} 75% 42%)", "-")
            for number, name in enumerate(names)
        }
    styles = {name: chart.styles.get(name) or line_style(number) for number, name in enumerate(names)}
    return {name: (str(style["color"]), str(style.get("linestyle", "-"))) for name, style in styles.items()}


def _thin(x: _Floats, y: _Floats) -> tuple[_Floats, _Floats]:
    """The finite points of a curve; of many points those at equal distances, and the extremes."""
    good = np.isfinite(x) & np.isfinite(y)
    x, y = x[good], y[good]
    if len(x) <= _MOST_POINTS:
        return x, y
    chosen = np.linspace(0, len(x) - 1, _MOST_POINTS).round().astype(np.intp)
    # The extremes within each stretch, so that short peaks are not lost.
    bounds = np.linspace(0, len(x), _MOST_POINTS // 4 + 1).astype(np.intp)
    peaks = [start + int(pick(y[start:end])) for start, end in pairwise(bounds) for pick in (np.argmin, np.argmax)]
    chosen = np.unique([*chosen, *peaks])
    return x[chosen], y[chosen]


def _span(parts: Sequence[_Floats]) -> tuple[float, float]:
    """The range of some values, with a margin if all are equal or differ only by roundings."""
    low, high = min(float(part.min()) for part in parts), max(float(part.max()) for part in parts)
    if high - low <= _ROUNDINGS * max(abs(low), abs(high)):
        margin = 0.5 if low == 0.0 else 1e-3 * abs(low)
        return low - margin, high + margin
    return low, high


def _upright_span(parts: Sequence[_Floats], band: float) -> tuple[float, float]:
    """The range of the vertical axis: that of the curves and the band, with a margin."""
    low, high = _span(parts)
    low, high = min(low, -band) if band else low, max(high, band) if band else high
    margin = _MARGIN * (high - low)
    return low - margin, high + margin


def _short(values: _Floats) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values]
