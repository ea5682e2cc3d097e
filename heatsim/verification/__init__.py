"""`heatsim verify`: run scenarios with published or exact answers, and compare the results."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

from heatsim.errors import InputError
from heatsim.scenario import ADAPTIVE, suggest
from heatsim.storage.single_file import marked_json
from heatsim.verification.case import Case, EndState
from heatsim.verification.catalog import CASES
from heatsim.verification.verdict import Verdict, check

__all__ = ["CASES", "Case", "Verdict", "choose", "left_out", "to_json", "verify"]


def verify(
    names: Sequence[str] = (),
    overrides: Sequence[str] = (),
    method: str | None = None,
    say: Callable[[str], None] = lambda doing: None,
) -> list[Verdict]:
    """Run cases in temporary folders and compare them with the known answers.

    Args:
        names: names of cases; empty for all.
        overrides: "key.path=value" texts that replace single values of every scenario, such as its device.
        method: "euler", "stabilized" or "implicit" for cases in which time passes, "steady" for their end states; None
            for the method of each scenario, and then for its end state. Cases that the method cannot answer do not
            run; :func:`left_out` names them.
        say: called with the name of each case before it runs.

    Raises:
        InputError: no such case, or the method can answer none of them; the requested device or kernel is not
            available.
    """
    unfit = dict(left_out(names, method))
    cases = [case for case in choose(names) if case not in unfit]
    if not cases:
        reasons = "; ".join(f"{case.name}: {reason}" for case, reason in unfit.items())
        raise InputError(
            f"--method {method} answers none of these cases ({reasons}); choose other cases or --method euler"
        )
    verdicts = []
    for case in cases:
        say(case.name)
        verdicts.append(check(case, overrides, method))
        if method is None and isinstance(case.end, EndState):
            verdicts.append(check(case, overrides, "steady"))
    return verdicts


def left_out(names: Sequence[str], method: str | None) -> list[tuple[Case, str]]:
    """The chosen cases that a method cannot answer, each with the reason; with "steady" those without an end state.

    Raises:
        InputError: there is no case with one of the names.
    """
    if method == "steady":
        return [(case, case.end) for case in choose(names) if isinstance(case.end, str) and case.end]
    return [(case, case.euler_only) for case in choose(names) if method in ADAPTIVE and case.euler_only]


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
    """JSON text: `verdicts` is a list with one object for each case."""
    return marked_json({"verdicts": [asdict(verdict) for verdict in verdicts]})
