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

In the rows of conditions the laws stand behind all conditions, one row each; their tables stand behind those of
surfaces (:func:`heatsim.physics.conditions.surface_laws.rows_with_tables`):

    film: number of nodes       flux, emission: where conductances and nodes begin, from the row's first number
    surroundings: E
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
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
from heatsim.physics.conditions.surface_laws import STEEPEST, Rise, rows_with_tables
from heatsim.scenario import Contact, TimeFunction
from heatsim.scenario.values.course import refined
from heatsim.scenario.values.quantities import LARGEST
from heatsim.scenario.values.surfacefunction import SurfaceFunction

Array = NDArray[np.float64]

STEPS = 60  # of Newton's method and of bisection
SETTLED = {np.dtype("float32"): 1e-6, np.dtype("float64"): 1e-13}  # a change of f, in parts of f
# A straight line may differ from an expression by the first, in parts of its largest value; the most nodes.
_EXACT, _MOST = 1e-7, 1025
# The most moments at which values are looked at, and temperatures between which they are smooth; parts between nodes.
_TIMES, _FEW, _PARTS = 256, 16, 4


@dataclass(frozen=True, eq=False)
class GapLaw:
    """The law of a contact.

    Attributes:
        number: of the contact in the scenario.
        function: a conductance, or what fills a gap conducts: at T in K, or over t in s.
        width: of the gap in m; 1 for a conductance.
        emission: E in W/(m² K⁴).
        low, high: between which temperatures in K surfaces can be; the second is infinite if nothing bounds it.
        end: of the run in s.
    """

    number: int
    function: TimeFunction
    width: float
    emission: float
    low: float
    high: float
    end: float

    @classmethod
    def of(cls, number: int, contact: Contact, low: float, high: float, end: float) -> "GapLaw":
        """The law of a contact that has no constant resistance."""
        assert contact.law is not None
        width, factor = (1.0, 0.0) if contact.gap is None else (contact.gap.width, contact.gap.exchange_factor)
        low, high = contact.temperature_range or (low, high)
        return cls(number, contact.law, width, STEFAN_BOLTZMANN * factor, low, high, end)

    @property
    def constant(self) -> bool:
        """Whether it does not change in time."""
        return not self.courses

    @property
    def _top(self) -> float:
        """The highest temperature in K of the table."""
        return max(self.low + 1.0, self.high if self.high < inf else self.low + 1.0)

    @cached_property
    def courses(self) -> list[TimeFunction]:
        """What changes in time, at the lowest, the middle and the highest temperature."""
        some, of = [self.function], self.function
        if isinstance(of, SurfaceFunction):
            some = [of.course(T, self.end) for T in (self.low, 0.5 * (self.low + self._top), self._top)]
        return [course for course in some if not course.constant]

    @cached_property
    def moments(self) -> Array:
        """Times in s from 0 to the end, evenly spread and where values at the temperatures of :attr:`courses` turn."""
        found = [refined(course.nodes(self.end), _PARTS) for course in self.courses]
        turns = _some(np.unique(np.concatenate(([0.0, self.end], *found))), _TIMES)
        return np.union1d(turns, np.linspace(0.0, self.end, _TIMES if found else 2))

    @cached_property
    def nodes(self) -> Array:
        """The nodes of the table in K, at least two."""
        if not isinstance(self.function, SurfaceFunction):
            return np.array([self.low, self._top])
        jumps = [course.jumps(self.end) for course in self.courses]
        ends = np.unique(np.concatenate(([0.0, self.end], *(of for of in jumps if of is not None))))
        # Between jumps in time the same temperatures matter.
        times = _some(np.append(0.5 * (ends[1:] + ends[:-1]), [0.0, self.end]), _FEW)
        nodes = self.function.temperatures(self.low, self._top, times)
        while len(nodes) < _MOST:
            middles = 0.5 * (nodes[1:] + nodes[:-1])
            values = self.conductances(self.moments, nodes)
            missed = abs(self.conductances(self.moments, middles) - 0.5 * (values[:, 1:] + values[:, :-1])).max(axis=0)
            with np.errstate(invalid="ignore"):
                coarse = (missed > _EXACT * abs(values).max()) & (np.diff(nodes) > 1e-9 * self._top)
            if not coarse.any():
                break
            nodes = np.union1d(nodes, middles[np.argsort(-missed * coarse)][: min(coarse.sum(), _MOST)])
        return nodes

    def conductances(self, times: Array, T: Array | None = None) -> Array:
        """H in W/(m² K) at times in s and temperatures in K, or at the nodes, shape (times, temperatures)."""
        T, of = self.nodes if T is None else T, self.function
        found = of.of(T, times[:, None]) if isinstance(of, SurfaceFunction) else of.at(times)[:, None]
        return np.asarray(np.broadcast_to(found, (len(times), len(T))) / self.width)

    @cached_property
    def _during(self) -> Array:
        """H at the moments and nodes."""
        return self.conductances(self.moments)

    def _half_differences(self, high: float) -> Array:
        """Half of the largest |T1 − T2| in K on each segment, at its middle temperature."""
        ends = np.clip(self.nodes, self.low, high)
        return np.asarray(np.maximum(*(np.minimum(of - self.low, high - of) for of in (ends[:-1], ends[1:]))))

    def _slopes(self) -> Array:
        """The largest |dH/dT| on each segment in W/(m² K²)."""
        return np.asarray(abs(np.diff(self._during, axis=1)).max(axis=0) / np.diff(self.nodes))

    @property
    def largest(self) -> float:
        """The largest ∂Q/∂T1 and Q/D between surfaces of the temperatures that can occur, in W/(m² K)."""
        most = self._during.max(axis=0)
        inside = np.minimum(np.maximum(most[1:], most[:-1]), LARGEST)
        if not np.isfinite(self.high):
            return inf if self.emission > 0.0 or self._slopes().any() else float(inside.max())
        bending = inside + self._slopes() * self._half_differences(self.high)
        return float(bending.max()) + 4.0 * self.emission * self.high**3

    def steepest(self, whole: float, uneven: float, ratio: float) -> Rise | None:
        """Where the surfaces would have several temperatures, with |dH/dT| in W/(m² K²); None if nowhere.

        Args:
            whole: the smallest r_a + r_b of its links in m² K/W.
            uneven: the largest |r_a − r_b|.
            ratio: the largest ratio of smooth to voxel area.
        """
        least, slopes = self._during.min(axis=0), self._slopes()
        high = self.high if np.isfinite(self.high) else float(self.nodes[-1])
        room = 1.0 / ratio + whole * np.minimum(least[1:], least[:-1])
        left = STEEPEST * room - uneven * self._half_differences(high) * slopes
        place = int(left.argmin())
        if left[place] >= 0.0:
            return None
        return Rise(float(slopes[place]), float(self.nodes[place]), float(self.nodes[place + 1]))


def _some(times: Array, most: int) -> Array:
    """At most ``most`` of some times, evenly chosen."""
    return times[np.unique(np.linspace(0, len(times) - 1, most).astype(np.intp))]


def enter_gaps(rows: Array, first: int, laws: Sequence[GapLaw], times: Array, reference: float) -> Array:
    """Rows of conditions at times in s with the laws from row ``first`` on, and their tables behind all rows.

    ``reference``: that of their temperatures in K.
    """
    if not laws:
        return rows
    tables = [table for law in laws for table in (law.nodes[None] - reference, law.conductances(times))]
    found, places = rows_with_tables(rows, tables)
    for number, law in enumerate(laws):
        row, own = found[:, first + number], NUMBERS * (first + number)
        row[:, FILM], row[:, SURROUNDINGS], row[:, FREE] = len(law.nodes), law.emission, 1.0
        row[:, EMISSION], row[:, FLUX] = places[2 * number] - own, places[2 * number + 1] - own
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
