"""Finding the keys of the table [changes] in a scenario, and making their values ones that are set during the run."""

from collections.abc import Callable, Mapping
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
from heatsim.scenario.values.quantities import POWER, Quantity
from heatsim.scenario.values.steered import Steered, multiples
from heatsim.scenario.values.timefunction import Constant, TimeFunction, read_time_function

MOST_MOMENTS = 100_000
_TABLES = ("boundaries", "patches", "surfaces", "nodes", "channels", "sources")
_WHICH = (
    "a number that may change in time in boundaries, patches, surfaces, nodes, channels or sources can, and the power "
    "of a source"
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
    steered = dict[str, Steered]()
    for path, change in scenario.changes.items():
        key = numbered(parts_of(path), document)
        place = places.get(key)
        if place is None:
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
        scenario.steer(Named.of(found), steered)
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
    mistakes, ends, quantity, end = list[Mistake](), list[float](), place.quantity, scenario.time.end

    def refuse(message: str, *at: str | int) -> None:
        mistakes.append(Mistake(show_key(("changes", path, *at)), message))

    for number, value in enumerate(change.range):
        try:
            ends.append(quantity.read(value))
        except ValueError as error:
            refuse(str(error), "range", number)
    recorded = None
    if change.recorded is not None:
        try:
            recorded = read_time_function(change.recorded, quantity, folder)
        except ValidationError as error:
            for of in error.errors():
                refuse(of["msg"], "recorded", *of["loc"])
        except ValueError as error:
            refuse(str(error), "recorded")
    if end / change.every > MOST_MOMENTS:
        times = f"{end / change.every:,.0f} times until {end!r} s"
        refuse(f"got {change.every!r} s, {times}; at most {MOST_MOMENTS:,} are allowed", "every")
    if mistakes:
        return mistakes
    low, high = ends
    start = float(place.value.at(np.zeros(1))[0])
    within = f"{low!r} to {high!r} {quantity.unit}".rstrip()
    if low >= high:
        refuse(f"got {show(list(change.range))}; the second value must be the larger one", "range")
    elif not low <= start <= high:
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
