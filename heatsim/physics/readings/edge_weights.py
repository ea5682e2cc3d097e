"""The weights of cells behind a concave edge or corner in its temperature, for any Biot number h·d/(2k).

Behind a concave edge temperatures are no polynomials, neither between the centres of cells nor in what a grid makes of
them. So a small problem of the same kind is solved on the grid and on one that is fine at the edge: a few cells on each
side with their conductivities, the films at the edge, and a temperature beyond its end on one side after the other. The
weights of the cells are those that give the temperatures of the fine grid at the edge.

In the formula T_e = Σ w_i·T_i' of :mod:`heatsim.physics.readings.surface_edges` the cells beside the edge get

    T_e = Σ w_i·T_i' + Σ c_i·(T_i − L_i)

where L_i continues the temperature of the cell behind the edge, d, to that cell: L = T∞ + Π (1 − 2·s)·(T_d − T∞), with
the axes on which they lie apart; 1 + (width of i)/(width of d) stands for 2 between cells of different widths. So
fields T∞ + Π (1 + κ·x), for which the first sum is exact, keep their value. s = β/(1 + β) with β = h·d/(2k) is the
part of T_d − T∞ that is lost in half a cell. c(s) is interpolated.
"""

from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CELLS = {2: 6, 3: 3}  # on each side of an edge, of a corner
_NODES = np.clip(np.linspace(0.0, 1.0, 9), 0.02, 0.98)  # of s
# Cells of the fine grid within the first cell on each side, which grow with this power. The others stay as they are, so
# that the fine grid has no smaller errors elsewhere.
_PARTS, _POWER = {2: 4, 3: 3}, 3
_FIRST = 0.02  # the width of the first of them, in widths of the smallest cell at the edge
# The wall between a low end and what is at 1, in lengths of the problem: c is then nearly that of larger problems.
_BEYOND = 0.5
# Where films are weak, T_i − L_i is small and what is left comes from errors elsewhere: c comes from least squares that
# also keep c·(this part of T_e − T∞) small.
_DAMPING = 0.1


class Pattern(NamedTuple):
    """The conductivities of the cells around an edge or a corner, relative to one of them.

    Attributes:
        conductivities: along each axis, float64, shape (axes, n, …, n) with n = 2·CELLS; 0 for void. The edge lies in
            the middle, in front of the first half along each axis.
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
    def reach(self) -> Array:
        """The distance between the centres of the cells before and behind the edge, in half widths of the first one."""
        first, second = self.widths[:, CELLS[self.axes] - 1 : CELLS[self.axes] + 1].T
        return np.asarray(1.0 + second / first)


def corrections(pattern: Pattern, losses: Array) -> Array:
    """The numbers c of the cells at edges or corners.

    Args:
        pattern: the cells around all of them.
        losses: s on the surfaces across each axis, shape (2 or 3, edges).

    Returns:
        The numbers c, shape (4 or 8, edges); 0 for the first cell, which lies behind the edge, and the last, void.
    """
    steps = len(_NODES) - 1
    node = np.clip((losses * steps).astype(np.intp), 0, steps - 1)
    part = np.clip(losses * steps - node, 0.0, 1.0)
    # Between the nodes of the simplex that contains s: from the lowest node along one axis after the other.
    order = np.argsort(-part, axis=0, kind="stable")
    bounds = np.vstack((np.ones(part.shape[1]), np.take_along_axis(part, order, axis=0), np.zeros(part.shape[1])))
    found = np.zeros((2 ** len(losses), losses.shape[1]))
    for number, shares in enumerate(bounds[:-1] - bounds[1:]):
        if number:
            node[order[number - 1], np.arange(node.shape[1])] += 1
        some = np.flatnonzero(shares)
        nodes, which = np.unique(node[:, some], axis=1, return_inverse=True)
        if len(some):
            of_nodes = np.stack([_at(pattern, tuple(each)) for each in nodes.T.tolist()], axis=1)
            found[:, some] += shares[some] * of_nodes[:, which.reshape(-1)]
    return found


@cache
def _at(pattern: Pattern, node: tuple[int, ...]) -> Array:
    """The numbers c for s at nodes, shape (4 or 8,)."""
    axes, s, widths_of_grid = pattern.axes, _NODES[list(node)], pattern.widths
    count = CELLS[axes]
    first, cells = widths_of_grid[:, count - 1], np.array(list(product((0, 1), repeat=axes)), dtype=bool)
    conductivities = np.frombuffer(pattern.conductivities).reshape(axes, *[2 * count] * axes)
    at_edge = conductivities[(slice(None), *[slice(count - 1, count + 1)] * axes)].reshape(axes, -1)
    films = s / (1.0 - s) * 2.0 * at_edge[:, 0] / first
    conducting = np.append(1.0 / (first[:, None] / at_edge[:, :-1]).sum(axis=0), 0.0)

    def solved(widths: list[Array], parts: NDArray[np.intp]) -> tuple[Array, Array]:
        """The values of the cells at the edge, and its temperature; a cell of the grid has some parts."""
        of_parts = conductivities
        for axis in range(axes):
            of_parts = np.repeat(of_parts, parts, axis=1 + axis)
        values = _solved(widths, of_parts, films)
        behind, beyond = (np.array([width[len(width) // 2 + step] for width in widths]) for step in (-1, 0))
        shares = conducting / np.where(cells, beyond / behind, 1.0).prod(axis=1)
        shares /= shares.sum()
        beta = films * behind / (2.0 * at_edge[:, 0])
        return values, shares @ _estimates(values, at_edge, beta)

    coarse, found_on_it = solved(list(widths_of_grid), np.ones(2 * count, np.intp))
    fine = []
    for factor in (1, 2):
        number = factor * _PARTS[axes]
        parts = np.array([number, *[1] * (count - 1)])
        fine.append(solved(_divided(widths_of_grid, number), np.concatenate((parts[::-1], parts)))[1])
    exact = (4.0 * fine[1] - fine[0]) / 3.0
    beyond = coarse - np.where(cells, 1.0 - pattern.reach * s, 1.0).prod(axis=1)[:, None] * coarse[0]
    found = np.zeros(len(cells))
    damping = _DAMPING * np.abs(exact).mean() * np.eye(len(cells) - 2)
    missed = np.append(exact - found_on_it, np.zeros(len(damping)))
    found[1:-1] = np.linalg.lstsq(np.vstack((beyond[1:-1].T, damping)), missed, rcond=None)[0]
    return found


def _divided(widths: Array, number: int) -> list[Array]:
    """The widths along each axis of a grid whose cells at the edge are divided into parts, the smallest at the edge."""
    middle, found = widths.shape[1] // 2, list[Array]()
    steps = np.arange(number + 1) / number
    least = widths[:, middle - 1 : middle + 1].min() * _FIRST * number
    for along in widths:
        low, high = (
            np.append(np.diff(least * (steps - steps**_POWER) + half[0] * steps**_POWER), half[1:])
            for half in (along[middle - 1 :: -1], along[middle:])
        )
        found.append(np.concatenate((low[::-1], high)))
    return found


def _estimates(values: Array, conductivities: Array, beta: Array) -> Array:
    """T' of each cell, from the values of the cells relative to the ambient temperature, shape (4 or 8, fields).

    Args:
        values: of the cells.
        conductivities: of the cells along each axis.
        beta: h·d/(2k) with the conductivity of the first cell.
    """
    axes = len(beta)
    found, void = values.copy(), 2**axes - 1
    for cell in range(void):
        s = beta / (beta + conductivities[:, cell] / conductivities[:, 0])
        # Of the axes on which it lies on the side of the first cell: of one its own surface, of several their product.
        found[cell] *= 1.0 - np.prod([s[axis] for axis in range(axes) if not cell >> (axes - 1 - axis) & 1])
    found[void] = 0.0
    return found


def _solved(widths: list[Array], conductivities: Array, films: Array) -> Array:
    """The values of the cells at the edge if one low end after the other is at 1, the others and the ambient at 0.

    Args:
        widths: of the cells along each axis in m; the edge lies in the middle.
        conductivities: of the cells along each axis.
        films: h on the surfaces across each axis.

    Returns:
        The values, shape (4 or 8, axes).
    """
    axes, shape = len(widths), tuple(len(width) for width in widths)
    void = conductivities[0] == 0.0
    diagonal, gains, links = void.astype(np.float64), np.zeros((*shape, axes)), list[Array]()
    areas = np.ones(shape)
    for axis in range(axes):
        areas = areas * widths[axis].reshape([-1 if each == axis else 1 for each in range(axes)])
    for axis in range(axes):
        along = widths[axis].reshape([-1, *[1] * (axes - 1)])
        empty, total = np.moveaxis(void, axis, 0), np.moveaxis(diagonal, axis, 0)
        area = np.moveaxis(areas, axis, 0) / along
        half = 0.5 * along / np.where(empty, 1.0, np.moveaxis(conductivities[axis], axis, 0))
        link = area[1:] / (half[1:] + half[:-1]) * ~(empty[1:] | empty[:-1])
        film = area / (half + 1.0 / films[axis])
        total[:-1] += link + film[:-1] * (empty[1:] & ~empty[:-1])
        total[1:] += link + film[1:] * (empty[:-1] & ~empty[1:])
        from_end = area[0] / (half[0] * (1.0 + _BEYOND * widths[axis].sum() / along[0])) * ~empty[0]
        total[0] += from_end
        np.moveaxis(gains[..., axis], axis, 0)[0] = from_end
        links.append(np.moveaxis(link, 0, axis))
    return _by_planes(diagonal, gains, links)


def _by_planes(diagonal: Array, gains: Array, links: list[Array]) -> Array:
    """Solve the equations plane by plane along the first axis; returns the values of the cells around the middle."""
    shape = diagonal.shape
    size, numbers = diagonal[0].size, np.arange(diagonal[0].size).reshape(shape[1:])
    inverses, sums = list[Array](), list[Array]()
    for plane in range(shape[0]):
        matrix = np.diag(diagonal[plane].reshape(-1))
        for axis, link in enumerate(links[1:]):
            ends = np.moveaxis(numbers, axis, 0)
            first, second = ends[:-1].reshape(-1), ends[1:].reshape(-1)
            of_ends = np.moveaxis(link[plane], axis, 0).reshape(-1)
            matrix[first, second] -= of_ends
            matrix[second, first] -= of_ends
        right = gains[plane].reshape(size, -1)
        if plane:
            between = links[0][plane - 1].reshape(-1)
            matrix -= between[:, None] * inverses[-1] * between
            right = right + between[:, None] * (inverses[-1] @ sums[-1])
        inverses.append(np.linalg.inv(matrix))
        sums.append(right)
    values, found = np.zeros_like(sums[0]), np.zeros(gains.shape)
    for plane in range(shape[0] - 1, shape[0] // 2 - 2, -1):
        over = links[0][plane].reshape(-1)[:, None] * values if plane < shape[0] - 1 else 0.0
        values = inverses[plane] @ (sums[plane] + over)
        found[plane] = values.reshape(*shape[1:], -1)
    around = tuple(slice(count // 2 - 1, count // 2 + 1) for count in shape)
    return found[around].reshape(2 ** len(shape), -1)
