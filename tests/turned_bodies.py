"""Random scenarios, and the same ones with other axes: turned, mirrored or both."""

from collections.abc import Sequence, Set
from itertools import product
from math import dist
from typing import Any

import numpy as np

Document = dict[str, Any]
Order = tuple[int, ...]  # the new axis of each axis

_FACES = [f"{axis}_{end}" for axis, end in product("xyz", ("min", "max"))]


class RandomBody:
    """A scenario with random regions, conditions, patches, sources, beams, contacts and layers.

    Expressions have "{x}", "{y}" and "{z}" instead of coordinates.

    Attributes:
        document: the scenario.
    """

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._cells = self._random.integers(3, 9, 3).tolist()
        self._size = [round(self._number(0.004, 0.02) * n, 6) for n in self._cells]
        self._layered = self._chance(0.3)
        regions = [self._region(number) for number in range(self._random.integers(0, 4))]
        void = any(region["material"] == "void" for region in regions)
        self._named = [region["name"] for region in regions if region["material"] != "void"]
        boundaries = self._boundaries()
        if void:
            boundaries["void"] = self._condition(in_space=False)
            boundaries["void"].pop("power", None)
            if boundaries["void"]["type"] == "flux":
                boundaries["void"]["value"] = 100.0
        self._faces = [face for face in _FACES if boundaries.get(face, {}).get("type") != "periodic"]
        self.document: Document = {
            "domain": {"size": self._size, "cells": self._cells, "material": "one"},
            "materials": {"one": self._material(), "two": self._material()},
            "regions": regions,
            "boundaries": boundaries,
            "patches": self._patches(),
            "sources": [self._source() for _ in range(self._random.integers(0, 3))],
            "initial": {"temperature": self._number(280.0, 330.0)},
            "time": {"method": self._one_of("euler", "stabilized", "implicit"), "end": 20.0},
            "solver": {"device": "cpu", "precision": "float64"},
        }
        if self._chance(0.5):
            self.document["contacts"] = [{"between": ["one", "two"], "resistance": 10.0 ** self._number(-6.0, -2.0)}]
        if self._layered:
            self.document["materials"]["copper"] = {"conductivity": 390.0, "density": 8960.0, "specific_heat": 385.0}
            self.document["layers"] = [self._layer()]

    def _number(self, low: float, high: float) -> float:
        return float(self._random.uniform(low, high))

    def _chance(self, part: float) -> bool:
        return bool(self._random.random() < part)

    def _one_of(self, *some: str) -> str:
        return str(self._random.choice(some))

    def _axis(self) -> int:
        return int(self._random.integers(3))

    def _box(self, least: float = 0.4) -> Document:
        lows = [self._number(-0.1, 0.6) for _ in range(3)]
        highs = [low + self._number(least, 0.7) for low in lows]
        if self._chance(0.5):  # on faces between cells
            lows = [max(round(low * n), 0) / n for low, n in zip(lows, self._cells, strict=True)]
            highs = [(round(high * n) + 1) / n for high, n in zip(highs, self._cells, strict=True)]
        return {
            "min": [low * size for low, size in zip(lows, self._size, strict=True)],
            "max": [high * size for high, size in zip(highs, self._size, strict=True)],
        }

    def _material(self) -> Document:
        k = 10.0 ** self._number(-1.0, 2.0)
        found: Document = {"density": self._number(500.0, 9000.0), "specific_heat": self._number(300.0, 2000.0)}
        found["conductivity"] = [k * self._number(0.5, 2.0) for _ in range(3)] if self._chance(0.4) else k
        if not self._layered and self._chance(0.2):
            found["conductivity"] = {"temperatures": [250.0, 450.0], "values": [k, 1.2 * k]}
        if not self._layered and self._chance(0.2):
            found |= {"latent_heat": self._number(2e4, 2e5), "solidus": 310.0, "liquidus": 318.0}
        return found

    def _region(self, number: int) -> Document:
        found = {"name": f"part {number}", "material": self._one_of("one", "two", "two", "void"), "box": self._box()}
        if found["material"] != "void" and self._chance(0.4):
            found["initial_temperature"] = self._number(280.0, 340.0)
        return found

    def _value(self, low: float, high: float, in_space: bool) -> float | str:
        value, kind, axis = self._number(low, high), self._random.random(), self._axis()
        if kind < 0.5:
            return value
        if kind < 0.75 or not in_space:
            return f"{value} + {0.1 * value}*sin({self._number(0.05, 0.5)}*t)"
        return f"{value} + {0.1 * value}*cos({self._number(0.5, 5.0) / self._size[axis]}*{{{'xyz'[axis]}}})"

    def _condition(self, in_space: bool = True) -> Document:
        kind, ambient = self._random.random(), self._value(280.0, 350.0, in_space)
        if kind < 0.15:
            return {"type": "temperature", "value": ambient}
        if kind < 0.3:
            return {"type": "flux", "value": self._value(-2000.0, 4000.0, in_space)}
        if kind < 0.4:
            return {"type": "flux", "power": self._number(-1.0, 2.0)}
        if kind < 0.55:
            return {"type": "radiation", "emissivity": self._number(0.1, 1.0), "ambient": ambient}
        found = {"type": "convection", "coefficient": self._value(1.0, 500.0, in_space), "ambient": ambient}
        if self._chance(0.3):
            found["coefficient"] = f"{self._number(1.0, 20.0)}*(abs(T - Tamb)/10)^0.25"
        if self._chance(0.3):
            found |= {"emissivity": self._number(0.1, 0.9), "flux": self._value(-500.0, 500.0, in_space)}
        return found

    def _boundaries(self) -> Document:
        found: Document = {}
        for axis in "xyz":
            periodic = self._chance(0.1)
            for end in ("min", "max"):
                if periodic or self._chance(0.6):
                    found[f"{axis}_{end}"] = {"type": "periodic"} if periodic else self._condition()
        return found

    def _on_face(self, face: str) -> tuple[list[float], list[float]]:
        """Two opposite corners of a rectangle on a face."""
        sizes = [size for axis, size in zip("xyz", self._size, strict=True) if axis != face[0]]
        low = [self._number(0.0, 0.5) * size for size in sizes]
        return low, [start + self._number(0.2, 0.49) * size for start, size in zip(low, sizes, strict=True)]

    def _patches(self) -> list[Document]:
        found = []
        for face in self._faces:
            if self._chance(0.2):
                low, high = self._on_face(face)
                found.append({"face": face, "rectangle": {"min": low, "max": high}, **self._condition()})
        return found

    def _source(self) -> Document:
        kind, axis = self._random.random(), self._axis()
        if kind < 0.4 and self._faces:
            face = self._one_of(*self._faces)
            path = list(self._on_face(face))
            beam: Document = {
                "face": face,
                "power": self._number(0.5, 3.0),
                "radius": 0.2 * min(self._size),
                "path": path,
            }
            beam["speed"] = dist(*path) / self._number(2.0, 20.0)
            if self._chance(0.4):
                beam["absorption_depth"] = self._number(0.05, 0.5) * min(self._size)
            return {"beam": beam}
        if kind < 0.6 and self._named:
            density = f"{self._number(1e4, 1e5)}*(1 - 0.004*(T - 300))"
            return {"region": self._one_of(*self._named), "power_density": density}
        if kind < 0.8:
            shape = f"exp(-{{{'xyz'[axis]}}}/{0.3 * self._size[axis]})"
            return {"power_density": f"{self._number(1e4, 1e6)}*{shape}*(1 + 0.2*sin(t))"}
        return {"box": self._box(), "power": self._number(-1.0, 4.0), "during": [self._number(0.0, 3.0), 12.0]}

    def _layer(self) -> Document:
        axis = self._axis()
        low, high = self._on_face(_FACES[2 * axis])
        at = self._size[axis] * int(self._random.integers(0, self._cells[axis] + 1)) / self._cells[axis]
        plane = {"axis": "xyz"[axis], "at": at, "rectangle": {"min": low, "max": high}}
        thickness = self._number(0.02, 0.9) * self._size[axis] / self._cells[axis]
        return {"material": "copper", "thickness": thickness, "plane": plane}


def turned(document: Document, order: Order, mirrored: Set[int] = frozenset()) -> Document:
    """The same scenario where axis a has become axis ``order[a]``; axes in ``mirrored`` are mirrored before."""
    size = document["domain"]["size"]

    def vector(values: Sequence[Any]) -> list[Any]:
        return [values[order.index(axis)] for axis in range(3)]

    def place(point: Sequence[float]) -> list[float]:
        return vector([size[axis] - at if axis in mirrored else at for axis, at in enumerate(point)])

    def corners(low: Sequence[float], high: Sequence[float]) -> Document:
        return {"min": list(map(min, low, high)), "max": list(map(max, low, high))}

    def on_face(axis: int, points: Sequence[Sequence[float]]) -> list[list[float]]:
        found = []
        for point in points:
            whole = list(point)
            whole.insert(axis, 0.0)
            moved = place(whole)
            del moved[order[axis]]
            found.append(moved)
        return found

    def face(name: str) -> str:
        axis, end = "xyz".index(name[0]), name[2:]
        other = {"min": "max", "max": "min"}[end] if axis in mirrored else end
        return f"{'xyz'[order[axis]]}_{other}"

    def table(key: str, value: Any) -> Any:
        match key, value:
            case ("size" | "cells", list()):
                return vector(value)
            case ("conductivity", list()):
                return vector(value)
            case ("box", dict()):
                return corners(place(value["min"]), place(value["max"]))
            case ("boundaries", dict()):
                return {name if name == "void" else face(name): each(of) for name, of in value.items()}
            case (_, {"face": name}):
                axis = "xyz".index(name[0])
                found = {**each({k: v for k, v in value.items() if k not in ("rectangle", "path")}), "face": face(name)}
                if "rectangle" in value:
                    found["rectangle"] = corners(*on_face(axis, [value["rectangle"]["min"], value["rectangle"]["max"]]))
                if "path" in value:
                    found["path"] = on_face(axis, value["path"])
                return found
            case ("plane", {"axis": name}):
                axis, rectangle = "xyz".index(name), value["rectangle"]
                at = size[axis] - value["at"] if axis in mirrored else value["at"]
                between = corners(*on_face(axis, [rectangle["min"], rectangle["max"]]))
                return {"axis": "xyz"[order[axis]], "at": at, "rectangle": between}
        return each(value)

    def each(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: table(key, of) for key, of in value.items()}
        if isinstance(value, list):
            return [table("", of) for of in value]
        if isinstance(value, str) and "{" in value:
            names = {"xyz"[axis]: "xyz"[order[axis]] for axis in range(3)}
            for axis, length in enumerate(size):
                if axis in mirrored:
                    names["xyz"[axis]] = f"({length} - {names['xyz'[axis]]})"
            return value.format(**names)
        return value

    found: Document = each(document)
    return found


def back(field: np.ndarray, order: Order, mirrored: Set[int]) -> np.ndarray:  # type: ignore[type-arg]
    """A field of the turned scenario, indexed (z, y, x), in the axes of the first one."""
    found = field.transpose(2, 1, 0).transpose(order)
    return np.flip(found, tuple(mirrored)).transpose(2, 1, 0)
