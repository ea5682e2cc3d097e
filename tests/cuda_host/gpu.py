"""A simulated GPU: its memory is the host's, its kernels are compiled by g++."""

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda_host.host_cupy import HostNumber, HostStream, asarray, do_or_record, host_device

from heatsim import device
from heatsim.kernels import compilation, compiled, launch, structs
from heatsim.kernels.emulation import machine
from heatsim.kernels.emulation.machine import compile_kernel


def play_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the host play a GPU that has recorded no graphs: it is the device that heatsim chooses."""
    monkeypatch.setattr(device, "choose", lambda requested: host_device())
    monkeypatch.setattr(launch, "compile_kernel", compile_on_host)
    monkeypatch.setattr(compiled, "function", function_on_host)
    monkeypatch.setattr(HostStream, "graphs", [])


def compile_on_host(build: compilation.Build) -> launch.CudaKernel:
    """As heatsim.kernels.launch.compile_kernel."""
    macros = [option for option in build.options if option.startswith("-D")]
    kernel = compile_kernel(compilation.FOLDER / build.source, macros, for_runs=True)
    sweep_dtype = build.sweep_dtype

    class Function:
        num_regs, local_size_bytes = 40, 0

        def __call__(self, blocks: Any, block: Any, arguments: Any, shared_mem: int) -> None:
            if build.members and build.spec.resident:
                table, grid = machine.as_items(arguments[0], *kernel.parameters[0]), arguments[1].copy()
                do_or_record(lambda: kernel.launch(blocks, block, table, grid, shared_bytes=shared_mem))
                return
            if build.members:
                members, done, number, grid = arguments
                table, taken = members.view(structs.member_dtype(build.precision)), grid.copy()
                do_or_record(lambda: kernel.launch(blocks, block, table, done, number, taken, shared_bytes=shared_mem))
                return
            T, T_new, grid, coefficients, sweep, ledger = arguments
            steps = build.spec.steps * int(grid.view(structs.GRID)["steps"])
            memory = (ctypes.c_uint8 * (steps * sweep_dtype.itemsize)).from_address(int(sweep))
            sweeps = np.frombuffer(memory, sweep_dtype)
            # A launch takes its values along; arrays stay where they are.
            values = (grid.copy(), coefficients.copy(), ledger.copy())
            do_or_record(
                lambda: kernel.launch(
                    blocks, block, T, T_new, values[0], values[1], sweeps, values[2], shared_bytes=shared_mem
                )
            )

        def kernel(self, *arguments: Any, shared_mem: int, enable_cooperative_groups: bool) -> None:
            assert enable_cooperative_groups
            self(*arguments, shared_mem)

    def copy_rows(*arguments: Any) -> None:
        do_or_record(lambda: _copy_rows(*arguments))

    runtime = SimpleNamespace(memcpy2DAsync=copy_rows, memcpyDeviceToDevice=3)
    cuda = SimpleNamespace(runtime=runtime, get_current_stream=lambda: SimpleNamespace(ptr=0))
    table = kernel.address("stage_table") if build.stage_table else 0
    return launch.CudaKernel(build, Function(), SimpleNamespace(asarray=asarray, cuda=cuda), table)


def _copy_rows(to: int, pitch: int, source: int, source_pitch: int, width: int, rows: int, *_: int) -> None:
    """As cudaMemcpy2D."""
    for row in range(rows):
        ctypes.memmove(to + row * pitch, source + row * source_pitch, width)


def function_on_host(source: str, name: str, macros: Mapping[str, str | int], folder: Path = compiled.FOLDER) -> Any:
    """As heatsim.kernels.compiled.function."""
    launch_at_once = machine.function(source, name, macros, folder)

    class Function:
        num_regs, local_size_bytes = 24, 0

        def __call__(self, blocks: tuple[int, ...], threads: tuple[int, ...], arguments: Sequence[Any]) -> None:
            # CuPy launches one block where a size of the grid is 0; it would read what is not there.
            assert all(size > 0 for size in blocks), f"{name}: an empty grid of blocks"
            do_or_record(lambda: launch_at_once(blocks, threads, arguments))

    return Function()


__all__ = ["HostNumber", "HostStream", "asarray", "compile_on_host", "function_on_host", "host_device", "play_gpu"]
