"""What the cells around an edge or corner add to its temperature: a local problem, solved on finer cells.

Near edges temperatures are no polynomials: neither at a concave edge, nor where a thin layer turns around it. So a
block of cells around the edge is solved once more on finer cells. It takes from the run:

- r_i, the heat that cell i gets from what is not in the block: storage, sources, other surfaces, cells beyond. It is
  what the links between the block's cells and the films at the edge leave of the balance of its temperature T_i.
- Beyond the ends of the block, and beyond its other surfaces, there is a temperature behind a resistance: that which
  brings r_i into cell i. A cell without such an end gets r_i evenly in its volume.

The temperature at the edge that two fine grids give (Richardson's extrapolation, order 2) is linear in T_i and in the
ambient temperatures. Less the mean T_e' of :mod:`heatsim.observers.edges.surface_edges`, which is linear too:

    T_e − T_e' = Σ c_i·(T_i − T_d) + Σ D_a·(T_s − T)_a       d: the cell behind the edge; a: the axes across surfaces

c and D depend on conductivities, widths and s = β/(1 + β) with β = h·d/(2k): the part of T_d − T∞ that is lost in half
a cell. They are found for some values of s and interpolated. Products T∞ + Π (1 + κ·x) in one material solve all grids
exactly, so they keep T_e' for these s; between them D gets what keeps it.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.multigrid.cycle import VCycle
from heatsim.kernels.multigrid.operator import Operator
from heatsim.kernels.multigrid.sweeps import CpuSweeps

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

CELLS = 12  # of a block on each side of the edge: the layers of most walls fit
# Of s: close where s is small, because thin plates with weak films then have their temperature from far away.
_NODES = np.clip(np.linspace(0.0, 1.0, 33) ** 2, 1e-4, 0.98)
# Cells at surfaces and at borders between materials are divided into that number of parts and twice as many from each
# such side on, by x = t·(a + (1 − a)·t): nearest to the edge, and further away; others into 1 and 2.
_PARTS, _PARTS_FURTHER, _LINEAR = 4, 2, 0.1
_NEAREST = 2  # cells on each side of the edge
_BEYOND = 0.5  # the wall beyond the ends of a block, in lengths of the block
_SOLVED = 1e-6  # the remaining part of the residual
_MOST_STEPS = 200


class Pattern(NamedTuple):
    """The cells around an edge or a corner: n = 2·CELLS along each axis; the edge lies in the middle.

    Attributes:
        conductivities: along each axis, relative to that of the cell behind the edge along the first one; float64,
            shape (axes, n, …, n); 0 for void and outside. The cell behind the edge is the last of the first half along
            each axis.
        of_planes: the widths of the cells along each axis, relative to one of them; float64, shape (axes, n).
        axes: their number.
    """

    conductivities: bytes
    of_planes: bytes
    axes: int

    @property
    def widths(self) -> Array:
        """The widths of the cells along each axis, shape (axes, n)."""
        return np.frombuffer(self.of_planes).reshape(self.axes, -1)

    @property
    def along(self) -> Array:
        """The conductivities along each axis, shape (axes, n, …, n)."""
        return np.frombuffer(self.conductivities).reshape(self.axes, *[2 * CELLS] * self.axes)


def correction(pattern: Pattern, losses: Array, temperatures: Array, rises: Array) -> Array:
    """T_e − T_e' in K of edges or corners.

    Args:
        pattern: the cells around all of them.
        losses: s on the surfaces across each axis, shape (axes, edges).
        temperatures: T_i − T_d in K of the cells that conduct, shape (edges, cells).
        rises: T_s − T in K behind the surfaces across each axis, shape (axes, edges).
    """
    node = np.clip(np.searchsorted(_NODES, losses, "right") - 1, 0, len(_NODES) - 2)
    part = np.clip((losses - _NODES[node]) / (_NODES[node + 1] - _NODES[node]), 0.0, 1.0)
    # Between the nodes of the simplex that contains s: from the lowest node along one axis after the other.
    order = np.argsort(-part, axis=0, kind="stable")
    bounds = np.vstack((np.ones(part.shape[1]), np.take_along_axis(part, order, axis=0), np.zeros(part.shape[1])))
    found = np.zeros(losses.shape[1])
    for number, shares in enumerate(bounds[:-1] - bounds[1:]):
        if number:
            node[order[number - 1], np.arange(node.shape[1])] += 1
        some = np.flatnonzero(shares)
        nodes, which = np.unique(node[:, some], axis=1, return_inverse=True)
        for place, each in enumerate(nodes.T.tolist()):
            own = some[which.reshape(-1) == place]
            of_cells, of_rises = _at(pattern, tuple(each))
            more = temperatures[own] @ of_cells + (of_rises(losses[:, own]) * rises[:, own]).sum(axis=0)
            found[own] += shares[own] * more
    return found


class _OfRises(NamedTuple):
    """D between the values of s. For products, Σ c_i·(T_i − T_d) changes with s, and D by the opposite.

    Attributes:
        at_node: D for s at the node, shape (axes,).
        node: s there, shape (axes,).
        products: Σ c_i·Π ρ of each set of axes, where ρ is the distance from cell d to i in half widths of d.
    """

    at_node: Array
    node: Array
    products: dict[tuple[int, ...], float]

    def __call__(self, losses: Array) -> Array:
        found = np.repeat(self.at_node[:, None], losses.shape[1], axis=1)
        # T∞ + (T_d − T∞)·Π (1 − s·ρ): the term of a set of axes is −(−1)^n·Π ρ times the mean of rise_a·Π s_b.
        for axes, value in self.products.items():
            for a in axes:
                others = [b for b in axes if b != a]
                more = losses[others].prod(axis=0) - self.node[others].prod()
                found[a] += (-1.0) ** len(axes) * value / len(axes) * more
        return found


@cache
def _at(pattern: Pattern, node: tuple[int, ...]) -> tuple[Array, _OfRises]:
    """The numbers c of the cells that conduct, and D, for s at nodes."""
    axes, s = pattern.axes, _NODES[list(node)]
    behind = (CELLS - 1,) * axes
    films = s / (1.0 - s) * 2.0 * np.array([along[behind] for along in pattern.along]) / pattern.widths[:, CELLS - 1]
    coarse = _Balances(pattern.along, list(pattern.widths), [CELLS] * axes, films)
    fine = [_fine(pattern, coarse, films, factor) for factor in (1, 2)]
    of_cells, of_ambients = ((4.0 * second - first) / 3.0 for first, second in zip(*fine, strict=True))
    mean, of_mean = coarse.mean()
    of_cells -= mean
    distances = [2.0 * (np.cumsum(width) - 0.5 * width) / width[CELLS - 1] for width in pattern.widths]
    places = np.meshgrid(*[each - each[CELLS - 1] for each in distances], indexing="ij")
    products = {
        some: float((of_cells * np.prod([places[axis] for axis in some], axis=0)).sum())
        for count in range(2, axes + 1)
        for some in combinations(range(axes), count)
    }
    return of_cells[coarse.conducts], _OfRises((of_ambients - of_mean) / s, s, products)


def _fine(pattern: Pattern, coarse: "_Balances", films: Array, factor: int) -> tuple[Array, Array]:
    """What T_e on finer cells has of the temperatures of cells and of the ambient temperatures across each axis."""
    parts, widths = list[NDArray[np.intp]](), list[Array]()
    for axis, along in enumerate(pattern.widths):
        numbers, of_axis = _divided(np.moveaxis(pattern.along, 1 + axis, 1), along, factor)
        parts.append(numbers)
        widths.append(of_axis)

    def spread(values: Array, first: int = 0) -> Array:
        for axis, numbers in enumerate(parts):
            values = np.repeat(values, numbers, axis=first + axis)
        return values

    def total(values: Array) -> Array:
        for axis, numbers in enumerate(parts):
            values = np.add.reduceat(values, np.cumsum(numbers) - numbers, axis=axis)
        return values

    block = _Balances(spread(pattern.along, 1), widths, [int(each[:CELLS].sum()) for each in parts], films)
    mean, of_mean = block.mean()
    influence = block.solve(mean)
    # T_e = Σ influence·(heat): r_i/V_i in the volumes, or (T_i + r_i/Σ ends)·end at the ends; r = A·T − films·T∞.
    ends = np.sum(coarse.ends, axis=0)
    at_ends = total(influence * np.sum(block.ends, axis=0))
    for axis, (along, finer, numbers) in enumerate(zip(pattern.widths, widths, parts, strict=True)):
        centres = np.cumsum(along) - 0.5 * along
        offsets = np.cumsum(finer) - 0.5 * finer - np.repeat(centres, numbers)
        others = [other for other in range(pattern.axes) if other != axis]
        through = influence * np.sum([block.ends[other] for other in others], axis=0)
        moments = total(through * offsets.reshape([-1 if other == axis else 1 for other in range(pattern.axes)]))
        ended = np.any([coarse.ends[other] > 0.0 for other in others], axis=0)
        too = coarse.ends[axis] > 0.0
        at_ends += _of_slopes(moments, ended & ~too, ended & too, pattern.along, centres, axis)
    in_volumes = total(influence * block.volumes) / coarse.volumes
    of_heat = np.where(ends > 0.0, at_ends / np.where(ends > 0.0, ends, 1.0), in_volumes)
    of_cells = np.where(ends > 0.0, at_ends, 0.0) + coarse.gained(of_heat)
    of_ambients = [
        (influence * own).sum() - (of_heat * of_coarse).sum()
        for own, of_coarse in zip(block.films, coarse.films, strict=True)
    ]
    return of_cells, of_mean + np.array(of_ambients)


def _of_slopes(moments: Array, ended: Mask, bent: Mask, conductivities: Array, centres: Array, axis: int) -> Array:
    """The parts of temperatures beyond ends in Σ moment·slope, with their slopes along an axis within one material.

    A slope is the mean of the differences to the neighbours that have such ends; where an end bends, the neighbour's.

    Args:
        moments: of what passes the ends across other axes.
        ended: which cells have ends across other axes only.
        bent: which cells have ends across this axis and others.
        conductivities: of the cells along each axis.
        centres: of the cells along the axis.
        axis: its number.
    """
    same = np.all(np.diff(conductivities, axis=1 + axis) == 0.0, axis=0)
    ended, bent, same = (np.moveaxis(of, axis, 0) for of in (ended, bent, same))
    moments = np.moveaxis(moments, axis, 0)
    pairs = same & ended[1:] & ended[:-1]
    every, count, found = moments * ended, np.zeros(moments.shape), np.zeros(moments.shape)
    every[1:] += (moments * bent)[:-1] * (same & ended[1:])
    every[:-1] += (moments * bent)[1:] * (same & ended[:-1])
    count[1:] += pairs
    count[:-1] += pairs
    each = every / np.maximum(count, 1.0)
    change = pairs * (each[1:] + each[:-1]) / np.diff(centres).reshape([-1, *[1] * (moments.ndim - 1)])
    found[1:] += change
    found[:-1] -= change
    return np.moveaxis(found, 0, axis)


def _divided(conductivities: Array, widths: Array, factor: int) -> tuple[NDArray[np.intp], Array]:
    """The number of parts of each cell along an axis, and the widths of all parts.

    Args:
        conductivities: of the cells; the axis comes second.
        widths: of the cells along it.
        factor: 1 or 2: parts are halved.
    """
    marked = np.append(
        np.append(False, np.any(np.diff(conductivities, axis=1), axis=(0, *range(2, conductivities.ndim)))), False
    )
    marked[CELLS] = True
    found = list[Array]()
    for place, width in enumerate(widths.tolist()):
        low, high = bool(marked[place]), bool(marked[place + 1])
        parts = _PARTS if CELLS - _NEAREST <= place < CELLS + _NEAREST else _PARTS_FURTHER
        number = factor * (parts if low or high else 1) * (2 if low and high else 1)
        if place in (0, len(widths) - 1) or not conductivities[:, place].any():
            number = 1
        at = np.linspace(0.0, 1.0, number + 1)
        if low and high:
            at = np.where(at < 0.5, 0.5 * _stretched(2.0 * at), 1.0 - 0.5 * _stretched(2.0 - 2.0 * at))
        elif low or high:
            at = _stretched(at) if low else 1.0 - _stretched(1.0 - at)
        found.append(width * np.diff(at))
    return np.array([len(of_cell) for of_cell in found]), np.concatenate(found)


def _stretched(part: Array) -> Array:
    return part * (_LINEAR + (1.0 - _LINEAR) * part)


class _Balances:
    """The heat balances of cells around an edge.

    Args:
        conductivities: along each axis, shape (axes, …).
        widths: of the cells along each axis.
        middle: the number of cells before the edge along each axis.
        films: h on the surfaces at the edge across each axis.

    Attributes:
        conducts: which cells conduct.
        volumes: of the cells.
        films: for each axis the conductance from each cell through surfaces that lie in a plane through the edge.
        ends: for each axis the conductance from each cell to what is beyond the block and its other surfaces.
    """

    def __init__(self, conductivities: Array, widths: list[Array], middle: Sequence[int], films: Array) -> None:
        axes, shape = len(widths), conductivities.shape[1:]
        self._conductivities, self._widths, self._middle, self._h = conductivities, widths, middle, films
        self.conducts = conductivities[0] > 0.0
        self.volumes = np.ones(shape)
        for axis, along in enumerate(widths):
            self.volumes *= along.reshape([-1 if other == axis else 1 for other in range(axes)])
        self.films, self.ends = ([np.zeros(shape) for _ in range(axes)] for _ in range(2))
        self._links = list[Array]()
        self._diagonal = np.zeros(shape)
        for axis, (along, at, h) in enumerate(zip(widths, middle, films.tolist(), strict=True)):
            k, volume, end, film, total = (
                np.moveaxis(of, axis, 0)
                for of in (conductivities[axis], self.volumes, self.ends[axis], self.films[axis], self._diagonal)
            )
            solid = np.moveaxis(self.conducts, axis, 0)
            width = along.reshape([-1, *[1] * (axes - 1)])
            area, k = volume / width, np.where(solid, k, 1.0)
            half = 0.5 * width / k
            link = area[1:] / (half[1:] + half[:-1]) * (solid[1:] & solid[:-1])
            total[1:] += link
            total[:-1] += link
            self._links.append(np.moveaxis(link, 0, axis))
            through = area / (half + 1.0 / h)
            # Other surfaces have the film of those at the edge: what they pass is given, so it hardly matters.
            other = (np.arange(len(along) - 1) != at - 1).reshape([-1, *[1] * (axes - 1)])
            for cells, beyond in ((slice(None, -1), slice(1, None)), (slice(1, None), slice(None, -1))):
                towards = solid[cells] & ~solid[beyond]
                film[cells] += through[cells] * (towards & ~other)
                end[cells] += through[cells] * (towards & other)
            for cell in (0, -1):
                end[cell] += area[cell] / (half[cell] + _BEYOND * along.sum() / k[cell]) * solid[cell]
        self._diagonal += np.sum(self.films, axis=0)

    def gained(self, temperatures: Array) -> Array:
        """The heat that leaves each cell through links and films, with ambient temperatures of 0."""
        found = self._diagonal * temperatures
        for axis, link in enumerate(self._links):
            total, of_cells, link = (np.moveaxis(of, axis, 0) for of in (found, temperatures, link))
            total[1:] -= link * of_cells[:-1]
            total[:-1] -= link * of_cells[1:]
        return found

    def solve(self, heat: Array) -> Array:
        """The temperatures with some heat in each cell, all beyond the block and ambient temperatures of 0.

        Conjugate gradients in float64, preconditioned by multigrid.
        """
        ends, approximate = np.sum(self.ends, axis=0), self._approximate_inverse()
        found, left = np.zeros(heat.shape), heat.copy()
        scaled = approximate(left)
        towards, size = scaled.copy(), float((left * scaled).sum())
        least = _SOLVED**2 * size
        for _ in range(_MOST_STEPS):
            if size <= least:
                break
            change = self.gained(towards) + ends * towards
            step = size / float((towards * change).sum())
            found += step * towards
            left -= step * change
            scaled = approximate(left)
            before, size = size, float((left * scaled).sum())
            towards = scaled + size / before * towards
        return found

    def _approximate_inverse(self) -> Callable[[Array], Array]:
        """One V-cycle, for the heat of cells and scaled to 1, because it is in float32."""
        shape = (1,) * (3 - len(self._links)) + self.conducts.shape
        links = [np.zeros(shape, np.float32) for _ in range(3)]  # along x, y, z: the last axis first
        for axis, link in enumerate(self._links):
            before = [(int(other == axis), 0) for other in range(len(self._links))]
            links[len(self._links) - 1 - axis][...] = np.pad(link, before).reshape(shape)
        ground = (np.sum(self.films, axis=0) + np.sum(self.ends, axis=0)).astype(np.float32).reshape(shape)
        x, y, z = links
        cycle = VCycle(np, CpuSweeps(), Operator((x, y, z), ground, graded=True))
        out, spare = np.empty(shape, np.float32), np.empty(shape, np.float32)

        def solve(heat: Array) -> Array:
            largest = float(np.abs(heat).max()) or 1.0
            cycle.solve((heat / largest).astype(np.float32).reshape(shape), out, spare)
            return largest * out.reshape(heat.shape).astype(np.float64)

        return solve

    def mean(self) -> tuple[Array, Array]:
        """T_e' of the temperatures of the cells and of the ambient temperatures across each axis: the parts of each."""
        axes = len(self._widths)
        behind = np.array([along[at - 1] for along, at in zip(self._widths, self._middle, strict=True)])
        around = tuple(slice(at - 1, at + 1) for at in self._middle)
        k = np.array([along[around] for along in self._conductivities])
        weights = np.zeros((2,) * axes)
        convex = np.count_nonzero(k[0]) == 1
        of_cells, of_ambients = np.zeros((2,) * axes), np.zeros(axes)
        for cell in product((0, 1), repeat=axes):
            own = np.array([along[cell] for along in k])
            if own[0] > 0.0:
                sizes = [along[at - 1 + side] for along, at, side in zip(self._widths, self._middle, cell, strict=True)]
                weights[cell] = 1.0 / (behind / own).sum() / np.prod(np.array(sizes) / behind)
        weights /= weights.sum()
        for cell in product((0, 1), repeat=axes):
            own, weight = np.array([along[cell] for along in k]), weights[cell]
            if weight == 0.0:
                continue
            beta = self._h * behind / (2.0 * own)
            s = beta / (1.0 + beta)
            across = [axis for axis in range(axes) if cell[axis] == 0]
            if convex:  # one surface after the other
                parts = np.array([s[axis] * np.prod(1.0 - s[axis + 1 :]) for axis in range(axes)])
            else:  # of one axis its own surface, of several their product
                parts = np.zeros(axes)
                those = across[1:] if len(across) == 2 else across
                parts[those] = s[across].prod() / len(those)
            of_cells[cell] = weight * (1.0 - parts.sum())
            of_ambients += weight * parts
        found = np.zeros(self.volumes.shape)
        found[around] = of_cells
        return found, of_ambients
