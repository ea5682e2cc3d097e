"""Random bodies beside nodes, and the same equations as dense matrices, written down independently.

    M·dy/dt = A(t)·y + R·y⁴ + B(t)·(g(t), g(t)⁴)

y holds the cells, the nodes, the temperatures of surfaces that radiate, and the heats of each node. M is 0 for those
that follow at once; g are the given temperatures, powers and 1. Extrapolated linearly implicit Euler steps (Hairer and
Wanner, Solving ODEs II, IV.9) solve it to a tolerance.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import lu_factor, lu_solve

Array = NDArray[np.float64]
Document = dict[str, Any]

SIGMA = 5.670374419e-8
START = 300.0
HEATS = ("surfaces", "links", "flows", "power")
_FACES = tuple(product("xyz", ("min", "max")))
_ORDER = 6  # of the extrapolation


@dataclass(frozen=True)
class Course:
    """A value linear between times; times that occur twice are jumps. Its text in a scenario is ``given``."""

    times: tuple[float, ...]
    values: tuple[float, ...]

    @property
    def given(self) -> Any:
        if len(self.times) == 1:
            return self.values[0]
        return {"times": list(self.times), "values": list(self.values)}

    def at(self, t: float) -> float:
        """Its value, that after a jump at the jump."""
        place = int(np.searchsorted(self.times, t, side="right"))
        if place in (0, len(self.times)):
            return self.values[min(place, len(self.times) - 1)]
        (a, b), (x, y) = self.times[place - 1 : place + 1], self.values[place - 1 : place + 1]
        return x + (y - x) * (t - a) / (b - a)

    def mean(self, t: float, dt: float) -> float:
        """Its mean from t to t + dt."""
        inside = [time for time in self.times if t < time < t + dt]
        ends = [t, *sorted(set(inside)), t + dt]
        return sum((b - a) * 0.5 * (self.at(a) + self.at(b - 1e-9 * (b - a))) for a, b in pairwise(ends)) / dt


@dataclass
class _Matrices:
    A: Array
    R: Array
    B: Array


class NodeBody:
    """A random scenario of a body of boxes and nodes, with its equations.

    Args:
        seed: of the body.
        cells: the most cells.
        radiates: whether surfaces may radiate.
        steady: the equations of the steady state: no node has a heat capacity.
        only_nodes: whether all surfaces that exchange heat do so with nodes alone.

    Attributes:
        document: the scenario.
        capacities: of the nodes in J/K.
        end: the time of the run in s.
        exchange: about the largest heat that a node exchanges per kelvin in W/K.
    """

    def __init__(
        self, seed: int, cells: int = 40, radiates: bool = False, steady: bool = False, only_nodes: bool = False
    ) -> None:
        self._random = random = np.random.default_rng([seed, radiates, steady, only_nodes])
        self._radiates, self._steady, self._only = radiates, steady, only_nodes
        self.end = float(10.0 ** random.uniform(0.0, 3.5))
        self._draw_shape(cells)
        self._d = 10.0 ** random.uniform(-2.7, -1.5, 3)
        self._materials = {
            name: {
                "conductivity": (10.0 ** random.uniform(-1.0, 2.5, 3)).tolist(),
                "density": float(10.0 ** random.uniform(2.5, 4.0)),
                "specific_heat": float(random.uniform(100.0, 2000.0)),
            }
            for name in ("one", "two")
        }
        self._draw_regions()
        self.names = [f"n{number}" for number in range(int(random.integers(1, 5)))]
        self._courses: list[Course] = [Course((0.0,), (1.0,))]
        self._conditions: dict[str, Document] = {}
        self._laws: dict[str, dict[str, Any]] = {}
        for axis, end in _FACES:
            self._draw_condition(f"{axis}_{end}")
        if self._void:
            self._draw_condition("void")
            for region in self._regions:
                if self._borders_on_void(int(region["name"][1:])) and random.random() < 0.3:
                    self._draw_condition(f"surface {region['name']}")
        self._draw_patches()
        self._sides = list(self._find_sides())
        self._draw_nodes()
        self._index()
        self._cached: dict[tuple[float, ...], _Matrices] = {}
        self.document = self._document()

    def _draw_shape(self, most: int) -> None:
        while True:
            counts = np.exp(self._random.uniform(0.0, np.log(most), 3)).astype(int)
            if self._random.random() < 0.5:
                counts[self._random.integers(3)] = 1
            if 2 <= counts.prod() <= most:
                break
        self._counts = tuple(int(n) for n in counts)
        self.shape = tuple(reversed(self._counts))

    def _draw_regions(self) -> None:
        random = self._random
        self.material = np.full(self.shape, "one", dtype=object)
        self._owner = np.full(self.shape, -1)
        self._regions: list[Document] = []
        for number in range(int(random.integers(0, 4))):
            first = [int(random.integers(0, n)) for n in self._counts]
            last = [int(random.integers(a, n)) + 1 for a, n in zip(first, self._counts, strict=True)]
            where = tuple(slice(a, b) for a, b in zip(reversed(first), reversed(last), strict=True))
            name = str(random.choice(["two", "void", "one"]))
            material, owner = self.material.copy(), self._owner.copy()
            material[where], owner[where] = name, number
            if not (material != "void").any():
                continue
            self.material, self._owner = material, owner
            box = {"min": (first * self._d).tolist(), "max": (last * self._d).tolist()}
            self._regions.append({"name": f"r{number}", "material": name, "box": box})
        self._void = bool((self.material == "void").any())

    def _course(self, low: float, high: float) -> Course:
        """A number, a table, or a pulse."""
        random, end = self._random, self.end
        first, second = random.uniform(low, high, 2).tolist()
        kind = random.random()
        if kind < 0.5 or self._steady:
            return Course((0.0,), (first,))
        a, b = np.sort(random.uniform(0.05, 0.9, 2) * end).tolist()
        if kind < 0.75:
            return Course((0.0, a, b), (first, second, *random.uniform(low, high, 1).tolist()))
        return Course((0.0, a, a, b, b, end), (first, first, second, second, first, first))

    def _known(self) -> Course:
        return self._course(280.0, 360.0)

    def _given(self, course: Course) -> int:
        self._courses.append(course)
        return len(self._courses) - 1

    def _temperature(self) -> tuple[Any, tuple[str, int]]:
        """Where heat goes: the value in the scenario, and a node or a given temperature."""
        if self._only or self._random.random() < 0.7:
            node = int(self._random.integers(len(self.names)))
            return {"node": self.names[node]}, ("node", node)
        course = self._known()
        return course.given, ("given", self._given(course))

    def _draw_condition(self, place: str) -> None:
        """A condition, and its numbers: film, emissivity, flux, both ends."""
        random, kind = self._random, self._random.random()
        law: dict[str, Any] = {"film": Course((0.0,), (0.0,)), "emissivity": 0.0, "flux": 0.0, "held": None}
        self._laws[place] = law
        if kind < 0.25:
            self._conditions[place] = {"type": "insulated"}
        elif kind < 0.3 and not self._only and "_" in place:
            course = self._known()
            law["held"] = self._given(course)
            self._conditions[place] = {"type": "temperature", "value": course.given}
        elif kind < 0.4 and not self._only:
            law["flux"] = float(random.uniform(-200.0, 1000.0))
            self._conditions[place] = {"type": "flux", "value": law["flux"]}
        else:
            condition: Document = {"type": "convection"}
            condition["ambient"], law["ambient"] = self._temperature()
            law["surroundings"] = law["ambient"]
            if self._radiates and random.random() < 0.7:
                condition["emissivity"] = law["emissivity"] = float(random.uniform(0.1, 1.0))
                if random.random() < 0.2:
                    condition["type"] = "radiation"
                elif random.random() < 0.6:
                    condition["surroundings"], law["surroundings"] = self._temperature()
            if condition["type"] == "convection":
                law["film"] = self._course(*(float(10.0 ** random.uniform(0.0, 3.0)) * np.array([1.0, 3.0])))
                condition["coefficient"] = law["film"].given
            if not self._only and random.random() < 0.2:
                condition["flux"] = law["flux"] = float(random.uniform(0.0, 500.0))
            self._conditions[place] = condition

    def _draw_patches(self) -> None:
        self._patches: list[Document] = []
        self._patched: dict[tuple[str, str], tuple[str, tuple[int, int, int, int]]] = {}
        for axis, end in _FACES:
            across = [number for number in range(3) if "xyz"[number] != axis]
            counts = [self._counts[number] for number in across]
            if self._random.random() > 0.15 or max(counts) < 2:
                continue
            first = [int(self._random.integers(0, n)) for n in counts]
            last = [int(self._random.integers(a, n)) + 1 for a, n in zip(first, counts, strict=True)]
            name = f"patch {axis}{end}"
            self._draw_condition(name)
            low, high = (np.array(ends) * self._d[across] for ends in (first, last))
            self._patched[axis, end] = name, (*first, *last)  # type: ignore[assignment]
            rectangle = {"min": low.tolist(), "max": high.tolist()}
            self._patches.append(
                {"name": name, "face": f"{axis}_{end}", "rectangle": rectangle, **self._conditions.pop(name)}
            )

    def _find_sides(self) -> Any:
        """Each side of a cell at a face or towards void: the cell, its axis, and the name of the condition."""
        conducts = self.material != "void"
        for cell in np.ndindex(*self.shape):
            if not conducts[cell]:
                continue
            for axis, (name, end) in product(range(3), (("min", -1), ("max", 1))):
                beside = list(cell)
                beside[2 - axis] += end
                letter = "xyz"[axis]
                if not 0 <= beside[2 - axis] < self.shape[2 - axis]:
                    place = f"{letter}_{name}"
                    if (letter, name) in self._patched:
                        patch, (a, b, c, d) = self._patched[letter, name]
                        across = [cell[2 - other] for other in range(3) if other != axis]
                        place = patch if a <= across[0] < c and b <= across[1] < d else place
                elif not conducts[tuple(beside)]:
                    own = f"surface r{self._owner[cell]}"
                    place = own if own in self._laws else "void"
                else:
                    continue
                yield cell, axis, place

    def _borders_on_void(self, owner: int) -> bool:
        """Whether a cell of a region has a side towards void."""
        own, void = (self._owner == owner) & (self.material != "void"), self.material == "void"
        pairs = [(np.moveaxis(own, axis, 0), np.moveaxis(void, axis, 0)) for axis in range(3)]
        return any(bool((a[1:] & b[:-1]).any() or (a[:-1] & b[1:]).any()) for a, b in pairs)

    def _area(self, axis: int) -> float:
        return float(np.prod(self._d) / self._d[axis])

    def _half(self, cell: tuple[int, ...], axis: int) -> float:
        """W/(m² K) of half a cell."""
        return float(2.0 * self._materials[self.material[cell]]["conductivity"][axis] / self._d[axis])

    def _draw_nodes(self) -> None:
        """Capacities from tiny to slow, links, flows and powers, in proportion to what surfaces exchange."""
        random, count = self._random, len(self.names)
        exchange = np.full(count, 1e-3)
        for _, axis, place in self._sides:
            law = self._laws[place]
            if law["held"] is None and "ambient" in law and law["ambient"][0] == "node":
                exchange[law["ambient"][1]] += self._area(axis) * (max(law["film"].values) + 6.0 * law["emissivity"])
        self.nodes: list[Document] = [{"name": name} for name in self.names]
        self._links: list[tuple[int, tuple[str, int], float]] = []
        self._flows: list[tuple[int, tuple[str, int], float]] = []
        served = {law[key][1] for _, _, place in self._sides for law in [self._laws[place]]
                  for key in ("ambient", "surroundings") if key in law and law[key][0] == "node"}  # fmt: skip
        self.exchange = float(exchange.max())
        chain = random.permutation(count).tolist()
        for number, node in enumerate(self.nodes):
            scale, links, flows = float(exchange[number]), [], []
            if random.random() < 0.6 or (number not in served):
                course, value = self._known(), float(scale * 10.0 ** random.uniform(-1.0, 1.0))
                links.append({"ambient": course.given, "conductance": value})
                self._links.append((number, ("given", self._given(course)), value))
            for other in range(number):
                if random.random() < 0.4:
                    value = float(scale * 10.0 ** random.uniform(-1.0, 1.0))
                    links.append({"node": self.names[other], "conductance": value})
                    self._links.append((number, ("node", other), value))
            node["links"], node["flows"] = links, flows
        if random.random() < 0.5:  # a fluid from an inlet along a chain; some of it leaves at each node
            drawn = float(exchange.max() * 10.0 ** random.uniform(-1.0, 1.0))
            course, heat = self._known(), float(random.uniform(500.0, 5000.0))
            for place, number in enumerate(chain):
                enters = course.given if place == 0 else None
                flow = {"mass_flow": drawn / heat, "specific_heat": heat}
                self.nodes[number]["flows"].append(
                    {"inlet": enters, **flow} if place == 0 else {"node": self.names[chain[place - 1]], **flow}
                )
                end = ("given", self._given(course)) if place == 0 else ("node", chain[place - 1])
                self._flows.append((number, end, drawn))
                drawn *= float(random.choice([1.0, 0.5]))
        self.capacities, self._powers = np.zeros(count), np.zeros(count, dtype=int)
        self.starts = np.zeros(count)
        for number, node in enumerate(self.nodes):
            scale = float(exchange[number])
            if random.random() < 0.6 and not self._steady:
                C = float(scale * self.end * 10.0 ** random.choice([-4.0, -1.5, 0.0, 1.0]))
                start = float(random.uniform(280.0, 340.0))
                node.update(heat_capacity=C, initial_temperature=start)
                self.capacities[number], self.starts[number] = C, start
            if random.random() < 0.5:
                course = self._course(-20.0 * scale, 60.0 * scale)
                node["power"], self._powers[number] = course.given, self._given(course)

    def _document(self) -> Document:
        own = {name: condition for name, condition in self._conditions.items() if not name.startswith("surface ")}
        return {
            "domain": {
                "size": (np.array(self._counts) * self._d).tolist(),
                "cells": list(self._counts),
                "material": "one",
            },
            "materials": self._materials,
            "regions": self._regions,
            "boundaries": own,
            "patches": self._patches,
            "surfaces": [
                {"of": name.removeprefix("surface "), **condition}
                for name, condition in self._conditions.items()
                if name.startswith("surface ")
            ],
            "nodes": self.nodes,
            "initial": {"temperature": START},
            "time": {"method": "steady"} if self._steady else {"end": self.end},
            "solver": {"device": "cpu"},
            "output": {"every": self.end, "probe_every": self.end / 4.0, "figures": False} if not self._steady else {},
        }

    # The equations.

    def _index(self) -> None:
        self.cells = np.flatnonzero(self.material != "void")
        self._number = np.full(self.shape, -1)
        self._number.reshape(-1)[self.cells] = np.arange(len(self.cells))
        self._radiating = [place for place, (_, _, name) in enumerate(self._sides) if self._laws[name]["emissivity"]]
        self._first_node = len(self.cells)
        self._first_side = self._first_node + len(self.names)
        self._first_heat = self._first_side + len(self._radiating)
        self._size = self._first_heat + 4 * len(self.names)
        volume = float(np.prod(self._d))
        self.heat_capacities = np.array(
            [
                volume * self._materials[name]["density"] * self._materials[name]["specific_heat"]
                for name in self.material.reshape(-1)[self.cells]
            ]
        )
        ones = np.ones(4 * len(self.names))
        self._mass = np.concatenate((self.heat_capacities, self.capacities, np.zeros(len(self._radiating)), ones))

    def _matrices(self, t: float) -> _Matrices:
        films = {place: law["film"].at(t) for place, law in self._laws.items()}
        key = tuple(films.values())
        if key not in self._cached:
            self._cached[key] = self._assemble(films)
            if len(self._cached) > 300:
                self._cached.clear()
                self._cached[key] = self._assemble(films)
        return self._cached[key]

    def _assemble(self, films: dict[str, float]) -> _Matrices:
        m = _Matrices(*(np.zeros((self._size, n)) for n in (self._size, self._size, 2 * len(self._courses))))
        for cell in zip(*np.nonzero(self.material != "void"), strict=True):
            for axis in range(3):
                beside = list(cell)
                beside[2 - axis] += 1
                if beside[2 - axis] < self.shape[2 - axis] and self.material[tuple(beside)] != "void":
                    a, b = self._number[cell], self._number[tuple(beside)]
                    link = self._area(axis) / sum(1.0 / self._half(each, axis) for each in (cell, tuple(beside)))
                    for one, other in ((a, b), (b, a)):
                        m.A[one, one] -= link
                        m.A[one, other] += link
        for place, (cell, axis, name) in enumerate(self._sides):
            self._add_side(m, place, int(self._number[cell]), self._area(axis), self._half(cell, axis), name, films)
        for number, end, value in self._links:
            self._add_exchange(m, number, end, value, 1)
            if end[0] == "node":
                self._add_exchange(m, end[1], ("node", number), value, 1)
        for number, end, value in self._flows:
            self._add_exchange(m, number, end, value, 2)
        for number in range(len(self.names)):
            if self._powers[number]:
                self._gain(m.B, number, 3, self._powers[number], 1.0)
        return m

    def _gain(self, to: Array, node: int, kind: int, column: int, number: float) -> None:
        """Add to the equation of a node, and to that of its heat."""
        to[self._first_node + node, column] += number
        to[self._first_heat + 4 * node + kind, column] += number

    def _add_exchange(self, m: _Matrices, node: int, end: tuple[str, int], value: float, kind: int) -> None:
        self._gain(m.A, node, kind, self._first_node + node, -value)
        matrix, column = self._of(m, end)
        self._gain(matrix, node, kind, column, value)

    def _of(self, m: _Matrices, end: tuple[str, int]) -> tuple[Array, int]:
        """The matrix and the column in which a temperature stands."""
        return (m.A, self._first_node + end[1]) if end[0] == "node" else (m.B, end[1])

    def _add_side(
        self, m: _Matrices, place: int, own: int, area: float, K: float, name: str, films: dict[str, float]
    ) -> None:
        law, h = self._laws[name], films[name]
        flux, emissivity = law["flux"], law["emissivity"]
        if law["held"] is not None:
            m.A[own, own] -= area * K
            m.B[own, law["held"]] += area * K
            return
        if not emissivity:
            kept = K / (K + h)
            m.B[own, 0] += area * flux * kept
            if h:
                m.A[own, own] -= area * h * kept
                matrix, column = self._of(m, law["ambient"])
                matrix[own, column] += area * h * kept
                if law["ambient"][0] == "node":
                    node = law["ambient"][1]
                    self._gain(m.A, node, 0, own, area * h * kept)
                    self._gain(m.A, node, 0, self._first_node + node, -area * h * kept)
                    self._gain(m.B, node, 0, 0, area * h * flux / (K + h))
            return
        side = self._first_side + self._radiating.index(place)
        sigma = emissivity * SIGMA
        m.A[own, own] -= area * K
        m.A[own, side] += area * K
        m.A[side, own] += K
        m.A[side, side] -= K + h
        m.R[side, side] -= sigma
        m.B[side, 0] += flux
        matrix, column = self._of(m, law["ambient"])
        matrix[side, column] += h
        if law["surroundings"][0] == "node":
            m.R[side, self._first_node + law["surroundings"][1]] += sigma
            node = law["surroundings"][1]
            self._gain(m.R, node, 0, side, area * sigma)
            self._gain(m.R, node, 0, self._first_node + node, -area * sigma)
        else:
            m.B[side, len(self._courses) + law["surroundings"][1]] += sigma
        if law["ambient"][0] == "node":
            node = law["ambient"][1]
            self._gain(m.A, node, 0, side, area * h)
            self._gain(m.A, node, 0, self._first_node + node, -area * h)

    def _rate(self, t: float, y: Array, given: Array | None = None) -> Array:
        """M·dy/dt."""
        m, g = self._matrices(t), self._given_at(t) if given is None else given
        return np.asarray(m.A @ y + m.R @ y**4 + m.B @ np.append(g, g**4))

    def _given_at(self, t: float) -> Array:
        return np.array([course.at(t) for course in self._courses])

    def _jacobian(self, t: float, y: Array) -> Array:
        m = self._matrices(t)
        return m.A + 4.0 * m.R * y**3

    @property
    def begun(self) -> Array:
        """y at t = 0; what follows at once is only a guess."""
        sides = np.full(len(self._radiating), START)
        starts = np.where(self.capacities > 0.0, self.starts, START)
        return np.concatenate((np.full(len(self.cells), START), starts, sides, np.zeros(4 * len(self.names))))

    def _settled(self, t: float, y: Array, given: Array | None = None, at: Array | None = None) -> Array:
        """y with what follows at once found by Newton's method."""
        y, places = y.copy(), np.flatnonzero(self._mass == 0.0) if at is None else at
        for _ in range(60):
            change = np.linalg.solve(-self._jacobian(t, y)[np.ix_(places, places)], self._rate(t, y, given)[places])
            y[places] += change
            if np.abs(change).max(initial=0.0) < 1e-11 * np.abs(y).max():
                return y
        pytest.skip("Newton's method of the reference goes to and fro where surfaces radiate strongly")

    def steady(self) -> Array:
        """y at which nothing changes, with the flows in W in the place of heats."""
        y = self._settled(0.0, self.begun, at=np.arange(self._first_heat))
        y[self._first_heat :] = self._rate(0.0, y)[self._first_heat :]
        return y

    @property
    def grounded(self) -> bool:
        """Whether the steady state is unique: the Jacobian has a rank of all unknowns."""
        n = self._first_heat
        J = self._jacobian(0.0, self.begun)[:n, :n]
        size = np.sqrt(np.abs(J.diagonal())) + 1e-300
        return bool(np.linalg.svd(J / size / size[:, None], compute_uv=False).min() > 1e-11)

    def courses_at(self, times: Array, tolerance: float = 1e-6) -> list[Array]:
        """y at some times in s, the first of them 0, with an error of about ``tolerance`` K."""
        jumps = {t for course in self._courses for t in course.times} | {
            t for law in self._laws.values() for t in law["film"].times
        }
        y, found = self._settled(0.0, self.begun), []
        borders = sorted({*times.tolist(), *(t for t in jumps if t < times[-1])})
        h = 1e-6 * float(times[-1])
        for begin, end in zip([0.0, *borders], borders, strict=False):
            if end > begin:
                inside = end - 1e-10 * (end - begin)
                y = self._settled(begin, y)
                t, h = begin, min(h, 1e-4 * (end - begin))
                while t < end:
                    last = t + h >= end - 1e-9 * (end - begin)
                    h = end - t if last else h
                    more, error = self._step(t, y, h, inside)
                    if error <= tolerance:
                        t, y = (end if last else t + h), more
                    h *= min(4.0, max(0.2, 0.8 * (tolerance / max(error, 1e-300)) ** (1.0 / _ORDER)))
            if end in times:
                found.append(self._settled(min(end, inside) if end > begin else end, y))
        return found

    def _step(self, t: float, y: Array, h: float, before: float) -> tuple[Array, float]:
        """y after a step of ``h`` s, and the error in K; ``before`` is the last time before a jump."""
        J, table = self._jacobian(t, y), list[Array]()
        for count in range(1, _ORDER + 1):
            size = h / count
            factors = lu_factor(np.diag(self._mass / size) - J)
            value = y.copy()
            for place in range(count):
                value += lu_solve(factors, self._rate(min(t + (place + 1) * size, before), value))
            row = [value]
            for back, coarser in enumerate(table):
                row.append(row[back] + (row[back] - coarser) / (count / (count - back - 1.0) - 1.0))
            table = row
        temperatures = slice(0, self._first_side)
        return table[-1], float(np.abs(table[-1] - table[-2])[temperatures].max())

    def euler(self, dt: "Callable[[int], float]", steps: int) -> Array:
        """y after steps of Euler's method, from given temperatures at their start and mean powers."""
        y, t = self.begun, 0.0
        powers = sorted({int(place) for place in self._powers if place})
        for step in range(steps):
            given, h = self._given_at(t), dt(step)
            for place in powers:
                given[place] = self._courses[place].mean(t, h)
            y = self._settled(t, y, given)
            moves = self._mass > 0.0
            y[moves] += h * self._rate(t, y, given)[moves] / self._mass[moves]
            t += h
        return self._settled(t, y)

    def parts(self, y: Array) -> tuple[Array, Array, Array]:
        """The temperatures of cells and of nodes in K, and the heats of nodes, shape (nodes, 4)."""
        cells, nodes, heats = y[: self._first_node], y[self._first_node : self._first_side], y[self._first_heat :]
        return cells, nodes, heats.reshape(-1, 4)
