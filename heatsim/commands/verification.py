"""`heatsim verify`."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from heatsim.commands.options import Device, Kernel, Overwrite, Precision, all_overrides
from heatsim.commands.terminal import show_table
from heatsim.counts import counted
from heatsim.errors import RunError


def verify(
    cases: Annotated[tuple[str, ...], Parameter(help="Names of cases. Default: all.", negative="")] = (),
    /,
    *,
    device: Device = None,
    kernel: Kernel = None,
    precision: Precision = None,
    method: Annotated[
        Literal["euler", "stabilized", "implicit", "steady"] | None,
        Parameter(
            help="Replace time.method of cases in which time passes; steady solves for their end states. "
            "Default: as in their scenarios, then their end states."
        ),
    ] = None,
    json: Annotated[Path | None, Parameter(help="Write the numbers to this JSON file.")] = None,
    overwrite: Overwrite = False,
    show: Annotated[
        bool, Parameter(name="--list", help="List the cases and their scenario files; run nothing.", negative="")
    ] = False,
) -> int:
    """Run cases with published or exact answers and compare the results. No files remain except the JSON file."""
    from heatsim.storage.single_file import check_replaceable, write_text
    from heatsim.verification import choose, left_out, to_json
    from heatsim.verification import verify as run_cases

    if show:
        for case in choose(cases):
            print(f"{case.name:<26}{case.path}")
        return 0
    if json is not None:
        check_replaceable(json, (".json",), overwrite)
    from rich.console import Console

    from heatsim.verification.table import describe

    with Console(stderr=True).status("…") as status:
        verdicts = run_cases(cases, all_overrides((), device, kernel, precision), method, say=status.update)
    show_table(describe(verdicts))
    reasons: dict[str, list[str]] = {}
    for case, reason in left_out(cases, "steady" if method is None else method):
        reasons.setdefault(reason, []).append(case.name)
    what = "No end state" if method in (None, "steady") else f"Did not run with --method {method}"
    for reason, names in reasons.items():
        print(f"{what}, because {reason}: {', '.join(names)}")
    if json is not None:
        write_text(json, to_json(verdicts))
    failed = [
        f"{verdict.name} (end state)" if verdict.end_state else verdict.name
        for verdict in verdicts
        if not verdict.passed
    ]
    if failed:
        raise RunError(f"{len(failed)} of {counted(len(verdicts), 'case')} failed: {', '.join(failed)}")
    return 0
