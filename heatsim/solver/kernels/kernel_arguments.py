"""The arguments that kernels take besides the field, for the two forms in which kernels know a body.

Linear: one material of constant properties, every face in the form f − g·T, no sources. General: everything else, in
the tables of :mod:`heatsim.kernels.composite.arrays`.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels import fitting, structs
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.compilation import Variant
from heatsim.kernels.composite.arrays import CompositeArrays, SweepTable, address, ledger_struct, make_tables
from heatsim.kernels.cpu.composite_body import LinkTables
from heatsim.physics.matter.coefficients import Scheme, derive, stage_coefficients
from heatsim.physics.operator.heat_sums import HeatSums, no_sums
from heatsim.physics.operator.step_inputs import StepInputs
from heatsim.physics.problem import HeatProblem
from heatsim.physics.time.stage_times import StageTimes
from heatsim.solver.field.field import Field
from heatsim.solver.ledger.energy_ledger import Ledger

# Steps whose changing numbers are made and sent to the device together, and the bytes that these may take.
STEPS_PER_TABLE = 16_384
_BYTES_PER_TABLE = 2**24


class LinearArguments:
    """Arguments for bodies of one constant material whose faces hold f − g·T.

    Attributes:
        variant: the form of the kernels.
        stage_variant: the form of those that do stages of different lengths.
        constant: whether f and g are the same in all steps of one length.
        steps_per_table: the most steps of one table.
    """

    variant = Variant()
    stage_variant = Variant(stages=True)
    steps_per_table = STEPS_PER_TABLE

    def __init__(self, problem: HeatProblem, field: Field, ledger: Ledger) -> None:
        self.constant = problem.boundary.constant
        self._problem = problem
        self._field = field
        self._ledger = ledger
        self._constant_terms: dict[float, tuple[NDArray[Any], NDArray[Any]]] = {}

    def coefficients(self, dt: float) -> NDArray[Any]:
        """Struct Coefficients for steps of ``dt`` seconds."""
        return self.struct_of(self._problem.coefficients[dt].c)

    def struct_of(self, c: Sequence[float]) -> NDArray[Any]:
        """Struct Coefficients with c0…c6; the array that it points to lives as long as this object."""
        return structs.coefficients_struct(c, self._problem.precision, address(self._factors))

    @cached_property
    def _factors(self) -> Any:
        """The factors of graded axes on the device."""
        return self._field.device.xp.asarray(structs.planes(self._problem.grid, self._problem.precision))

    @cached_property
    def ledger(self) -> NDArray[Any]:
        """Struct Ledger."""
        return ledger_struct(self._ledger.sums, linear=True)

    @cached_property
    def planes(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The factors of the planes across x, y, z, on the host; see :meth:`heatsim.grid.Axis.kernel_factors`."""
        x, y, z = (axis.kernel_factors(self._problem.precision) for axis in self._problem.grid.axes)
        return x, y, z

    def host_sweeps(self, first: int, until: int) -> NDArray[Any]:
        """Struct StepData of steps ``first`` … ``until`` − 1, on the host.

        Raises:
            ScenarioError: a face's value at one of the steps cannot be used.
        """
        problem, timeline = self._problem, self._problem.timeline
        dt = timeline.dt(first)
        sweeps = np.zeros(until - first, dtype=structs.sweep_dtype(problem.precision))
        terms = self._constant_terms.get(dt)
        if terms is None:
            times = timeline.step_times(first, first + 1 if self.constant else until)
            terms = problem.linear_terms(times, dt, self._field.reference)
            if self.constant:
                self._constant_terms[dt] = terms
        sweeps["f"], sweeps["g"] = terms
        return sweeps

    def sweeps(self, first: int, until: int) -> SweepTable:
        """Struct StepData of steps ``first`` … ``until`` − 1, on the device.

        Raises:
            ScenarioError: a face's value at one of the steps cannot be used.
        """
        return self.on_device(self.host_sweeps(first, until))

    def host_stage_sweeps(self, stages: StageTimes, scheme: Scheme) -> NDArray[Any]:
        """Struct StepData of n stages for builds with ``stages``, on the host, shape (n,).

        Args:
            stages: their times and lengths.
            scheme: that of the kernel.

        Raises:
            ScenarioError: a face's value at one of the stages cannot be used.
        """
        problem = self._problem
        own = stage_coefficients(problem.grid, problem.rates, stages.sizes, problem.precision, scheme)
        sweeps = np.zeros(len(stages), dtype=structs.sweep_dtype(problem.precision, stages=True))
        sweeps["f"], sweeps["g"] = problem.stage_linear_terms(stages, own, self._field.reference)
        sweeps["c"] = own.c
        return sweeps

    def on_device(self, sweeps: NDArray[Any]) -> SweepTable:
        """Struct StepData of steps or stages, brought to the device."""
        return SweepTable(self._field.device.xp.asarray(sweeps.view(np.uint8)), sweeps.itemsize)


class GeneralArguments:
    """Arguments for all other bodies, and for the rate of change of any body.

    Stages of different lengths take the tables for ``reference_dt`` and kernels with increments.

    Attributes:
        variant: the form of the kernels that do steps of equal lengths.
        stage_variant: the form of those that do stages of different lengths.
        rate_variant: the form of the kernel that adds increments to another field than the one they are found from.
        arrays: the body's arrays on the field's device.
        sums: those of the ledger.
    """

    def __init__(
        self, problem: HeatProblem, field: Field, ledger: Ledger, arrays: CompositeArrays | None = None
    ) -> None:
        self.variant = _general_variant(problem)
        self.stage_variant = replace(self.variant, stages=True)
        self.rate_variant = replace(self.stage_variant, rate=True)
        self.arrays = arrays or composite_arrays(problem, field)
        self.sums = ledger.sums
        self._problem = problem
        self._field = field
        self._tables: dict[float, LinkTables] = {}
        self._coefficients: dict[float, tuple[NDArray[Any], tuple[Any, ...]]] = {}

    @cached_property
    def steps_per_table(self) -> int:
        """The most steps of one table."""
        problem, itemsize = self._problem, np.dtype(self._problem.precision).itemsize
        materials, boundary, sources = problem.materials, problem.boundary, problem.sources
        longest = float(problem.timeline.dts.max(initial=0.0))
        row = structs.general_sweep_dtype(self._problem.precision).itemsize + sources.beam_bytes(itemsize, longest)
        per_condition = 6 + len(materials.types) * materials.varies
        tables = 6 * (boundary.row_count - len(boundary.conditions))
        row += (per_condition * len(boundary.conditions) + tables) * itemsize * (not boundary.constant)
        row += itemsize * (len(materials.types) + len(materials.heated.amounts)) * (not sources.heat_constant)
        return max(1, min(STEPS_PER_TABLE, _BYTES_PER_TABLE // row))

    def rows(self, first: int, until: int) -> StepInputs:
        """What changes in steps ``first`` … ``until`` − 1, all of one length.

        Raises:
            ScenarioError: a condition or source at one of the steps cannot be used.
        """
        timeline = self._problem.timeline
        dt = timeline.dt(first)
        return self._problem.rows(timeline.step_times(first, until), dt, self._field.reference)

    def tables(self, dt: float) -> LinkTables:
        """What depends on the length of the steps, on the host."""
        if dt not in self._tables:
            problem = self._problem
            own = problem.coefficients.get(dt) or derive(
                problem.grid, problem.rates, dt, problem.precision, "increments"
            )
            self._tables[dt] = make_tables(problem.materials, own.c, dt, problem.precision)
        return self._tables[dt]

    def coefficients(self, dt: float) -> NDArray[Any]:
        """Struct Coefficients for steps of ``dt`` seconds. The arrays that it points to live as long as this object."""
        if dt not in self._coefficients:
            problem = self._problem
            counts = problem.boundary.row_count, problem.condition_numbers
            self._coefficients[dt] = self.arrays.coefficients(self.tables(dt), *counts)
        return self._coefficients[dt][0]

    @cached_property
    def ledger(self) -> NDArray[Any]:
        """Struct Ledger."""
        return ledger_struct(self.sums)

    def sweeps(self, first: int, until: int) -> SweepTable:
        """Struct StepData of steps ``first`` … ``until`` − 1, on the device.

        Raises:
            ScenarioError: a condition or source at one of the steps cannot be used.
        """
        return self.arrays.sweeps(self.rows(first, until), until - first)

    @cached_property
    def no_ledger(self) -> NDArray[Any]:
        """Struct Ledger for stages whose heat is not recorded."""
        return np.zeros((), dtype=structs.GENERAL_LEDGER)

    @cached_property
    def no_sums(self) -> HeatSums:
        """The same for CPU kernels."""
        return no_sums()

    @cached_property
    def reference_dt(self) -> float:
        """The step in s for which the tables of stages are made."""
        limit = self._problem.limit.dt
        return limit if isfinite(limit) else 1.0

    def stage_rows(self, stages: StageTimes) -> StepInputs:
        """What changes from stage to stage.

        Raises:
            ScenarioError: a condition or source at one of the stages cannot be used.
        """
        return self._problem.stage_rows(stages, self.reference_dt, self._field.reference)

    def stage_sweeps(self, rows: StepInputs) -> SweepTable:
        """Struct StepData of the stages of ``rows``, on the device."""
        return self.arrays.sweeps(rows, len(rows.factors))

    def rate_sweeps(self, rows: StepInputs, base: Any = None) -> SweepTable:
        """Struct StepData of the stages of ``rows`` for builds of ``rate_variant``, on the device.

        Args:
            rows: what changes from stage to stage.
            base: the device array to which increments are added; None for 0.
        """
        return self.arrays.sweeps(rows, len(rows.factors), rate=True, base=base)


def variant_of(problem: HeatProblem) -> Variant:
    """The form of the kernels that do steps of equal lengths."""
    return LinearArguments.variant if problem.linear else _general_variant(problem)


def _general_variant(problem: HeatProblem) -> Variant:
    materials = problem.materials
    return Variant(
        faces=True,
        materials=not materials.uniform or materials.varies,
        varying=materials.varies,
        heated=materials.first_heated < len(materials.types),
        mixed=bool(len(problem.boundary.mixed.places)),
        contacts=materials.weighted_surfaces.contacts,
        laws=bool(problem.boundary.laws),
        cell_heat=bool(len(materials.heated)),
        lit=bool(len(materials.heated.lit)),
    )


def tables_fit(spec: KernelSpec, problem: HeatProblem) -> bool:
    """Whether a block of a resident kernel has room for the tables of a problem."""
    numbers = len(problem.materials.types), problem.condition_numbers, np.dtype(problem.precision).itemsize
    return fitting.tables_fit(spec, *numbers)


def make_arguments(
    problem: HeatProblem, field: Field, ledger: Ledger, arrays: CompositeArrays | None = None
) -> LinearArguments | GeneralArguments:
    """The arguments that a problem needs.

    Args:
        problem: its ``linear`` decides between the two forms.
        field: what is stepped.
        ledger: gets the heat that passes the surfaces.
        arrays: of the body on the field's device; made here if missing.
    """
    if problem.linear:
        return LinearArguments(problem, field, ledger)
    return GeneralArguments(problem, field, ledger, arrays)


def composite_arrays(problem: HeatProblem, field: Field) -> CompositeArrays:
    """The body's arrays on the field's device."""
    return CompositeArrays(
        field.device,
        problem.materials,
        problem.boundary.maps,
        field.reference,
        problem.precision,
        open_faces=problem.open_faces,
        mixed=problem.boundary.mixed,
        beams=len(problem.sources.beams),
    )
