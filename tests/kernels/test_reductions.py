"""The fused pass and the ladder of sums: executed on the host, on the CPU and on a GPU, against NumPy."""

from math import fsum, inf, nan
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from heatsim import device
from heatsim.device import Device
from heatsim.grid import Grid
from heatsim.kernels import compiled
from heatsim.kernels.emulation.machine import KernelError, compile_kernel
from heatsim.kernels.reductions import find, fused, ladder
from heatsim.kernels.reductions.fused import Sections
from heatsim.kernels.reductions.ladder import LADDER, Rung, Summing
from heatsim.kernels.reductions.statistics import STATISTICS, Partials, Statistics
from heatsim.solver.field.field import Field

PRECISIONS = ("float32", "float64")
# One value, less than a vector, than a block, a round more or less, a chunk more or less, and a few chunks.
ROUND = fused.THREADS * fused.LOADS * 4
CHUNK = ROUND * fused.ROUNDS
SIZES = (1, 2, 3, 255, 257, ROUND - 1, ROUND, ROUND + 1, CHUNK - 1, CHUNK, CHUNK + 5, 3 * CHUNK + 7)


def statistics(where: Device, values: Any, before: Any = None) -> Statistics:
    """Those of an array in one section."""
    (found,) = fused.statistics(where, [Sections(values, np.array([0, values.size]), before=before)])
    return found[0]


def random_values(count: int, precision: str, seed: int = 0) -> NDArray[Any]:
    return np.random.default_rng(seed).uniform(-100.0, 300.0, count).astype(precision)


def assert_describes(found: Statistics, values: NDArray[Any]) -> None:
    """Sums to within the rounding of float64, all else exactly."""
    exact = values.astype(np.float64)
    magnitude = fsum(np.abs(exact))
    tolerance = 200.0 * 2.0**-53 * magnitude
    assert abs(found.total - fsum(exact)) <= tolerance
    assert abs(found.absolute_total - magnitude) <= tolerance
    assert (found.lowest, found.highest, found.not_finite) == (exact.min(), exact.max(), 0)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_one_pass_tells_everything(where: Device, precision: str) -> None:
    for seed, count in enumerate(SIZES):
        values, before = random_values(count, precision, seed), random_values(count, precision, seed + 99)
        found = statistics(where, where.xp.asarray(values))
        assert_describes(found, values)
        assert found.largest_change == 0.0
        compared = statistics(where, where.xp.asarray(values), where.xp.asarray(before))
        assert compared.largest_change == np.abs(values - before).max()
        assert_describes(compared, values)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_what_is_not_finite_is_counted_wherever_it_is(where: Device, precision: str) -> None:
    """And spoils the sums, but not the extremes of what is a number."""
    values = random_values(CHUNK + 5, precision)
    for place, value in ((0, nan), (ROUND + 3, inf), (CHUNK - 1, -inf), (CHUNK + 4, nan)):
        spoilt = values.copy()
        spoilt[place] = value
        found = statistics(where, where.xp.asarray(spoilt), where.xp.asarray(values))
        assert found.not_finite == 1
        assert not np.isfinite(found.total)
        assert not np.isfinite(found.absolute_total)
        assert found.lowest == np.fmin.reduce(spoilt)
        assert found.highest == np.fmax.reduce(spoilt)
        assert found.largest_change == (0.0 if np.isnan(value) else inf)
    nothing = statistics(where, where.xp.asarray(np.full(ROUND + 3, nan, precision)))
    assert (nothing.lowest, nothing.highest, nothing.not_finite) == (inf, -inf, ROUND + 3)


def test_infinities_of_both_signs_do_not_cancel(where: Device) -> None:
    values = np.zeros(5000, np.float32)
    values[[7, 4321]] = inf, -inf
    found = statistics(where, where.xp.asarray(values))
    assert np.isnan(found.total)
    assert found.not_finite == 2


def test_float32_is_summed_in_float64(where: Device) -> None:
    """A large value, many that float32 would lose against it, and the large one taken off again."""
    values = np.full(CHUNK + 3, 2.0**-12, np.float32)
    values[0], values[-1] = 2.0**20, -(2.0**20)
    found = statistics(where, where.xp.asarray(values))
    assert found.total == (CHUNK + 1) * 2.0**-12


@pytest.mark.quick("host-float32")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_bits_depend_on_the_values_alone(where: Device, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not on the alignment, nor on a second field, nor, on a GPU, on how many multiprocessors there are."""
    values = random_values(2 * CHUNK + 11, precision)
    room = where.xp.empty(values.size + 1, dtype=precision)
    room[1:] = where.xp.asarray(values)
    aligned, shifted = where.xp.asarray(values), room[1:]
    expected = statistics(where, aligned)
    assert statistics(where, shifted) == expected
    again = statistics(where, shifted, aligned)
    assert (again.total, again.absolute_total, again.largest_change) == (expected.total, expected.absolute_total, 0.0)


@pytest.mark.each_value
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("rung", LADDER, ids=lambda rung: rung.name)
@pytest.mark.parametrize("where", ["host", pytest.param("gpu", marks=pytest.mark.gpu)], indirect=True)
def test_a_rung_adds_everything_up(rung: Rung, where: Device, precision: str) -> None:
    for count in (1, 2, 255, 256, 257, 511, 512, 513, 70_001):
        values = random_values(count, precision, count)
        summing = Summing.of(rung, where.xp, where.xp.asarray(values), where.multiprocessors())
        for room in summing.sums:
            room[...] = nan
        (total, *_) = where.to_host(summing.queue()).tolist()
        exact = values.astype(np.float64)
        roundings = rung.depth(count, where.multiprocessors())
        assert abs(total - fsum(exact)) <= roundings * np.finfo(precision).eps / 2.0 * fsum(np.abs(exact))


@pytest.mark.parametrize("rung", LADDER, ids=lambda rung: rung.name)
def test_a_sum_does_not_depend_on_who_runs_first(rung: Rung) -> None:
    options = [option for option in compiled.options(rung.macros("float32")) if option.startswith("-D")]
    kernel = compile_kernel(compiled.FOLDER / rung.source, options, "reduce")
    values = random_values(5000, "float32")
    blocks = rung.blocks(values.size, 1)
    sums = {}
    for order in ("forward", "reverse"):
        sums[order] = np.full(blocks, nan, np.float32)
        kernel.launch((blocks, 1, 1), (ladder.THREADS, 1, 1), values, sums[order], np.uint64(values.size), order=order)
    assert np.isfinite(sums["forward"]).all()
    np.testing.assert_array_equal(sums["forward"], sums["reverse"])


def test_the_fused_pass_does_not_depend_on_who_runs_first() -> None:
    macros = fused.macros("float32", compared=False, aligned=False)
    options = [option for option in compiled.options(macros) if option.startswith("-D")]
    look, fold = (compile_kernel(compiled.FOLDER / fused.SOURCE, options, name) for name in ("look", "fold"))
    values = random_values(CHUNK + 100, "float32")
    table = np.zeros(1, fused.SECTION)
    table["values"], table["count"] = values.ctypes.data, values.size
    numbers = np.uint32(2), np.uint32(1), np.uint32(0)
    results = []
    for order in ("forward", "reverse"):
        partial, result = np.zeros(2, STATISTICS), np.zeros(1, STATISTICS)
        look.launch((2, 1, 1), (fused.THREADS, 1, 1), table, *numbers, partial, order=order)
        fold.launch((1, 1, 1), (fused.WARP, 1, 1), table, numbers[0], partial, result, order=order)
        results.append(result.tobytes())
    assert results[0] == results[1]


def test_the_classic_last_warp_is_wrong_without_lock_step() -> None:
    """The listing that drops the last warp's barrier: the machine runs lanes one after the other, as a GPU may."""
    source = (compiled.FOLDER / "R5_unrolled_warp.cu").read_text(encoding="utf-8")
    start, end = source.index("    Real sum = local[tid]"), source.index("    // 4.")
    lines = "".join(f"    local[tid] += local[tid + {s}];\n" for s in (32, 16, 8, 4, 2, 1))
    values = np.ones(512, np.float32)
    found = np.zeros(1, np.float32)
    classic = source[:start] + lines + "    Real sum = local[tid];\n" + source[end:]
    kernel = _snippet(classic)
    kernel.launch((1, 1, 1), (256, 1, 1), values, found, np.uint64(512), order="reverse")
    assert found[0] != 512.0


def _snippet(text: str) -> Any:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "classic.cu"
        path.write_text(text, encoding="utf-8")
        return compile_kernel(path, ["-DREAL=float", "-DTHREADS=256"], "reduce")


def test_an_index_beyond_the_block_would_be_found() -> None:
    """What the seed of such a mistake looks like to the machine, so that the tests above mean something."""
    text = (compiled.FOLDER / "R3_sequential.cu").read_text(encoding="utf-8")
    kernel = _snippet(text.replace("tid < s", "tid <= THREADS - 1"))
    with pytest.raises(KernelError, match="index out of bounds"):
        kernel.launch((1, 1, 1), (256, 1, 1), np.ones(256, np.float32), np.zeros(1, np.float32), np.uint64(256))


def test_a_field_is_looked_at_once_for_each_of_its_states(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def counted(*arguments: Any) -> list[Partials]:
        looks.append(arguments)
        return fused.partials(*arguments)

    monkeypatch.setattr("heatsim.solver.field.field.partials", counted)
    field = Field(device.choose("cpu"), Grid((3, 2, 2), (1.0, 1.0, 1.0)), "float64", reference=300.0)
    field.load_deviations(np.arange(12.0).reshape(2, 2, 3) - 4.0)
    assert (field.total(), field.statistics().absolute_total) == (18.0, 38.0)
    assert (field.statistics().lowest, field.statistics().highest) == (-4.0, 7.0)
    assert len(looks) == 1
    field.load_temperatures([(0, np.full((2, 2, 3), 301.0))])
    assert field.total() == 12.0
    field.spare[...] = 2.0
    assert field.largest_change(field.spare) == 1.0
    field.deviation, field.spare = field.spare, field.deviation
    field.changed()
    assert field.total() == 24.0
    field.deviation[0, 0, 0] = nan
    field.changed()
    assert field.statistics().not_finite == 1


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_first_of_equal_cells_is_found_in_each_field(where: Device, precision: str) -> None:
    """In fields of one cell to a few blocks, in the first and last cell of a block, and in several threads."""
    cases = [
        (1, (0,)),
        (257, (256,)),
        (find.CHUNK, (find.CHUNK - 1,)),
        (find.CHUNK + 3, (find.CHUNK, find.CHUNK + 2)),
        (2 * find.CHUNK + 1, (2 * find.CHUNK,)),
        (2 * find.CHUNK + 1, (300, 45, 44 + find.CHUNK)),
        (1000, (999, 3, 700)),
    ]
    fields = [random_values(count, precision, seed) for seed, (count, _) in enumerate(cases)]
    lowest = [-200.0 - seed for seed in range(len(cases))]
    for field, value, (_, cells) in zip(fields, lowest, cases, strict=True):
        field[list(cells)] = value
    found = find.first_of_each(where, [where.xp.asarray(field) for field in fields], lowest)
    assert found == [min(cells) for _, cells in cases]
