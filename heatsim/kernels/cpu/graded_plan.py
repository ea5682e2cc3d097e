"""What graded_sums.py and varying_cells.py need of a body whose cells have several widths."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.cpu.composite_body import Field, HostBody
from heatsim.kernels.cpu.composite_layout import CompositeLayout
from heatsim.kernels.cpu.planes import LINK, Planes, factors_of
from heatsim.kernels.cpu.ring_axes import RingAxes, Shape
from heatsim.kernels.cpu.tiling import LINE, zeros_on_lines


def graded_fields(
    layout: CompositeLayout, body: HostBody, links: Field, shape: Shape, axes: RingAxes
) -> dict[str, Any]:
    """The fields of a plan that differ from those of equal cells.

    Args:
        layout: of the body.
        body: the body.
        links: c1…c6 of every stencil in cells of the mean widths, without weights, in the order of the grid's axes;
            shape (stencils, 6). The first ones are those of cells inside each type.
        shape: cells along z, y, x.
        axes: those of the ring.
    """
    order = [2 * axis + side for axis in axes for side in (0, 1)]
    links, weights = (np.ascontiguousarray(of[:, order]) for of in (links, layout.stencils.weights))
    of_grid = factors_of(body.planes, shape, links.dtype)
    of_ring = of_grid[axes.x], of_grid[axes.y], of_grid[axes.z]
    x = of_ring[0]
    types, nx, line = int(layout.stencils.own.max()) + 1, x.shape[1], LINE // links.itemsize
    # Sums of runs are whole vectors, beyond the end of a row too.
    width = (-(-nx // line) + 1) * line
    inside = zeros_on_lines((types, 2, width), links.dtype)
    inside[:, :, :nx] = links[:types, :2, None] * x[LINK : LINK + 2]
    return {
        "c": np.hstack((np.zeros_like(links[:, :1]), links)),
        "ring_weights": weights,
        "links_x": inside,
        "links_width": width,
        "links_stride": 2 * width,
        **dict(zip(("planes_x", "planes_y", "planes_z"), of_ring, strict=True)),
        **_dense(layout, links, weights, x),
        **(_stretches(layout, links, weights, of_ring) if not body.enthalpies.vary else {}),
    }


def _dense(layout: CompositeLayout, links: Field, weights: Field, x: Field) -> dict[str, Any]:
    """c1…c6 of all cells of dense rows, shape (dense rows, 6, stride); c1 and c2 have factors and weights."""
    stencils = layout.dense.stencils
    line = LINE // links.itemsize
    stride = -(-stencils.shape[1] // line) * line
    dense = zeros_on_lines((len(stencils), 6, stride), links.dtype)
    own = dense[:, :, : stencils.shape[1]]
    own[...] = np.moveaxis(links[stencils], -1, 1)
    own[:, :2] *= x[LINK : LINK + 2]
    own[:, :2] *= np.moveaxis(weights[stencils, :2], -1, 1)
    return {"dense_c": dense, "dense_stride": stride}


def _stretches(layout: CompositeLayout, links: Field, weights: Field, ring: Planes) -> dict[str, Any]:
    """Odd cells that lie beside each other, and their c1…c6: six times as many numbers as a stretch has cells."""
    odd, ny = layout.odd, ring[1].shape[1]
    row = np.repeat(np.arange(len(odd.first) - 1), np.diff(odd.first))
    places: tuple[NDArray[Any], ...] = odd.x, row % ny, row // ny
    factors = [factors[LINK + side, place] for factors, place in zip(ring, places, strict=True) for side in (0, 1)]
    c = links[odd.stencil] * np.stack(factors, axis=1) * weights[odd.stencil]
    follows = (np.diff(odd.x, prepend=-2) == 1) & (np.diff(row, prepend=-1) == 0)
    begin = np.flatnonzero(~follows)
    count = np.diff(np.append(begin, len(row)))
    within = np.arange(len(row)) - np.repeat(begin, count)
    at = (6 * np.repeat(begin, count) + within)[:, None] + np.arange(6) * np.repeat(count, count)[:, None]
    own = np.empty(c.size, c.dtype)
    own[at] = c
    return {
        "stretch_first": np.searchsorted(begin, odd.first).astype(np.int32),
        "stretch_x": odd.x[begin],
        "stretch_count": count.astype(np.int32),
        "stretch_odd": begin.astype(np.int64),
        "odd_c": own,
        "odd_type": layout.stencils.own[odd.stencil],
    }
