"""Lines of cells that a smoothing step solves at once.

A step of Jacobi divides what is left of b − A·T by the diagonal. Here it is multiplied by the inverse of the part of A
within the lines along an axis: the diagonal, and the links of each cell to the next one (Trottenberg, Oosterlee &
Schüller, *Multigrid* (2001), §5.1.3). So errors are flattened along all links of the axis, however weak others are:

    T ← T + LENGTH·L⁻¹·(b − A·T)        eigenvalues of L⁻¹·A are at most 2, as for the diagonal

Elimination without differences: ``rest`` is what a cell has beside its link to the next cell, once the cells before it
are eliminated. Only positive numbers are added, so a line that hardly exchanges heat is solved too (cycle.py has the
source). The link across an end of an axis that wraps counts as one to another line.

    rest_i  = across_i + 1/(1/link_i + 1/rest_i−1)     across: ground, and links to other lines
    pivot_i = 1/(rest_i + link_i+1)                    link_i leads to the cell before
    x_i     = (b_i + link_i·x_i−1)·pivot_i
    x_i     = x_i + link_i+1·pivot_i·x_i+1             from the end
"""

from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from heatsim.kernels.multigrid.operator import Operator

# The length of a step. 0.7 to 1 were tried: up to 0.9 cycles differ by a tenth, with 1 the worst body takes twice them.
LENGTH = 0.85


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of a level along an axis.

    Attributes:
        axis: 0, 1, 2 for x, y, z.
        pivot: as above in K/W, of the level's shape [z, y, x]; 0 in cells without any conductance.
    """

    axis: int
    pivot: Any


class Span(NamedTuple):
    """Where the cells of lines lie in a run of cells; ``width`` lines lie side by side.

    Attributes:
        groups: how many times ``width`` lines there are.
        stride: from the first cells of ``width`` lines to those of the next ones.
        step: from a cell of a line to the next one.
        width: 1 along x, else the cells along x.
        begin, end: the places in a line that are solved here; another rank may have more before or after.
        before, after: 1 if it has, else 0.
    """

    groups: int
    stride: int
    step: int
    width: int
    begin: int
    end: int
    before: int
    after: int


def span_of(A: Operator, axis: int) -> Span:
    """The span of lines along an axis."""
    nz, ny, nx = A.shape
    if axis == 0:
        return Span(nz * ny, nx, 1, 1, 0, nx, 0, 0)
    if axis == 1:
        return Span(nz, ny * nx, nx, nx, 0, ny, 0, 0)
    if A.slab is None:
        return Span(ny, nx, ny * nx, nx, 0, nz, 0, 0)
    own, slab = A.slab.own, A.slab
    return Span(ny, nx, ny * nx, nx, own.start, own.stop, int(slab.first > 0), int(slab.last < slab.planes))


def set_across(xp: Any, A: Operator, lines: Lines) -> None:
    """Write to ``pivot`` what is across the lines: ground and links to other lines of each cell in W/K."""
    span, pivot, own = span_of(A, lines.axis), lines.pivot, xp.moveaxis(A.links[lines.axis], 2 - lines.axis, 0)
    pivot[...] = A.ground
    for axis, link in enumerate(A.links):
        if axis != lines.axis:
            pivot += link
            pivot += xp.roll(link, -1, 2 - axis)
    along = xp.moveaxis(pivot, 2 - lines.axis, 0)
    if not span.before:
        along[span.begin] += own[span.begin]
    if not span.after:
        along[span.end - 1] += own[span.end % len(own)]


def invert_rests(xp: Any, A: Operator, lines: Lines) -> None:
    """Make pivots of the rests."""
    along = xp.moveaxis(lines.pivot, 2 - lines.axis, 0)
    along[:-1] += xp.moveaxis(A.links[lines.axis], 2 - lines.axis, 0)[1:]
    lines.pivot[lines.pivot <= 0.0] = inf
    xp.divide(1.0, lines.pivot, out=lines.pivot)
