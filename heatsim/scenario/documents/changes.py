"""Finding the keys of the table [changes] in a scenario, and making their values ones that are set during the run."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from heatsim.errors import Mistake
from heatsim.scenario.documents.key_paths import numbered, parts_of
from heatsim.scenario.messages import show, show_key, suggest
from heatsim.scenario.tables.changes import Change
from heatsim.scenario.tables.model import Scenario
from heatsim.scenario.tables.named import Named
from heatsim.scenario.values.functions import places_in_time, quantity_of_field
from heatsim.scenario.values.quantities import POWER, TEMPERATURE, Quantity
from heatsim.scenario.values.steered import Resets, Steered, multiples
from heatsim.scenario.values.timefunction import Constant, Table, TimeFunction, read_time_function

MOST_MOMENTS = 100_000
_TABLES = ("boundaries", "patches", "surfaces", "nodes", "channels", "sources")
INITIAL = ("initial", "temperature")
_WHICH = (
    "a number that may change in time in boundaries, patches, surfaces, nodes, channels or sources can, and the power "
    "of a source; initial.temperature lets a program set the field"
)


class _Place:
    """A value of a scenario that may be set during the run.

    Attributes:
        value: as it is before.
        quantity: of the value.
        put: replaces it.
    """

    def __init__(self, value: TimeFunction, quantity: Quantity, put: Callable[[Steered], None]) -> None:
        self.value, self.quantity, self.put = value, quantity, put


def steer(scenario: Scenario, document: Mapping[str, Any], folder: Path) -> list[Mistake]:
    """Let the values that [changes] names be set during the run.

    Args:
        scenario: read without regard to this table.
        document: the tables that it was read from.
        folder: where relative paths start.

    Returns:
        The mistakes.
    """
    if not scenario.changes:
        return []
    if scenario.steady:
        message = "no time passes in a steady state: remove this table, or choose another time.method"
        return [Mistake("changes", message)]
    places, mistakes, found = _places(scenario), list[Mistake](), dict[str, Change]()
    steered, resets = dict[str, Steered](), None
    for path, change in scenario.changes.items():
        key = numbered(parts_of(path), document)
        place = places.get(key)
        if key == INITIAL:
            resets = _read_resets(scenario, path, change, mistakes)
            found[path] = change if resets is None else change.model_copy(update={"range": (resets.low, resets.high)})
        elif place is None:
            mistakes.append(Mistake(show_key(("changes", path)), _no_such(path, key, places)))
        elif not isinstance(place.value, Constant):
            what = "is set during the run: write its value at t = 0 there, as a number"
            mistakes.append(Mistake(show_key(key), what))
        else:
            read = _read(scenario, path, key, change, place, folder)
            if isinstance(read, list):
                mistakes += read
            else:
                steered[path], found[path] = read
                place.put(steered[path])
    if not mistakes:
        scenario.steer(Named.of(found), steered, resets)
    return mistakes


def _places(scenario: Scenario) -> dict[tuple[str, ...], _Place]:
    """What may be set during the run, by its key."""
    found = dict[tuple[str, ...], _Place]()
    for key, owner, name in places_in_time(scenario):

        def put(value: Steered, owner: Any = owner, name: str = name) -> None:
            before = getattr(owner, name)
            for field in type(owner).model_fields:
                if getattr(owner, field) is before:  # surroundings are the ambient where the scenario has none
                    object.__setattr__(owner, field, value)

        if key[0] in _TABLES:
            found[tuple(map(str, key))] = _Place(getattr(owner, name), quantity_of_field(type(owner), name), put)
    for number, source in enumerate(scenario.sources):
        if source.power is not None:
            found["sources", str(number), "power"] = _Place(Constant(source.power), POWER, source.steer)
    return found


def _no_such(path: str, key: tuple[str, ...], places: Mapping[tuple[str, ...], _Place]) -> str:
    """Why a key cannot be set."""
    beside = [show_key((*parts_of(path)[:-1], other[-1])) for other in places if other[:-1] == key[:-1]]
    near = suggest(path, beside)
    hint = f'; did you mean "{near}"?' if near else ""
    return f"cannot be set during the run: {_WHICH}{hint}"


def _read(
    scenario: Scenario, path: str, key: tuple[str, ...], change: Change, place: _Place, folder: Path
) -> tuple[Steered, Change] | list[Mistake]:
    """The value and what is known of it in SI units; or the mistakes."""
    mistakes, quantity, end = list[Mistake](), place.quantity, scenario.time.end
    refuse = partial(_refuse, mistakes, path)
    ends = _read_ends(path, change, quantity, end, mistakes)
    recorded = None
    if change.recorded is not None:
        try:
            given = _sampled(change.recorded, change.every, end, quantity)
            recorded = read_time_function(given, quantity, folder)
        except ValidationError as error:
            for of in error.errors():
                refuse(of["msg"], "recorded", *of["loc"])
        except ValueError as error:
            refuse(str(error), "recorded")
    if ends is None or mistakes:
        return mistakes
    low, high = ends
    start = float(place.value.at(np.zeros(1))[0])
    within = f"{low!r} to {high!r} {quantity.unit}".rstrip()
    if not low <= start <= high:
        refuse(f"the range is {within}, and {show_key(key)} begins with {start!r}, which is outside", "range")
    elif recorded is not None:
        moments = np.concatenate(([0.0], multiples(change.every, end)))
        values = recorded.at(moments)
        wrong = (values < low) | (values > high)
        if wrong.any():
            got = f"is {float(values[wrong][0])!r} {quantity.unit}".rstrip()
            refuse(f"{got} at t = {float(moments[wrong][0])!r} s; the range is {within}", "recorded")
    if key[0] == "sources" and key[-1] == "power" and scenario.sources[int(key[1])].scale != Constant(1.0):
        other = show_key((*parts_of(path)[:-1], "scale"))
        refuse(f"the source has a scale: remove it, or set {other} instead of this")
    steered = Steered(key, start, low, high, change.every, quantity)
    return mistakes or (steered, change.model_copy(update={"range": (low, high), "recorded": recorded}))


def _sampled(recorded: Any, every: float, end: float, quantity: Quantity) -> Any:
    """A function of Python as a table of its values at the moments; anything else as it is.

    Raises:
        ValueError: a value is no number of the quantity.
    """
    if not callable(recorded) or end / every > MOST_MOMENTS:
        return recorded
    moments = [0.0, *multiples(every, end).tolist()]
    values = list[float]()
    for moment in moments:
        value = recorded(moment)
        try:
            values.append(quantity.read(value.item() if isinstance(value, np.generic | np.ndarray) else value))
        except ValueError as error:
            raise ValueError(f"at t = {moment!r} s: {error}") from None
    return Table((*moments, end), (*values, values[-1]))


def _refuse(mistakes: list[Mistake], path: str, message: str, *at: str | int) -> None:
    """Add a mistake below a key of [changes]."""
    mistakes.append(Mistake(show_key(("changes", path, *at)), message))


def _read_ends(
    path: str, change: Change, quantity: Quantity, end: float, mistakes: list[Mistake]
) -> tuple[float, float] | None:
    """The ends of a range in SI units; None if they, or the times, have mistakes."""
    ends, before = list[float](), len(mistakes)
    for number, value in enumerate(change.range):
        try:
            ends.append(quantity.read(value))
        except ValueError as error:
            _refuse(mistakes, path, str(error), "range", number)
    if len(ends) == 2 and ends[0] >= ends[1]:
        message = f"got {show(list(change.range))}; the second value must be the larger one"
        _refuse(mistakes, path, message, "range")
    if end / change.every > MOST_MOMENTS:
        times = f"{end / change.every:,.0f} times until {end!r} s"
        message = f"got {change.every!r} s, {times}; at most {MOST_MOMENTS:,} are allowed"
        _refuse(mistakes, path, message, "every")
    return None if len(mistakes) > before else (ends[0], ends[1])


def _read_resets(scenario: Scenario, path: str, change: Change, mistakes: list[Mistake]) -> Resets | None:
    """What the field may be set to."""
    ends = _read_ends(path, change, TEMPERATURE, scenario.time.end, mistakes)
    if change.recorded is not None:
        _refuse(mistakes, path, "a field cannot be repeated from a table: remove this key", "recorded")
    if scenario.output.region_heat:
        message = "the heats of regions and contacts follow from balances that a new field breaks: remove this key"
        mistakes.append(Mistake("output.region_heat", message))
    return None if ends is None else Resets(*ends, change.every)
