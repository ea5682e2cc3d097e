"""A backend of the stabilized method for small bodies, in NumPy, and bodies to test it with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.time.stage_times import Side
from heatsim.solver.stabilized.interpolation import Weights
from heatsim.solver.stabilized.scheme import Stages, choose, longest_step
from heatsim.solver.stabilized.substeps import End, Measure, StepInterrupted

SIGMA = 5.670374419e-8
Field = NDArray[Any]


@dataclass
class Block:
    """A box of cells with convection or radiation on all of its faces, and a source everywhere.

    Attributes:
        shape: cells (nz, ny, nx); an axis of one cell does not conduct and is insulated.
        conductivity: at 0 K of deviation, W/(m K).
        growth: relative growth of the conductivity for each K.
        volumetric: ρ·cp in J/(m³ K).
        edge: of a cell in m.
        coefficient: of convection, W/(m² K).
        emissivity: of all faces towards surroundings at ``ambient``; temperatures are absolute then.
        ambient: temperature at a time (s), approached from a side.
        power: mean power of the source in W/m³ from one time to another; equal times: with the side of the limit.
        hottest: bounds the coefficients of the limit where they depend on temperature, in K.
    """

    shape: tuple[int, int, int]
    conductivity: float = 237.0
    growth: float = 0.0
    volumetric: float = 2.43e6
    edge: float = 0.1 / 16
    coefficient: float = 500.0
    emissivity: float = 0.0
    ambient: Callable[[float, Side], float] = lambda t, side: 0.0
    power: Callable[[float, float, Side], float] = lambda t0, t1, side: 0.0
    hottest: float = 0.0

    @property
    def capacity(self) -> float:
        """Of a cell, J/K."""
        return self.volumetric * self.edge**3

    @property
    def axes(self) -> list[int]:
        return [axis for axis in range(3) if self.shape[axis] > 1]

    @property
    def dt_limit(self) -> float:
        link = self.conductivity * (1 + self.growth * self.hottest) * self.edge
        film = (self.coefficient + 4 * SIGMA * self.emissivity * self.hottest**3) * self.edge**2
        sides = 2 * len(self.axes)
        return self.capacity / (sides * max(link, link / 2 + film / 2, film)) if sides else inf

    def conduction(self, T: Field) -> Field:
        """Heat flow into each cell from its neighbours, W."""
        flow = np.zeros_like(T)
        for axis in self.axes:
            after = np.diff(T, axis=axis)
            low, high = (T.take(range(*ends), axis) for ends in ((0, T.shape[axis] - 1), (1, T.shape[axis])))
            link = T.dtype.type(self.conductivity * self.edge)
            if self.growth:
                link = link * (1 + T.dtype.type(self.growth / 2) * (low + high))
            through = link * after
            first = [slice(None)] * 3
            last = [slice(None)] * 3
            first[axis], last[axis] = slice(0, -1), slice(1, None)
            flow[tuple(first)] += through
            flow[tuple(last)] -= through
        return flow

    def surface(self, T: Field, t: float, side: Side) -> Field:
        """Heat flow into each cell through its faces, W."""
        flow = np.zeros_like(T)
        ambient = T.dtype.type(self.ambient(t, side))
        for axis in self.axes:
            for end in (0, -1):
                at = [slice(None)] * 3
                at[axis] = slice(end, None) if end else slice(0, 1)
                cells = T[tuple(at)]
                flux = T.dtype.type(self.coefficient) * (ambient - cells)
                if self.emissivity:
                    flux = flux + T.dtype.type(SIGMA * self.emissivity) * (ambient**4 - cells**4)
                flow[tuple(at)] += T.dtype.type(self.edge**2) * flux
        return flow


@dataclass
class Sums:
    """Heat in J since the start; with weights, or as flows in W."""

    through: float = 0.0
    given: float = 0.0


@dataclass
class State:
    """One end of a step."""

    T: Field
    F: Field
    sums: Sums = field(default_factory=Sums)
    flows: Sums = field(default_factory=Sums)


class ReferenceSubsteps:
    """A block with a field of deviations (or, with radiation, of temperatures) and its ledger.

    Attributes:
        advances: how many steps were tried.
        interrupt: a step at which a signal comes in the middle of the stages.
        seen: extremes of all stages.
        shown: what the last interpolation gave: field, stored heat, sums.
    """

    factor = 1.0

    def __init__(self, block: Block, T: Field) -> None:
        self.block = block
        self.first = State(T.copy(), np.zeros_like(T))
        self.last = State(T.copy(), np.zeros_like(T))
        self.start = float(T.sum(dtype=np.float64))
        self.advances = 0
        self.interrupt: int | None = None
        self.seen = [float(T.min()), float(T.max())]
        self.calls: list[tuple[str, Any]] = []
        self.shown: tuple[Field, float, Sums] = (T, 0.0, Sums())

    @property
    def dt_limit(self) -> float:
        return self.block.dt_limit

    @property
    def longest(self) -> float:
        return longest_step(self.dt_limit)

    def choose(self, h: float, tolerance: float) -> Stages:
        return choose(h, self.dt_limit)

    def rate(self, end: End, t: float, side: Side, stages: int = 0) -> None:
        state = self._state(end)
        self.calls.append(("rate", (end, t, side)))
        state.F, state.flows = self._flow(state.T, t, side, t, t)

    def trial(self, h: float) -> None:
        self.last = State(self.first.T + self.first.T.dtype.type(h) * self.first.F, self.last.F, self.first.sums)

    def advance(self, stages: Stages, t: float, h: float) -> None:
        self.advances += 1
        T, sums = self.first.T, Sums(self.first.sums.through, self.first.sums.given)
        dtype = T.dtype.type
        pair = stages.pair
        for i, substep in enumerate((*stages.substeps, None)):
            if i == pair.after:
                F, _ = self._flow(T, t + pair.start * h, Side.AFTER, t + pair.start * h, t + pair.middle * h)
                Z = T + dtype(pair.b / pair.a * h) * F
                F, flows = self._flow(Z, t + pair.middle * h, Side.AFTER, t + pair.start * h, t + pair.end * h)
                T = self._enter(T, F, flows, pair.a * h, sums)
                self._see(Z)
            if substep is not None:
                start, end = t + substep.start * h, t + substep.end * h
                F, flows = self._flow(T, start, Side.AFTER, start, end)
                T = self._enter(T, F, flows, substep.delta * h, sums)
            if self.advances == self.interrupt:
                self.last = State(T, F, sums)
                raise StepInterrupted
        self.last = State(T, np.full_like(T, np.nan), sums)

    def measure(self, weights: Weights, stages: int) -> Measure:
        combination, T = self._combined(weights), self.last.T
        cell, noise = float(np.abs(combination).max()), stages**2 * np.finfo(T.dtype).eps * float(np.abs(T).max())
        size = max(_largest_mean(combination), cell if cell > noise else 0.0)
        return Measure(size, float(T.min()), float(T.max()))

    def accept(self) -> None:
        self.first = self.last
        self.last = State(np.full_like(self.first.T, np.nan), np.full_like(self.first.T, np.nan))

    def reject(self) -> None:
        self.last = State(np.full_like(self.first.T, np.nan), np.full_like(self.first.T, np.nan))

    def interpolate(self, weights: Weights) -> None:
        def combined(read: Callable[[State], float], flow: Callable[[State], float]) -> float:
            first, last = self.first, self.last
            ends = read(first), flow(first), read(last), flow(last)
            return sum(weight * value for weight, value in zip(weights, ends, strict=True))

        T = self._combined(weights)
        sums = Sums(
            combined(lambda state: state.sums.through, lambda state: state.flows.through),
            combined(lambda state: state.sums.given, lambda state: state.flows.given),
        )
        self.shown = (T, (float(T.sum(dtype=np.float64)) - self.start) * self.block.capacity, sums)

    def _state(self, end: End) -> State:
        return self.first if end is End.FIRST else self.last

    def _combined(self, weights: Weights) -> Field:
        fields = (self.first.T, self.first.F, self.last.T, self.last.F)
        dtype = self.first.T.dtype.type
        combined: Field = sum(dtype(w) * field for w, field in zip(weights, fields, strict=True) if w)
        return combined

    def _flow(self, T: Field, t: float, side: Side, t0: float, t1: float) -> tuple[Field, Sums]:
        """dT/dt in K/s, and what the flows are in all."""
        surface = self.block.surface(T, t, side)
        power = self.block.power(t0, t1, side) * self.block.edge**3
        F = (self.block.conduction(T) + surface + T.dtype.type(power)) / T.dtype.type(self.block.capacity)
        return F, Sums(float(surface.sum(dtype=np.float64)), power * T.size)

    def _enter(self, T: Field, F: Field, flows: Sums, dt: float, sums: Sums) -> Field:
        sums.through += dt * flows.through
        sums.given += dt * flows.given
        T = T + T.dtype.type(dt) * F
        self._see(T)
        return T

    def _see(self, T: Field) -> None:
        self.seen = [min(self.seen[0], float(T.min())), max(self.seen[1], float(T.max()))]


def _largest_mean(combined: Field) -> float:
    """The largest |mean| of blocks of 2 × 2 × 2 cells, those at the upper ends being smaller where counts are odd."""
    sums, counts = combined.astype(np.float64), np.ones(combined.shape)
    for axis in range(3):
        at = np.arange(0, combined.shape[axis], 2)
        sums, counts = np.add.reduceat(sums, at, axis), np.add.reduceat(counts, at, axis)
    return float(np.abs(sums / counts).max())


def classical_runge_kutta(block: Block, T: Field, end: float, start: float = 0.0) -> Field:
    """The field at ``end`` by steps of fourth order below the Euler limit."""
    steps = max(60, int(2 * (end - start) / block.dt_limit) + 10)
    h = (end - start) / steps

    def rate(T: Field, t: float) -> Field:
        power = block.power(t, t, Side.AFTER) * block.edge**3
        flow: Field = (block.conduction(T) + block.surface(T, t, Side.AFTER) + power) / block.capacity
        return flow

    for step in range(steps):
        t = start + step * h
        k1 = rate(T, t)
        k2 = rate(T + h / 2 * k1, t + h / 2)
        k3 = rate(T + h / 2 * k2, t + h / 2)
        k4 = rate(T + h * k3, t + h)
        T = T + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return T
