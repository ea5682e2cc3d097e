"""The option --ranks: start several processes that run the same command together."""

from collections.abc import Sequence
from pathlib import Path

from heatsim.device import choose
from heatsim.errors import InputError
from heatsim.parallel import environment
from heatsim.parallel.launch import all_ranks, check_ranks, launch
from heatsim.run.ranks import check_count, complete_advice, resume_advice
from heatsim.scenario import Scenario
from heatsim.storage.folder import SCENARIO, SUMMARY


def ranks_to_start(ranks: str, scenario: Scenario) -> int:
    """The number of processes to start; 1 if this process does the run itself, alone or as a rank.

    Args:
        ranks: the value of --ranks.
        scenario: its device decides what "all" means.

    Raises:
        InputError: the value is not a number of ranks, or a launcher started another number of processes.
        ScenarioError: the grid has too few planes.
    """
    count = check_ranks(ranks) or (
        environment.size() if environment.size() > 1 else all_ranks(choose(scenario.solver.device).backend)
    )
    if environment.size() == 1:
        check_count(scenario, count)
        return count
    if environment.size() == count:
        return 1
    raise InputError(f"--ranks = {count}, but the launcher started {environment.size()} processes; leave --ranks out")


def start_ranks(count: int, arguments: Sequence[str], folder: Path, resumes: bool = False) -> int:
    """Run a command on several ranks. Returns the exit code.

    Args:
        count: the number of ranks.
        arguments: the command line's arguments without --ranks.
        folder: the folder of the run, for the advice after a rank was killed.
        resumes: whether the run in the folder is continued.
    """
    before = {name: _changed_at(folder / name) for name in (SCENARIO, SUMMARY)}

    def written(name: str) -> bool:
        return _changed_at(folder / name) not in (None, before[name])

    def advice() -> str:
        if written(SUMMARY):
            return complete_advice(folder)
        # Until a new run has written its scenario, the folder has nothing of it to resume.
        return resume_advice(folder, count) if resumes or written(SCENARIO) else ""

    return launch(count, arguments, advice)


def _changed_at(path: Path) -> int | None:
    """When a file was last changed, in ns; None if it is not there."""
    return path.stat().st_mtime_ns if path.is_file() else None
