"""The primers: every kernel, on the host machine and on a GPU, gives NumPy's bits; published listings fail."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from covering import mostly_slow
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.kernels.emulation.machine import KernelError, Order, compile_kernel, function
from heatsim.kernels.emulation.verdict import fault
from heatsim.kernels.primers import cpu, primers
from heatsim.kernels.primers.primers import FOLDER, PRIMERS, RADIUS, Primer, PrimerKernel, conduct, moving_sum, smooth

# Less than a vector, than a block; whole and broken vectors, several blocks; an image of one row or column.
SHAPES: dict[int, tuple[tuple[int, ...], ...]] = {
    1: ((1,), (2,), (5,), (255,), (256,), (1024,), (1027,), (2500,)),
    2: ((1, 1), (1, 9), (9, 1), (7, 130), (70, 128), (33, 131), (300, 4)),
}
KERNELS = [pytest.param(primer, kernel, id=kernel.name) for primer in PRIMERS for kernel in primer.kernels]


def random(shape: tuple[int, ...], precision: str) -> NDArray[Any]:
    return np.random.default_rng(sum(shape)).uniform(-1.0, 3.0, shape).astype(precision)


@pytest.mark.each_value
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(("primer", "kernel"), KERNELS)
def test_every_kernel_gives_the_bits_of_numpy(
    where_cuda: Device, primer: Primer, kernel: PrimerKernel, precision: str
) -> None:
    for shape in SHAPES[primer.dimensions]:
        values = random(shape, precision)
        source, target = where_cuda.xp.asarray(values), where_cuda.xp.asarray(np.full_like(values, np.nan))
        _, launch = primer.launcher(kernel, source, target)
        launch()
        assert where_cuda.to_host(target).tobytes() == primer.oracle(values).tobytes(), shape
        assert where_cuda.to_host(source).tobytes() == values.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("precision", mostly_slow(["float32", "float64"], "float64"))
def test_the_cpu_gives_the_same_bits(precision: str) -> None:
    line, image = random((2500,), precision), random((33, 131), precision)
    sums, smoothed = np.empty_like(line), np.empty_like(image)
    cpu.moving_sum(line, sums, RADIUS)
    cpu.smooth(image, smoothed)
    between, after = np.empty_like(line), np.empty_like(line)
    cpu.conduct(line, between, after)
    assert after.tobytes() == conduct(line).tobytes()
    assert sums.tobytes() == moving_sum(line).tobytes()
    assert smoothed.tobytes() == smooth(image).tobytes()


def test_the_oracles_on_numbers_known_by_hand() -> None:
    np.testing.assert_array_equal(moving_sum(np.arange(10.0)), [6, 10, 15, 21, 28, 35, 42, 48, 53, 57])
    np.testing.assert_array_equal(conduct(np.array([16.0, 0, 0, 0, 0])), [10, 5, 1, 0, 0])
    image = np.zeros((4, 5))
    image[0, 0], image[2, 3] = 9.0, 18.0
    expected = [[4, 2, 0, 0, 0], [2, 1, 2, 2, 2], [0, 0, 2, 2, 2], [0, 0, 2, 2, 2]]
    np.testing.assert_array_equal(smooth(image), expected)


def line_kernel(text: str, path: Path) -> Any:
    path.write_text(text, encoding="utf-8")
    return compile_kernel(path, ["-DREAL=float", "-DTHREADS=256", f"-DRADIUS={RADIUS}"], "moving_sum")


def test_a_tile_without_its_barrier_is_read_before_it_is_full(tmp_path: Path) -> None:
    """As in published listings; on the host machine, threads that take turns in reverse find other values."""
    text = (FOLDER / "L2_tiled.cu").read_text(encoding="utf-8")
    assert text.count("__syncthreads();") == 1
    kernel = line_kernel(text.replace("__syncthreads();", ""), tmp_path / "racing.cu")
    values = random((1024,), "float32")
    sums = np.zeros_like(values)
    kernel.launch((4, 1, 1), (256, 1, 1), values, sums, np.uint64(values.size))
    assert sums.tobytes() != moving_sum(values).tobytes()


@pytest.mark.parametrize("place", [0, 1])
def test_two_steps_need_both_barriers(place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = (FOLDER / "T2_two_steps.cu").read_text(encoding="utf-8").split("__syncthreads();")
    assert len(parts) == 3
    parts[place] += parts.pop(place + 1)
    (tmp_path / "T2_two_steps.cu").write_text("__syncthreads();".join(parts), encoding="utf-8")
    monkeypatch.setattr(primers, "FOLDER", tmp_path)
    primer, values = PRIMERS[2], random((1024,), "float32")

    def run(order: Order) -> NDArray[Any]:
        target = np.full_like(values, np.nan)
        primer.launcher(primer.kernels[1], values, target, partial(function, order=order))[1]()
        return target

    assert fault(run, primer.oracle(values))


def test_a_halo_without_checks_reads_outside_the_array(tmp_path: Path) -> None:
    """As in published listings: in[gindex - RADIUS] in the first block."""
    text = (FOLDER / "L2_tiled.cu").read_text(encoding="utf-8")
    checked = "values[before < 0 ? 0 : before]"
    assert checked in text
    kernel = line_kernel(text.replace(checked, "values[before]"), tmp_path / "unchecked.cu")
    guarded = np.full(1024 + 512, np.nan, np.float32)
    guarded[256:-256] = random((1024,), "float32")
    values, sums = guarded[256:-256], np.zeros(1024, np.float32)
    try:
        kernel.launch((4, 1, 1), (256, 1, 1), values, sums, np.uint64(values.size))
    except KernelError:
        return
    assert np.isnan(sums[:RADIUS]).all()
