"""Members of an ensemble, stepped by the same launches, have the bits that each has alone.

On the host in the part of a GPU, and on a GPU; the field of each lies between guard zones.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from covering import SLOW
from cuda_host import gpu
from executor import CUDA, GUARD, VARIANTS, Result, Steps, sweeps_on_cuda
from numpy.typing import NDArray
from test_kernels import random_steps

from heatsim import device
from heatsim.device import Device
from heatsim.grid import Grid
from heatsim.kernels import cuda_graphs, fitting, launch, structs
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.ensemble.launches import EnsembleLaunches, MemberSteps, padded
from heatsim.kernels.launch_shapes import Task, in_three_steps
from heatsim.physics.matter.coefficients import Scheme

# The first rung, and those that ensembles take; the others are slow.
EVERY_KERNEL = pytest.mark.parametrize(
    "spec",
    [
        pytest.param(spec, marks=pytest.mark.slow if spec in CUDA[1:5] else (), id=spec.name)
        for spec in CUDA
        if not spec.resident
    ],
)
FEW_VARIANTS: tuple[tuple[str, Scheme], ...] = (("float32", "increments"), ("float64", "seven_term"))
HOST = gpu.host_device().name
# Steps of the members in one call and the next: some have none left, sweeps and what remains of them differ.
COUNTS = ((9, 4, 0, 6, 1), (3, 13, 8, 0, 5))


@pytest.fixture(params=["host", pytest.param("gpu", marks=pytest.mark.gpu)])
def some_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Device:
    """A GPU, or the host in its part, with recorded runs short enough for few steps."""
    monkeypatch.setattr(cuda_graphs, "RUNS", (4, 2))
    if request.param == "gpu":
        return device.choose("cuda")
    monkeypatch.setattr(launch, "compile_kernel", gpu.compile_on_host)
    return gpu.host_device()


class Member:
    """A field and its ledger on a device, which some steps are done of at a time."""

    def __init__(self, where: Device, steps: Steps, precision: str) -> None:
        self.device, self.steps, self.precision = where, steps, precision
        self.zones: list[Any] = []
        self.T, self.T_new = (self.guarded(steps.T.astype(precision)) for _ in range(2))
        self.ledger = [self.guarded(sums) for sums in steps.empty_ledger()]
        self.done = 0

    def guarded(self, values: NDArray[Any]) -> Any:
        memory = self.device.xp.empty(values.nbytes + 2 * GUARD, dtype=np.uint8)
        memory[...] = 0xFF
        array = memory[GUARD : GUARD + values.nbytes].view(values.dtype).reshape(values.shape)
        array[...] = self.device.xp.asarray(values)
        self.zones.append(memory)
        return array

    def member_steps(self, steps: int) -> MemberSteps:
        pointers = np.array(([sums.data.ptr if sums.size else 0 for sums in self.ledger],), structs.LEDGER)
        coefficients = np.array((self.steps.c,), structs.coefficients_dtype(self.precision))
        sweeps = self.steps.sweeps(self.precision)[self.done : self.done + steps]
        self.done += steps
        return MemberSteps(self.T, self.T_new, coefficients, pointers.reshape(()), sweeps, steps)

    def result(self) -> Result:
        for memory in map(self.device.to_host, self.zones):
            assert (memory[:GUARD] == 0xFF).all(), "written before an array"
            assert (memory[-GUARD:] == 0xFF).all(), "written behind an array"
        host = [np.asarray(self.device.to_host(array)) for array in (self.T, *self.ledger)]
        return Result(host[0], tuple(host[1:]))


def stacked(
    where: Device,
    spec: KernelSpec,
    cases: Sequence[Steps],
    variant: tuple[str, Scheme],
    counts_of_calls: Sequence[Sequence[int]] = COUNTS,
    kind: type[Member] = Member,
) -> list[Result]:
    """The fields of members after several calls, each with a number of steps for every member."""
    precision, scheme = variant
    members = [kind(where, case, precision) for case in cases]
    grid, periodic = cases[0].grid, cases[0].periodic
    needs = cases[0].variant
    builds = fitting.builds(spec, precision, scheme, grid, periodic, where.room(), needs, members=True)
    launches = EnsembleLaunches(where, builds, grid, periodic, None, len(members), True)
    for counts in counts_of_calls:
        buffers = launches.advance([member.member_steps(count) for member, count in zip(members, counts, strict=True)])
        for member, (T, T_new) in zip(members, buffers, strict=True):
            member.T, member.T_new = T, T_new
    return [member.result() for member in members]


def different(cells: tuple[int, int, int], periodic: tuple[bool, bool, bool], seed: int) -> list[Steps]:
    """Members with fields, coefficients, faces and recorded faces of their own, and as many steps as they take."""
    lengths = np.sum(COUNTS, axis=0)
    return [random_steps(cells, periodic, seed + i, steps=int(steps)) for i, steps in enumerate(lengths)]


def alone(where: Device, spec: KernelSpec, case: Steps, variant: tuple[str, Scheme]) -> Result:
    """The same steps in single launches."""
    precision, scheme = variant
    member = Member(where, case, precision)
    own = member.member_steps(len(case.f))
    table = where.xp.asarray(own.sweeps.view(np.uint8))
    for first, _, build, launches in sweeps_on_cuda(spec, case, precision, scheme, where.room()):
        address = int(table.data.ptr) + first * own.sweeps.itemsize
        sweeps = cuda_graphs.Sweeps(launch.compile_kernel(build), launches, own.coefficients, own.ledger)
        member.T, member.T_new = sweeps.queue(1, member.T, member.T_new, address)
    return member.result()


@EVERY_KERNEL
def test_members_have_the_bits_that_they_have_alone(some_gpu: Device, spec: KernelSpec) -> None:
    """In both precisions and with every scheme, on grids of whole patches and on one that few kernels suit.

    On the host the schemes that sum differently, each on one grid in turn: compiling takes time.
    """
    all_variants = SLOW or some_gpu.name != HOST
    grids = (((12, 8, 6), (False, False, True)), ((5, 3, 4), (True, False, False)))
    for number, variant in enumerate(VARIANTS if all_variants else FEW_VARIANTS):
        for cells, periodic in grids if all_variants else (grids[number % 2],):
            cases = different(cells, periodic, seed=20)
            for case, result in zip(cases, stacked(some_gpu, spec, cases, variant), strict=True):
                result.assert_same_bits(alone(some_gpu, spec, case, variant))


@pytest.mark.quick("host-spec1", "host-spec2")
@pytest.mark.parametrize("spec", [spec for spec in CUDA if spec.name in ("naive", "streamed", "temporal", "boxed")])
def test_members_take_stages_of_different_lengths(some_gpu: Device, spec: KernelSpec) -> None:
    rng = np.random.default_rng(90)
    cases = []
    for case in different((12, 8, 6), (False, False, True), seed=90):
        others = rng.integers(100, 900, (len(case.f), 3)) * 2.0**-12
        stages = np.hstack((1.0 - 2.0 * others.sum(axis=1, keepdims=True), others)).astype(np.float32)
        cases.append(replace(case, stages=stages))
    variant = FEW_VARIANTS[1]
    for case, result in zip(cases, stacked(some_gpu, spec, cases, variant), strict=True):
        result.assert_same_bits(alone(some_gpu, spec, case, variant))


@pytest.mark.quick("host-streamed")
@EVERY_KERNEL
def test_members_of_several_tiles_on_few_multiprocessors(some_gpu: Device, spec: KernelSpec) -> None:
    """Blocks that march through tiles of one member and then of another."""
    cases = different((140, 36, 11), (False, False, False), seed=30)[:3]
    variant: tuple[str, Scheme] = ("float32", "increments")
    found = stacked(some_gpu, spec, cases, variant, [counts[:3] for counts in COUNTS])
    for case, result in zip(cases, found, strict=True):
        result.assert_same_bits(alone(some_gpu, spec, case, variant))


def test_sweeps_of_three_steps_give_the_same_bits(some_gpu: Device) -> None:
    """On two tiles of 36 rows; the other steps that a call has left are done one by one."""
    spec = in_three_steps(next(spec for spec in CUDA if spec.name == "temporal"))
    variant: tuple[str, Scheme] = ("float64", "seven_term")
    for periodic in ((False, False, False), (False, True, True)):
        cases = different((12, 48 if periodic[1] else 64, 6), periodic, seed=70)
        assert Task(some_gpu, cases[0].grid, periodic, *variant, members=len(cases)).suits(spec)
        for case, result in zip(cases, stacked(some_gpu, spec, cases, variant), strict=True):
            result.assert_same_bits(alone(some_gpu, CUDA[0], case, variant))


@pytest.mark.slow
def test_sweeps_of_three_steps_in_the_highest_tiles_keep_the_heat_through_each_row_of_a_face(some_gpu: Device) -> None:
    """A tile of 8 patches in x has 144 rows, and as many beside either of its faces in x."""
    spec = in_three_steps(next(spec for spec in CUDA if spec.name == "temporal"))
    variant: tuple[str, Scheme] = ("float64", "increments")
    cases = [replace(case, recorded=(True,) * 6) for case in different((8, 144, 6), (False, False, False), seed=80)[:2]]
    assert Task(some_gpu, cases[0].grid, cases[0].periodic, *variant, members=len(cases)).suits(spec)
    found = stacked(some_gpu, spec, cases, variant, [counts[:2] for counts in COUNTS])
    for case, result in zip(cases, found, strict=True):
        result.assert_same_bits(alone(some_gpu, CUDA[0], case, variant))


@pytest.mark.quick("temporal-host")
@pytest.mark.parametrize("some_gpu", ["host"], indirect=True)
@EVERY_KERNEL
def test_more_members_than_the_hardware_has_blocks(
    some_gpu: Device, spec: KernelSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Along z members are shared among launches, and a member that has more layers than one launch as well."""
    for cells in ((8, 8, 5), (8, 8, 40)):
        cases = different(cells, (False, True, False), seed=40)
        expected = [alone(some_gpu, spec, case, ("float32", "increments")) for case in cases]
        with monkeypatch.context() as patch:
            patch.setattr(launch, "LARGEST_GRID_YZ", 3)
            found = stacked(some_gpu, spec, cases, ("float32", "increments"))
        for result, its in zip(found, expected, strict=True):
            result.assert_same_bits(its)


@pytest.mark.quick("host-spec0", "host-spec2")
@pytest.mark.parametrize("spec", [spec for spec in CUDA if spec.name in ("streamed", "temporal", "boxed")])
def test_steps_that_are_alike_are_told_once(some_gpu: Device, spec: KernelSpec) -> None:
    """Members with constant faces beside one whose faces vary."""
    variant = FEW_VARIANTS[1]
    cases = different((12, 8, 6), (False, False, True), seed=60)
    constant = [
        replace(case, f=np.repeat(case.f[:1], len(case.f), 0), g=np.repeat(case.g[:1], len(case.g), 0))
        for case in cases
    ]
    cases = [*constant[:-1], cases[-1]]

    class Told(Member):
        def member_steps(self, steps: int) -> MemberSteps:
            own = super().member_steps(steps)
            alike = len(self.steps.f) > 1 and bool((self.steps.f == self.steps.f[0]).all())
            return replace(own, sweeps=self.steps.sweeps(self.precision)[:1]) if alike else own

    for case, result in zip(cases, stacked(some_gpu, spec, cases, variant, kind=Told), strict=True):
        result.assert_same_bits(alone(some_gpu, spec, case, variant))


@pytest.mark.parametrize("some_gpu", ["host"], indirect=True)
def test_recorded_sweeps_are_repeated_for_other_members_and_steps(
    some_gpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu.HostStream, "graphs", [])
    spec = next(spec for spec in CUDA if spec.name == "streamed")
    cases = different((8, 4, 5), (False, False, False), seed=50)
    turns = (*((2, 2, 2, 2, 2),) * 3, (4, 2, 1, 0, 0))
    variant = FEW_VARIANTS[0]
    recorded = stacked(some_gpu, spec, cases, variant, turns)
    graphs = gpu.HostStream.graphs
    assert sum(graph.launches for graph in graphs) > len(graphs) > 0
    monkeypatch.setattr(cuda_graphs, "LARGEST_GRID", 0)
    for mine, single in zip(recorded, stacked(some_gpu, spec, cases, variant, turns), strict=True):
        mine.assert_same_bits(single)


@pytest.mark.parametrize("most", [1, 7, 16, 100, 1000])
def test_launches_are_made_for_few_numbers_of_members_and_few_too_many(most: int) -> None:
    numbers = [padded(members, most) for members in range(1, most + 1)]
    for members, number in enumerate(numbers, 1):
        assert members <= number <= min(most, members + members / 8)
    assert len(set(numbers)) <= 16 + 8 * max(most.bit_length() - 4, 0)


@pytest.mark.gpu
@EVERY_KERNEL
def test_members_beyond_31_bits_in_all(spec: KernelSpec) -> None:
    """Nine members of 640³ cells: the last has the bits of the first, whose like it is.

    Those between them share two buffers, in which they all write the same.
    """
    import cupy

    n, members = 640, 9
    assert members * n**3 > 2**31
    cupy.get_default_memory_pool().free_all_blocks()
    free = cupy.cuda.runtime.memGetInfo()[0]
    if free < 4.5 * 7 * n**3:
        pytest.skip(f"needs {4 * 7 * n**3 / 2**30:.1f} GiB of GPU memory, {free / 2**30:.1f} are free")
    where, case = device.choose("cuda"), random_steps((1, 1, 1), (True, False, False), seed=10, steps=spec.steps)
    grid = Grid((n, n, n), (1.0, 1.0, 1.0))
    builds = fitting.builds(spec, "float32", "seven_term", grid, case.periodic, where.room(), members=True)
    launches = EnsembleLaunches(where, builds, grid, case.periodic, None, members, False)
    coefficients = np.array((case.c,), structs.coefficients_dtype("float32"))
    first = cupy.random.default_rng(11).random((n, n, n), dtype=cupy.float32)
    zeros, last = cupy.zeros_like(first), first.copy()
    new = {id(T): cupy.full_like(T, cupy.nan) for T in (first, zeros, last)}
    no_ledger = np.zeros((), structs.LEDGER)
    sweeps = case.sweeps("float32")
    turns = [
        MemberSteps(T, new[id(T)], coefficients, no_ledger, sweeps, spec.steps)
        for T in (first, *(zeros for _ in range(members - 2)), last)
    ]
    buffers = launches.advance(turns)
    assert bool((buffers[0][0] == buffers[-1][0]).all())
    assert not bool((buffers[0][0] == buffers[1][0]).all())
    alone_T = cupy.full_like(first, cupy.nan)
    table = cupy.asarray(sweeps.view(np.uint8))
    build = fitting.builds(spec, "float32", "seven_term", grid, case.periodic, where.room())[0]
    launches = launch.launches(build, grid, case.periodic)
    launch.compile_kernel(build)(launches, first, alone_T, coefficients, table.data.ptr, no_ledger)
    assert bool((alone_T == buffers[0][0]).all())
