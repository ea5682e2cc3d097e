"""Groups of runs that can be stacked: the unit of work that is given to a worker."""

from collections.abc import Iterable, Mapping
from itertools import accumulate
from math import ceil

from heatsim.physics.problem import HeatProblem
from heatsim.run.plan import Plan

# Share of the free memory that the stacked fields may take; the rest is for tables, reductions and the compiler.
_MEMORY_SHARE = 0.7
# Where nothing is gained by stacking, a group is this part of what is left for each worker.
_SHARES_A_WORKER = 2

Kind = tuple[object, ...]


def kind(problem: HeatProblem) -> Kind:
    """What runs must share to be stacked: they differ in coefficients, face values, time steps and ends."""
    solver = problem.scenario.solver
    return (
        problem.grid.cells,
        problem.precision,
        problem.scheme,
        problem.periodic,
        problem.body is None,
        solver.device,
        solver.kernel,
    )


def can_be_stacked(plan: Plan) -> bool:
    """Whether a run can be stepped by the same launches as others of its kind."""
    return plan.device.backend == "cuda" and plan.problem.body is None


def member_bytes(problem: HeatProblem) -> int:
    """Memory on the device of one run: two buffers, a copy of the field while it is written, and the ledger."""
    itemsize = 4 if problem.precision == "float32" else 8
    nx, ny, nz = problem.grid.cells
    return 3 * itemsize * problem.grid.cell_count + 2 * 8 * (ny * nz + nx * nz + nx * ny)


def make_groups(
    problems: Mapping[int, HeatProblem], wanted: Iterable[int], backend: str, free_memory: int, workers: int
) -> list[list[int]]:
    """Cut runs into groups of one kind.

    On a GPU as many as fit its memory, with a group for each worker at least. On a CPU a stack is no faster than one
    run after the other: groups get smaller towards the end, so that all workers are busy until then.

    Args:
        problems: by number.
        wanted: numbers of the runs that are still to be done.
        backend: "cpu" or "cuda".
        free_memory: bytes of a worker's device.
        workers: how many there are.

    Returns:
        The numbers of each group, ascending, in the order of their first runs.
    """
    kinds: dict[Kind, list[int]] = {}
    for number in sorted(wanted):
        kinds.setdefault(kind(problems[number]), []).append(number)
    groups = []
    for numbers in kinds.values():
        fitting = max(1, int(_MEMORY_SHARE * free_memory) // member_bytes(problems[numbers[0]]))
        sizes = (
            _equal(len(numbers), workers, fitting) if backend == "cuda" else _falling(len(numbers), workers, fitting)
        )
        ends = list(accumulate(sizes))
        groups += [numbers[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    return sorted(groups)


def _equal(count: int, workers: int, most: int) -> list[int]:
    """Sizes of as few groups as possible, one a worker at least; equal rather than full ones and a small rest."""
    parts = max(min(workers, count), ceil(count / most))
    return [count * (part + 1) // parts - count * part // parts for part in range(parts)]


def _falling(count: int, workers: int, most: int) -> list[int]:
    """Sizes of groups, each a share of what is left."""
    sizes = []
    while count:
        sizes.append(min(most, ceil(count / (_SHARES_A_WORKER * workers))))
        count -= sizes[-1]
    return sizes
