"""The arguments that kernels take besides the field, for the two forms in which kernels know a body.

Linear: one material of constant properties, every face in the form f − g·T, no sources. General: everything else, in
the tables of :mod:`heatsim.kernels.composite.arrays`.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels import structs
from heatsim.kernels.composite.arrays import CompositeArrays, SweepTable, ledger_struct, make_tables
from heatsim.kernels.cpu.composite_oracle import Entries, LinkTables
from heatsim.kernels.launch import Variant
from heatsim.physics.problem import HeatProblem
from heatsim.physics.rows import Rows
from heatsim.solver.energy_ledger import Ledger
from heatsim.solver.field import Field

# Steps whose changing numbers are made and sent to the device together, and the bytes that these may take.
STEPS_PER_TABLE = 16_384
_BYTES_PER_TABLE = 2**24


class LinearArguments:
    """Arguments for bodies of one constant material whose faces hold f − g·T.

    Attributes:
        variant: the form of the kernels.
        constant: whether f and g are the same in all steps of one length.
        steps_per_table: the most steps of one table.
    """

    variant = Variant()
    steps_per_table = STEPS_PER_TABLE

    def __init__(self, problem: HeatProblem, field: Field, ledger: Ledger) -> None:
        self.constant = problem.boundary.constant
        self._problem = problem
        self._field = field
        self._ledger = ledger
        self._constant_terms: dict[float, tuple[NDArray[Any], NDArray[Any]]] = {}

    def coefficients(self, dt: float) -> NDArray[Any]:
        """Struct Coefficients for steps of ``dt`` seconds."""
        return structs.coefficients_struct(self._problem.coefficients[dt], self._problem.precision)

    @property
    def recorded(self) -> bool:
        """Whether the ledger sums the heat through some face."""
        return any(sums.size for sums in self._ledger.faces)

    @cached_property
    def ledger(self) -> NDArray[Any]:
        """Struct Ledger."""
        pointers = [sums.data.ptr if sums.size else 0 for sums in self._ledger.faces]
        return np.array((pointers,), dtype=structs.LEDGER)

    def host_sweeps(self, first: int, until: int) -> NDArray[Any]:
        """Struct Sweep of steps ``first`` … ``until`` − 1, on the host.

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
        sweeps["step"] = np.arange(first, until) & 0xFFFFFFFF
        return sweeps

    def sweeps(self, first: int, until: int) -> SweepTable:
        """Struct Sweep of steps ``first`` … ``until`` − 1, on the device.

        Raises:
            ScenarioError: a face's value at one of the steps cannot be used.
        """
        sweeps = self.host_sweeps(first, until)
        return SweepTable(self._field.device.xp.asarray(sweeps.view(np.uint8)), sweeps.itemsize)


class GeneralArguments:
    """Arguments for all other bodies.

    Attributes:
        variant: the form of the kernels.
        arrays: the body's arrays on the field's device.
        entries: the ledger's sums.
    """

    def __init__(
        self, problem: HeatProblem, field: Field, ledger: Ledger, arrays: CompositeArrays | None = None
    ) -> None:
        medium = problem.materials
        self.variant = Variant(
            faces=True,
            materials=not medium.uniform or medium.varies,
            varying=medium.varies,
            heated=medium.first_heated < len(medium.kinds),
            mixed=bool(len(problem.boundary.mixed.places)),
            contacts=medium.exposure is not None and medium.exposure.contacts,
        )
        self.arrays = arrays or composite_arrays(problem, field)
        self.entries = Entries(ledger.faces, ledger.beams, ledger.exposed, ledger.parts)
        self._problem = problem
        self._field = field
        self._tables: dict[float, LinkTables] = {}
        self._coefficients: dict[float, tuple[NDArray[Any], tuple[Any, ...]]] = {}

    @cached_property
    def steps_per_table(self) -> int:
        """The most steps of one table."""
        problem, itemsize = self._problem, np.dtype(self._problem.precision).itemsize
        materials, boundary, sources = problem.materials, problem.boundary, problem.sources
        row = structs.GENERAL_SWEEP.itemsize + sources.beam_bytes(itemsize)
        per_condition = 6 + len(materials.kinds) * materials.varies
        row += per_condition * itemsize * len(boundary.conditions) * (not boundary.constant)
        row += itemsize * len(materials.kinds) * (not sources.heat_constant)
        return max(1, min(STEPS_PER_TABLE, _BYTES_PER_TABLE // row))

    def rows(self, first: int, until: int) -> Rows:
        """What changes in steps ``first`` … ``until`` − 1.

        Raises:
            ScenarioError: a condition or source at one of the steps cannot be used.
        """
        timeline = self._problem.timeline
        dt = timeline.dt(first)
        return self._problem.rows(timeline.step_times(first, until), dt, self._field.reference)

    def tables(self, dt: float) -> LinkTables:
        """What depends on the length of the steps, on the host."""
        if dt not in self._tables:
            c = self._problem.coefficients[dt].c
            self._tables[dt] = make_tables(self._problem.materials, c, dt, self._problem.precision)
        return self._tables[dt]

    def coefficients(self, dt: float) -> NDArray[Any]:
        """Struct Coefficients for steps of ``dt`` seconds. The arrays that it points to live as long as this object."""
        if dt not in self._coefficients:
            counts = len(self._problem.sources.beams), len(self._problem.boundary.conditions)
            self._coefficients[dt] = self.arrays.coefficients(self.tables(dt), *counts)
        return self._coefficients[dt][0]

    @cached_property
    def ledger(self) -> NDArray[Any]:
        """Struct Ledger."""
        return ledger_struct(self.entries)

    def sweeps(self, first: int, until: int) -> SweepTable:
        """Struct Sweep of steps ``first`` … ``until`` − 1, on the device.

        Raises:
            ScenarioError: a condition or source at one of the steps cannot be used.
        """
        return self.arrays.sweeps(self.rows(first, until), first, until - first)


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
        *(field.device, problem.materials, problem.boundary.maps, problem.boundary.void),
        *(field.reference, problem.precision),
        open_faces=problem.open_faces,
        mixed=problem.boundary.mixed,
    )
