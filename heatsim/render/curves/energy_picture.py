"""Pictures of where heat goes: the energy balance over time, and the heat flows of a steady state."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from textwrap import fill, shorten
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.amounts import ENERGIES, POWERS, TIMES, Unit, choose_unit, format_amount
from heatsim.counts import counted, minus, plain
from heatsim.render.curves.curves import COLOURS, draw_numbers, finish_times, line_style
from heatsim.render.curves.energy_balance import EnergyBalance, SteadyFlows
from heatsim.render.curves.flow_curves import FlowCurves
from heatsim.render.page.figure import QUIET, SMALL, add_axes, add_text, new_figure

_Floats = NDArray[np.float64]

_MOST_PARTS = 14  # rows of the table beside the curves
_MOST_FLOWS = 24
_LEFT, _RIGHT, _TABLE, _EDGE = 150, 950, 1000, 1570  # pixels
_ROW = 44
_FEW_ROWS = 12  # up to this number points mark the rows: lines between them are not results
# A heat flow smaller than this part of all together is rounding.
_NEGLIGIBLE = 1e-9
STORED_STYLE = {"color": "black", "linewidth": 1.8}


def draw_energy(path: Path, title: str, balance: EnergyBalance, start: datetime | None = None) -> None:
    """Draw all terms of the energy balance over time, and beside them a table of the end that adds up.

    What is only rounding is named in the table. If nothing else is there, the scale is that of the rounding, which a
    grey band shows.
    """
    shown = parts_to_draw(balance)
    terms = [balance.stored, *shown.values()]
    largest = max(float(np.abs(term).max()) for term in terms)
    unit = choose_unit(ENERGIES, max(largest, balance.noise) if balance.only_noise else largest)
    with new_figure(path, title, 1600, 1000) as figure:
        upper = add_axes(figure, _LEFT, 330, _RIGHT - _LEFT, 580)
        lower = add_axes(figure, _LEFT, 100, _RIGHT - _LEFT, 150)
        times = choose_unit(TIMES, float(balance.times[-1]))
        marker = "o" if len(balance.times) <= _FEW_ROWS else None
        for values, look in zip(terms, [STORED_STYLE, *map(line_style, range(len(shown)))], strict=True):
            upper.plot(balance.times / times.size, values / unit.size, marker=marker, **look)
        if balance.only_noise:
            _add_band(upper, balance.noise / unit.size)
        upper.set_ylabel(f"Heat into the body ({unit.symbol})")
        finish_times(upper, times, balance.times, start)
        upper.set_xlabel("")
        upper.tick_params(labelbottom=False)
        _draw_residual(lower, balance, marker)
        finish_times(lower, times, balance.times, start)
        figure.align_ylabels()
        _add_table(figure, balance, shown, unit)
        below = [] if balance.only_noise else balance.negligible()
        remarks = [balance.describe_residual()]
        if balance.only_noise:
            size = "within rounding (grey band)" if balance.noise else "zero"
            remarks.insert(0, f"All heats are {size}: no heat flows.")
        if below:
            remarks.insert(0, f"Zero, or rounding only: {', '.join(below)}.")
        if balance.hidden:
            remarks.insert(0, balance.hidden)
        text = "\n\n".join(fill(remark, 37) for remark in remarks)
        add_text(figure, _TABLE, 90, text, va="bottom", color=QUIET, fontsize=SMALL)


def parts_to_draw(balance: EnergyBalance) -> dict[str, _Floats]:
    """The parts to draw, the small ones joined if there are too many."""
    parts = balance.real()
    by_size = sorted(parts, key=lambda name: -float(np.abs(parts[name]).max()))
    if len(by_size) <= _MOST_PARTS:
        return parts
    kept, others = by_size[: _MOST_PARTS - 1], by_size[_MOST_PARTS - 1 :]
    joined = np.sum([parts[name] for name in others], axis=0)
    return {name: heat for name, heat in parts.items() if name in kept} | {f"{len(others)} others": joined}


def styles_of_terms(balance: EnergyBalance) -> dict[str, dict[str, Any]]:
    """The look of each term of the energy balance that is drawn."""
    return {"stored": STORED_STYLE, **{name: line_style(number) for number, name in enumerate(parts_to_draw(balance))}}


def styles_of_flows(names: Iterable[str], balance: EnergyBalance) -> dict[str, dict[str, Any]]:
    """The look of heat flows: a term looks as in the balance; other flows get unused colours and line styles."""
    names, known = list(names), styles_of_terms(balance)
    free = count(len(known) - 1 if known.keys() & set(names) else 0)
    return {name: known.get(name) or line_style(next(free)) for name in names}


def _add_band(axes: Any, half: float) -> None:
    axes.axhspan(-half, half, color="#dddddd", linewidth=0.0, zorder=0.5)
    if half > 0.0:
        axes.set_ylim(-1.4 * half, 1.4 * half)


def _draw_residual(axes: Any, balance: EnergyBalance, marker: str | None) -> None:
    """The residual within the band of its bound."""
    times = choose_unit(TIMES, float(balance.times[-1]))
    largest = float(np.abs(balance.residual).max())
    band = balance.noise if balance.bound is None else balance.bound
    unit = choose_unit(ENERGIES, max(band, largest))
    _add_band(axes, band / unit.size)
    axes.plot(balance.times / times.size, balance.residual / unit.size, color="black", marker=marker)
    if largest > band:
        axes.autoscale(axis="y")
    axes.set_ylabel(f"Residual ({unit.symbol})")


def _add_table(figure: Any, balance: EnergyBalance, shown: dict[str, _Floats], unit: Unit) -> None:
    """The terms at the end: the parts, the residual, and below the line the stored heat, which is their sum."""
    ends = {name: float(heat[-1]) for name, heat in shown.items()}
    rest = float(balance.stored[-1]) - sum(ends.values())
    largest = max(map(abs, (*ends.values(), float(balance.stored[-1]))), default=0.0) / unit.size
    decimals = max(0, 4 - len(str(int(largest))))
    y = 895.0
    add_text(figure, _TABLE, y, "At the end", fontweight="bold", va="center")
    add_text(figure, _EDGE, y, unit.symbol, fontweight="bold", va="center", ha="right")
    rows: list[tuple[str, float, dict[str, Any] | None]] = [
        (name, value, line_style(number)) for number, (name, value) in enumerate(ends.items())
    ]
    rows += [("residual" if balance.only_noise or not balance.negligible() else "residual, rounding", rest, None)]
    for name, value, look in [*rows, ("stored (the sum)", float(balance.stored[-1]), STORED_STYLE)]:
        y -= _ROW
        if look is STORED_STYLE:
            _add_line(figure, _TABLE, _EDGE, y + 0.5 * _ROW, {"color": "black", "linewidth": 0.6})
        if look is not None:
            _add_line(figure, _TABLE, _TABLE + 50, y, look)
        add_text(figure, _TABLE + 65, y, shorten(name, 26, placeholder=" …"), va="center", fontsize=7.5)
        text = minus(f"{round(value / unit.size, decimals) + 0.0:.{decimals}f}")
        add_text(figure, _EDGE, y, text, va="center", ha="right", fontsize=7.5)


def _add_line(figure: Any, left: float, right: float, y: float, look: dict[str, Any]) -> None:
    from matplotlib.lines import Line2D

    across, up = figure.get_size_inches() * figure.dpi
    line = Line2D([left / across, right / across], [y / up, y / up], transform=figure.transFigure, **look)
    figure.add_artist(line)


def draw_flow_curves(
    path: Path, title: str, curves: FlowCurves, balance: EnergyBalance, start: datetime | None = None
) -> None:
    """Draw heat flows over time, with the colours of the energy balance."""
    label = f"Heat flow into the body ({curves.unit.symbol})"
    styles = styles_of_flows(curves.flows, balance)
    draw_numbers(path, title, curves.times, curves.flows, label, curves.limits, styles, start)


def draw_flows(path: Path, title: str, found: SteadyFlows) -> None:
    """Heat flows of a steady state as bars, those into the body to the right.

    Args:
        path: the picture.
        title: its title.
        found: the heat flows.
    """
    imbalance, both = found.imbalance, found.both
    noise = max(abs(imbalance), _NEGLIGIBLE * 2.0 * found.turnover)
    # The bars of a flow: what enters and what leaves, or their difference where one of them hardly counts.
    bars_of: dict[str, tuple[float, ...]] = {name: (heat,) for name, heat in found.flows.items()}
    bars_of |= {name: (entering, -leaving) for name, (entering, leaving) in both.items()}
    shown = {name: bars for name, bars in bars_of.items() if max(map(abs, bars)) > noise} or bars_of
    below = [name for name in found.flows if name not in shown]
    by_size = sorted(shown, key=lambda name: max(map(abs, shown[name])))
    rest = {name: shown.pop(name) for name in by_size[:-_MOST_FLOWS]}
    if rest:
        shown[counted(len(rest), "other")] = (sum(map(sum, rest.values())),)
    unit = choose_unit(POWERS, max((abs(heat) for bars in shown.values() for heat in bars), default=0.0))
    height = 300 + 50 * max(len(shown), 6)
    with new_figure(path, title, 1600, height) as figure:
        axes = add_axes(figure, 420, 190, 1100, height - 280)
        rows = [row for row, bars in enumerate(shown.values()) for _ in bars]
        values = [heat / unit.size for bars in shown.values() for heat in bars]
        bars = axes.barh(
            rows, values, color=[COLOURS[1] if value > 0.0 else COLOURS[0] for value in values], height=0.7
        )
        axes.set_yticks(range(len(shown)), _names(shown))
        axes.bar_label(bars, labels=[plain(value, 4) for value in values], padding=3, fontsize=7.5)
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.axvline(0.0, color="black", linewidth=0.6)
        axes.grid(axis="x", alpha=0.25)
        axes.set_xlabel(f"Heat flow into the body ({unit.symbol})")
        entering, leaving = (sum(way) for way in zip(*found.gross.values(), strict=True))
        remark = (
            f"In {plain(entering / unit.size, 4)} {unit.symbol}, out {plain(leaving / unit.size, 4)} {unit.symbol}, "
            f"imbalance {format_amount(imbalance, POWERS, 2)}{'' if found.none else f' ({found.part})'}."
        )
        remark += f" {found.hidden}" if found.hidden else ""
        if below:
            remark += f" Zero within the imbalance: {shorten(', '.join(below), 60, placeholder=' …')}."
        add_text(figure, 40, 40, fill(remark, 110), color=QUIET, fontsize=SMALL, va="center")


def _names(flows: Iterable[str]) -> Sequence[str]:
    return [shorten(name, 26, placeholder=" …") for name in flows]
