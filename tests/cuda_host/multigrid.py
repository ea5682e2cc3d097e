"""The sweeps of a GPU on the host."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda_host.strict import plainly

from heatsim.device import Device
from heatsim.kernels.emulation.machine import HostKernel, compile_kernel
from heatsim.kernels.multigrid import cuda_sweeps
from heatsim.kernels.multigrid.cuda_sweeps import CudaSweeps


def sweeps_on_host(xp: Any, monkeypatch: pytest.MonkeyPatch) -> "tuple[CudaSweeps, HostQueue]":
    """Sweeps over the arrays of a module, and where they are queued.

    Blocks are few and small, so that each does several cells: the host's fibers take their time.
    """
    monkeypatch.setattr(cuda_sweeps, "THREADS", 64)
    monkeypatch.setattr(cuda_sweeps, "BLOCKS", 3)
    queue = HostQueue()
    return CudaSweeps(Device("cpu", xp, "the host"), queue.record, queue.compile), queue


class HostQueue:
    """Launches kernels on the host, or records the launches, as a stream of a GPU does.

    Attributes:
        graphs: how many times it has recorded.
    """

    def __init__(self) -> None:
        self.graphs = 0
        self._recorded: list[Callable[[], None]] | None = None

    def compile(self, name: str, defined: Mapping[str, str | int]) -> Any:
        """As heatsim.kernels.multigrid.cuda_sweeps.compile_function."""
        kernel = _kernel(name, defined)

        def launch(blocks: tuple[int], threads: tuple[int], arguments: Sequence[Any]) -> None:
            given = [_as_items(plainly(one), *kind) for one, kind in zip(arguments, kernel.parameters, strict=True)]
            work = partial(kernel.launch, (*blocks, 1, 1), (*threads, 1, 1), *given)
            if self._recorded is None:
                work()
            else:
                self._recorded.append(work)

        return launch

    def record(self, work: Callable[[], object]) -> Any:
        """As heatsim.kernels.cuda_graphs.record."""
        self._recorded = launches = []
        work()
        self._recorded = None
        self.graphs += 1
        return SimpleNamespace(launch=lambda: [launch() for launch in launches])


def _kernel(name: str, defined: Mapping[str, str | int]) -> HostKernel:
    return compile_kernel(cuda_sweeps.SOURCE, [f"-D{macro}={value}" for macro, value in defined.items()], name)


def _as_items(argument: Any, is_pointer: bool, size: int) -> Any:
    """Bytes as what a pointer to items of ``size`` bytes points to."""
    is_bytes = is_pointer and isinstance(argument, np.ndarray) and argument.dtype == np.uint8
    return argument.view(np.dtype((np.void, size))) if is_bytes else argument
