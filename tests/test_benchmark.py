"""`heatsim bench`: its output for right kernels and for a wrong one, on tiny grids; times are not asserted."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_host.gpu import HostStream, compile_on_host, function_on_host, host_device
from numpy.typing import NDArray

from heatsim import benchmark as benchmarks
from heatsim import device
from heatsim.benchmark import Measurement, benchmark, benchmark_primers, benchmark_reductions, check, stopwatch
from heatsim.benchmark.stopwatch import KernelTiming, TimedWork
from heatsim.cli import main
from heatsim.errors import CapacityError, DeviceError, InputError
from heatsim.kernels import autotune, compiled, cuda_graphs, launch
from heatsim.kernels.catalog import KERNELS
from heatsim.kernels.cpu.oracle import CPU_KERNELS
from heatsim.kernels.ensemble import launches
from heatsim.kernels.launch_shapes import Shape, Task, candidates
from heatsim.kernels.primers import primers
from heatsim.kernels.primers.primers import FOLDER, PRIMERS, Primer
from heatsim.kernels.reductions import fused
from heatsim.kernels.reductions.ladder import LADDER, Rung

CELLS = (6, 5, 4)
CPU = tuple(spec.name for spec in KERNELS if spec.backend == "cpu")
STAGES = ["generate", "host_to_device", "kernel", "device_to_host", "total"]
KEYS = {"device", "precision", "cells", "copy_GBps", "ceiling_GCells", "kernels"}
KERNEL_KEYS = {"name", "GCells", "fraction", "spread", "registers", "spills"}


@pytest.fixture(autouse=True)
def short_repeats(monkeypatch: pytest.MonkeyPatch, one_thread: None) -> None:
    monkeypatch.setattr(stopwatch, "_LONG_ENOUGH", {"cuda": 1e-4, "cpu": 1e-4})


def one(**options: Any) -> Measurement:
    """A benchmark of float32 on tiny grids of a CPU, with other settings on request."""
    settings: dict[str, Any] = {"cells": CELLS, "precisions": ("float32",), "device": "cpu", "repeats": 5} | options
    (measurement,) = benchmark(**settings)
    return measurement


def assert_consistent(found: Measurement) -> None:
    """Check that the numbers of a measurement agree with each other."""
    value = np.dtype(found.precision).itemsize
    assert isclose(found.ceiling_GCells, found.copy_GBps / (2 * value))
    assert found.copy_GBps > 0.0
    assert found.copy_spread >= 0.0
    speeds = {result.name: result.GCells for result in found.kernels}
    for result in found.kernels:
        if result.error:
            assert result.GCells is None
            continue
        assert result.GCells is not None
        assert result.GCells > 0.0
        assert result.spread is not None
        assert result.spread >= 0.0
        assert isclose(result.fraction or 0.0, result.GCells / found.ceiling_GCells)
        assert isclose(result.effective_GBps or 0.0, 2 * value * result.GCells)
        assert isclose(result.GFLOPs or 0.0, 13 * result.GCells)
        naive = speeds.get("naive")
        assert result.over_naive == (result.GCells / naive if naive else None)
        assert result.over_cpu == (result.GCells / found.cpu_GCells if found.cpu_GCells else None)


def test_the_command_prints_a_table_and_writes_numbers_and_a_plot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers, plot = tmp_path / "bench.json", tmp_path / "roofline.png"
    words = ["bench", "--cells", "6", "5", "4", "--device", "cpu", "--repeats", "5", "--energy"]
    assert main([*words, "--json", str(numbers), "--plot", str(plot)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count(device.choose("cpu").name[:20]) == 2
    for text in (*CPU, "float32", "float64", "6 × 5 × 4 cells", "device to host"):
        assert text in out
    assert plot.read_bytes().startswith(b"\x89PNG")

    written = json.loads(numbers.read_text(encoding="utf-8"))["measurements"]
    assert [found["precision"] for found in written] == ["float32", "float64"]
    for found in written:
        assert found.keys() >= KEYS
        assert found["cells"] == [6, 5, 4]
        assert found["device"] == device.choose("cpu").name
        assert [kernel["name"] for kernel in found["kernels"]] == list(CPU)
        for kernel in found["kernels"]:
            assert kernel.keys() >= KERNEL_KEYS
            assert kernel["error"] is None
            assert kernel["registers"] is kernel["spills"] is None
        assert list(found["stages"]["seconds"]) == list(found["stages"]["spread"]) == STAGES


def test_numbers_agree_with_each_other() -> None:
    for found in benchmark((7,), device="cpu", repeats=5):
        assert found.cells == (7, 7, 7)
        assert_consistent(found)
        assert found.cpu_GCells == next(result.GCells for result in found.kernels if result.name == "numba")
        value = np.dtype(found.precision).itemsize
        steps = {result.name: (result.intensity or 0.0) / (13 / (2 * value)) for result in found.kernels}
        assert steps["numpy"] == 1.0
        assert steps["numba"] == round(steps["numba"]) >= 1.0
        assert found.stages is not None
        seconds = found.stages.seconds
        assert seconds["total"] > 0.0
        assert found.stages.steps >= 1
        fastest = max(found.kernels, key=lambda result: result.GCells or 0.0)
        assert found.stages.kernel == fastest.name


def scaled(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(T: NDArray[Any], T_new: NDArray[Any], periodic: Any, c: NDArray[Any], *rest: Any) -> Any:
        return kernel(T, T_new, periodic, c[[0, 2, 1, 3, 4, 5, 6]], *rest)

    return wrong


def skipping(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(T: NDArray[Any], T_new: NDArray[Any], *rest: Any) -> Any:
        last = T_new[-1, -1, -1].copy()
        result, spare = kernel(T, T_new, *rest)
        result[-1, -1, -1] = last
        return result, spare

    return wrong


def forgetting(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(*arguments: Any) -> Any:
        *head, ledger, scheme = arguments
        return kernel(*head, [np.zeros_like(sums) for sums in ledger], scheme)

    return wrong


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [(scaled, "field off by"), (skipping, "field not finite"), (forgetting, "x_min off by")],
    ids=["two neighbours swapped", "a cell never written", "no heat in the ledger"],
)
def test_a_wrong_kernel_is_reported_and_not_timed(
    spoil: Callable[..., Any],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(CPU_KERNELS, "numba", spoil(CPU_KERNELS["numpy"]))
    numbers = tmp_path / "bench.json"
    words = ["bench", "--cells", "5", "--device", "cpu", "--precision", "float64", "--repeats", "5"]
    assert main([*words, "--json", str(numbers)]) == 1
    out, err = capsys.readouterr()
    assert err == "heatsim: wrong kernels, which were not timed: numba in float64\n"
    assert "numba is wrong" in out
    (found,) = json.loads(numbers.read_text(encoding="utf-8"))["measurements"]
    right, wrong = found["kernels"]
    assert (right["name"], right["error"]) == ("numpy", None)
    assert right["GCells"] > 0.0
    assert right["over_cpu"] is None
    assert wrong["name"] == "numba"
    assert wrong["error"].startswith(complaint)
    assert {value for key, value in wrong.items() if key not in ("name", "error")} == {None}


def test_nothing_is_timed_where_every_kernel_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(CPU_KERNELS, "numba", lambda T, T_new, *rest: (T_new, T))
    found = one(kernels=("numba",))
    assert found.stages is None
    assert found.copy_GBps > 0.0
    plot = tmp_path / "bench.png"
    words = ["bench", "--cells", "5", "--device", "cpu", "--kernel", "numba", "--plot", str(plot), "--repeats", "5"]
    assert main(words) == 1
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_kernels_are_picked_once_each_in_the_order_given() -> None:
    assert [result.name for result in one(kernels=("auto", "numpy", "numba")).kernels] == ["numba", "numpy"]
    with pytest.raises(DeviceError, match='did you mean "numba"'):
        one(kernels=("numa",))
    with pytest.raises(DeviceError, match='runs on device "cuda"'):
        one(kernels=("streamed",))


@pytest.mark.parametrize("cells", [(), (5, 5), (0,), (4, -4, 4), (1, 2, 3, 4)])
def test_numbers_that_make_no_grid_are_refused(cells: Sequence[int]) -> None:
    with pytest.raises(InputError, match=r"--cells.*one number for a cube"):
        one(cells=cells)


def test_a_median_needs_repeats() -> None:
    with pytest.raises(InputError, match="--repeats 4: give at least 5"):
        one(repeats=4)


def test_what_does_not_fit_is_refused_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two buffers of 6·5·4 values of 8 bytes, one made and one fetched, and the sums of the faces.
    needed = 4 * 120 * 8 + 2 * 8 * (20 + 24 + 30)
    monkeypatch.setattr(device, "host_memory", lambda: needed)
    one(precisions=("float64",), kernels=("numba",))
    monkeypatch.setattr(device, "host_memory", lambda: needed - 1)
    monkeypatch.setattr(check, "fault", lambda *arguments: pytest.fail("a kernel was tried"))
    with pytest.raises(CapacityError, match=r"--cells 6 5 4 in float64 needs 4\.906 KiB .* use fewer cells"):
        benchmark(CELLS, kernels=("numba",), device="cpu")


@pytest.mark.parametrize("option", ["--json", "--plot"])
def test_a_file_that_cannot_be_written_is_refused_beforehand(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suffix = {"--json": ".json", "--plot": ".png"}[option]
    for target, complaint in (
        (tmp_path / "no" / f"file{suffix}", "there is no folder"),
        (tmp_path, "is a folder"),
        (tmp_path / "plate.toml", f"the name must end in {suffix}"),
    ):
        assert main(["bench", "--device", "cpu", option, str(target)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"heatsim: {target}: {complaint}")


def test_medians_and_spreads() -> None:
    assert KernelTiming.of([2.0, 5.0, 4.0, 3.0, 6.0]) == KernelTiming(4.0, 1.0)
    assert KernelTiming.of([1.5] * 5) == KernelTiming(1.5, 0.0)
    assert KernelTiming.of([0.0] * 5) == KernelTiming(0.0, 0.0)


def test_repeats_are_whole_units_within_what_can_be_done_at_once() -> None:
    asked: list[int] = []
    host = device.choose("cpu")
    count = stopwatch.enough(host, TimedWork(asked.append, unit=4, most=18))
    assert count == 16
    assert all(times % 4 == 0 and times <= 16 for times in asked)
    assert stopwatch.enough(host, TimedWork(lambda count: time.sleep(1e-3 * count), unit=4)) == 4


def test_repeats_are_long_however_long_work_takes_to_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopwatch, "elapsed", lambda device, work, count: 0.05 + 1e-4 * count)
    monkeypatch.setattr(stopwatch, "_LONG_ENOUGH", {"cpu": 0.1})
    assert 0.1 <= 0.05 + 1e-4 * stopwatch.enough(device.choose("cpu"), TimedWork(lambda count: None)) < 0.2


def test_cuda_kernels_are_measured_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have registers and ratios to naive and the CPU.

    Kernels with several steps per sweep advance in whole sweeps.
    """
    gpu, choose = host_device(), device.choose
    monkeypatch.setattr(device, "choose", lambda requested: choose("cpu") if requested == "cpu" else gpu)
    monkeypatch.setattr(launch, "compile_kernel", compile_on_host)
    found = one(cells=(8, 8, 5), kernels=("naive", "temporal"), device="cuda", energy=True)
    assert [(result.name, result.error) for result in found.kernels] == [("naive", None), ("temporal", None)]
    assert_consistent(found)
    assert found.cpu_GCells is not None
    naive, temporal = found.kernels
    assert (naive.registers, naive.spills) == (temporal.registers, temporal.spills) == (40, 0)
    steps = next(spec.steps for spec in KERNELS if spec.name == "temporal")
    assert (naive.intensity, temporal.intensity) == (13 / 8, steps * 13 / 8)
    assert found.stages is not None
    assert found.stages.kernel == "naive" or found.stages.steps % steps == 0


def test_what_auto_chooses_is_measured_as_a_run_would_take_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A kernel with recorded runs is compared with one launched sweep by sweep, in the same table."""
    gpu, choose = host_device(), device.choose
    monkeypatch.setattr(device, "choose", lambda requested: choose("cpu") if requested == "cpu" else gpu)
    monkeypatch.setattr(launch, "compile_kernel", compile_on_host)

    def recorded_in_graphs(task: Task) -> tuple[Shape, ...]:
        return tuple(shape for shape in candidates(task) if not shape.spec.resident)[:2]

    monkeypatch.setattr(autotune, "candidates", recorded_in_graphs)
    monkeypatch.setattr(cuda_graphs, "RUNS", (2,))
    monkeypatch.setattr(HostStream, "graphs", [])
    monkeypatch.setenv("HEATSIM_CACHE_DIR", str(tmp_path))
    path = tmp_path / "bench.json"
    words = ["bench", "--device", "cuda", "--cells", "8", "8", "5", "--precision", "float32", "--repeats", "5"]
    assert main([*words, "--kernel", "naive", "--kernel", "auto", "--json", str(path)]) == 0
    assert "auto: boxed, 4 steps per sweep, tried" in capsys.readouterr().out
    (found,) = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    naive, auto = found["kernels"]
    assert (naive["name"], auto["name"]) == ("naive", "auto")
    assert naive["launch"] is None
    assert auto["launch"]["kernel"] == "boxed"
    assert auto["GCells"] > 0.0
    assert any(graph.launches > 0 for graph in HostStream.graphs)


@pytest.mark.gpu
def test_a_gpu_is_benched_with_every_kernel() -> None:
    for found in benchmark((67, 45, 31), device="cuda", repeats=5):
        assert [result.error for result in found.kernels] == [None] * len(found.kernels)
        assert [result.spills for result in found.kernels] == [0] * len(found.kernels)
        assert all(result.registers for result in found.kernels)
        assert_consistent(found)


def bench_ensembles(monkeypatch: pytest.MonkeyPatch, path: Path, *words: str, members: int = 3) -> int:
    gpu, choose = host_device(), device.choose
    monkeypatch.setattr(device, "choose", lambda requested: gpu if requested == "cuda" else choose(requested))
    monkeypatch.setattr(launch, "compile_kernel", compile_on_host)
    monkeypatch.setitem(benchmarks._EDGE, "cuda", 12)
    return main(
        [
            *("bench", "--members", str(members), "--cells", "8", "8", "6", "--repeats", "5", "--precision", "float32"),
            *("--kernel", "temporal", "--kernel", "naive", "--json", str(path), *words),
        ]
    )


@pytest.mark.slow
def test_ensembles_are_verified_and_put_beside_one_grid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ensembles.json"
    assert bench_ensembles(monkeypatch, path, "--energy") == 0
    out, err = capsys.readouterr()
    assert err == ""
    for text in (
        "temporal",
        "naive",
        "3 members of 8 × 8 × 6 cells",
        "one grid of 12 × 12 × 12 cells",
        "energy ledger",
    ):
        assert text in out
    (found,) = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    assert (found["cells"], found["members"], found["alone_cells"]) == ([8, 8, 6], 3, [12, 12, 12])
    for result in found["kernels"]:
        assert result["error"] is None
        assert isclose(result["fraction"], result["GCells"] / result["alone_GCells"])


@pytest.mark.quick("3")
@pytest.mark.parametrize("members", [1, 3])
def test_what_auto_chooses_for_members_is_measured_too(
    members: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEATSIM_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(autotune, "candidates", lambda task: candidates(task)[:1])
    path = tmp_path / "ensembles.json"
    assert bench_ensembles(monkeypatch, path, "--kernel", "auto", members=members) == 0
    assert "auto: boxed, 4 steps per sweep, tried" in capsys.readouterr().out
    (found,) = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    assert [(result["name"], result["launch"] is None) for result in found["kernels"]] == [
        ("temporal", True),
        ("naive", True),
        ("auto", False),
    ]
    assert all(result["error"] is None for result in found["kernels"])


def test_an_ensemble_with_other_bits_is_reported_and_not_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Members are stepped with the coefficients of other members."""
    row, rows = launches.row, 0

    def mixed_up(member: launches.MemberSteps, *arguments: Any) -> tuple[Any, ...]:
        nonlocal rows
        rows += 1
        halved = member.coefficients.copy()
        halved["c"] *= 0.5
        return row(replace(member, coefficients=halved) if rows % 3 == 2 else member, *arguments)

    monkeypatch.setattr(launches, "row", mixed_up)
    path = tmp_path / "ensembles.json"
    assert bench_ensembles(monkeypatch, path) == 1
    out, err = capsys.readouterr()
    assert "temporal is wrong: member 1 differs from a single run" in out
    assert err.startswith("heatsim: wrong kernels, which were not timed: temporal in float32, naive in float32")
    assert json.loads(path.read_text(encoding="utf-8"))["measurements"][0]["kernels"][0]["GCells"] is None


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--members", "0"], "--members 0: give a whole number, at least 1"),
        (["--members", "4", "--device", "cpu"], "--members measures launches of a GPU"),
        (["--members", "4", "--plot", "roof.png"], "leave out --plot"),
        (["--members", "4", "--reductions"], "exclude each other"),
    ],
)
def test_ensembles_that_cannot_be_measured_are_refused(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = host_device()
    monkeypatch.setattr(device, "choose", lambda requested: gpu)
    assert main(["bench", *words]) == 2
    assert complaint in capsys.readouterr().err


def test_ensembles_beyond_the_memory_are_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = host_device(free=2**20)
    monkeypatch.setattr(device, "choose", lambda requested: gpu)
    assert main(["bench", "--members", "256"]) == 2
    assert "256 grids of 64 × 64 × 64 cells beside one of 512 × 512 × 512" in capsys.readouterr().err


@pytest.mark.gpu
def test_a_gpu_is_benched_with_members_of_every_kernel() -> None:
    for found in benchmarks.benchmark_ensembles((40, 32, 24), 5, repeats=5, alone=(67, 45, 31)):
        assert [result.error for result in found.kernels] == [None] * len(found.kernels)


REDUCTION_KEYS = {"name", "GBps", "fraction", "milliseconds", "spread", "registers", "spills", "error"}


def bench_reductions(monkeypatch: pytest.MonkeyPatch, path: Path, *words: str) -> int:
    gpu, choose = host_device(), device.choose
    monkeypatch.setattr(device, "choose", lambda requested: gpu if requested == "cuda" else choose(requested))
    monkeypatch.setattr(compiled, "function", function_on_host)
    return main(["bench", "--reductions", "--cells", "40", "30", "20", "--repeats", "5", "--json", str(path), *words])


def test_reductions_are_verified_and_put_beside_plain_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "reductions.json"
    assert bench_reductions(monkeypatch, path, "--precision", "float32") == 0
    out, err = capsys.readouterr()
    assert err == ""
    for text in (*(rung.name for rung in LADDER), "cupy.sum", "fused", "40 × 30 × 20 cells", "reading"):
        assert text in out
    written = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    assert [found["precision"] for found in written] == ["float32"]
    for found in written:
        assert found["cells"] == [40, 30, 20]
        assert found["read_GBps"] >= found["copy_GBps"] > 0.0
        nbytes = 24_000 * np.dtype(found["precision"]).itemsize
        for result in found["reductions"]:
            assert result.keys() >= REDUCTION_KEYS
            fields = 2 if result["name"] == "fused, change" else 1
            assert isclose(result["GBps"], fields * nbytes / result["milliseconds"] / 1e6)
            assert isclose(result["fraction"], result["GBps"] / found["read_GBps"])
            assert (result["registers"] is None) == result["name"].startswith("cupy")


def test_a_wrong_reduction_is_reported_and_not_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sum without the last blocks, and a fused pass of the wrong field."""
    monkeypatch.setattr(Rung, "blocks", lambda rung, count, multiprocessors: 1)
    of = fused.Pass.of
    monkeypatch.setattr(
        fused.Pass, "of", lambda xp, arrays: of(xp, [replace(one, bounds=one.bounds[:-1]) for one in arrays])
    )
    path = tmp_path / "reductions.json"
    assert bench_reductions(monkeypatch, path, "--precision", "float32") == 1
    out, err = capsys.readouterr()
    assert "first_add is wrong: sum off by" in out
    assert err.startswith("heatsim: wrong reductions, which were not timed: interleaved in float32, ")
    (found,) = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    wrong = {result["name"] for result in found["reductions"] if result["error"]}
    assert wrong >= {"interleaved", "fused", "fused, change"}
    assert all(result["GBps"] is None for result in found["reductions"] if result["name"] in wrong)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--device", "cpu"], "--reductions measures sums on a GPU"),
        (["--energy"], "leave out --kernel, --energy and --plot"),
        (["--repeats", "4"], "--repeats 4: give at least 5"),
    ],
)
def test_reductions_that_cannot_be_measured_are_refused(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--reductions", *words]) == 2
    assert complaint in capsys.readouterr().err


PRIMER_KEYS = {"name", "GBps", "fraction", "milliseconds", "over_cpu", "over_cpu_with_copies", "error"}


def bench_primers(monkeypatch: pytest.MonkeyPatch, path: Path) -> int:
    gpu, choose = host_device(), device.choose
    monkeypatch.setattr(device, "choose", lambda requested: gpu if requested == "cuda" else choose(requested))
    monkeypatch.setattr(compiled, "function", function_on_host)
    words = ["--primers", "--cells", "36", "--repeats", "5", "--precision", "float32", "--json", str(path)]
    return main(["bench", *words])


@pytest.mark.slow
def test_primers_are_verified_and_put_beside_the_copy_and_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "primers.json"
    assert bench_primers(monkeypatch, path) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for text in (*(rung.name for primer in PRIMERS for rung in primer.kernels), "generate", "to the GPU", "36 × 36"):
        assert text in out
    found = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    assert [one["shape"] for one in found] == [[1296], [36, 36], [1296]]
    for one in found:
        assert one["milliseconds"].keys() == {"generate", "to the GPU", "to the host", "CPU"}
        for result in one["kernels"]:
            assert result.keys() >= PRIMER_KEYS
            assert isclose(result["GBps"], 2 * 1296 * 4 / result["milliseconds"] / 1e6)
            assert isclose(result["over_cpu"], one["milliseconds"]["CPU"] / result["milliseconds"])
            assert result["over_cpu_with_copies"] < result["over_cpu"]


def test_a_wrong_primer_is_reported_and_not_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kernels of another radius than that of the oracle."""
    macros = Primer.macros
    monkeypatch.setattr(
        Primer,
        "macros",
        lambda *arguments: {name: 2 if name == "RADIUS" else value for name, value in macros(*arguments).items()},
    )
    assert bench_primers(monkeypatch, tmp_path / "primers.json") == 1
    out, err = capsys.readouterr()
    assert "L1 naive is wrong" in out
    assert "wrong primers, which were not timed: L1 naive in float32, L2 tiled in float32, L3 vectors" in err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--device", "cpu"], "--primers measures kernels of a GPU"),
        (["--cells", "40", "30", "20"], "--primers takes one number"),
        (["--plot", "roofline.png"], "leave out --kernel, --energy and --plot"),
        (["--reductions"], "--reductions and --primers exclude each other"),
        (["--emulate", "--repeats", "9"], "--emulate checks --primers and measures nothing"),
        (["--emulate", "--cells", "40", "30"], "--primers takes one number"),
        ([], "or add --emulate: it checks them and prints no speeds"),
    ],
)
def test_primers_that_cannot_be_measured_are_refused(
    words: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_gpu(requested: str) -> object:
        raise DeviceError('device "cuda" cannot be used: no driver; use device "cpu"')

    monkeypatch.setattr(device, "choose", no_gpu)
    assert main(["bench", "--primers", *words]) == 2
    assert complaint in capsys.readouterr().err


def test_primers_are_checked_without_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All are right; L2 without its barrier is not."""
    words = ["bench", "--primers", "--emulate", "--cells", "40", "--precision", "float32"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert out.count(" right ") == sum(len(primer.kernels) for primer in PRIMERS)
    assert "GB/s" not in out
    for path in FOLDER.glob("*.cu"):
        text = path.read_text(encoding="utf-8")
        tmp_path.joinpath(path.name).write_text(text.replace("__syncthreads();", "") if "L2" in path.name else text)
    monkeypatch.setattr(primers, "FOLDER", tmp_path)
    assert main([*words, "--json", str(tmp_path / "found.json")]) == 1
    out, err = capsys.readouterr()
    assert "heatsim: wrong primers: L2 tiled in float32\n" in err
    assert "values of 1,600 depend on the order of the threads, the first at x = 0: nan" in " ".join(out.split())
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["measurements"]
    assert [kernel["error"] is None for kernel in found[0]["kernels"]] == [True, False, True]


@pytest.mark.gpu
def test_a_gpu_is_benched_with_every_primer() -> None:
    for found in benchmark_primers((200,), repeats=5):
        assert [result.error for result in found.kernels] == [None] * len(found.kernels)


@pytest.mark.gpu
def test_a_gpu_is_benched_with_every_reduction() -> None:
    for found in benchmark_reductions((130, 64, 65), repeats=5):
        assert [result.error for result in found.reductions] == [None] * len(found.reductions)
        assert {result.spills for result in found.reductions} == {0, None}
