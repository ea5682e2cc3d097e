"""Problems with exact answers on smoothly graded grids, for the order of convergence.

Some are cases of `heatsim verify` on other grids. Those with axial symmetry are waves
T = 300 + A·J₀(λr)·cos(κz)·exp(−α(λ² + κ²)t). In the faces across r their values, fluxes, or the temperatures of air and
surroundings are those of the wave, and so is the temperature of the face z_max.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, factorial, log2
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heatsim import Simulation
from heatsim.scenario import load
from heatsim.verification import CASES
from heatsim.verification.case import EndState
from heatsim.verification.exact import STEFAN_BOLTZMANN, bessel

Array = NDArray[np.float64]

_K, _CAPACITY = 4.0, 8.0  # W/(m K), J/(m³ K)
_DIFFUSIVITY = _K / _CAPACITY
_ALONG_R, _HEIGHT, _END = 2.0, 0.8, 0.1
_CONTACT = 0.9  # where two parts touch, in m
_BEYOND = 0.7  # the amplitude of the wave beyond the contact, relative to that within it


def growing(planes: Sequence[float], cells: Sequence[int], growth: float = 1.2) -> list[float]:
    """Widths of cells between planes, whose last one is about exp(``growth``) times as wide as the first.

    They are the differences of a smooth function of the number of the cell, so twice the cells halve all widths.
    Every second part falls.
    """
    borders = [planes[0]]
    for part, count in enumerate(cells):
        steep = growth if part % 2 == 0 else -growth
        places = np.expm1(steep * np.arange(1, count + 1) / count) / np.expm1(steep)
        borders += (planes[part] + (planes[part + 1] - planes[part]) * places).tolist()
    return np.diff(borders).tolist()


def order(coarse: float, fine: float) -> float:
    """The order that two errors show, the second one with twice as many cells."""
    return log2(coarse / fine)


@dataclass(frozen=True)
class Regridded:
    """A case of `heatsim verify` on a graded grid.

    Attributes:
        name: of the case.
        planes: for axes with cells of several widths, the planes where their parts end, in m.
        cells: of each part.
    """

    name: str
    planes: Mapping[str, tuple[float, ...]]
    cells: Mapping[str, tuple[int, ...]]

    def error(self, times: int, method: str, folder: Path) -> float:
        """The root of the mean square error in K, with ``times`` as many cells."""
        (case,) = (case for case in CASES if case.name == self.name)
        scenario = load(case.path)
        widths = {
            axis: growing(planes, [times * count for count in self.cells[axis]]) for axis, planes in self.planes.items()
        }
        others = [number for number, axis in enumerate("xyz") if axis not in widths]
        overrides = [f"domain.{axis}={{ widths = {values} }}" for axis, values in widths.items()]
        overrides += [
            f"domain.size={[scenario.domain.size[axis] for axis in others]}",
            f"domain.cells={[1] * len(others)}",
        ]
        overrides += ["output.error=none", "solver.device=cpu", "solver.precision=float64"]
        match method:
            case "euler":
                overrides.append("time.dt=auto")
            case "steady":
                overrides.append('time={ method = "steady", tolerance = 1e-7 }')
            case _:
                tolerance = 1e-6 * case.range
                overrides.append(
                    f'time={{ method = "{method}", end = {scenario.time.end!r}, tolerance = {tolerance} }}'
                )
        simulation = Simulation.from_scenario(case.path, overrides, output=folder, overwrite=True)
        simulation.run()
        own = case.end.quantity if method == "steady" and isinstance(case.end, EndState) else None
        return (own or case.quantity)(simulation).rms


class Turned:
    """A wave in a hollow or solid cylinder.

    Attributes:
        solid: whether it reaches to the axis; else it begins at 0.5 m.
        kind: of the condition at the faces across r: "temperature", "flux", "convection", "radiation"; "void" is
            convection towards void cells beyond 1.4 m, "contact" a contact resistance at 0.9 m.
        method: in time.
    """

    def __init__(self, kind: str, solid: bool, method: str) -> None:
        self.solid, self.kind, self.method = solid, kind, method
        self.inner, self.outer = (0.0 if solid else 0.5), 1.4
        # What a face radiates to may vary with time alone.
        self._along_z = 0.0 if kind == "radiation" else 1.3
        self._rate = _DIFFUSIVITY * (_ALONG_R**2 + self._along_z**2)

    def error(self, cells: int) -> tuple[float, float]:
        """The root of the mean square error of the volume in K, and that of the innermost cells.

        Args:
            cells: along r, half of them along z.
        """
        simulation = Simulation.from_dict(self._document(cells), in_memory=True)
        simulation.run()
        problem, T = simulation.plan.problem, np.asarray(simulation.temperature, dtype=np.float64)[:, 0]
        grid = problem.grid
        r, z = grid.centres(0), grid.centres(2)[:, None]
        differences = T - 300.0 - self._wave(r, z, simulation.time)
        inside = np.broadcast_to(r < self.outer, T.shape)
        weights = (grid.axes[2].measures[:, None] * grid.axes[0].measures)[inside]
        rms = np.sqrt(np.average(differences[inside] ** 2, weights=weights))
        return float(rms), float(np.sqrt(np.average(differences[:, 0] ** 2, weights=grid.axes[2].measures)))

    def _wave(self, r: Array, z: Array, t: float) -> Array:
        amplitude = np.where(r < _CONTACT, 50.0, 50.0 * self._beyond)
        return np.asarray(amplitude * bessel(0, _ALONG_R * r) * np.cos(self._along_z * z) * exp(-self._rate * t))

    @property
    def _beyond(self) -> float:
        return _BEYOND if self.kind == "contact" else 1.0

    def _document(self, cells: int) -> dict[str, object]:
        planes, counts = [self.inner, _CONTACT, self.outer], [cells // 2, cells // 2]
        if self.kind == "void":
            planes, counts = [*planes, 1.8], [*counts, cells // 4]
        radial = self._radial
        at_top = f"{radial}*cos({self._along_z * _HEIGHT!r})*exp(-{self._rate!r}*t)"
        material = {"density": _CAPACITY, "specific_heat": 1.0}
        whole = {"max": [1.4, 0.5, _HEIGHT]}
        document: dict[str, object] = {
            "domain": {
                "symmetry": "axial",
                "origin": [self.inner, 0.0],
                "material": "void" if self.kind == "void" else "inner",
                "x": {"widths": growing(planes, counts)},
                "z": {"widths": growing([0.0, _HEIGHT], [cells // 2])},
            },
            "materials": {
                "inner": {**material, "conductivity": _K},
                # With a wave of another amplitude the same flux.
                "outer": {"conductivity": _K / self._beyond, "density": _CAPACITY / self._beyond, "specific_heat": 1.0},
            },
            "regions": [
                {"name": "within", "material": "inner", "box": {"min": [0.0, -0.5, 0.0], "max": [0.9, 0.5, _HEIGHT]}},
                {"name": "beyond", "material": "outer", "box": {"min": [_CONTACT, -0.5, 0.0], **whole}},
            ],
            "boundaries": {"z_max": {"type": "temperature", "value": f"300 + {at_top}"}, **self._faces()},
            "initial": {"temperature": f"300 + {radial}*cos({self._along_z!r}*z)"},
            "time": {"method": self.method, "end": _END},
            "solver": {"device": "cpu", "precision": "float64"},
            "output": {"error": "none"},
        }
        if self.method != "euler":
            document["time"] = {"method": self.method, "end": _END, "tolerance": 5e-5}
        if self.kind == "contact":
            slope = _ALONG_R * float(bessel(1, np.array(_ALONG_R * _CONTACT)))
            fall = (1.0 - _BEYOND) * float(bessel(0, np.array(_ALONG_R * _CONTACT)))
            document["contacts"] = [{"between": ["inner", "outer"], "resistance": fall / (_K * slope)}]
        return document

    @property
    def _radial(self) -> str:
        """A·J₀(λ·x) as an expression."""
        terms = [(-1.0) ** n * (_ALONG_R / 2.0) ** (2 * n) / factorial(n) ** 2 for n in range(14)]
        series = "0"
        for term in reversed(terms):
            series = f"({term!r} + x^2*{series})"
        amplitude = f"where(x < {_CONTACT}, 50, {50.0 * self._beyond!r})"
        return f"{amplitude}*{series}"

    def _faces(self) -> dict[str, dict[str, object]]:
        faces = {"void" if self.kind == "void" else "x_max": self._face(self.outer, 1.0)}
        return faces if self.solid else {"x_min": self._face(self.inner, -1.0), **faces}

    def _face(self, r: float, outwards: float) -> dict[str, object]:
        amplitude = 50.0 * (self._beyond if r > _CONTACT else 1.0)
        k = _K / (self._beyond if r > _CONTACT else 1.0)
        even, odd = (float(bessel(order, np.array(_ALONG_R * r))) for order in (0, 1))
        decay = f"exp(-{self._rate!r}*t)"
        if self._along_z:
            decay = f"cos({self._along_z!r}*z)*{decay}"
        value = f"(300 + {amplitude * even!r}*{decay})"
        leaving = f"{outwards * k * amplitude * _ALONG_R * odd!r}*{decay}"  # W/m²
        match self.kind:
            case "temperature" | "contact":
                return {"type": "temperature", "value": value}
            case "flux":
                return {"type": "flux", "value": f"-({leaving})"}
            case "radiation":
                ambient = f"({value}^4 - {leaving}/{STEFAN_BOLTZMANN!r})^0.25"
                return {"type": "radiation", "emissivity": 1.0, "ambient": ambient}
        return {"type": "convection", "coefficient": 30.0, "ambient": f"{value} - {leaving}/30"}
