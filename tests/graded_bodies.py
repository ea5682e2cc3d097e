"""Random bodies on grids of several widths, and the same equations as dense matrices, written down independently.

A cell has six sides. Heat passes a side between two cells through both half cells and the contact in series, and a side
at a face or towards void through one half cell and the film. In axial bodies x is the radius: half cells are hollow
cylinders, ln(r/r')/(2πk·dz).
"""

from dataclasses import dataclass
from itertools import product
from math import log, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Document = dict[str, Any]
Cell = tuple[int, int, int]  # z, y, x

_HELD = 1e300  # W/(m² K): a film without resistance


@dataclass
class Equations:
    """capacity · dT/dt = −matrix · T + heat, of the cells that conduct.

    Attributes:
        capacity: in J/K, shape (n,).
        matrix: in W/K, shape (n, n).
        heat: in W, shape (n,).
        cells: the places of these cells in the flattened grid.
        volumes: of all cells in m³, in the shape of the grid.
    """

    capacity: Array
    matrix: Array
    heat: Array
    cells: NDArray[np.int64]
    volumes: Array

    def steady(self) -> Array:
        """The temperatures in K at which nothing changes."""
        return np.asarray(np.linalg.solve(self.matrix, self.heat))

    def at(self, time: float, start: float) -> Array:
        """The temperatures in K after ``time`` s, from ``start`` K everywhere."""
        root = np.sqrt(self.capacity)
        values, vectors = np.linalg.eigh(self.matrix / root / root[:, None])
        values = np.maximum(values, 0.0)
        decay, along = np.exp(-values * time), vectors.T
        with np.errstate(divide="ignore", invalid="ignore"):
            grown = np.where(values * time > 1e-9, (1.0 - decay) / values, time)
        return np.asarray((vectors @ (decay * (along @ (root * start)) + grown * (along @ (self.heat / root)))) / root)


class GradedBody:
    """A random scenario of boxes whose sides lie between cells, with its equations.

    In `_half` sides are faces of the box or towards void; in `_link` they are between two cells.

    Attributes:
        document: the scenario.
        equations: the same as matrices.
    """

    _of_regions = ("two", "one", "void")

    def __init__(self, seed: int, axial: bool = False, end: float = 50.0) -> None:
        self._random = random = np.random.default_rng(seed)
        self._axial = axial
        counts = [int(random.integers(2, 7)), 1 if axial else int(random.integers(1, 6)), int(random.integers(2, 7))]
        self._widths = [self._random_widths(n) for n in counts]
        if axial:
            self._widths[1] = np.ones(1)
        inner = float(random.choice([0.0, 0.013])) if axial else 0.0
        self._borders = [np.append(0.0, np.cumsum(widths)) for widths in self._widths]
        self._borders[0] = self._borders[0] + inner
        self._shape = tuple(reversed(counts))
        self._materials: dict[str, Document] = {name: self._material() for name in ("one", "two")}
        self._names = np.full(self._shape, "one", dtype=object)
        self._owner = np.full(self._shape, -1)
        self._regions: list[Document] = []
        for number in range(int(random.integers(0, 4))):
            self._add_region(number)
        self._contact = 10.0 ** random.uniform(-6.0, -2.0) if random.random() < 0.5 else 0.0
        self._conditions = self._random_conditions(inner)
        self._power = float(random.uniform(-30.0, 60.0)) if self._regions and random.random() < 0.7 else 0.0
        self._prepare()
        self.document = self._document(inner, end)
        self.equations = self._equations()

    def _prepare(self) -> None:
        """Add what other bodies have."""

    def _random_widths(self, n: int) -> Array:
        kind = self._random.random()
        if kind < 0.2:
            return np.full(n, float(self._random.uniform(0.002, 0.02)))
        if kind < 0.5:
            return np.asarray(0.003 * float(self._random.choice([1.5, 0.6])) ** np.arange(n))
        return np.asarray(10.0 ** self._random.uniform(-4.0, -2.0, n))

    def _material(self) -> Document:
        random = self._random
        k = (
            (10.0 ** random.uniform(-1.5, 2.5, 3)).tolist()
            if random.random() < 0.4
            else float(10.0 ** random.uniform(-1.5, 2.5))
        )
        return {
            "conductivity": k,
            "density": float(random.uniform(500.0, 8000.0)),
            "specific_heat": float(random.uniform(100.0, 2000.0)),
        }

    def _add_region(self, number: int) -> None:
        low, high, place = [], [], []
        for axis, n in ((axis, len(widths)) for axis, widths in enumerate(self._widths)):
            first = int(self._random.integers(0, n))
            last = int(self._random.integers(first, n)) + 1
            low.append(float(self._borders[axis][first]))
            high.append(float(self._borders[axis][last]))
            place.append(slice(first, last))
        if self._axial:
            low[1], high[1] = -1.0, 1.0
        where = tuple(reversed(place))
        material = str(self._random.choice(self._of_regions))
        if material == "void" and number == 0 and self._names[where].size == self._names.size:
            material = "two"
        self._names[where], self._owner[where] = material, number
        if not (self._names != "void").any():
            self._names[where], material = "two", "two"
        self._regions.append({"name": f"r{number}", "material": material, "box": {"min": low, "max": high}})

    def _random_conditions(self, inner: float) -> dict[str, Document]:
        found: dict[str, Document] = {}
        for axis, end in product("xyz", ("min", "max")):
            if self._axial and (axis == "y" or (axis == "x" and end == "min" and inner == 0.0)):
                continue
            found[f"{axis}_{end}"] = self._condition()
        found["void"] = self._condition()
        if all(condition["type"] in ("insulated", "flux") for name, condition in found.items() if name != "void"):
            found["z_max"] = {"type": "convection", "coefficient": 80.0, "ambient": 310.0}
        return found

    def _condition(self) -> Document:
        random = self._random
        temperature = float(random.uniform(280.0, 380.0))
        match int(random.integers(4)):
            case 0:
                return {"type": "temperature", "value": temperature}
            case 1:
                return {"type": "flux", "value": float(random.uniform(-500.0, 2000.0))}
            case 2:
                film = float(10.0 ** random.uniform(0.0, 4.0))
                return {"type": "convection", "coefficient": film, "ambient": temperature}
        return {"type": "insulated"}

    def _document(self, inner: float, end: float) -> Document:
        domain: Document = {"material": "one"}
        for axis, widths in zip("xyz", self._widths, strict=True):
            domain[axis] = {"widths": widths.tolist()}
        if self._axial:
            domain = {**domain, "symmetry": "axial", "origin": [inner, 0.0]}
            del domain["y"]
        document = {
            "domain": domain,
            "materials": self._materials,
            "regions": self._regions,
            "boundaries": self._conditions,
            "initial": {"temperature": 300.0},
            "time": {"method": "euler", "end": end},
            "solver": {"device": "cpu", "precision": "float64"},
        }
        if not any(region["material"] == "void" for region in self._regions):
            self._conditions.pop("void", None)
        if self._contact:
            document["contacts"] = [{"between": ["one", "two"], "resistance": self._contact}]
        heated = self._heated
        if heated is not None:
            document["sources"] = [{"region": f"r{heated}", "power": self._power}]
        return document

    @property
    def _heated(self) -> int | None:
        """The number of the region that is heated: the last one of which conducting cells are left."""
        if not self._power:
            return None
        left = [n for n in range(len(self._regions)) if ((self._owner == n) & (self._names != "void")).any()]
        return left[-1] if left else None

    def _half(self, axis: int, cell: Cell, side: int) -> float:
        """K/W between the node of a cell and the middle of its side."""
        z, y, x = cell
        conductivity = self._materials[str(self._names[cell])]["conductivity"]
        k = conductivity[axis] if isinstance(conductivity, list) else conductivity
        if self._axial and axis == 0:
            low, high = self._borders[0][x : x + 2]
            ratio = (high / (0.5 * (low + high))) if side else (0.5 * (low + high)) / low if low else 1.0
            return float(log(ratio) / (2.0 * pi * k * self._widths[2][z]))
        return float(0.5 * self._widths[axis][(x, y, z)[axis]] / (k * self._area(axis, cell, side)))

    def _area(self, axis: int, cell: Cell, side: int) -> float:
        z, y, x = cell
        dx, dy, dz = self._widths[0][x], self._widths[1][y], self._widths[2][z]
        if self._axial:
            low, high = self._borders[0][x : x + 2]
            return float(2.0 * pi * (high if side else low) * dz if axis == 0 else pi * (high**2 - low**2))
        return float((dy * dz, dx * dz, dx * dy)[axis])

    def _volume(self, cell: Cell) -> float:
        return self._area(2, cell, 0) * float(self._widths[2][cell[0]])

    def _equations(self) -> Equations:
        conducts = self._names != "void"
        places = np.flatnonzero(conducts)
        numbers = np.full(self._shape, -1)
        numbers.reshape(-1)[places] = np.arange(len(places))
        capacity, heat, matrix = np.zeros(len(places)), np.zeros(len(places)), np.zeros((len(places), len(places)))
        volumes = np.zeros(self._shape)
        for cell in np.ndindex(*self._shape):
            volumes[cell] = self._volume(cell)
        heated = self._heated
        where = (self._owner == heated) & conducts if heated is not None else np.zeros(self._shape, bool)
        for cell in np.ndindex(*self._shape):
            own = numbers[cell]
            if own < 0:
                continue
            material = self._materials[str(self._names[cell])]
            capacity[own] = material["density"] * material["specific_heat"] * volumes[cell]
            if where[cell]:
                heat[own] += self._power * volumes[cell] / volumes[where].sum()
            for axis, side in product(range(3), (0, 1)):
                self._add_side(matrix, heat, numbers, cell, axis, side)
        return Equations(capacity, matrix, heat, places, volumes)

    def _link(self, axis: int, cell: Cell, side: int, other: Cell) -> float:
        contact = self._contact / self._area(axis, cell, side) if self._names[cell] != self._names[other] else 0.0
        return 1.0 / (self._half(axis, cell, side) + contact + self._half(axis, other, 1 - side))

    def _add_side(self, matrix: Array, heat: Array, numbers: NDArray[Any], cell: Cell, axis: int, side: int) -> None:
        own, beside = numbers[cell], list(cell)
        beside[2 - axis] += 1 if side else -1
        face = f"{'xyz'[axis]}_{('min', 'max')[side]}"
        area, other = self._area(axis, cell, side), (beside[0], beside[1], beside[2])
        if 0 <= beside[2 - axis] < self._shape[2 - axis]:
            if numbers[other] >= 0:
                link = self._link(axis, cell, side, other)
                matrix[own, own] += link
                matrix[own, numbers[other]] -= link
                return
            face = "void"
        condition = self._conditions.get(face, {"type": "insulated"})
        if area == 0.0 or condition["type"] == "insulated":
            return
        if condition["type"] == "flux":
            heat[own] += area * condition["value"]
            return
        film = condition.get("coefficient", _HELD) * area
        link = 1.0 / (self._half(axis, cell, side) + 1.0 / film)
        matrix[own, own] += link
        heat[own] += link * condition.get("ambient", condition.get("value"))


class LayeredBody(GradedBody):
    """The same without void, with one layer between planes of cells or on a face that is not held.

    It covers whole cells and belongs to those below its plane, at the lowest plane to those above it. Their temperature
    is that of the layer; a part of what they have in their centre goes to the cells behind them: see layer_layout.py.
    """

    _of_regions = ("two", "one")

    def _prepare(self) -> None:
        random, counts = self._random, [len(widths) for widths in self._widths]
        self._across = int(random.choice([axis for axis in range(3) if counts[axis] > 1]))
        lowest = 1 if self._axial and self._across == 0 and self._borders[0][0] == 0.0 else 0
        plane = int(random.integers(lowest, counts[self._across] + 1))
        self._at, self._up = float(self._borders[self._across][plane]), int(plane > 0)
        self._row = plane - self._up
        self._behind = self._row + 1 - 2 * self._up
        face = f"{'xyz'[self._across]}_{'max' if self._up else 'min'}"
        if plane in (0, counts[self._across]) and self._conditions.get(face, {}).get("type") == "temperature":
            self._conditions[face] = {"type": "convection", "coefficient": 300.0, "ambient": 350.0}
        self._materials["sheet"] = self._material()
        k = self._materials["sheet"]["conductivity"]
        self._k = np.array(k if isinstance(k, list) else [k] * 3)
        widths = self._widths[self._across][max(plane - 1, 0) : plane + 1]
        self._thickness = float(widths.min() * random.uniform(0.01, 0.9))
        self._covered = [slice(0, n) for n in counts]
        for axis in {0, 1, 2} - {self._across}:
            first = int(random.integers(0, counts[axis]))
            self._covered[axis] = slice(first, int(random.integers(first, counts[axis])) + 1)
        self._covered[self._across] = slice(self._row, self._row + 1)

    def _document(self, inner: float, end: float) -> Document:
        along = [axis for axis in range(3) if axis != self._across]
        low = [float(self._borders[axis][self._covered[axis].start]) for axis in along]
        high = [float(self._borders[axis][self._covered[axis].stop]) for axis in along]
        if self._axial:
            low[along.index(1)], high[along.index(1)] = -0.5, 0.5
        plane = {"axis": "xyz"[self._across], "at": self._at, "rectangle": {"min": low, "max": high}}
        layer = {"material": "sheet", "thickness": self._thickness, "plane": plane}
        return {**super()._document(inner, end), "layers": [layer]}

    def _has(self, cell: Cell) -> bool:
        return all(each.start <= cell[2 - axis] < each.stop for axis, each in enumerate(self._covered))

    def _at_row(self, cell: Cell, row: int) -> Cell:
        place = list(cell)
        place[2 - self._across] = row
        return place[0], place[1], place[2]

    def _share(self, cell: Cell) -> float:
        """The part that goes from a cell to the one behind it."""
        if not self._has(cell) or not 0 <= self._behind < len(self._widths[self._across]):
            return 0.0
        away, behind = 1 - self._up, self._at_row(cell, self._behind)
        return super()._half(self._across, cell, self._up) * self._link(self._across, cell, away, behind)

    def _along(self, axis: int, cell: Cell, start: float, end: float) -> float:
        """W/K of the layer along an axis from a coordinate to another."""
        over = self._k[axis] * self._thickness
        if self._axial and axis == 0:
            return float(2.0 * pi * over / log(end / start))
        (third,) = {0, 1, 2} - {axis, self._across}
        wide = 2.0 * pi * self._at if self._axial else self._widths[third][cell[2 - third]]
        return float(over * wide / (end - start))

    def _half(self, axis: int, cell: Cell, side: int) -> float:
        half, front = super()._half(axis, cell, side), self._at_row(cell, self._row)
        if axis == self._across:
            if not self._has(cell):
                return half
            through = self._thickness / (self._k[axis] * self._area(axis, cell, side))
            return through if side == self._up else half + super()._half(axis, cell, self._up)
        if self._has(cell):
            low, high = self._borders[axis][cell[2 - axis] : cell[2 - axis] + 2]
            centre = 0.5 * (low + high)
            along = self._along(axis, cell, centre, high) if side else self._along(axis, cell, low, centre)
            return 1.0 / ((1.0 - self._share(cell)) / half + along)
        if cell[2 - self._across] == self._behind and self._has(front):
            return 1.0 / (1.0 / half + self._share(front) / super()._half(axis, front, side))
        return half

    def _link(self, axis: int, cell: Cell, side: int, other: Cell) -> float:
        pair = ((cell, side), (other, 1 - side))
        contact = self._contact / self._area(axis, cell, side) if self._names[cell] != self._names[other] else 0.0
        if axis == self._across:
            return 1.0 / (contact + sum(self._half(axis, *each) for each in pair))
        link = 1.0 / (contact + sum(super(LayeredBody, self)._half(axis, *each) for each in pair))
        front, beyond = (self._at_row(each, self._row) for each in (cell, other))
        share = max(self._share(front), self._share(beyond))
        if cell == front:
            link *= 1.0 - share
            if self._has(cell) and self._has(other):
                at = sorted(
                    0.5 * self._borders[axis][each[2 - axis] : each[2 - axis] + 2].sum() for each in (cell, other)
                )
                link += self._along(axis, cell, *at)
        elif cell[2 - self._across] == self._behind and share > 0.0:
            differ = self._names[front] != self._names[beyond]
            before = self._contact / self._area(axis, front, side) if differ else 0.0
            before += super()._half(axis, front, side) + super()._half(axis, beyond, 1 - side)
            link += share / before
        return link

    def _equations(self) -> Equations:
        found, axis = super()._equations(), self._across
        sheet = self._materials["sheet"]
        for cell in np.ndindex(*self._shape):
            if self._has(cell):
                own = np.ravel_multi_index(cell, self._shape)
                share, material = self._share(cell), self._materials[str(self._names[cell])]
                moved = share * material["density"] * material["specific_heat"] * self._volume(cell)
                sheet_area = self._area(axis, cell, self._up)
                found.capacity[own] += sheet["density"] * sheet["specific_heat"] * self._thickness * sheet_area - moved
                if share:
                    found.capacity[np.ravel_multi_index(self._at_row(cell, self._behind), self._shape)] += moved
        return found
