"""What a program sets during a run: values of the scenario, and the field."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from heatsim.errors import InputError
from heatsim.observers.changes import FIELD, set_value
from heatsim.observers.state import RunState
from heatsim.scenario.messages import did_you_mean, show, show_key


class Steering:
    """Sets values and the field of a run, where its scenario allows it.

    Args:
        state: the run.
    """

    def __init__(self, state: RunState) -> None:
        self._state, self._scenario = state, state.problem.scenario
        self._moments = lru_cache(lambda every: frozenset(state.problem.timeline.steps_at(every).tolist()))

    def set(self, path: str, value: float | str) -> None:
        """As :meth:`heatsim.Simulation.set`."""
        steered = self._scenario.steered.get(path)
        if steered is None:
            allowed = self._scenario.steered
            known = f"it allows {', '.join(map(show, allowed))}" if allowed else "it allows none"
            raise InputError(
                f"set: got {show(path)}; the table changes of the scenario does not name this key; {known}"
                f'{did_you_mean(path, allowed)}; write changes = {{ "{path}" = {{ range = […], every = … }} }}'
            )
        key = show_key(("changes", path))
        if self._scenario.changes[path].recorded is not None:
            raise InputError(f"set: {path} follows {key}.recorded; remove this key to set it from a program")
        try:
            number = steered.quantity.read(value)
        except ValueError as error:
            raise InputError(f"set: {path}: {error}") from None
        if not steered.low <= number <= steered.high:
            within = f"{steered.low!r} to {steered.high!r} {steered.unit}".rstrip()
            raise InputError(f"set: {path}: got {show(value)}; {key}.range is {within}: change it, or the value")
        self._refuse_other_moments(f"set: {path}", steered.every, key)
        set_value(self._state, path, number)
        if self._state.step == 0:
            self._state.show_nodes()

    def set_temperature(self, temperature: ArrayLike, make_rows: Callable[[], None]) -> None:
        """As :meth:`heatsim.Simulation.set_temperature`; ``make_rows`` makes the rows until now. Collective."""
        state, resets, key = self._state, self._scenario.resets, show_key(("changes", FIELD))
        if resets is None:
            example = f'"{FIELD}" = {{ range = [273.15, 373.15], every = "10 s" }}'
            raise InputError(f"set_temperature: the scenario does not allow it; write changes = {{ {example} }}")
        self._refuse_other_moments("set_temperature: the field", resets.every, key)
        array, shape = np.asarray(temperature, dtype=np.float64), self._scenario.grid.shape
        if array.shape not in ((), shape):
            raise InputError(
                f"set_temperature: got an array of shape {array.shape}; {shape} is expected, or one number"
            )
        materials, slab = state.problem.materials, state.field.slab
        own = np.array(np.broadcast_to(array, shape)[slab.first : slab.last])
        if materials.void is not None:
            own[materials.types_of(slice(slab.first, slab.last)) == materials.void] = resets.low
        with np.errstate(invalid="ignore"):
            wrong = np.argwhere(~((own >= resets.low) & (own <= resets.high)))
        with state.team.agreeing():
            if len(wrong):
                z, y, x = wrong[0].tolist()
                got = f"got {float(own[z, y, x])!r} K in cell [{x}, {y}, {slab.first + z}]"
                within = f"{resets.low!r} to {resets.high!r} K"
                raise InputError(f"set_temperature: {got}; {key}.range is {within}: change it, or the value")
        make_rows()
        state.writer.wait()
        before = state.statistics.heat()
        state.field.load_temperatures([(slab.first, own)], materials.contents)
        state.field_was_set()
        heat = state.statistics.heat() - before
        state.initial_heat += heat
        state.put_in[state.time] = state.put_in.get(state.time, 0.0) + heat
        if state.method is not None:
            extremes = state.statistics.extremes()
            state.method.take_field(extremes.lowest, extremes.highest)
        state.show_nodes()

    def _refuse_other_moments(self, what: str, every: float, key: str) -> None:
        """Refuse to set something while it may not change."""
        state = self._state
        if state.finished or state.step not in self._moments(every):
            raise InputError(
                f"{what} may change at the multiples of {every!r} s before {self._scenario.time.end!r} s, and the "
                f"simulation is at {state.time!r} s: advance to one of them, or change {key}.every"
            )
