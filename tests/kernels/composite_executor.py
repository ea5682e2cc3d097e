"""Any kernel on the steps of a composite body: CPU kernels called, CUDA kernels on the host machine or a GPU."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from executor import BLOCK_MEMORY, CPU, CUDA, GUARD, grid_on_host, of_steps, room_of, source_of, steps_a_launch
from numpy.typing import NDArray

from heatsim import device
from heatsim.grid import Grid
from heatsim.kernels import compilation, fitting, launch
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.composite.arrays import CompositeArrays, ledger_struct, make_tables
from heatsim.kernels.composite.cell_heat import compile_kernel as compile_with_cell_heat
from heatsim.kernels.composite.cell_heat import heating_build, heating_launch
from heatsim.kernels.cpu.composite_body import CompositeCall
from heatsim.kernels.cpu.composite_oracle import COMPOSITE_KERNELS
from heatsim.kernels.cuda_graphs import Sweeps
from heatsim.kernels.emulation.machine import compile_kernel, guarded
from heatsim.kernels.temporal_composite import correction
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.mixed_cells import NO_MIXED_CELLS, MixedCells
from heatsim.physics.conditions.surface_balance import FREE, LAW
from heatsim.physics.matter.coefficients import Scheme
from heatsim.physics.operator.heat_sums import HeatSums, SumLayout
from heatsim.physics.operator.step_inputs import StepInputs

VARIANTS: tuple[tuple[str, Scheme], ...] = (("float32", "increments"), ("float64", "increments"))


@dataclass(frozen=True, eq=False)
class CompositeSteps:
    """Some steps of a body.

    Attributes:
        materials: the cell types.
        maps: numbers of conditions on the faces, empty arrays where a face has one.
        rows: conditions, sources and beams of the steps.
        steps: how many there are.
        dt: their length in s.
        periodic: which axes wrap.
        T: deviations at the start.
        reference: in K.
        c: c0…c6 for a body of one type.
        recorded: whether the ledger is kept.
        mixed: the cells at faces that several conditions share.
        rate: whether the increments are added to ``base``, or to 0 if it is None, instead of T; then one step.
        base: another field.
        equal: whether CUDA kernels for steps of equal length do the steps, whatever their factors are.
        beams: number of beams, also of those that are off in all steps.
        open_faces: which faces of the box let heat through.
    """

    materials: CellTypes
    maps: tuple[NDArray[np.uint8], ...]
    rows: StepInputs
    steps: int
    dt: float
    periodic: tuple[bool, bool, bool]
    T: NDArray[np.float32]
    reference: float = 300.0
    c: tuple[float, ...] = (0.0,) * 7
    recorded: bool = True
    mixed: MixedCells = NO_MIXED_CELLS
    rate: bool = False
    base: NDArray[np.float32] | None = None
    equal: bool = False
    beams: int = 0
    open_faces: tuple[bool, ...] = (True,) * 6

    @property
    def grid(self) -> Grid:
        return self.materials.grid

    @property
    def counts(self) -> tuple[int, int]:
        """Of rows of conditions, of the numbers in them and in the held potentials."""
        conditions, held = self.rows.conditions[0], self.rows.held[0]
        return len(conditions), conditions.size + held.size

    @property
    def layout(self) -> SumLayout:
        """Of the ledger's sums."""
        if not self.recorded:
            return SumLayout()
        shapes = (self.grid.face_shape(face) for face in range(6))
        return SumLayout(
            tuple((0, 0) if self.periodic[face // 2] else shape for face, shape in enumerate(shapes)),
            len(self.mixed.numbers),
            self.materials.exposed_cells,
            self.beams > 0,
            len(self.materials.heated),
        )

    def arrays_on(self, where: device.Device, precision: str) -> CompositeArrays:
        arrays = (where, self.materials, self.maps, self.reference, precision)
        return CompositeArrays(*arrays, open_faces=self.open_faces, mixed=self.mixed, beams=self.beams)


@dataclass(frozen=True, eq=False)
class CompositeResult:
    """The field after the steps, and the ledger's sums."""

    T: NDArray[Any]
    ledger: HeatSums

    @property
    def sums(self) -> tuple[NDArray[np.float64], ...]:
        return (self.ledger.values,)

    def assert_same_bits(self, other: "CompositeResult") -> None:
        for mine, others in zip((self.T, *self.sums), (other.T, *other.sums), strict=True):
            assert mine.shape == others.shape
            assert mine.tobytes() == others.tobytes(), f"differ by up to {np.abs(mine - others).max()}"


COMPOSITE = tuple(spec for spec in CUDA if spec.composite)
NAIVE, STREAMED, TEMPORAL, *_ = COMPOSITE

Executor = Callable[[KernelSpec, CompositeSteps, str, Scheme], CompositeResult]


def on_cpu(spec: KernelSpec, steps: CompositeSteps, precision: str, scheme: Scheme) -> CompositeResult:
    zones = [guarded(array, GUARD) for array in (steps.T.astype(precision), np.empty(steps.T.shape, precision))]
    sums = guarded(np.zeros(steps.layout.size), GUARD)
    ledger = HeatSums(steps.layout, sums.array)
    arrays = steps.arrays_on(device.choose("cpu"), precision)
    tables = make_tables(steps.materials, steps.c, steps.dt, precision)
    T, T_new = (zone.array for zone in zones)
    before = T.copy()
    T_new[...] = np.nan
    base = None if not steps.rate else np.zeros(0, precision) if steps.base is None else steps.base.astype(precision)
    call = CompositeCall(
        steps.periodic,
        arrays.body,
        tables,
        arrays.steps(steps.rows, steps.steps),
        ledger,
        scheme,
        base,
    )
    result, _ = COMPOSITE_KERNELS[spec.name](T, T_new, call)
    if steps.steps == 1:
        assert result is T_new
        np.testing.assert_array_equal(T, before, "one step must not write its input")
    for zone in (*zones, sums):
        zone.assert_guards_untouched()
    return CompositeResult(result, ledger)


def on_host(spec: KernelSpec, steps: CompositeSteps, precision: str, scheme: Scheme) -> CompositeResult:
    zones = [guarded(array, GUARD) for array in (steps.T.astype(precision), np.empty(steps.T.shape, precision))]
    sums = guarded(np.zeros(steps.layout.size), GUARD)
    ledger = HeatSums(steps.layout, sums.array)
    struct = ledger_struct(ledger)
    arrays = steps.arrays_on(device.choose("cpu"), precision)
    tables = make_tables(steps.materials, steps.c, steps.dt, precision)
    coefficients, keep = arrays.coefficients(tables, *steps.counts)
    base = None if steps.base is None else steps.base.astype(precision)
    sweeps = arrays.sweeps(steps.rows, steps.steps, steps.rate, base)
    step = 0
    for build in builds(spec, steps, precision, scheme, room_of(spec)):
        kernel, launches = compile_kernel(*source_of(build)), of_both_depths(build, steps)
        count = steps_a_launch(build, launches[0], steps.steps)
        while steps.steps - step >= count:
            T, T_new = (zone.array for zone in zones)
            before = T.copy()
            T_new[...] = np.nan
            table = sweeps.table.view(build.sweep_dtype)[step:]
            if build.variant.cell_heat:
                heating, part = heating_build(build), heating_launch(steps.grid, len(steps.materials.heated))
                arguments = (T, T_new, grid_on_host(part), coefficients, table, struct)
                compile_kernel(*source_of(heating)).launch(part.blocks, heating.spec.block, *arguments)
            for part in launches[step % 2]:
                grid = of_steps(grid_on_host(part), count if build.spec.resident else 1)
                arguments = (T, T_new, grid, coefficients, table, struct)
                shared_bytes = launch.shared_bytes(build, coefficients)
                kernel.launch(part.blocks, build.spec.block, *arguments, shared_bytes=shared_bytes)
            if build.pipeline is not None:
                second = correction.correction_build(build, BLOCK_MEMORY)
                second_kernel = compile_kernel(*source_of(second))
                for part in corrected(build, steps):
                    arguments = (T, T_new, grid_on_host(part), coefficients, table, struct)
                    second_kernel.launch(part.blocks, second.spec.block, *arguments, shared_bytes=second.shared_bytes)
            if count == build.spec.steps:
                np.testing.assert_array_equal(T, before, "a kernel must not write its input")
            if count == build.spec.steps or count % 2:
                zones.reverse()
            step += count
    for zone in (*zones, sums):
        zone.assert_guards_untouched()
    assert len(keep) == 3 + steps.materials.varies + 3 * arrays.mixed
    return CompositeResult(zones[0].array, ledger)


def on_gpu(spec: KernelSpec, steps: CompositeSteps, precision: str, scheme: Scheme) -> CompositeResult:
    import cupy

    gpu = device.choose("cuda")
    T, T_new = cupy.asarray(steps.T.astype(precision)), cupy.empty(steps.T.shape, precision)
    ledger = HeatSums.zeros(cupy, steps.layout)
    arrays = steps.arrays_on(gpu, precision)
    tables = make_tables(steps.materials, steps.c, steps.dt, precision)
    coefficients, keep = arrays.coefficients(tables, *steps.counts)
    base = None if steps.base is None else cupy.asarray(steps.base.astype(precision))
    sweeps = arrays.sweeps(steps.rows, steps.steps, steps.rate, base)
    step = 0
    for build in builds(spec, steps, precision, scheme, gpu.room()):
        kernel = compile_with_cell_heat(build, steps.grid, len(steps.materials.heated))
        launches = of_both_depths(build, steps)
        if build.pipeline is not None:
            second = launch.compile_kernel(correction.correction_build(build, gpu.block_memory()))
            kernel = replace(kernel, stage_table=0, after=(second, corrected(build, steps)))
        count = steps_a_launch(build, launches[0], steps.steps)
        while steps.steps - step >= count:
            T_new[...] = cupy.nan
            run = Sweeps(kernel, launches[step % 2], coefficients, ledger_struct(ledger))
            T, T_new = run.queue(count // build.spec.steps, T, T_new, sweeps.address(step))
            step += count
    gpu.synchronise()
    assert len(keep) == 3 + steps.materials.varies + 3 * arrays.mixed
    return CompositeResult(cupy.asnumpy(T), HeatSums(steps.layout, cupy.asnumpy(ledger.values)))


def of_both_depths(build: compilation.Build, steps: CompositeSteps) -> list[list[launch.Launch]]:
    """The launches of a sweep with the deepest blocks and with blocks of one plane, for kernels that defer cells."""
    depths = (build.deferred_planes, 1) if build.deferred_planes else (None, None)
    return [launch.launches(build, steps.grid, steps.periodic, planes=planes) for planes in depths]


def corrected(build: compilation.Build, steps: CompositeSteps) -> tuple[launch.Launch, ...]:
    """The launches of the correction after a sweep, without a limit on the size of the boxes."""
    faces = tuple(not wraps for wraps in steps.periodic for _ in range(2))
    found = correction.boxes(build, steps.materials, steps.periodic, faces, BLOCK_MEMORY, 1, most=np.inf)
    assert found is not None
    return found


def builds(
    spec: KernelSpec, steps: CompositeSteps, precision: str, scheme: Scheme, room: device.Room
) -> tuple[compilation.Build, ...]:
    materials = steps.materials
    heated = materials.first_heated < len(materials.types)
    mixed, contacts = bool(len(steps.mixed.places)), materials.weighted_surfaces.contacts
    several = not materials.uniform or materials.varies
    stages = steps.rate or (not steps.equal and bool(np.any(steps.rows.factors != 1.0)))
    laws = bool((steps.rows.conditions[:, :, FREE] == LAW).any())
    variant = compilation.Variant(True, several, materials.varies, heated, mixed, contacts, stages, steps.rate, laws)
    variant = replace(variant, cell_heat=len(materials.heated) > 0, lit=len(materials.heated.lit) > 0)
    return fitting.builds(spec, precision, scheme, steps.grid, steps.periodic, room, variant)


ON_CUDA = [
    *(pytest.param(spec, on_host, id=f"{spec.name}-host") for spec in COMPOSITE),
    *(pytest.param(spec, on_gpu, id=f"{spec.name}-gpu", marks=pytest.mark.gpu) for spec in COMPOSITE),
]
EXECUTIONS = [*(pytest.param(spec, on_cpu, id=spec.name) for spec in CPU), *ON_CUDA]
