"""The plan of a study as text for a terminal: what would run, how long, and in how much memory and disk space."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from heatsim.errors import CapacityError, RunError, ScenarioError
from heatsim.physics.problem import HeatProblem
from heatsim.run import process_memory
from heatsim.run.capacity import size
from heatsim.run.plan import Plan
from heatsim.run.plan_methods import between, own_work
from heatsim.run.plan_text import precision_lines
from heatsim.run.step_times import measure_work, timed_plan
from heatsim.run.work_time import WorkTime
from heatsim.study import folder as study_folder
from heatsim.study.definition import Definition
from heatsim.study.model import shown_values
from heatsim.study.report import title_of

# Steps are timed on one run of each kind, of this many kinds at most; other kinds take as long a cell as the last.
_MOST_TIMED = 6


def describe(definition: Definition, problems: Mapping[int, HeatProblem], folder: Path) -> str:
    """The plan as lines of text. Some steps are done to time them; nothing is written.

    Args:
        definition: of the study.
        problems: of its runs, by their numbers.
        folder: where it would write; runs that are done there are counted.
    """
    plans = {number: Plan.of(problem) for number, problem in problems.items()}
    count, axes = len(plans), definition.table.axes
    lines = [title_of(definition), f"study        {definition.table.method}: {_runs(count)}"]
    lines += [f"parameter    {', '.join(axis.keys)}: {shown_values(axis)}" for axis in axes]
    first = next(iter(plans.values()))
    lines.append(f"device       {first.device.name}; {first.problem.precision}")
    lines += next(filter(None, map(precision_lines, plans.values())), [])
    cells = sorted({plan.problem.grid.cell_count for plan in plans.values()})
    lines.append("cells        " + " to ".join(f"{n:,}" for n in dict.fromkeys((cells[0], cells[-1]))) + " in a run")
    methods = Counter(plan.problem.scenario.time.method for plan in plans.values())
    lines.append("method       " + ", ".join(f"{name} in {_runs(runs)}" for name, runs in methods.items()))
    number, largest = max(plans.items(), key=lambda item: item[1].device_bytes + item[1].host_bytes)
    lines.append(
        f"memory       {size(largest.device_bytes)} on the device and {size(largest.host_bytes)} on the host for the "
        f"largest, run {number}"
    )
    done = [number for number in plans if study_folder.is_done(study_folder.run_path(folder, number))]
    left = {number: plan for number, plan in plans.items() if number not in done}
    time, process = _time(left)
    if process:
        lines.append(f"process      about {size(process)} on the host at most for each worker, with the program itself")
    lines.append(f"disk         {size(sum(plan.disk_bytes for plan in plans.values()))} for all runs")
    if done:
        lines.append(f"done         {_runs(len(done))} in {folder}; {_runs(len(left))} left")
    if time is not None:
        lines.append(f"time         {between(*time)} for {_runs(len(left))} one after the other, from steps timed now")
    return "\n".join(lines)


def _runs(count: int) -> str:
    return f"{count:,} run{'s' if count != 1 else ''}"


def _time(plans: Mapping[int, Plan]) -> tuple[tuple[float, float] | None, int]:
    """The least and the most seconds of stepping of all runs, and the bytes of a worker's process.

    The seconds are None if no step could be timed, and then the bytes are 0.
    """
    of_cells: dict[tuple[object, ...], WorkTime] = {}
    least, most, process, worker = 0.0, 0.0, 0, 0
    for plan in plans.values():
        problem = plan.problem
        cells, work = problem.grid.cell_count, own_work(problem)
        kind = (problem.scenario.time.method, problem.materials.varies, problem.materials.uniform, cells)
        if kind not in of_cells and len(of_cells) < _MOST_TIMED:
            with suppress(ScenarioError, CapacityError, RunError):
                plan.check_memory()
                timed = timed_plan(plan) or plan
                of_cells[kind] = measure_work(plan, timed).scaled(1.0 / cells)
                process = max(process, process_memory.expected(plan, timed) - process_memory.on_host(plan))
        if not of_cells:
            return None, 0
        worker = max(worker, process + process_memory.on_host(plan))
        each = of_cells.get(kind, next(reversed(of_cells.values()))).scaled(cells)
        least, most = least + each.of(work[0]), most + each.of(work[1])
    return (least, most), worker if process else 0
