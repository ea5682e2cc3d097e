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

    Attributes:
        document: the scenario.
        equations: the same as matrices.
    """

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
        self.document = self._document(inner, end)
        self.equations = self._equations()

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
        material = str(self._random.choice(["two", "one", "void"]))
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

    def _half(self, axis: int, cell: tuple[int, int, int], side: int) -> float:
        """K/W between the node of a cell and the middle of its side."""
        z, y, x = cell
        conductivity = self._materials[str(self._names[cell])]["conductivity"]
        k = conductivity[axis] if isinstance(conductivity, list) else conductivity
        if self._axial and axis == 0:
            low, high = self._borders[0][x : x + 2]
            ratio = (high / (0.5 * (low + high))) if side else (0.5 * (low + high)) / low if low else 1.0
            return float(log(ratio) / (2.0 * pi * k * self._widths[2][z]))
        return float(0.5 * self._widths[axis][(x, y, z)[axis]] / (k * self._area(axis, cell, side)))

    def _area(self, axis: int, cell: tuple[int, int, int], side: int) -> float:
        z, y, x = cell
        dx, dy, dz = self._widths[0][x], self._widths[1][y], self._widths[2][z]
        if self._axial:
            low, high = self._borders[0][x : x + 2]
            return float(2.0 * pi * (high if side else low) * dz if axis == 0 else pi * (high**2 - low**2))
        return float((dy * dz, dx * dz, dx * dy)[axis])

    def _volume(self, cell: tuple[int, int, int]) -> float:
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

    def _add_side(
        self, matrix: Array, heat: Array, numbers: NDArray[Any], cell: tuple[int, int, int], axis: int, side: int
    ) -> None:
        own, beside = numbers[cell], list(cell)
        beside[2 - axis] += 1 if side else -1
        face = f"{'xyz'[axis]}_{('min', 'max')[side]}"
        area, other = self._area(axis, cell, side), (beside[0], beside[1], beside[2])
        if 0 <= beside[2 - axis] < self._shape[2 - axis]:
            if numbers[other] >= 0:
                contact = self._contact / area if self._names[cell] != self._names[other] else 0.0
                link = 1.0 / (self._half(axis, cell, side) + contact + self._half(axis, other, 1 - side))
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
