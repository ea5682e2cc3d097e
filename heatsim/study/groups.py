"""Groups of runs: a worker receives one group at a time; runs that can form an ensemble advance together."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import ceil

from heatsim.physics.problem import HeatProblem
from heatsim.solver import device_bytes
from heatsim.solver.kernels.kernel_arguments import variant_of

# The share of the free memory for the fields of an ensemble; tables, reductions and the compiler need the rest.
_MEMORY_SHARE = 0.7
# The next group has 1 / (_SHARES_A_WORKER · workers) of the remaining runs.
_SHARES_A_WORKER = 2
# An ensemble cut from the remaining runs has at least this number of runs, while there are as many.
_FEWEST_TOGETHER = 8

_METHODS = ("euler", "stabilized")
_METHODS_OF_BODIES = ("euler",)

EnsembleKey = tuple[object, ...]


def ensemble_key(problem: HeatProblem) -> EnsembleKey:
    """The properties that the runs of an ensemble share.

    Coefficients, materials, regions, conditions, powers of sources, time steps and ends may differ. Composite bodies
    also share the variant of the kernels, that is, whether there are sources, contacts, tables of radiation and so on.
    """
    solver = problem.scenario.solver
    return (
        problem.scenario.time.method,
        problem.grid.cells,
        problem.precision,
        problem.scheme,
        problem.periodic,
        variant_of(problem),
        solver.device,
        solver.kernel,
    )


def fits_ensemble(problem: HeatProblem, backend: str) -> bool:
    """Whether a run can be part of an ensemble.

    On a GPU all runs with Euler's method can, and linear problems with stabilized steps, if all cells are equal and
    there are no nodes and no values that are set during the run.
    """
    methods = _METHODS if problem.linear else _METHODS_OF_BODIES
    alike = problem.grid.uniform and problem.boundary.network is None and not problem.scenario.changes
    return backend == "cuda" and alike and problem.scenario.time.method in methods


def run_bytes(problem: HeatProblem) -> int:
    """The device memory of one run in bytes: its fields, the copy for output, and the energy ledger."""
    needed = device_bytes.of_run(problem)
    return needed.total + needed.field


def make_groups(
    problems: Mapping[int, HeatProblem], wanted: Iterable[int], backend: str, free_memory: int, workers: int
) -> list[list[int]]:
    """Split runs into groups that can form ensembles.

    On a GPU an ensemble has as many runs as fit in memory, but there is at least one ensemble for each worker. Runs
    that cannot form ensembles, such as implicit ones, are groups of one. On a CPU groups become smaller towards the end
    to keep all workers busy.

    Args:
        problems: the problem of each run, by its number.
        wanted: the numbers of the runs that are not done.
        backend: "cpu" or "cuda".
        free_memory: of a worker's device, in bytes.
        workers: the number of workers.

    Returns:
        The numbers of each group, ascending, in the order of their first runs.
    """
    groups = []
    for numbers in _alike(problems, wanted):
        first = problems[numbers[0]]
        fitting = _fitting(first, free_memory)
        if fits_ensemble(first, backend):
            sizes = _equal(len(numbers), workers, fitting)
        elif backend == "cuda":
            sizes = [1] * len(numbers)
        else:
            sizes = _falling(len(numbers), workers, fitting)
        ends = list(accumulate(sizes))
        groups += [numbers[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    return sorted(groups)


class RunsLeft:
    """Runs that no worker has yet. Groups are cut from them one by one, each a share of what is left.

    So a worker that joins late gets runs, and all workers end at about the same time.

    Args:
        problems: by number.
        backend: of the workers: "cpu" or "cuda".
        free_memory: of a worker's device, in bytes.
    """

    def __init__(self, problems: Mapping[int, HeatProblem], backend: str, free_memory: int) -> None:
        self._problems = problems
        self._backend = backend
        self._free_memory = free_memory
        self._kinds = _alike(problems, problems)

    def __len__(self) -> int:
        return sum(map(len, self._kinds))

    def cut(self, workers: int) -> list[int]:
        """The numbers of the next group, for one of ``workers`` workers. There must be runs left."""
        kind = min(self._kinds)
        first, share = self._problems[kind[0]], ceil(len(self) / (_SHARES_A_WORKER * workers))
        if fits_ensemble(first, self._backend):
            size = min(max(share, _FEWEST_TOGETHER), _fitting(first, self._free_memory))
        else:
            size = 1 if self._backend == "cuda" else share
        group = kind[:size]
        del kind[:size]
        self._kinds = [each for each in self._kinds if each]
        return group

    def put_back(self, numbers: Sequence[int]) -> None:
        """Take back runs of a group that was lost."""
        self._kinds = _alike(self._problems, [*numbers, *(number for kind in self._kinds for number in kind)])


def _alike(problems: Mapping[int, HeatProblem], wanted: Iterable[int]) -> list[list[int]]:
    """The numbers of the runs that can form ensembles, each list ascending."""
    alike: dict[EnsembleKey, list[int]] = {}
    for number in sorted(wanted):
        alike.setdefault(ensemble_key(problems[number]), []).append(number)
    return list(alike.values())


def _fitting(problem: HeatProblem, free_memory: int) -> int:
    """The number of runs like one whose fields fit the memory; at least 1."""
    return max(1, int(_MEMORY_SHARE * free_memory) // run_bytes(problem))


def _equal(count: int, workers: int, most: int) -> list[int]:
    """Nearly equal sizes of the fewest groups that fit the memory and give every worker a group."""
    parts = max(min(workers, count), ceil(count / most))
    return [count * (part + 1) // parts - count * part // parts for part in range(parts)]


def _falling(count: int, workers: int, most: int) -> list[int]:
    """Sizes of groups that are each a share of the remaining runs."""
    sizes = []
    while count:
        sizes.append(min(most, ceil(count / (_SHARES_A_WORKER * workers))))
        count -= sizes[-1]
    return sizes
