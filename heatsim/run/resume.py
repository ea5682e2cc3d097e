"""What a resumed run is compared by: version of the numerics, settings and input files."""

import json
import shlex
from pathlib import Path
from typing import Any

from heatsim.errors import FolderError
from heatsim.limits import LIMITS
from heatsim.run.plan import Plan
from heatsim.scenario import Scenario, input_checksums, input_names
from heatsim.scenario.documents.resolved import document
from heatsim.scenario.messages import show
from heatsim.scenario.tables.time import ADAPTIVE
from heatsim.storage.checkpoint import Checkpoint, understanding
from heatsim.storage.disk import AGAIN
from heatsim.storage.folder import CHECKPOINT, SCENARIO
from heatsim.version import NUMERICS

_LONGEST_SHOWN = 80


def identity(plan: Plan) -> dict[str, int | str]:
    """What decides the bits of a run; a resumed run is compared with it."""
    scenario = plan.problem.scenario
    return {
        "numerics": NUMERICS,
        "kernel": plan.kernel.name,
        "device": plan.device.name,
        "backend": plan.device.backend,
        "scenario": json.dumps(settings(scenario), ensure_ascii=False),
        "inputs": json.dumps(input_checksums(scenario), ensure_ascii=False),
    }


def input_files(scenario: Scenario) -> list[str]:
    """The names of the scenario and of the copies of its input files in the run's folder."""
    return [SCENARIO, *input_names(scenario)]


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
        ("output", "error"),
    ):
        tables[table].pop(name, None)
    for probe in tables["probes"]:
        for key in LIMITS:
            probe.pop(key, None)
    return tables


def with_choices_of(saved: Checkpoint, scenario: Scenario, folder: Path) -> Scenario:
    """The scenario with the method and the precision of the checkpoint in a folder, where it leaves them to "auto".

    Raises:
        StorageError: the checkpoint names no such method or precision.
    """
    with understanding(folder):
        tables = json.loads(str(saved.values["scenario"]))
        method, precision = tables["time"]["method"], tables["solver"]["precision"]
        if scenario.time.method == "auto":
            if method not in ("euler", *ADAPTIVE):
                raise ValueError(f"time.method is {show(method)}")
            scenario = scenario.with_method(method)
        if scenario.solver.precision == "auto":
            if precision not in ("float32", "float64"):
                raise ValueError(f"solver.precision is {show(precision)}")
            scenario = scenario.with_precision(precision)
    return scenario


def check_numerics(folder: Path, saved: Checkpoint) -> None:
    """Refuse a checkpoint of another version of the numerics: the rest of the run would not fit its beginning.

    Raises:
        FolderError: names both versions.
    """
    with understanding(folder):
        found = int(saved.values["numerics"])
    if found != NUMERICS:
        raise FolderError(
            f"{folder / CHECKPOINT}: was written with version {found} of the numerics, this heatsim calculates with "
            f"version {NUMERICS}, whose results differ; {AGAIN}"
        )


def check_scenario(path: Path, before: str, now: str) -> None:
    """Refuse a scenario whose settings are not those with which the run began; both are JSON of `settings`.

    Raises:
        FolderError: names the keys that differ.
    """
    changes = differences(json.loads(before), json.loads(now))
    if changes:
        raise FolderError(
            f"{path}: was changed since the run began, or another version of heatsim began it: {'; '.join(changes)}; "
            "put it back to continue the run. To use the changes, also a longer time.end, start a new run: "
            f"`heatsim run {shlex.quote(str(path))} --output …`"
        )


def check_inputs(folder: Path, before: str, now: str) -> None:
    """Refuse copies of input files that were changed since the run began; both are JSON of `input_checksums`.

    Raises:
        FolderError: names the file.
    """
    sums = json.loads(before)
    for name, checksum in json.loads(now).items():
        if sums[name] != checksum:
            raise FolderError(
                f"{folder / name}: was changed since the run began: its checksum differs; put a good copy of this "
                f"input file there, or {AGAIN}"
            )


def differences(before: Any, now: Any, key: str = "") -> list[str]:
    """The differences between two documents: key path, new and old value.

    Args:
        before: settings with which the run began.
        now: its settings now.
        key: path of the documents.
    """
    if _is_table(before) and _is_table(now):
        old, new = _entries(before), _entries(now)
        return [
            change
            for name in dict.fromkeys((*new, *old))
            for change in differences(old.get(name), new.get(name), f"{key}.{name}" if key else str(name))
        ]
    return [] if before == now else [f"{key} is {_shown(now)}, was {_shown(before)}"]


def _is_table(value: Any) -> bool:
    """Whether a value is a table, or a list of tables."""
    return isinstance(value, dict) or (isinstance(value, list) and all(isinstance(each, dict) for each in value))


def _entries(value: Any) -> dict[Any, Any]:
    """The entries of a table by key, or of a list by number; empty for other values."""
    return dict(value if isinstance(value, dict) else enumerate(value)) if _is_table(value) else {}


def _shown(value: Any) -> str:
    text = "not given" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
