"""Enthalpy tables of materials that vary with temperature.

If the heat capacity varies, heat is conserved, not temperature (Voller & Cross, *Int. J. Heat Mass Transfer* 24 (1981)
545). Each cell stores its content: its enthalpy above that at the reference temperature, in kelvins of the heat
capacity C at the reference temperature. Kirchhoff's potential (Carslaw & Jaeger, *Conduction of Heat in Solids*, 2nd
ed., §1.6) drives conduction, in kelvins of the conductivity k at the reference temperature:

    content    θ = 1/C ∫ ρ·cp dT  (+ ρ·L/C while it melts)        potential  φ = 1/k ∫ k(T) dT

so that C·∂θ/∂t = ∇·(k∇φ) + q exactly, and θ = φ = T − T_ref for constant materials. Tables with equal steps in θ give T
and φ, linear in between and extrapolated linearly beyond their ends. All parts of the program use the same tables, so
the error of a table does not affect the conservation of energy. Latent heat is absorbed evenly from solidus to
liquidus.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, inf, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario import Material, MaterialFunction

Array = NDArray[np.float64]

# Most steps of a table: over 500 K a step is a quarter of a kelvin, and 16 KiB in float32 stay in a GPU's L1. Where an
# error below _FINE (K) is needed, a table may have _MOST steps.
STEPS, _MOST, _FINE = 2**11, 2**18, 1e-4
_FEWEST = 6  # fewest steps, as a power of 2
_PRECISION = 1e-6  # of the span of contents; functions with sharp bends may not reach it with STEPS steps
# Number of temperatures at which properties are sampled and integrated.
_SAMPLES = 2**15
_NARROWEST = 1e-3  # K; a smaller span of contents counts as this


@dataclass(frozen=True, eq=False)
class EnthalpyTable:
    """Temperature, potential and conductivity of a material by its content.

    Attributes:
        conductivity: (kx, ky, kz) in W/(m K) at the reference temperature: the unit of the potential.
        heat_capacity: ρ·cp in J/(m³ K) at the reference temperature, without latent heat: the unit of the content.
        step: K of content between nodes, a power of two, so that dividing a content by it is exact.
        first: content at the first node / step.
        temperatures: T − T_ref in K at the nodes, ascending.
        potentials: φ in K at the nodes, ascending.
        conductivities: k(T)/k at the nodes.
        followed: the range (lowest, highest) in K in which the table follows the material's functions.
        conductivity_range: (lowest, highest) of the largest of kx, ky, kz in W/(m K) in that range.
        specific_heat_range: (lowest, highest) cp in J/(kg K) in that range, without latent heat.
    """

    conductivity: tuple[float, float, float]
    heat_capacity: float
    step: float
    first: int
    temperatures: Array
    potentials: Array
    conductivities: Array
    followed: tuple[float, float]
    conductivity_range: tuple[float, float]
    specific_heat_range: tuple[float, float]

    @property
    def steps(self) -> int:
        """Number of steps between the nodes."""
        return len(self.temperatures) - 1

    @cached_property
    def contents(self) -> Array:
        """θ in K at the nodes."""
        return np.asarray((self.first + np.arange(self.steps + 1)) * self.step, dtype=np.float64)

    @cached_property
    def warming(self) -> float:
        """The largest dT/dθ: C / smallest heat capacity."""
        return float(np.diff(self.temperatures).max()) / self.step

    @cached_property
    def driving(self) -> float:
        """The largest dφ/dθ: largest diffusivity / diffusivity at the reference temperature."""
        return float(np.diff(self.potentials).max()) / self.step

    @property
    def least_driving(self) -> float:
        """The smallest dφ/dθ; small while a material melts."""
        return float(np.diff(self.potentials).min()) / self.step

    @cached_property
    def conducting(self) -> float:
        """The largest k(T)/k."""
        return float(self.conductivities.max())

    @property
    def least_conducting(self) -> float:
        """The smallest k(T)/k."""
        return float(self.conductivities.min())

    def content_at(self, temperature: Any, xp: Any = np) -> Any:
        """θ in K at T − T_ref in K, of the same shape; ``xp``: NumPy or CuPy."""
        return temperature if self.steps == 1 else _along(temperature, self.temperatures, self.contents, xp=xp)

    def temperature_of(self, content: Any, xp: Any = np) -> Any:
        """T − T_ref in K for θ in K, of any shape; the same where nothing varies. ``xp``: the arrays' module."""
        return content if self.steps == 1 else _along(content, self.contents, self.temperatures, xp=xp)

    def content_slope_at(self, temperature: Any, xp: Any = np) -> Any:
        """dθ/dT for T − T_ref in K, of any shape: cp(T)/cp, more where latent heat is absorbed."""
        if self.steps == 1:
            return xp.ones_like(temperature)
        nodes = xp.asarray(self.temperatures)
        interval = xp.clip(xp.searchsorted(nodes, temperature) - 1, 0, self.steps - 1)
        return xp.asarray(self.step / np.diff(self.temperatures))[interval]

    def potential_at(self, temperature: Any, xp: Any = np) -> Any:
        """φ in K at T − T_ref in K, of the same shape; ``xp``: NumPy or CuPy."""
        return _along(temperature, self.temperatures, self.potentials, xp=xp)

    def temperature_at(self, potential: Any, xp: Any = np) -> Any:
        """T − T_ref in K at φ in K, of the same shape; ``xp``: NumPy or CuPy."""
        return _along(potential, self.potentials, self.temperatures, xp=xp)

    def conductivity_at(self, temperature: Any, xp: Any = np) -> Any:
        """k(T)/k at T − T_ref in K, of the same shape; ``xp``: NumPy or CuPy."""
        return xp.interp(temperature, xp.asarray(self.temperatures), xp.asarray(self.conductivities))


def constant(conductivity: tuple[float, float, float], heat_capacity: float) -> EnthalpyTable:
    """The table of a constant material, or of void: θ = φ = T − T_ref, without rounding."""
    one = np.array([0.0, 1.0])
    nothing = (0.0, 0.0)
    return EnthalpyTable(conductivity, heat_capacity, 1.0, 0, one, one, np.ones(2), nothing, nothing, nothing)


def tabulate(material: Material, reference: float, low: float, high: float, resolution: float = inf) -> EnthalpyTable:
    """The enthalpy table of a material.

    Args:
        material: the material; its functions are finite and positive from ``low`` to ``high``.
        reference: T_ref in K, where content and potential are 0.
        low: lowest temperature in K at which the functions are followed; below it they are constant.
        high: highest temperature in K at which the functions are followed; above it they are constant.
        resolution: by how many K a table may displace temperatures.
    """
    conductivity, specific_heat = material.conductivity_at(reference), material.specific_heat_at(reference)
    heat_capacity = material.density * specific_heat
    low, high = min(low, reference), max(high, reference)
    T = _samples(material, low, high, reference)
    along = material.conductivity if isinstance(material.conductivity, MaterialFunction) else max(conductivity)
    k, cp = material.values(along, T), material.values(material.specific_heat, T)
    content = (_integral(T, cp) + _melted(material, T)) / specific_heat
    potential = _integral(T, k) / max(conductivity)
    here = int(np.searchsorted(T, reference))
    content, potential, deviation = content - content[here], potential - potential[here], T - reference

    slopes = (specific_heat / cp[[0, -1]], k[[0, -1]] / max(conductivity))
    allowed = resolution if resolution < _FINE else inf
    step, first, temperatures, potentials = _tables(content, deviation, potential, *slopes, allowed)
    return EnthalpyTable(
        conductivity=conductivity,
        heat_capacity=heat_capacity,
        step=step,
        first=first,
        temperatures=temperatures,
        potentials=potentials,
        conductivities=np.interp(temperatures, deviation, k) / max(conductivity),
        followed=(low, high),
        conductivity_range=(float(k.min()), float(k.max())),
        specific_heat_range=(float(cp.min()), float(cp.max())),
    )


def _tables(
    content: Array, deviation: Array, potential: Array, warming: Array, conducting: Array, allowed: float
) -> tuple[float, int, Array, Array]:
    """The step, the first node, and temperatures and potentials at the nodes.

    Steps are as long as the precision allows: a short table needs few cache lines.

    Args:
        content: θ in K at some temperatures, ascending.
        deviation: T − T_ref in K at these.
        potential: φ in K at these.
        warming: dT/dθ at the two ends.
        conducting: k(T)/k at the two ends.
        allowed: the largest error in K.
    """
    span = max(float(content[-1] - content[0]), _NARROWEST)
    for steps in (2**power for power in range(_FEWEST, _MOST.bit_length())):
        step = 2.0 ** ceil(log2(span / (steps - 2)))
        # One more step at each end, outside the followed range: its slope continues the last values.
        first, last = floor(float(content[0]) / step) - 1, ceil(float(content[-1]) / step) + 1
        nodes = np.arange(first, last + 1, dtype=np.float64) * step
        temperatures = _along(nodes, content, deviation, warming)
        potentials = _along(temperatures, deviation, potential, conducting)
        errors = (
            np.interp(content, nodes, tabulated) - exact
            for tabulated, exact in ((temperatures, deviation), (potentials, potential))
        )
        missed = max(float(np.abs(error).max()) for error in errors)
        if missed <= allowed and (missed <= _PRECISION * span or steps >= STEPS):
            break
    return step, first, temperatures, potentials


def _samples(material: Material, low: float, high: float, reference: float) -> Array:
    """Temperatures in K from ``low`` to ``high``: evenly spaced, and where a function or its slope may jump."""
    special = [np.linspace(low, high, _SAMPLES + 1), np.array([reference])]
    for function in (material.conductivity, material.specific_heat):
        if isinstance(function, MaterialFunction):
            special.append(function.nodes(low, high))
    if material.solidus is not None and material.liquidus is not None:
        special.append(np.clip([material.solidus, material.liquidus], low, high))
    return np.unique(np.concatenate(special))


def _integral(T: Array, values: Array) -> Array:
    """The integral up to each T, by the trapezoidal rule: exact for tables, because T has their nodes."""
    return np.concatenate(([0.0], np.cumsum(0.5 * (values[1:] + values[:-1]) * np.diff(T))))


def _melted(material: Material, T: Array) -> Array:
    """Absorbed latent heat in J/kg at each T."""
    if material.latent_heat is None or material.solidus is None or material.liquidus is None:
        return np.zeros(len(T))
    return material.latent_heat * np.clip((T - material.solidus) / (material.liquidus - material.solidus), 0.0, 1.0)


def _along(at: Any, x: Array, y: Array, slopes: Sequence[float] | Array | None = None, xp: Any = np) -> Any:
    """y(x), linear between nodes; beyond them with ``slopes``, by default those of the first and last interval."""
    if slopes is None:
        slopes = ((y[1] - y[0]) / (x[1] - x[0]), (y[-1] - y[-2]) / (x[-1] - x[-2]))
    (first, last), (low, high) = ((float(values[0]), float(values[-1])) for values in (x, y))
    before, after = (float(slope) for slope in slopes)
    inside = xp.interp(at, xp.asarray(x), xp.asarray(y))
    return xp.where(at < first, low + before * (at - first), xp.where(at > last, high + after * (at - last), inside))


@dataclass(frozen=True, eq=False)
class TemperatureTables:
    """T − T_ref of several enthalpy tables by content, as arrays of the host.

    With x = content · ``per_kelvin`` and n = ⌊x⌋, held between ``first`` and ``last``, the temperature is
    ``values[base + n] + rises[base + n] · (x − n)``.

    Attributes:
        per_kelvin: steps of each table per kelvin of content.
        first: the first step of each table.
        last: the last step of each table.
        base: where step 0 of each table stands in ``values``.
        values: T − T_ref in K at the nodes of all tables, without the last one of each.
        rises: their differences to the next node.
    """

    per_kelvin: Array
    first: Array
    last: Array
    base: NDArray[np.int64]
    values: Array
    rises: Array

    @classmethod
    def of(cls, enthalpies: Sequence[EnthalpyTable]) -> "TemperatureTables":
        """The tables of several enthalpy tables; equal ones share their values."""
        different = list(dict.fromkeys(enthalpies))
        starts = dict(zip(different, np.cumsum([0, *(one.steps for one in different[:-1])]).tolist(), strict=True))
        return cls(
            per_kelvin=np.array([1.0 / enthalpy.step for enthalpy in enthalpies]),
            first=np.array([float(enthalpy.first) for enthalpy in enthalpies]),
            last=np.array([float(enthalpy.first + enthalpy.steps - 1) for enthalpy in enthalpies]),
            base=np.array([starts[enthalpy] - enthalpy.first for enthalpy in enthalpies], dtype=np.int64),
            values=np.concatenate([enthalpy.temperatures[:-1] for enthalpy in different]),
            rises=np.concatenate([np.diff(enthalpy.temperatures) for enthalpy in different]),
        )


class Thermometer:
    """Temperatures from contents, cell by cell, with the arrays of a device.

    Args:
        xp: NumPy, or CuPy.
        enthalpies: the enthalpy table of each cell type.
        cell_types: a function from an index of the field to the types of its cells, on the device; 0 if there is
            one type.
    """

    def __init__(self, xp: Any, enthalpies: Sequence[EnthalpyTable], cell_types: Callable[[Any], Any]) -> None:
        self._xp = xp
        self._cell_types = cell_types
        tables = TemperatureTables.of(enthalpies)
        self._per_kelvin, self._first, self._last = map(xp.asarray, (tables.per_kelvin, tables.first, tables.last))
        self._base, self._values, self._rises = map(xp.asarray, (tables.base, tables.values, tables.rises))

    def __call__(self, contents: Any, place: Any) -> Any:
        """T − T_ref in K, float64, from the contents at an index of the field; NaN stays NaN."""
        xp, cell_types = self._xp, self._cell_types(place)
        x = contents.astype(np.float64) * self._per_kelvin[cell_types]
        node = xp.floor(xp.where(xp.isfinite(x), x, 0.0))
        node = xp.minimum(xp.maximum(node, self._first[cell_types]), self._last[cell_types])
        entry = self._base[cell_types] + node.astype(np.int64)
        return self._values[entry] + self._rises[entry] * (x - node)
