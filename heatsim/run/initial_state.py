"""The state from which a run starts: the scenario's initial field, or the last checkpoint."""

from pathlib import Path

import numpy as np

from heatsim.errors import Interrupted
from heatsim.observers.changes import begin_changes, restore_changes
from heatsim.observers.state import RunState
from heatsim.parallel.halo import Halo
from heatsim.parallel.transport import choose_transport
from heatsim.physics.estimates.initial import InitialField
from heatsim.physics.estimates.method_choice import notes_on_choice
from heatsim.physics.estimates.temperature_range import TemperatureLimits
from heatsim.physics.geometry.painted_sizes import file_hints, thickness_hints
from heatsim.physics.operator.steady_notes import notes_on_implicit, notes_on_steady
from heatsim.physics.readings.without_effect import notes_without_effect
from heatsim.run.interrupt import Stop, stop_of_ranks
from heatsim.run.plan import Plan
from heatsim.run.resume import check_inputs, check_scenario, identity
from heatsim.scenario import Scenario
from heatsim.solver.field.cell_parts import CellParts, own_cells, set_thermometers
from heatsim.solver.field.field import Field
from heatsim.solver.field.field_statistics import FieldStatistics
from heatsim.solver.kernels.cpu_codes import compile_ahead
from heatsim.solver.kernels.kernel_arguments import composite_arrays
from heatsim.solver.ledger.energy_ledger import Ledger
from heatsim.solver.make_stepper import make_adaptive_stepper
from heatsim.solver.stabilized.stepper import AdaptiveStepper
from heatsim.solver.steady import steady_state
from heatsim.storage import checkpoint, folder
from heatsim.storage.disk import resume_command


def initial_state(plan: Plan, target: Path) -> RunState:
    """The state at t = 0, with the field at the scenario's initial temperature.

    Args:
        plan: the problem and the device.
        target: the run's folder.

    Raises:
        ScenarioError: the initial temperature cannot be used.
        NotFiniteError: it is not finite.
    """
    begin_changes(plan.problem.scenario)
    initial = _initial_field(plan)
    state = _empty_state(plan, target, initial.reference)
    if initial.uniform:
        state.field.load_deviations(np.zeros((1, 1, 1)))
    else:
        own = initial.slabs(plan.slab.first, plan.slab.last)
        state.field.load_temperatures(own, plan.problem.materials.contents)
    state.check()
    state.initial_heat = state.statistics.heat()
    network = plan.problem.boundary.network
    if network is not None:
        network.begin()
    if plan.problem.timeline.adaptive:
        state.method = _method(plan, state, initial)
    state.show_nodes()
    return state


def _initial_field(plan: Plan) -> InitialField:
    """The field at t = 0."""
    problem = plan.problem
    return InitialField.from_scenario(problem.scenario, problem.parts, problem.materials.layering, problem.held)


def saved_state(plan: Plan, target: Path, saved: checkpoint.Checkpoint) -> RunState:
    """The state that a checkpoint holds.

    Raises:
        FolderError: the scenario or an input file was changed since the run began.
        StorageError: the checkpoint does not fit the scenario.
    """
    with checkpoint.understanding(target):
        state = _empty_state(plan, target, float(saved.values["reference"]))
        now = identity(plan)
        check_scenario(target / folder.SCENARIO, str(saved.values["scenario"]), str(now["scenario"]))
        check_inputs(target, str(saved.values["inputs"]), str(now["inputs"]))
        state.put_in = restore_changes(plan.problem.scenario, saved.values)
        slab = plan.part.slab
        shape = saved.shape("deviation")
        if shape != state.field.grid.shape:
            raise ValueError(f"deviations of shape {shape}")
        state.field.load_deviations(saved.part("deviation", slab.first, slab.last))
        state.ledger.restore(saved.arrays, saved.part)
        state.step = int(saved.values["step"])
        state.initial_heat = float(saved.values["initial_heat"])
        state.wall_time = float(saved.values["wall_time"])
        state.stopped = bool(saved.values["stopped"])
        if "compared" in saved.arrays:
            before = plan.device.xp.asarray(saved.part("compared", slab.first, slab.last))
            state.compared = (int(saved.values["compared_step"]), before)
        network = plan.problem.boundary.network
        if network is not None:
            network.take(saved.values)
        if plan.problem.timeline.adaptive:
            initial = _initial_field(plan)
            state.method = _method(plan, state, initial, saved)
            if plan.problem.scenario.changes:
                state.method.replay()
        state.show_nodes()
    return state


def find_steady_state(state: RunState, stop: Stop) -> None:
    """Replace the first guess in the field by the steady state. Collective.

    Raises:
        Interrupted: a stop was requested.
        NotConvergedError, NotFiniteError: no steady state was found; says why.
    """
    try:
        state.steady = steady_state.find_steady_state(
            state.part, state.field, state.arrays.body.cells, lambda: stop_of_ranks(stop, state.team)
        )
    except Interrupted as error:
        raise Interrupted(f"{error}; start it over with `{resume_command(state.folder)}`") from None
    state.initial_heat = state.statistics.heat()


def notes_at_start(plan: Plan, scenario: Scenario, saved: checkpoint.Checkpoint | None) -> list[str]:
    """Messages for the user about suspicious values, the method and, for a resumed run, the device.

    Args:
        plan: the problem and the device.
        scenario: as the user gave it: its method may be "auto".
        saved: the checkpoint, if the run resumes.
    """
    if saved is not None:
        notes = warnings_on_resume(plan, saved)
    else:
        notes = [*scenario.hints, *thickness_hints(scenario), *file_hints(scenario)]
        notes.extend(notes_without_effect(plan.problem))
    if scenario.steady:
        notes.extend(notes_on_steady(scenario))
    notes.extend(notes_on_choice(scenario, plan.problem.choice))
    if plan.problem.scenario.time.method == "implicit":
        notes.extend(notes_on_implicit(scenario))
    return notes


def warnings_on_resume(plan: Plan, saved: checkpoint.Checkpoint) -> list[str]:
    """What a user should know before the run goes on: another kind of device gives other bits."""
    before, now = saved.values["backend"], plan.device.backend
    if before == now:
        return []
    return [
        f'the run began on device "{before}" and continues on "{now}": the results agree to rounding, not to the bit'
    ]


def _method(
    plan: Plan, state: RunState, initial: InitialField, saved: checkpoint.Checkpoint | None = None
) -> AdaptiveStepper:
    """The stepper of a method that chooses its own steps; ``saved``: the checkpoint, if there is one."""
    limits = TemperatureLimits.of_run(initial, plan.problem.boundary, plan.problem.materials)
    return make_adaptive_stepper(
        plan.part,
        state.field,
        state.ledger,
        plan.kernel,
        limits,
        step=state.step,
        arrays=state.arrays,
        tuned=plan.tuned,
        saved=saved,
    )


def _empty_state(plan: Plan, target: Path, reference: float) -> RunState:
    """A state whose field holds no temperatures yet; ``reference`` in K is where deviations count from."""
    problem, scenario, copies = plan.problem, plan.problem.scenario, plan.room_for_copy()
    part, team = plan.part, plan.team
    halo = Halo(part.slab, team, choose_transport(team, plan.device, part.slab.ring))
    field = Field(plan.device, problem.grid, problem.precision, reference, halo)
    rows = problem.timeline.steps_at(scenario.output.probe_every)
    ledger = Ledger(plan.device, part, scenario.output.energy and not scenario.steady, team, rows)
    arrays = composite_arrays(part, field)
    cells = own_cells(arrays, field)
    set_thermometers(problem, field, cells)
    parts = CellParts.of_problem(problem, cells, field)
    statistics = FieldStatistics(problem, field, cells, parts)
    if plan.device.backend == "cpu":
        compile_ahead(part, field, ledger, arrays, plan.kernel)
    return RunState(problem, part, field, ledger, statistics, arrays, target, copies=copies)
