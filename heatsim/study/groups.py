"""Groups of runs: a worker receives one group at a time; runs that can form an ensemble advance together."""

from collections.abc import Iterable, Mapping
from itertools import accumulate
from math import ceil

from heatsim.physics.problem import HeatProblem
from heatsim.run.plan import Plan
from heatsim.solver import device_bytes

# The share of the free memory for the fields of an ensemble; tables, reductions and the compiler need the rest.
_MEMORY_SHARE = 0.7
# On a CPU, a group is 1 / (this · workers) of the remaining runs.
_SHARES_A_WORKER = 2

_METHODS = ("euler", "stabilized")

EnsembleKey = tuple[object, ...]


def ensemble_key(problem: HeatProblem) -> EnsembleKey:
    """The properties that the runs of an ensemble share; coefficients, face values, time steps and ends may differ."""
    solver = problem.scenario.solver
    return (
        problem.scenario.time.method,
        problem.grid.cells,
        problem.precision,
        problem.scheme,
        problem.periodic,
        problem.linear,
        solver.device,
        solver.kernel,
    )


def fits_ensemble(plan: Plan) -> bool:
    """Whether a run can be part of an ensemble: a linear problem on a GPU, by a method whose steps are sweeps."""
    return plan.device.backend == "cuda" and plan.problem.scenario.time.method in _METHODS and plan.problem.linear


def run_bytes(problem: HeatProblem) -> int:
    """The device memory of one run in bytes: its fields, the copy for output, and the energy ledger."""
    needed = device_bytes.of_run(problem)
    return needed.total + needed.field


def make_groups(
    problems: Mapping[int, HeatProblem], wanted: Iterable[int], backend: str, free_memory: int, workers: int
) -> list[list[int]]:
    """Split runs into groups that can form ensembles.

    On a GPU a group fills the memory, but there are at least as many groups as workers. On a CPU an ensemble is not
    faster than single runs, so groups become smaller towards the end to keep all workers busy.

    Args:
        problems: by number.
        wanted: the numbers of the runs that are not done.
        backend: "cpu" or "cuda".
        free_memory: of a worker's device, in bytes.
        workers: the number of workers.

    Returns:
        The numbers of each group, ascending, in the order of their first runs.
    """
    alike: dict[EnsembleKey, list[int]] = {}
    for number in sorted(wanted):
        alike.setdefault(ensemble_key(problems[number]), []).append(number)
    groups = []
    for numbers in alike.values():
        fitting = max(1, int(_MEMORY_SHARE * free_memory) // run_bytes(problems[numbers[0]]))
        sizes = (
            _equal(len(numbers), workers, fitting) if backend == "cuda" else _falling(len(numbers), workers, fitting)
        )
        ends = list(accumulate(sizes))
        groups += [numbers[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    return sorted(groups)


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
