"""The settings that a resumed run is compared by."""

import json
from typing import Any

from heatsim.scenario import Scenario
from heatsim.scenario.resolved import document

_LONGEST_SHOWN = 80


def settings(scenario: Scenario) -> dict[str, Any]:
    """The settings that a run has to keep from its start to its end, in the form of the TOML file.

    Device and kernel may change, and so may what only says how the results are looked after. Input files count by their
    names: a run that has begun does not read them again.
    """
    tables = document(scenario)
    del tables["title"]
    for table, name in (
        ("solver", "device"),
        ("solver", "kernel"),
        ("output", "checkpoint_wall"),
        ("output", "figures"),
    ):
        tables[table].pop(name, None)
    return tables


def differences(before: Any, after: Any, key: str = "") -> list[str]:
    """Where two documents differ: key path, new and old value."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = dict.fromkeys((*after, *before))
        return [
            change
            for name in names
            for change in differences(before.get(name), after.get(name), f"{key}.{name}" if key else name)
        ]
    return [] if before == after else [f"{key} is {_shown(after)}, was {_shown(before)}"]


def _shown(value: Any) -> str:
    text = "not given" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
