"""`heatsim verify`: scenarios with published and exact answers, run and compared."""

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
    """Run cases in temporary folders and compare them with what is known.

    Args:
        names: of cases; none for all of them.
        overrides: "key.path=value" texts that replace single values of every scenario, such as its device.
        say: is told what is being run.

    Raises:
        InputError: no such case; or the device or kernel asked for is not there.
    """
    verdicts = []
    for case in choose(names):
        say(case.name)
        verdicts.append(check(case, overrides))
    return verdicts


def choose(names: Sequence[str]) -> list[Case]:
    """The cases of these names, or all of them, in the order of the catalog.

    Raises:
        InputError: there is no case of a name.
    """
    known = [case.name for case in CASES]
    for name in names:
        if name not in known:
            near = suggest(name, known)
            hint = f'; did you mean "{near}"?' if near else ""
            raise InputError(f'"{name}" is no case; `heatsim verify --list` shows them{hint}')
    return [case for case in CASES if not names or case.name in names]


def to_json(verdicts: Sequence[Verdict]) -> str:
    """A list of objects, one for each case; numbers in their shortest form that reads back the same."""
    return json.dumps([asdict(verdict) for verdict in verdicts], indent=2, ensure_ascii=False) + "\n"
