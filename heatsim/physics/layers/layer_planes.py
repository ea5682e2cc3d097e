"""The planes of a scenario's layers, and the cells that take them.

A layer belongs to the cells on one side of its plane: to those below it, unless they are void or hold another layer.
Layers that touch each other belong to the same side, so that heat passes from one to the other.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import numpy as np

from heatsim.errors import Mistake, ScenarioError
from heatsim.grid import AXES, Axis, Grid
from heatsim.physics.layers.sheets import Array, Mask, Sheet
from heatsim.scenario import Layer, Scenario
from heatsim.scenario.messages import show
from heatsim.scenario.tables.layers import side_of

# A function from the axis and the index of a plane of cells to which of them conduct, shape of a face across the axis.
Solid = Callable[[int, int], Mask]

_ROUNDING = 1e-9  # cells: an edge this near to a line of the grid lies on it


def sheets_of(scenario: Scenario, solid: Solid, periodic: tuple[bool, bool, bool]) -> list[Sheet]:
    """All layers of a scenario in their planes.

    Raises:
        ScenarioError: a layer lies in void; on one side of its plane in one place and on the other side in another; or
            two layers belong to the same cells.
    """
    sheets: list[Sheet] = []
    mistakes: list[Mistake] = []
    numbered = sorted(enumerate(scenario.layers), key=lambda entry: _plane(entry[1], scenario.grid, periodic))
    for (axis, index), of_plane in groupby(numbered, lambda entry: _plane(entry[1], scenario.grid, periodic)):
        layers = list(of_plane)
        below, above = (_conducting(scenario.grid, solid, axis, place, periodic) for place in (index - 1, index))
        sides = dict[int, list[int]]()
        for group in _touching([layer for _, layer in layers], scenario.grid):
            numbers = [layers[place][0] for place in group]
            cells = _cells_of([scenario.layers[number] for number in numbers], scenario.grid)
            taken = _taken(sheets, axis, (index - 1) % scenario.grid.cells[axis], 1, below.shape)
            side = side_of(cells, below & ~taken, above) or side_of(cells, below, above)
            mistake = _misplaced(scenario, numbers[0], side, cells, below, above)
            if mistake is None:
                sides.setdefault(side, []).extend(numbers)
            else:
                mistakes.append(mistake)
        for side, numbers in sides.items():
            sheet = _sheet(scenario, axis, index, side, sorted(numbers), below if side > 0 else above)
            mistakes += _doubly_taken(scenario, sheets, sheet)
            sheets.append(sheet)
    if mistakes:
        raise ScenarioError(scenario.path, mistakes)
    return sheets


def _plane(layer: Layer, grid: Grid, periodic: tuple[bool, bool, bool]) -> tuple[int, int]:
    """The axis and the index of a layer's plane; an axis that wraps has its two ends in one plane."""
    axis, index = layer.plane.across, int(layer.plane.index(grid))
    return axis, index % grid.cells[axis] if periodic[axis] else index


def _conducting(grid: Grid, solid: Solid, axis: int, place: int, periodic: tuple[bool, bool, bool]) -> Mask:
    """Which cells of a plane of cells conduct; none outside the box."""
    n = grid.cells[axis]
    if not periodic[axis] and not 0 <= place < n:
        return np.zeros(grid.face_shape(2 * axis), dtype=bool)
    return solid(axis, place % n)


def _edges(layer: Layer, grid: Grid) -> tuple[tuple[float, float], tuple[float, float]]:
    """(first, last) of a layer along both axes of its plane, in cells from the origin."""
    low, high = layer.plane.corners(grid)
    found = []
    for axis, start, end in zip(layer.plane.along, low, high, strict=True):
        places = [min(max(_place(at, axis, grid), 0.0), float(grid.cells[axis])) for at in (start, end)]
        halves = [round(2.0 * place) / 2.0 for place in places]
        first, last = (
            half if abs(place - half) <= _ROUNDING else place for place, half in zip(places, halves, strict=True)
        )
        found.append((first, last))
    return found[0], found[1]


def _place(at: float, axis: int, grid: Grid) -> float:
    """A coordinate in m along an axis, in cells from the origin."""
    if grid.axes[axis].uniform:
        return (at - grid.origin[axis]) / grid.size[axis] * grid.cells[axis]
    return float(grid.axes[axis].places(at))


def _cells_of(layers: Sequence[Layer], grid: Grid) -> Mask:
    """The cells of a plane that hold a part of a layer, in the shape of a face."""
    cells = np.zeros(grid.face_shape(2 * layers[0].plane.across), dtype=bool)
    for layer in layers:
        u, v = (slice(int(np.floor(first)), int(np.ceil(last))) for first, last in _edges(layer, grid))
        cells[v, u] = True
    return cells


def _touching(layers: Sequence[Layer], grid: Grid) -> Iterator[list[int]]:
    """Groups of layers that overlap or touch, by their places in the list."""
    edges = np.array([_edges(layer, grid) for layer in layers])  # (layers, axis, end)
    group = np.arange(len(layers))
    for place in range(len(layers)):
        apart = (edges[:, :, 0] > edges[place, :, 1]) | (edges[:, :, 1] < edges[place, :, 0])
        together = np.unique(group[~apart.any(axis=1)])
        group[np.isin(group, together)] = together[0]
    for number in np.unique(group).tolist():
        yield np.flatnonzero(group == number).tolist()


def _taken(sheets: Sequence[Sheet], axis: int, own: int, side: int, shape: tuple[int, ...]) -> Mask:
    """The cells of a plane of cells that hold a layer on the side opposite to ``side``."""
    taken = np.zeros(shape, dtype=bool)
    for sheet in sheets:
        if (sheet.axis, sheet.own, sheet.side) == (axis, own, -side):
            taken |= sheet.covered
    return taken


def _misplaced(scenario: Scenario, number: int, side: int, cells: Mask, below: Mask, above: Mask) -> Mistake | None:
    """The mistake of layers that fit neither side of their plane."""
    if side:
        return None
    name, axis = show(scenario.layers[number].name), scenario.layers[number].plane.axis
    if not (cells & (below | above)).any():
        message = f"{name} lies in void; move it to the surface of a part that conducts"
    else:
        message = (
            f"{name}, with the layers that touch it, has cells that conduct only below its plane in one place and only "
            f"above it, along {axis}, in another; divide it there"
        )
    return Mistake(f"layers.{number}.plane", message)


def _doubly_taken(scenario: Scenario, sheets: Sequence[Sheet], sheet: Sheet) -> Iterator[Mistake]:
    """The mistakes of layers on both sides of the same cells."""
    for other in sheets:
        opposite = (other.axis, other.own, other.side) == (sheet.axis, sheet.own, -sheet.side)
        if opposite and (other.covered & sheet.covered).any():
            one, two = (scenario.layers[of.layers[0]] for of in (other, sheet))
            message = (
                f"{show(two.name)} and {show(one.name)} would both belong to the cells between them; use at least as "
                f"many cells along {AXES[sheet.axis]} as there are layers"
            )
            yield Mistake(f"layers.{sheet.layers[0]}.plane", message)


def _half_widths(axis: Axis) -> Array:
    widths = axis.widths / axis.spacing
    return axis.half_factors.T if axis.rings else np.stack((widths, widths))


def _sheet(scenario: Scenario, axis: int, index: int, side: int, numbers: Sequence[int], own: Mask) -> Sheet:
    grid, layers = scenario.grid, [scenario.layers[number] for number in numbers]
    along = layers[0].plane.along
    edges = np.array([_edges(layer, grid) for layer in layers])
    u, v = (
        np.unique(np.concatenate((np.arange(2 * grid.cells[of] + 1) / 2.0, edges[:, place].reshape(-1))))
        for place, of in enumerate(along)
    )
    (parts_u, lengths_u), (parts_v, lengths_v) = (
        grid.axes[of].pieces(lines) for of, lines in zip(along, (u, v), strict=True)
    )
    conductance = np.zeros((2, len(v) - 1, len(u) - 1))
    resistance, capacity = np.zeros(conductance.shape[1:]), np.zeros(conductance.shape[1:])
    areas, circle = [], grid.axes[axis].around(index)
    for layer, ((first_u, last_u), (first_v, last_v)) in zip(layers, edges.tolist(), strict=True):
        here = (
            slice(*np.searchsorted(v, (first_v, last_v)).tolist()),
            slice(*np.searchsorted(u, (first_u, last_u)).tolist()),
        )
        material, t = dict(scenario.palette)[layer.material], layer.thickness
        assert material is not None, "a layer conducts"
        k = material.conductivity_at(0.0)
        conductance[0][here] += k[along[0]] * t
        conductance[1][here] += k[along[1]] * t
        resistance[here] += t / k[axis]
        capacity[here] += material.density * material.specific_heat_at(0.0) * t
        laid_u, laid_v = (
            np.bincount(lines[:-1][some].astype(np.intp), parts[some], grid.cells[of]) * grid.axes[of].volume_factors
            for of, lines, parts, some in zip(along, (u, v), (parts_u, parts_v), here[::-1], strict=True)
        )
        areas.append(float(laid_v @ own @ laid_u) * grid.mean_volume / grid.mean_spacing[axis] * circle)
    plane = (index - (side > 0)) % grid.cells[axis]
    return Sheet(
        axis=axis,
        own=plane,
        side=side,
        layers=tuple(numbers),
        lines=(u, v),
        parts=(parts_u, parts_v),
        lengths=(lengths_u, lengths_v),
        widths=(_half_widths(grid.axes[along[0]]), _half_widths(grid.axes[along[1]])),
        conductance=conductance,
        resistance=resistance,
        capacity=capacity,
        covered=_cells_of(layers, grid) & own,
        areas=tuple(areas),
    )
