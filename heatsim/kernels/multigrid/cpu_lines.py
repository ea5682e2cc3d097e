"""Lines of cells that are solved at once, on the CPU: compiled by numba (lines.py)."""

from typing import Any

import numpy as np

from heatsim.kernels.multigrid.cpu_sweeps import compiled, inlined
from heatsim.kernels.multigrid.lines import Span


@inlined
def _cells(span: Span, line: int, place: int) -> Any:
    """The first cell of lines side by side, the one after the last, and the steps to the cell before or after."""
    here = np.uint64(line * span.stride + place * span.step)
    return here, here + np.uint64(span.width), np.uint64(span.step)


@compiled
def join(link: Any, rest: Any, span: Span, first: int, last: int) -> None:
    """Rests of the cells of lines, where ``rest`` holds what is across them; see lines.py."""
    for line in range(first, last):
        for place in range(span.begin + 1 - span.before, span.end):
            here, end, step = _cells(span, line, place)
            for i in range(here, end):
                before = rest[i - step]
                total = link[i] + before
                rest[i] += before * (link[i] / total) if total > 0 else total - total


@compiled
def solve_lines(
    link: Any, pivot: Any, b: Any, out: Any, tau: Any, forth: bool, back: bool, span: Span, first: int, last: int
) -> None:
    """Eliminate from the begin of lines, ``forth``, and substitute from their end, ``back``."""
    for line in range(first, last):
        x = tau - tau  # along x; a store that is read at once takes long
        for place in range(span.begin, span.end if forth else span.begin):
            here, end, step = _cells(span, line, place)
            if span.width == 1:
                x = tau * b[here] * pivot[here] + (link[here] * pivot[here] * x if place > 0 else x)
                out[here] = x
            elif place == span.begin and not span.before:
                for i in range(here, end):
                    out[i] = tau * b[i] * pivot[i]
            else:
                for i in range(here, end):
                    out[i] = tau * b[i] * pivot[i] + link[i] * pivot[i] * out[i - step]
        x = out[_cells(span, line, span.end - 1)[0]]
        for place in range(span.end - 2 + span.after if back else -1, span.begin - 1, -1):
            here, end, step = _cells(span, line, place)
            if span.width == 1:
                x = out[here] + link[here + step] * pivot[here] * x
                out[here] = x
            else:
                for i in range(here, end):
                    out[i] += link[i + step] * pivot[i] * out[i + step]
