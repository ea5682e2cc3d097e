"""Curves over time: temperatures at the probes, and the energy balance."""

from pathlib import Path
from textwrap import fill, shorten
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.render.figure import new_figure
from heatsim.render.scales import ENERGIES, POWERS, TIMES, TemperatureScale, Unit, choose_unit

# Lines differ by colour; when the colours repeat, they differ by dashes.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_DASHES = ("-", "--", ":", "-.")
_MOST_IN_LEGEND = 28


def _line_style(number: int) -> dict[str, Any]:
    dashes = _DASHES[number // len(_COLOURS) % len(_DASHES)]
    return {"color": _COLOURS[number % len(_COLOURS)], "linestyle": dashes, "linewidth": 2.0}


def _finish(axes: Any, unit: Unit, times: NDArray[np.float64]) -> None:
    axes.set_xlabel(f"Time ({unit.symbol})")
    if times[-1] > times[0]:
        axes.set_xlim(times[0] / unit.size, times[-1] / unit.size)
    axes.grid(alpha=0.25)


def _add_legend(axes: Any, lines: dict[str, Any]) -> None:
    texts = [fill(shorten(name, 60, placeholder=" …"), 20) for name in lines][:_MOST_IN_LEGEND]
    handles = list(lines.values())[:_MOST_IN_LEGEND]
    remark = f"{_MOST_IN_LEGEND} of {len(lines)}" if len(lines) > _MOST_IN_LEGEND else None
    axes.legend(handles, texts, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, title=remark)


def draw_temperatures(
    path: Path, title: str, times: NDArray[np.float64], curves: dict[str, NDArray[np.float64]]
) -> None:
    """Draw temperatures in K over times in s, one curve for each name."""
    everything = np.stack(list(curves.values()))
    scale = TemperatureScale.spanning(float(everything.min()), float(everything.max()), np.float32)
    unit = choose_unit(TIMES, float(times[-1]))
    with new_figure(path, title) as figure:
        axes = figure.add_axes((0.085, 0.09, 0.7, 0.82))
        marker = "o" if len(times) == 1 else None
        lines = {
            name: axes.plot(times / unit.size, scale.drawn(values), marker=marker, **_line_style(number))[0]
            for number, (name, values) in enumerate(curves.items())
        }
        if scale.uniform:
            axes.set_ylim(*scale.limits)
        axes.set_ylabel(scale.label)
        _finish(axes, unit, times)
        _add_legend(axes, lines)


def _join_equal(curves: dict[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    """Merge equal curves, such as those of a symmetric body's faces, which would hide each other."""
    tolerance = 2e-3 * max(float(np.abs(values).max()) for values in curves.values())
    groups: list[tuple[list[str], NDArray[np.float64]]] = []
    for name, values in curves.items():
        same = [names for names, others in groups if name != "sources" and np.all(np.abs(values - others) <= tolerance)]
        if same and same[0] != ["stored"]:
            same[0].append(name)
        else:
            groups.append(([name], values))
    return {(", ".join(names) + (" (each)" if len(names) > 1 else "")): values for names, values in groups}


def draw_energy(
    path: Path,
    title: str,
    times: NDArray[np.float64],
    columns: dict[str, NDArray[np.float64]],
    bound: float | None,
) -> None:
    """Draw the energy ledger: stored heat, sources and faces above, the residual and its bound below.

    Args:
        path: the picture.
        title: its title.
        times: of the rows, in s.
        columns: the heats of energy.csv by name, in J since the start, and the residual.
        bound: the bound of the residual at the end, in J; None if it is unknown.
    """
    terms = {name: columns[name] for name in ("stored", "sources", *FACES) if name in columns}
    # Insulated faces would only add lines at zero.
    shown = {name: values for name, values in terms.items() if name == "stored" or np.any(values != 0.0)}
    quiet = [name for name in terms if name not in shown]
    residual = columns["residual"]
    time_unit = choose_unit(TIMES, float(times[-1]))
    energy_unit = choose_unit(ENERGIES, max(float(np.abs(values).max()) for values in shown.values()))
    largest = float(np.abs(residual).max())
    # A much larger bound would flatten the residual to a straight line; write it as text instead.
    bound_in_sight = bound is not None and bound <= 20.0 * largest
    residual_unit = choose_unit(ENERGIES, max(largest, bound or 0.0) if bound_in_sight else largest)
    marker = "o" if len(times) == 1 else None
    with new_figure(path, title) as figure:
        upper = figure.add_axes((0.095, 0.37, 0.7, 0.54))
        lines = {
            text: upper.plot(times / time_unit.size, values / energy_unit.size, marker=marker, **_line_style(number))[0]
            for number, (text, values) in enumerate(_join_equal(shown).items())
        }
        lines["stored"].set(color="black", linewidth=3.0, linestyle="-")
        upper.set_ylabel(f"Heat into the body since the start ({energy_unit.symbol})")
        _finish(upper, time_unit, times)
        upper.set_xlabel("")
        upper.tick_params(labelbottom=False)
        _add_legend(upper, lines)
        if quiet:
            figure.text(0.803, 0.38, "Zero throughout:\n" + "\n".join(quiet), va="bottom", color="#444444", fontsize=12)

        lower = figure.add_axes((0.095, 0.09, 0.7, 0.22))
        lower.plot(times / time_unit.size, residual / residual_unit.size, color="black", marker=marker)
        if bound is not None:
            bound_unit = choose_unit(ENERGIES, bound)
            remark = f"Allowed at the end:\n±{bound / bound_unit.size:.3g} {bound_unit.symbol}"
            figure.text(0.803, 0.305, remark, va="top", color="#444444", fontsize=12)
        if bound is not None and bound_in_sight:
            for sign in (-1.0, 1.0):
                lower.axhline(sign * bound / residual_unit.size, color="#d55e00", linestyle="--", linewidth=1.5)
        lower.set_ylabel(f"Residual ({residual_unit.symbol})")
        _finish(lower, time_unit, times)
        figure.align_ylabels()


def draw_flows(path: Path, title: str, flows: dict[str, float], imbalance: float) -> None:
    """Heat flows of a steady state as bars, those into the body to the right.

    Args:
        path: the picture.
        title: its title.
        flows: in W by name.
        imbalance: the sum of the heat flows, in W.
    """
    shown = {name: heat for name, heat in flows.items() if heat != 0.0}
    rest = {name: shown.pop(name) for name in sorted(shown, key=lambda name: abs(shown[name]))[:-_MOST_IN_LEGEND]}
    if rest:
        shown[f"{len(rest)} others"] = sum(rest.values())
    unit = choose_unit(POWERS, max((abs(heat) for heat in shown.values()), default=0.0))
    with new_figure(path, title) as figure:
        axes = figure.add_axes((0.2, 0.12, 0.75, 0.78))
        values = [heat / unit.size for heat in shown.values()]
        colours = [_COLOURS[1] if value > 0.0 else _COLOURS[0] for value in values]
        bars = axes.barh([shorten(name, 24, placeholder=" …") for name in shown], values, color=colours)
        axes.bar_label(bars, labels=[f"{value:.4g}" for value in values], padding=4)
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.axvline(0.0, color="black", linewidth=1.0)
        axes.grid(axis="x", alpha=0.25)
        axes.set_xlabel(f"Heat flow into the body ({unit.symbol})")
        figure.text(0.95, 0.02, f"Imbalance {imbalance:.2g} W", ha="right", color="#444444", fontsize=12)
