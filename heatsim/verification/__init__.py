"""`heatsim verify`: run scenarios with published or exact answers, and compare the results."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict

from heatsim.benchmark import check_writable
from heatsim.errors import InputError
from heatsim.scenario import suggest
from heatsim.verification.case import Case
from heatsim.verification.catalog import CASES
from heatsim.verification.verdict import Verdict, check

__all__ = ["CASES", "Case", "Verdict", "check_writable", "choose", "to_json", "verify"]


def verify(
    names: Sequence[str] = (), overrides: Sequence[str] = (), say: Callable[[str], None] = lambda doing: None
) -> list[Verdict]:
    """Run cases in temporary folders and compare them with the known answers.

    Args:
        names: names of cases; empty for all.
        overrides: "key.path=value" texts that replace single values of every scenario, such as its device.
        say: called with the name of each case before it runs.

    Raises:
        InputError: no such case, or the requested device or kernel is not available.
    """
    verdicts = []
    for case in choose(names):
        say(case.name)
        verdicts.append(check(case, overrides))
    return verdicts


def choose(names: Sequence[str]) -> list[Case]:
    """The cases with these names, or all, in the order of the catalog.

    Raises:
        InputError: there is no case with one of the names.
    """
    known = [case.name for case in CASES]
    for name in names:
        if name not in known:
            near = suggest(name, known)
            hint = f'; did you mean "{near}"?' if near else ""
            raise InputError(f'no case is named "{name}"; `heatsim verify --list` shows all{hint}')
    return [case for case in CASES if not names or case.name in names]


def to_json(verdicts: Sequence[Verdict]) -> str:
    """JSON text: a list with one object for each case; numbers in the shortest form that reads back exactly."""
    return json.dumps([asdict(verdict) for verdict in verdicts], indent=2, ensure_ascii=False) + "\n"
