"""The plan of a run as text for a terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape

from heatsim.counts import counted, duration
from heatsim.physics.estimates.precision_choice import choose_precision
from heatsim.run.capacity import size
from heatsim.run.in_words import grid_in_words, moment
from heatsim.run.plan import Plan
from heatsim.run.plan_details import describe_details
from heatsim.run.plan_methods import describe_methods
from heatsim.run.plan_model import describe_model
from heatsim.run.work_time import WorkTime
from heatsim.solver.steady.steady_state import METHOD

_SLOW = 4  # units of a GPU for float32 for one for float64, from which a plan says so


class PlanInWords(Plan):
    """A plan whose text is that of `heatsim plan`, without times."""

    def __repr__(self) -> str:
        return f'<heatsim plan "{self.problem.scenario.title}">'

    def __str__(self) -> str:
        return describe(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def describe(
    plan: Plan, times: Mapping[str, WorkTime] | None = None, process: int = 0, error: Sequence[str] = ()
) -> str:
    """The plan as lines of text.

    Args:
        plan: the plan of the run.
        times: the times of :func:`heatsim.run.step_times.measure_methods`; None to leave out times.
        process: the bytes that it found for the process; 0 to leave them out.
        error: lines on the error in space.
    """
    problem = plan.problem
    lines = [
        problem.scenario.title,
        f"grid         {grid_in_words(problem.grid)}",
        *describe_model(problem),
    ]
    if problem.scenario.steady:
        return "\n".join([*lines, *_steady(plan, times or {}, process), *error])
    lines += [*_transient(plan, times or {}, process), *error]
    return "\n".join([*lines, "", "Details of the numerics", *describe_details(plan)])


def _transient(plan: Plan, times: Mapping[str, WorkTime], process: int) -> list[str]:
    """The method, the device and the needs of a run in time."""
    problem = plan.problem
    kernel = "auto, tuned at the run" if plan.tuned else plan.kernel.name
    if problem.scenario.time.method == "implicit":
        kernel = METHOD
    output, whole = problem.scenario.output, " the whole grid on one processor" if plan.team.size > 1 else ""
    return [
        f"time         to {moment(problem.scenario.time.end)}; rows every {moment(output.probe_every)}, fields every "
        f"{moment(output.every)}",
        f"device       {plan.device.name}; kernel {kernel}; {problem.precision}",
        *precision_lines(plan),
        *describe_methods(plan, times),
        *([f"times        of stepping{whole}, from steps and stages timed now"] if times else []),
        f"memory       {size(plan.device_bytes)} on the device, {size(plan.copy_bytes)} more for a copy to write from, "
        f"{size(plan.host_bytes)} on the host",
        *_process(process),
        f"disk         {size(plan.disk_bytes)}: {counted(plan.fields, 'field')}, checkpoints, "
        f"{counted(plan.rows, 'row')}{_inputs(plan)}",
    ]


def _process(process: int) -> list[str]:
    """The memory of the process."""
    return [f"process      about {size(process)} on the host at most, with the program itself"] if process else []


def _steady(plan: Plan, times: Mapping[str, WorkTime], process: int) -> list[str]:
    """The tolerance, the device and the needs of a steady state."""
    problem, tolerance = plan.problem, plan.problem.scenario.time.tolerance
    unit = problem.scenario.output.temperature_unit
    to = "0.01 % of the temperature range" if tolerance is None else unit.difference_text(tolerance)
    return [
        f"device       {plan.device.name}; {problem.precision}",
        *precision_lines(plan),
        f"method       steady state, to {to}",
        f"memory       {size(plan.device_bytes)} on the device, {size(plan.host_bytes)} on the host",
        *_process(process),
        f"disk         {size(plan.disk_bytes)}: {plan.fields:,} field, {plan.rows:,} row{_inputs(plan)}",
        *(f"time         {duration(time.unit)} of solving, from cycles timed now" for time in times.values()),
    ]


def _inputs(plan: Plan) -> str:
    """The copies of input files on the disk; empty if there are none."""
    return f", copies of {counted(len(plan.problem.scenario.input_files), 'input')}" * bool(plan.input_bytes)


def precision_lines(plan: Plan) -> list[str]:
    """Why "auto" takes the precision, or what is wrong with the given one."""
    problem, lines = plan.problem, []
    choice = problem.precision_choice
    if choice is not None:
        lines = [f"auto takes {problem.precision} {choice.reason}"]
    elif problem.precision == "float32":
        asked = replace(problem, scenario=problem.asked, boundary=replace(problem.boundary, scenario=problem.asked))
        work = None if problem.choice is None else problem.choice.work
        would = choose_precision(asked, problem.scenario.time.method, work)
        if would.precision == "float64":
            lines = [f"auto would take float64 {would.reason}"]
    slower = plan.device.float64_ratio() if problem.precision == "float64" else 1
    if slower > _SLOW:
        lines.append(f"this GPU has {slower} units for float32 for each one for float64: steps may take much longer")
    return [f"precision    {'; '.join(lines)}"] if lines else []
