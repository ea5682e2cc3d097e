"""The nodes, conductances and heat capacities of cells with layers.

The temperature of a cell with a layer is that of the layer: its node moves from the centre to the plane. Heat that
flows across meets the same resistances as before, and that of the layer:

      above      ●                              1/(0 + t/k + R + d″/2k)     between the layer and the cell above
                 |
      -----------●-----------  layer            S/(dx·d) and the cells' own conductance, along the plane
      own cell   |
                 |                              1/(d/k + d′/2k)             between the layer and the cell behind
      behind     ●

S = k·t is the conductance of a square; d, d′ and d″ are the cell sizes across the plane. The layer adds its heat
capacity ρ·cp·t/d to the cell. What the own cell has in its centre, heat capacity and conductance along the plane, it
shares with the cell behind, by the resistances from the centre to both nodes: the part (d/2k)/(d/k + d′/2k) moves, 1/3
between equal cells. So the temperature that counts for it is that in the centre, and the error is of second order.

On a surface, film, heat flux and radiation act on the layer itself: only its resistance t/k lies between node and
surface. A held surface would change such a node within a time of t²·ρ·cp/k. So the node lies at most 1/64 of a cell
below a held surface, with the conductance

    K = max(64·k/d, Σ S/(dx·distance))      as much as the layer conducts to its neighbours in the plane, or more

Along the plane the layer is held from the edge of such a surface on. The cell behind is nearer by as much, so the
resistance of the whole body is exact. In a body of one cell across, the node stays in the centre, and half of t/k
counts towards each surface. In rings these lengths are resistances: see ``Axis.ways`` and ``Axis.pieces``.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.geometry.cell_faces import Indices, cells_beside, distinct
from heatsim.physics.layers.layering import DEPTH, Layering, values_of
from heatsim.physics.layers.sheets import Array, Mask, Sheet
from heatsim.physics.layers.unlayered import Unlayered

# The least resistance of a layer on a surface, in parts of half a cell: far above rounding, far below that of copper.
_LEAST = 1e-12


def lay(sheets: Sequence[Sheet], matter: Unlayered) -> Layering:
    """The changes that sheets make in a body."""
    layout = _Layout(sheets, matter)
    faces, links = layout.links()
    areas = {number: area for sheet in sheets for number, area in zip(sheet.layers, sheet.areas, strict=True)}
    return Layering(layout.cells, layout.capacity(), layout.halves(), layout.node, faces, links, areas)


class _Layout:
    """Builds a :class:`Layering`."""

    def __init__(self, sheets: Sequence[Sheet], matter: Unlayered) -> None:
        self._sheets, self._matter = sheets, matter
        self._own = [matter.plane(sheet.axis, sheet.own) for sheet in sheets]
        covered = [own[sheet.covered] for own, sheet in zip(self._own, sheets, strict=True)]
        behind = [matter.beside(of.axis, cells, -of.side) for of, cells in zip(sheets, covered, strict=True)]
        self.cells = distinct(np.concatenate([*covered, *(cells[some] for cells, some in behind)]))
        self.node = np.zeros((len(self.cells), 3))
        self._held = [
            self._at_end(sheet, cells)
            * matter.held(2 * sheet.axis + (sheet.side > 0), cells, matter.material_of(cells))
            for sheet, cells in zip(sheets, covered, strict=True)
        ]
        for sheet, cells, (_, conduct), held in zip(sheets, covered, behind, self._held, strict=True):
            depth = np.where(held > 0.0, self._depths(sheet, cells), 0.0)
            depth[self._at_end(sheet, cells) & ~conduct] = 1.0
            self.node[self._places(cells), sheet.axis] = sheet.side * (1.0 - depth)
        self._moved = [
            self._moved_to(sheet, cells, *of_cells)
            for sheet, cells, of_cells in zip(sheets, covered, behind, strict=True)
        ]

    def _at_end(self, sheet: Sheet, cells: Indices) -> Mask:
        """Which of a sheet's cells have it on a surface."""
        return ~self._matter.beside(sheet.axis, cells, sheet.side)[1]

    def _depths(self, sheet: Sheet, cells: Indices) -> Array:
        """How far the nodes of cells with a sheet on a held surface lie below it, in half cells."""
        matter, half = self._matter, self._matter.halves(sheet.axis, cells, sheet.side)
        along = np.zeros(len(cells))
        for place, axis in enumerate(sheet.along):
            if matter.grid.cells[axis] > 1:
                planes = matter.grid.axes[axis]
                links = planes.link_factors.sum(axis=1)[matter.planes_of(axis, cells)] / planes.spacing**2
                along += links * sheet.cell_means(sheet.conductance[place])[sheet.covered]
        with np.errstate(divide="ignore"):
            near = np.minimum(DEPTH, 1.0 / (along * half))
        return np.maximum(near - self._covering(sheet, cells) / half, 0.0)

    def _covering(self, sheet: Sheet, cells: Indices) -> Array:
        """The resistance of a sheet on its cells in m² K/W; in a part of a cell as it counts beside half a cell."""
        half = self._matter.halves(sheet.axis, cells, sheet.side)
        return np.maximum(1.0 / self._through(sheet, half, sheet.covered) - half, _LEAST * half)

    def _moved_to(self, sheet: Sheet, cells: Indices, behind: Indices, conduct: Mask) -> Array:
        """The part of the cells' own capacity and conductance that goes to the cells behind them, shape of a face.

        The temperature in the centre lies between those of both nodes, by the resistances between them.
        """
        node = self.node[self._places(cells), sheet.axis]
        lower = np.where(conduct, cells if sheet.side < 0 else behind, cells)
        from_centre = self._matter.between(sheet.axis, cells, -sheet.side, 0.0, node)
        share = from_centre / self._resistances(3 * lower + sheet.axis)
        moved = np.zeros(sheet.covered.shape)
        moved[sheet.covered] = np.where(conduct, share, 0.0)
        return moved

    def capacity(self) -> Array:
        """What the layers add to the heat capacity of each cell, in J/(m³ K)."""
        matter, added = self._matter, np.zeros(len(self.cells))
        for sheet, own, moved in zip(self._sheets, self._own, self._moved, strict=True):
            cells, places = own[sheet.covered], self._places(own[sheet.covered])
            added[places] += sheet.cell_means(sheet.capacity)[sheet.covered] / self._size_across(sheet)
            behind, conduct = matter.beside(sheet.axis, cells, -sheet.side)
            going = moved[sheet.covered] * matter.heat_capacity[matter.material_of(cells)]
            added[places] -= going
            added[self._places(behind[conduct])] += (going * self._over_behind(sheet))[conduct]
        return added

    def links(self) -> tuple[Indices, Array]:
        """The faces whose conductances change, and these conductances."""
        changed = [self._faces_across(sheet, own) for sheet, own in zip(self._sheets, self._own, strict=True)]
        changed += [
            self._faces_along(sheet, own, place)
            for sheet, own in zip(self._sheets, self._own, strict=True)
            for place in (0, 1)
        ]
        changed += [
            self._faces_along(sheet, self._matter.beside(sheet.axis, own, -sheet.side)[0], place)
            for sheet, own in zip(self._sheets, self._own, strict=True)
            for place in (0, 1)
        ]
        faces = distinct(np.concatenate(changed))
        links = 1.0 / self._resistances(faces)
        for sheet, own in zip(self._sheets, self._own, strict=True):
            self._add_resistances(sheet, own, faces, links)
        self._move_along(faces, links)
        for sheet, own, held in zip(self._sheets, self._own, self._held, strict=True):
            for place in (0, 1):
                self._add_conductances(sheet, own, held, place, faces, links)
        return faces, links

    def _move_along(self, faces: Indices, links: Array) -> None:
        """Move a part of the cells' own conductance along each sheet to the cells behind them."""
        change = np.zeros(len(faces))
        for sheet, own, moved in zip(self._sheets, self._own, self._moved, strict=True):
            for place in (0, 1):
                numbers, conduct = self._pairs(sheet, own, place)
                behind, solid = self._matter.beside(sheet.axis, own, -sheet.side)
                numbers_behind, conduct_behind = self._pairs(sheet, behind, place)
                part = np.maximum(moved, np.roll(moved, -1, axis=1 - place))
                part[~(conduct & conduct_behind & solid)] = 0.0
                some = part > 0.0
                at, at_behind = (np.searchsorted(faces, each[some]) for each in (numbers, numbers_behind))
                change[at] -= part[some] * links[at]
                change[at_behind] += part[some] * links[at] * self._over_behind(sheet)
        links += change

    def halves(self) -> Array:
        """Resistances between nodes and surfaces; for cells without a surface along an axis those of the body.

        Where the half cells of rings differ, those of lower surfaces count in the proportion of the upper half cell.
        """
        found = np.stack([self._matter.halves(axis, self.cells, 1) for axis in range(3)], axis=1)
        for sheet, own in zip(self._sheets, self._own, strict=True):
            cells = own[sheet.covered]
            places, axis, side = self._places(cells), sheet.axis, sheet.side
            node = self.node[places, axis]
            towards, away = (self._matter.between(axis, cells, of, node, of) for of in (side, -side))
            # A cell between two surfaces has the resistance of the sheet once, a half of it towards each.
            both = self._at_surface(axis, cells).all(axis=0)
            whole = self._ways(axis, cells, side, -1.0, 1.0)
            outwards = self._covering(sheet, cells) / np.where(both, whole, 1.0) + towards
            outwards, inwards = (
                of_side / self._matter.over_upper(axis, cells, of) for of_side, of in ((outwards, side), (away, -side))
            )
            found[places, axis] = np.where(self._at_end(sheet, cells), outwards, inwards)
        plain = found.copy()
        for sheet, own, moved in zip(self._sheets, self._own, self._moved, strict=True):
            for place in (0, 1):
                self._widen(sheet, own[sheet.covered], moved[sheet.covered], place, plain, found)
        return found

    def _places(self, cells: Indices) -> NDArray[np.intp]:
        return np.searchsorted(self.cells, cells)

    def _faces_across(self, sheet: Sheet, own: Indices) -> Indices:
        """The faces on both sides of the sheet's cells, along its axis."""
        cells, found = own[sheet.covered], []
        for side in (-1, 1):
            others, conduct = self._matter.beside(sheet.axis, cells, side)
            found.append(3 * (cells if side > 0 else others)[conduct] + sheet.axis)
        return np.concatenate(found)

    def _pairs(self, sheet: Sheet, own: Indices, place: int) -> tuple[Indices, Mask]:
        """The faces between the cells of the sheet's plane along its first or second axis, and where both conduct.

        One row of faces for each row of cells, in the order of the cells below them; the last ones wrap.
        """
        axis = sheet.along[place]
        _, conduct = self._matter.beside(axis, own, 1)
        return 3 * own + axis, conduct & self._matter.conducts(own)

    def _faces_along(self, sheet: Sheet, own: Indices, place: int) -> Indices:
        """The faces between cells that a layer bridges or reaches, along one axis of its plane."""
        faces, conduct = self._pairs(sheet, own, place)
        reached = sheet.covered | np.roll(sheet.covered, -1, axis=1 - place)
        return faces[conduct & reached]

    def _resistances(self, faces: Indices) -> Array:
        """Between the nodes on both sides of faces, in m² K/W, without the layers' own."""
        low, high = cells_beside(self._matter.grid, faces)
        found = self._matter.contacts(faces)
        for axis in range(3):
            some = faces % 3 == axis
            for cells, side in ((low[some], 1), (high[some], -1)):
                node = values_of(cells, self.cells, self.node[:, axis])
                found[some] += self._matter.between(axis, cells, side, node, side)
        return found

    def _through(self, sheet: Sheet, resistance: Array, some: Mask) -> Array:
        """Conductances of cells of the plane across the sheet, in W/(m² K), in series with their ``resistance``."""
        whole = np.full(sheet.covered.shape, np.inf)
        whole[some] = resistance
        in_rectangles = whole[np.ix_(sheet.cell_of(1), sheet.cell_of(0))] + sheet.resistance
        return np.asarray(sheet.cell_means(1.0 / in_rectangles)[some])

    def _add_resistances(self, sheet: Sheet, own: Indices, faces: Indices, links: Array) -> None:
        """Put a sheet's resistance into the links across it."""
        others, conduct = self._matter.beside(sheet.axis, own, sheet.side)
        some = conduct & sheet.covered
        at = np.searchsorted(faces, 3 * (own if sheet.side > 0 else others)[some] + sheet.axis)
        with np.errstate(divide="ignore"):  # voxels that touch where the smooth surfaces do not
            links[at] = self._through(sheet, 1.0 / links[at], some)

    def _add_conductances(
        self, sheet: Sheet, own: Indices, held: Array, place: int, faces: Indices, links: Array
    ) -> None:
        """Add a sheet's conductance to the links along one axis of its plane.

        It counts from node to node, and to the edge of a cell whose surface is held.
        """
        numbers, conduct = self._pairs(sheet, own, place)
        some = conduct & (sheet.covered | np.roll(sheet.covered, -1, axis=1 - place))
        axis, along_rows = sheet.along[place], 1 - place
        node = values_of(own, self.cells, self.node[:, axis])
        part = np.zeros(sheet.covered.shape)
        part[sheet.covered] = held
        lower, upper = sheet.widths[place] if place == 0 else sheet.widths[place][:, :, None]
        below, above = (0.5 * self._ways(axis, own, side, node, side) for side in (-1, 1))
        below, part_beside = (np.roll(of, -1, axis=along_rows) for of in (below, part))
        lower = np.roll(lower, -1, axis=0)
        to_face = above * (1.0 - np.maximum(part - part_beside, 0.0)) * upper
        to_face_beside = below * (1.0 - np.maximum(part_beside - part, 0.0)) * lower
        # A node that another layer moves to this face leaves the half cell beyond it, which may be the narrower one.
        distance = np.maximum(to_face + to_face_beside, 0.5 * np.minimum(upper, lower)) / (0.5 * upper + 0.5 * lower)
        conductance = sheet.between_nodes(place) / distance
        links[np.searchsorted(faces, numbers[some])] += conductance[some] / self._face_area(sheet, place)

    def _widen(self, sheet: Sheet, cells: Indices, moved: Array, place: int, plain: Array, found: Array) -> None:
        """Add a sheet's conductance to half cells at surfaces along one axis of its plane, and move the cells' own."""
        axis, places = sheet.along[place], self._places(cells)
        behind, conduct = self._matter.beside(sheet.axis, cells, -sheet.side)
        surface, surface_behind = (self._at_surface(axis, of) for of in (cells, behind))
        halves = sheet.in_half_cells(place)[:, sheet.covered] / self._face_area(sheet, place)
        halves *= np.stack([self._matter.over_upper(axis, cells, side) for side in (-1, 1)])
        node = self.node[places, axis]
        distance = np.stack([self._ways(axis, cells, side, node, side) for side in (-1, 1)])
        # Where another layer lies on that surface, the node is there already.
        halves *= np.where(surface & (distance > 2.0 * DEPTH), 1.0 / np.maximum(distance, DEPTH), 0.0)
        # A cell between two surfaces has the mean conductance of both halves.
        added = halves.sum(axis=0) / np.maximum(surface.sum(axis=0), 1)
        both = conduct & (surface == surface_behind).all(axis=0) & surface.any(axis=0) & (node == 0.0)
        going = np.where(both, moved, 0.0) / plain[places, axis]
        found[places, axis] = 1.0 / (1.0 / found[places, axis] + added - going)
        places, going = self._places(behind[both]), going[both] * self._over_behind(sheet)
        found[places, axis] = 1.0 / (1.0 / found[places, axis] + going)

    def _at_surface(self, axis: int, cells: Indices) -> Mask:
        """Whether cells have a surface on their lower and on their upper side along an axis; shape (2, n).

        An axis of symmetry is no surface.
        """
        ends = np.array([~self._matter.beside(axis, cells, side)[1] for side in (-1, 1)])
        return ends & (self._matter.grid.axes[axis].gains[self._matter.planes_of(axis, cells)].T > 0.0)

    def _ways(self, axis: int, cells: Indices, side: int, start: Array | float, end: Array | float) -> Array:
        """Between two places in cells, in half cells towards a side; see ``Axis.ways``."""
        return self._matter.grid.axes[axis].ways(self._matter.planes_of(axis, cells), side, start, end)

    def _face_area(self, sheet: Sheet, place: int) -> float:
        """The factor from W/K of squares to W/(m² K) of the faces of cells along an axis of the plane, as a divisor."""
        return self._matter.grid.mean_spacing[sheet.along[place]] * self._size_across(sheet)

    def _size_across(self, sheet: Sheet) -> float:
        """The size in m of a sheet's cells across it: volume over area of the sheet."""
        across = self._matter.grid.axes[sheet.axis]
        return float(across.measures[sheet.own]) / across.around(sheet.own + (sheet.side > 0))

    def _over_behind(self, sheet: Sheet) -> float:
        """The size of a sheet's cells across it over that of the cells behind them."""
        measures = self._matter.grid.axes[sheet.axis].measures
        return float(measures[sheet.own] / measures[(sheet.own - sheet.side) % len(measures)])
