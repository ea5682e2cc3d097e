"""Contacts whose conductance depends on the temperatures of both surfaces, or on time.

Between the surface temperatures T1 and T2 of a contact passes the heat flux

    Q = (H(T, t) + E·T·(4·T² + D²))·D = H·D + E·(T1⁴ − T2⁴),      T = (T1 + T2)/2,  D = T1 − T2

H is a table over T with straight lines between its nodes, and the table defines the law for all kernels; E is
Stefan–Boltzmann's constant times the exchange factor of the surfaces. The surfaces lie between the half cells a and b
with the resistances r_a and r_b. With the ratio w of the smooth to the voxel area, q = w·Q satisfies

    q = f·(T_a − T_b)/R,   R = r_a + r_b:      g(f) = B·(1 − f) − f = 0,      B = w·R·(H + E·T·(4·T² + D²))
    D = (1 − f)·(T_a − T_b),      T = (T_a + T_b)/2 + f·(r_b − r_a)/(2R)·(T_a − T_b)

Newton's method finds f in [0, 1] from 0 on, with bisection where a step leaves the bracket. g falls everywhere
where :meth:`GapLaw.steepest` finds nothing, so there is one f. Both cells calculate the same q.

In the rows of conditions the laws stand behind all conditions and their tables, one row each, then their tables:

    film: number of nodes       flux, emission: where conductances and nodes begin, from the row's first number
    surroundings: E
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.conditions.surface_balance import (
    EMISSION,
    FILM,
    FLUX,
    FREE,
    NUMBERS,
    STEFAN_BOLTZMANN,
    SURROUNDINGS,
)
from heatsim.scenario import Contact, TimeFunction
from heatsim.scenario.values.gapfunction import Conducting, courses, follows, moments, temperature_nodes, values_at
from heatsim.scenario.values.quantities import CONDUCTIVITY, CONTACT_CONDUCTANCE, LARGEST

Array = NDArray[np.float64]

STEPS = 60  # of Newton's method and of bisection
SETTLED = {np.dtype("float32"): 1e-6, np.dtype("float64"): 1e-13}  # a change of f, in parts of f
STEEPEST = 0.99  # of what a law may change by: above it roundings in float32 count
# A straight line may differ from an expression by the first, in parts of its largest value; the most nodes.
_EXACT, _MOST = 1e-7, 1025


@dataclass(frozen=True, eq=False)
class GapLaw:
    """The law of a contact.

    Attributes:
        number: of the contact in the scenario.
        function: a conductance, or what fills a gap conducts: over T in K, or over t in s.
        width: of the gap in m; 1 for a conductance.
        emission: E in W/(m² K⁴).
        low, high: between which temperatures in K surfaces can be; the second is infinite if nothing bounds it.
        end: of the run in s.
    """

    number: int
    function: Conducting
    width: float
    emission: float
    low: float
    high: float
    end: float

    @classmethod
    def of(cls, number: int, contact: Contact, low: float, high: float, end: float) -> "GapLaw":
        """The law of a contact that has no constant resistance."""
        low, high = contact.temperature_range or (low, high)
        if contact.gap is None:
            assert contact.conductance is not None
            return cls(number, contact.conductance, 1.0, 0.0, low, high, end)
        emission = STEFAN_BOLTZMANN * contact.gap.exchange_factor
        return cls(number, contact.gap.conductivity, contact.gap.width, emission, low, high, end)

    @property
    def constant(self) -> bool:
        """Whether it does not change in time."""
        return not self.courses

    @cached_property
    def courses(self) -> list[TimeFunction]:
        """What changes in time, at some temperatures."""
        return courses(self.function, self.low, self.high, self.end)

    @cached_property
    def nodes(self) -> Array:
        """The nodes of the table in K, at least two."""
        high = max(self.low + 1.0, self.high if self.high < inf else self.low + 1.0)
        nodes = temperature_nodes(self.function, self.low, high, self.end)
        if not follows(self.function):
            return nodes if len(nodes) > 1 else np.append(nodes, nodes[-1] + 1.0)
        times = np.array([0.0, 0.5 * self.end, self.end])
        while len(nodes) < _MOST:
            middles = 0.5 * (nodes[1:] + nodes[:-1])
            values = values_at(self.function, nodes, times)
            missed = abs(values_at(self.function, middles, times) - 0.5 * (values[:, 1:] + values[:, :-1]))
            with np.errstate(invalid="ignore"):
                coarse = (missed > _EXACT * abs(values).max()).any(axis=0) & (np.diff(nodes) > 1e-9 * high)
            if not coarse.any():
                break
            nodes = np.union1d(nodes, middles[np.argsort(-missed.max(axis=0) * coarse)][: min(coarse.sum(), _MOST)])
        return nodes

    def conductances(self, times: Array) -> Array:
        """H in W/(m² K) at the nodes at times in s, shape (times, nodes)."""
        return np.asarray(values_at(self.function, self.nodes, times) / self.width)

    @cached_property
    def _extremes(self) -> tuple[Array, Array]:
        """The smallest and the largest H at each node during the run in W/(m² K)."""
        found = self.conductances(moments(self.function, self.low, self.high, self.end))
        return found.min(axis=0), found.max(axis=0)

    def fault(self) -> str | None:
        """What to say about a value that is not allowed; None if there is none."""
        quantity = CONDUCTIVITY if self.width != 1.0 else CONTACT_CONDUCTANCE
        times = moments(self.function, self.low, self.high, self.end)
        values = values_at(self.function, self.nodes, times)
        with np.errstate(invalid="ignore"):
            wrong = np.argwhere(~((values >= 0.0) & (values <= LARGEST)))
        if not len(wrong):
            return None
        time, node = wrong[0]
        value = float(values[time, node])
        when = "" if self.constant else f" at t = {float(times[time])!r} s"
        return f"is {value!r} at {float(self.nodes[node])!r} K{when}; {quantity.range_fault(value)}"

    def _half_differences(self, high: float) -> Array:
        """Half of the largest |T1 − T2| in K on each segment, at its middle temperature."""
        ends = np.clip(self.nodes, self.low, high)
        return np.asarray(np.maximum(*(np.minimum(of - self.low, high - of) for of in (ends[:-1], ends[1:]))))

    def _slopes(self) -> Array:
        """The largest |dH/dT| on each segment in W/(m² K²)."""
        found = self.conductances(moments(self.function, self.low, self.high, self.end))
        return np.asarray(abs(np.diff(found, axis=1)).max(axis=0) / np.diff(self.nodes))

    @property
    def largest(self) -> float:
        """The largest ∂Q/∂T1 and Q/D between surfaces of the temperatures that can occur, in W/(m² K)."""
        _, most = self._extremes
        inside = np.minimum(np.maximum(most[1:], most[:-1]), LARGEST)
        if not np.isfinite(self.high):
            return inf if self.emission > 0.0 or self._slopes().any() else float(inside.max())
        bending = inside + self._slopes() * self._half_differences(self.high)
        return float(bending.max()) + 4.0 * self.emission * self.high**3

    def steepest(self, whole: float, uneven: float, ratio: float) -> tuple[float, float, float] | None:
        """Where the surfaces would have several temperatures; None if nowhere.

        Args:
            whole: the smallest r_a + r_b of its links in m² K/W.
            uneven: the largest |r_a − r_b|.
            ratio: the largest ratio of smooth to voxel area.

        Returns:
            |dH/dT| in W/(m² K²), and the ends of its segment in K.
        """
        least, _ = self._extremes
        high = self.high if np.isfinite(self.high) else float(self.nodes[-1])
        slopes = self._slopes()
        room = 1.0 / ratio + whole * np.minimum(least[1:], least[:-1])
        left = STEEPEST * room - uneven * self._half_differences(high) * slopes
        place = int(left.argmin())
        if left[place] >= 0.0:
            return None
        return float(slopes[place]), float(self.nodes[place]), float(self.nodes[place + 1])


def append_gaps(rows: Array, laws: Sequence[GapLaw], times: Array, reference: float) -> Array:
    """Rows of conditions at times in s with the laws behind them; ``reference``: that of their temperatures in K."""
    if not laws:
        return rows
    count, rooms = rows.shape[1], [ceil(len(law.nodes) / NUMBERS) for law in laws]
    found = np.zeros((len(rows), count + len(laws) + 2 * sum(rooms), NUMBERS))
    found[:, :count] = rows
    flat, place = found.reshape(len(rows), -1), count + len(laws)
    for number, (law, room) in enumerate(zip(laws, rooms, strict=True), start=count):
        nodes, conductances = NUMBERS * place, NUMBERS * (place + room)
        flat[:, nodes : nodes + len(law.nodes)] = law.nodes - reference
        flat[:, conductances : conductances + len(law.nodes)] = law.conductances(times)
        row = found[:, number]
        row[:, FILM], row[:, SURROUNDINGS], row[:, FREE] = len(law.nodes), law.emission, 1.0
        row[:, EMISSION], row[:, FLUX] = nodes - NUMBERS * number, conductances - NUMBERS * number
        place += 2 * room
    return found


class GapState(NamedTuple):
    """What passes some links.

    Attributes:
        part: f.
        conductance: H + E·T·(4·T² + D²) in W/(m² K).
        slope: dH/dT in W/(m² K²).
        middle: T in K.
        difference: D in K.
    """

    part: Any
    conductance: Any
    slope: Any
    middle: Any
    difference: Any


class GapLinks(NamedTuple):
    """Links across gaps at one time; arrays of NumPy or CuPy of one shape.

    Attributes:
        rows: of all conditions and tables, flattened.
        first: the place of each link's law in them.
        reference: the temperature in K that deviations are counted from.
        low, high: the resistances of the half cells of the lower and of the upper cell in m² K/W.
        ratio: of the smooth to the voxel area.
    """

    rows: Any
    first: Any
    reference: Any
    low: Any
    high: Any
    ratio: Any

    def state(self, below: Any, above: Any, xp: Any = np) -> GapState:
        """What passes from cells at deviations ``below`` in K to those at ``above``, with the operations of kernels."""
        real = below.dtype.type
        two, half, none, one = (real(number) for number in (2.0, 0.5, 0.0, 1.0))
        difference, whole = below - above, self.low + self.high
        start, bend = (below + above) * half, (self.high - self.low) / whole * half * difference
        factor, emission = self.ratio * whole, self.rows[self.first + SURROUNDINGS]
        f, low, high = xp.zeros_like(below), xp.zeros_like(below), xp.ones_like(below)
        settled, tolerance = xp.zeros(below.shape, dtype=bool), real(SETTLED[below.dtype])
        for _ in range(STEPS):
            conductance, slope, middle, apart = self._at(start + bend * f, difference * (one - f), xp)
            b = factor * conductance
            g = b * (one - f) - f
            rise = (slope + emission * (real(12.0) * middle * middle + apart * apart)) * bend
            rise = rise - emission * middle * two * apart * difference
            falls = b + one - factor * rise * (one - f)
            low, high = xp.where(~settled & (g >= none), f, low), xp.where(~settled & (g < none), f, high)
            found = f + g / falls
            found = xp.where((found >= low) & (found <= high), found, (low + high) * half)
            change = abs(found - f)
            f = xp.where(settled, f, found)
            settled = settled | (change <= tolerance * found)
            if bool(settled.all()):
                break
        return GapState(f, *self._at(start + bend * f, difference * (one - f), xp))

    def _at(self, middle: Any, apart: Any, xp: Any) -> tuple[Any, Any, Any, Any]:
        """The conductance, dH/dT, T in K and D where the deviation of the middle temperature is ``middle``."""
        rows, real = self.rows, middle.dtype.type
        integer = [(rows[self.first + of]).astype(np.int64) for of in (FILM, EMISSION, FLUX)]
        count, nodes, values = integer[0], self.first + integer[1], self.first + integer[2]
        lowest, highest = rows[nodes], rows[nodes + count - 1]
        at = xp.where(middle > lowest, middle, lowest)  # also for NaN
        at = xp.where(at < highest, at, highest)
        segment, end = xp.zeros_like(count), count - 1
        for _ in range(int(count.max()).bit_length()):
            tried = (segment + end) // 2
            below = rows[nodes + tried] <= at
            segment, end = xp.where(below, tried, segment), xp.where(below, end, tried)
        segment = xp.minimum(segment, count - 2)
        begin, value = rows[nodes + segment], rows[values + segment]
        slope = (rows[values + segment + 1] - value) / (rows[nodes + segment + 1] - begin)
        value = value + slope * (at - begin)
        slope = xp.where(at == middle, slope, real(0.0))
        absolute = middle + self.reference
        absolute = xp.where(absolute > real(0.0), absolute, real(0.0))
        radiating = rows[self.first + SURROUNDINGS] * absolute * (real(4.0) * absolute * absolute + apart * apart)
        return value + radiating, slope, absolute, apart

    def flux(self, below: Any, above: Any, xp: Any = np) -> Any:
        """Q in W/m² of the voxel face, from the lower cell to the upper one."""
        return self.state(below, above, xp).part * (below - above) / (self.low + self.high)

    def resistance(self, below: Any, above: Any, xp: Any = np) -> Any:
        """1/(w·G) in m² K/W: the contact resistance with which the same heat passes."""
        conductance = self.ratio * self.state(below, above, xp).conductance
        return 1.0 / xp.maximum(conductance, 1.0 / LARGEST)

    def flux_and_slopes(self, below: Any, above: Any, bends: tuple[Any, Any], xp: Any = np) -> tuple[Any, Any, Any]:
        """Q in W/m², its derivative by the lower cell's temperature, and minus that by the upper one's, in W/(m² K).

        ``bends``: k'(T)/k(T) of both cells in 1/K, on which their half cells depend.
        """
        state = self.state(below, above, xp)
        middle, apart, emission = state.middle, state.difference, self.rows[self.first + SURROUNDINGS]
        q = state.part * (below - above) / (self.low + self.high)
        by_difference = state.conductance + 2.0 * emission * middle * apart**2
        by_middle = 0.5 * apart * (state.slope + emission * (12.0 * middle**2 + apart**2))
        first, second = by_difference + by_middle, by_difference - by_middle
        share = self.ratio / (1.0 + self.ratio * (self.low * first + self.high * second))
        of_first = share * first * (1.0 + q * self.low * bends[0])
        return q, of_first, share * second * (1.0 - q * self.high * bends[1])
