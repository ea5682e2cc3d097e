"""Groups of runs that can be stacked: the unit of work that is given to a worker."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import ceil

from heatsim.physics.problem import HeatProblem

# Share of the free memory that the stacked fields may take; the rest is for tables, reductions and the compiler.
_MEMORY_SHARE = 0.7
# Groups for each worker where nothing is gained by stacking more: the last ones end at about the same time.
_GROUPS_A_WORKER = 4

Kind = tuple[object, ...]


def kind(problem: HeatProblem) -> Kind:
    """What runs must share to be stacked: they differ in coefficients, face values, time steps and ends only."""
    scenario = problem.scenario
    exchanging = tuple(problem.faces.exchanging(face) for face in range(6))
    solver, output = scenario.solver, scenario.output
    return (
        problem.grid.cells,
        problem.precision,
        problem.scheme,
        problem.periodic,
        exchanging,
        solver.device,
        solver.kernel,
        output.energy,
    )


def member_bytes(problem: HeatProblem) -> int:
    """Memory on the device of one run: two buffers and the ledger."""
    itemsize = 4 if problem.precision == "float32" else 8
    nx, ny, nz = problem.grid.cells
    return 2 * itemsize * problem.grid.cell_count + 2 * 8 * (ny * nz + nx * nz + nx * ny)


def make_groups(
    problems: Mapping[int, HeatProblem], wanted: Iterable[int], backend: str, free_memory: int, workers: int
) -> list[list[int]]:
    """Cut runs into groups of one kind.

    As many as fit the memory on a GPU, with a group for each worker at least. On a CPU a stack is no faster than one
    run after the other, and smaller groups keep all workers busy to the end.

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
    shares = workers * (1 if backend == "cuda" else _GROUPS_A_WORKER)
    groups = [
        chunk
        for numbers in kinds.values()
        for chunk in _chunks(numbers, problems, free_memory, ceil(len(numbers) / shares))
    ]
    return sorted(groups)


def _chunks(
    numbers: Sequence[int], problems: Mapping[int, HeatProblem], free_memory: int, most: int
) -> list[list[int]]:
    fitting = int(_MEMORY_SHARE * free_memory) // member_bytes(problems[numbers[0]])
    # Equal groups rather than full ones and a small rest.
    parts = ceil(len(numbers) / max(1, min(most, fitting)))
    bounds = [len(numbers) * part // parts for part in range(parts + 1)]
    return [list(numbers[first:last]) for first, last in pairwise(bounds)]
