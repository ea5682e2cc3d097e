"""The machine that runs CUDA C on the host: it must compute what a GPU would, and find what a GPU would trip over."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from heatsim.kernels.emulation.machine import CompilationError, HostKernel, KernelError, Order, compile_kernel, guarded

SNIPPETS = Path(__file__).parents[1] / "cuda_host"
ORDERS: tuple[Order, ...] = ("forward", "reverse")


def snippet(file: str, name: str, *options: str) -> HostKernel:
    return compile_kernel(SNIPPETS / file, options, name)


def reversal(order: Order, *options: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """What the kernel made of a random array, and the right result."""
    values = np.random.default_rng(1).random(3 * 256, np.float32)
    out = np.zeros_like(values)
    snippet("reversal.cu", "reverse", *options).launch((3, 1, 1), (256, 1, 1), values, out, order=order)
    return out, values.reshape(3, 256)[:, ::-1].ravel()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("switch", [(), ("-DCUDA_HOST_UCONTEXT",)], ids=["assembly", "ucontext"])
def test_threads_see_each_others_values_behind_a_barrier(order: Order, switch: tuple[str, ...]) -> None:
    out, expected = reversal(order, "-DBARRIER=__syncthreads()", *switch)
    np.testing.assert_array_equal(out, expected)


def test_a_missing_barrier_gives_poison_and_depends_on_the_order() -> None:
    forward, expected = reversal("forward", "-DBARRIER=")
    backward, _ = reversal("reverse", "-DBARRIER=")
    # The half that runs first finds unwritten memory; the half that runs last finds everything.
    early = np.arange(expected.size) % 256 < 128
    assert np.isnan(forward[early]).all()
    assert np.isnan(backward[~early]).all()
    np.testing.assert_array_equal(forward[~early], expected[~early])
    np.testing.assert_array_equal(backward[early], expected[early])


@pytest.mark.parametrize("order", ORDERS)
def test_a_barrier_of_the_warp_is_too_weak_for_a_block(order: Order) -> None:
    out, expected = reversal(order, "-DBARRIER=__syncwarp()")
    assert np.isnan(out[out != expected]).all()
    assert (out != expected).any()


def test_dynamic_shared_memory_has_the_size_of_the_launch() -> None:
    kernel = snippet("reversal.cu", "reverse_dynamic", "-DBARRIER=__syncthreads()")
    values = np.arange(100, dtype=np.float32)
    out = np.zeros_like(values)
    kernel.launch((1, 1, 1), (100, 1, 1), values, out, np.int32(0), shared_bytes=400)
    np.testing.assert_array_equal(out, values[::-1])
    with pytest.raises(KernelError, match="written behind the 400 bytes of dynamic shared memory"):
        kernel.launch((1, 1, 1), (100, 1, 1), values, out, np.int32(1), shared_bytes=400)


def test_shared_memory_is_poisoned_before_every_block() -> None:
    out = np.zeros(3 * 128, np.float32)
    snippet("language.cu", "uninitialised").launch((3, 1, 1), (32, 1, 1), out)
    assert np.isnan(out).all()


def test_indices_count_in_three_dimensions_and_structs_pass_by_value() -> None:
    kernel = snippet("language.cu", "indices")
    grid, block = (2, 3, 2), (5, 2, 3)
    nx, ny, nz = (blocks * threads for blocks, threads in zip(grid, block, strict=True))
    box = np.array((nx, ny, 7.0), np.dtype([("nx", np.int32), ("ny", np.int32), ("weight", np.float64)], align=True))
    out = guarded(np.full((nz, ny, nx), -1, np.int32))
    kernel.launch(grid, block, out.array, box)
    z, y, x = np.indices((nz, ny, nx))
    np.testing.assert_array_equal(out.array, x + 100 * y + 10000 * z + 7)
    out.assert_guards_untouched()


def test_fma_rounds_once_and_nothing_else_is_contracted() -> None:
    def residue(a: Any, b: Any) -> list[Any]:
        return [a, b, -(a * b)]  # a·b minus its own rounding: what one rounding keeps and two lose

    values = np.array([*residue(np.float32(1 + 2**-12), np.float32(1 + 2**-13)), *residue(1 + 2.0**-30, 1 + 2.0**-31)])
    out = np.zeros(6)
    snippet("language.cu", "round_once").launch((1, 1, 1), (1, 1, 1), values, out)
    a, b, c, p, q, r = (Fraction(float(value)) for value in values)
    assert [Fraction(value) for value in out] == [a * b + c] * 3 + [0, p * q + r, 0]
    assert a * b + c != 0
    assert p * q + r != 0


def test_bits_and_integers() -> None:
    values = np.array([-1.5], np.float32)
    out = np.zeros(4, np.uint32)
    snippet("language.cu", "bits").launch((1, 1, 1), (1, 1, 1), values, out)
    bits = int(values.view(np.uint32)[0])
    assert out.tolist() == [bits, bits + 1, 0x7FFFFFFF, 6]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("width", [32, 16, 8])
def test_shuffles_move_values_between_lanes(order: Order, width: int) -> None:
    values = np.random.default_rng(2).random(64)
    out = np.zeros((64, 4))
    snippet("warps.cu", "shuffle").launch((1, 1, 1), (64, 1, 1), values, out, np.int32(width), order=order)

    thread = np.arange(64)
    start, own = thread - thread % width, thread % width
    # A source beyond the lane's own segment leaves the lane its own value; a lower segment may be read by xor only.
    up = np.where(own >= 2, thread - 2, thread)
    down = np.where(own + 2 < width, thread + 2, thread)
    xor = np.where((own ^ 5) < width, start + (own ^ 5), thread)
    expected = np.stack([values[start + 3], values[up], values[down], values[xor]], axis=1)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("order", ORDERS)
def test_votes_of_a_full_and_of_a_partial_warp(order: Order) -> None:
    votes = np.zeros(40, np.int32)
    votes[[1, 31]] = 1
    votes[32:] = 1
    out = np.zeros((40, 3), np.uint32)
    snippet("warps.cu", "vote").launch((1, 1, 1), (40, 1, 1), votes, out, order=order)
    assert (out[:32] == [1 << 1 | 1 << 31, 1, 0]).all()
    assert (out[32:] == [0xFF, 1, 1]).all()


@pytest.mark.parametrize("order", ORDERS)
def test_a_block_sums_by_shuffles_and_shared_memory(order: Order) -> None:
    values = np.arange(4 * 256, dtype=np.float32)  # sums below 2^24: exact in any order
    out = np.zeros(4, np.float32)
    snippet("warps.cu", "sum").launch((4, 1, 1), (256, 1, 1), values, out, order=order)
    np.testing.assert_array_equal(out, values.reshape(4, 256).sum(axis=1))


def test_threads_at_different_barriers_are_reported() -> None:
    out = np.zeros(32, np.int32)
    expected = (
        r"block \(0, 0, 0\): threads wait for each other for ever: "
        r"16 at __syncthreads in .*faults\.cu:5 \(the first is thread \(0, 0, 0\)\); "
        r"16 at __syncthreads in .*faults\.cu:7 \(the first is thread \(16, 0, 0\)\);"
    )
    with pytest.raises(KernelError, match=expected):
        snippet("faults.cu", "two_barriers").launch((1, 1, 1), (32, 1, 1), out)


def test_a_barrier_that_half_a_warp_reaches_is_reported() -> None:
    out = np.zeros(32, np.int32)
    with pytest.raises(KernelError, match=r"16 at __syncthreads .* 16 at __shfl_sync"):
        snippet("faults.cu", "barrier_against_shuffle").launch((1, 1, 1), (32, 1, 1), out)


@pytest.mark.parametrize("order", ORDERS)
def test_threads_that_have_exited_are_not_waited_for(order: Order) -> None:
    out = np.zeros(64, np.int32)
    snippet("faults.cu", "early_exit").launch((1, 1, 1), (64, 1, 1), out, order=order)
    assert out.tolist() == [1] * 16 + [0] * 48


def test_a_shuffle_must_name_its_own_lane() -> None:
    out = np.zeros(32, np.float32)
    with pytest.raises(KernelError, match=r"thread \(16, 0, 0\): .*mask 0x0000ffff does not name lane 16"):
        snippet("warps.cu", "leave_own_lane_out").launch((1, 1, 1), (32, 1, 1), out)


def test_an_index_beyond_a_row_of_shared_memory_is_reported() -> None:
    kernel = snippet("faults.cu", "beyond_the_row")
    out = np.zeros(8, np.int32)
    kernel.launch((1, 1, 1), (8, 1, 1), out, np.int32(7))
    assert out.tolist() == [1] * 8
    with pytest.raises(KernelError, match=r"index out of bounds at .*faults\.cu:31"):
        kernel.launch((1, 1, 1), (8, 1, 1), out, np.int32(8))


def test_a_misaligned_vector_is_reported() -> None:
    kernel = snippet("faults.cu", "misaligned")
    out = np.zeros(16, np.float32)
    aligned = -out.ctypes.data // 4 % 4
    kernel.launch((1, 1, 1), (1, 1, 1), out, np.int32(aligned))
    assert out[aligned : aligned + 4].tolist() == [1, 2, 3, 4]
    with pytest.raises(KernelError, match="misaligned address"):
        kernel.launch((1, 1, 1), (1, 1, 1), out, np.int32(aligned + 1))


def test_signed_overflow_is_reported() -> None:
    with pytest.raises(KernelError, match="signed overflow"):
        snippet("faults.cu", "overflow").launch((1, 1, 1), (1, 1, 1), np.zeros(1, np.int32), np.int32(1 << 16))


@pytest.mark.parametrize(("index", "side"), [(-1, "before"), (16, "behind")])
def test_guards_find_a_write_outside_the_array(index: int, side: str) -> None:
    out = guarded(np.zeros(16, np.float32))
    snippet("faults.cu", "outside").launch((1, 1, 1), (1, 1, 1), out.array, np.int32(index))
    with pytest.raises(KernelError, match=f"bytes written {side} the array"):
        out.assert_guards_untouched()


@pytest.mark.parametrize(
    ("grid", "block"), [((1, 1, 1), (1025, 1, 1)), ((1, 1, 65536), (1, 1, 1)), ((0, 1, 1), (1, 1, 1))]
)
def test_a_launch_beyond_the_hardware_is_refused(grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
    with pytest.raises(KernelError, match="no such launch"):
        snippet("faults.cu", "outside").launch(grid, block, np.zeros(1, np.float32), np.int32(0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(4, np.float32),), "takes 2 arguments, not 1"),
        ((np.zeros(4), np.int32(0)), "a pointer to items of 4 bytes is expected, not 8"),
        ((np.zeros(4, np.float32), 0), "a value of 4 bytes is expected, not 8"),
        ((np.zeros(8, np.float32)[::2], np.int32(0)), "not contiguous"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        snippet("faults.cu", "outside").launch((1, 1, 1), (1, 1, 1), *arguments)


def test_code_that_does_not_compile_shows_the_compilers_message(tmp_path: Path) -> None:
    source = tmp_path / "broken.cu"
    source.write_text('extern "C" __global__ void advance(float* out) { out[0] = missing; }')
    with pytest.raises(CompilationError, match=r"broken\.cu:1:.*missing"):
        compile_kernel(source)
