"""Results of a benchmark. Field names are those of its JSON."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class KernelResult:
    """The result of one kernel. If it is wrong, all but name and error are None.

    Attributes:
        name: the name in the catalog.
        GCells: cells · steps / s / 1e9, from the median time.
        fraction: GCells / ceiling.
        spread: (largest − smallest) / median of the times.
        registers: registers per thread; None on a CPU.
        spills: bytes of local memory per thread for spilled registers; None on a CPU.
        effective_GBps: 2 values per cell and step, in bytes / s / 1e9.
        GFLOPs: 13 operations per cell and step / s / 1e9.
        intensity: operations per byte of ideal memory traffic: one value read and one written per cell and sweep.
        over_naive: t_naive / t_this; None if naive was not measured.
        over_cpu: t_CPU / t_this with numba on this machine's CPU; None if it was not measured.
        error: the kernel's error; None if it is correct.
        launch: the choice of "auto"; None for named kernels.
    """

    name: str
    GCells: float | None = None
    fraction: float | None = None
    spread: float | None = None
    registers: int | None = None
    spills: int | None = None
    effective_GBps: float | None = None
    GFLOPs: float | None = None
    intensity: float | None = None
    over_naive: float | None = None
    over_cpu: float | None = None
    error: str | None = None
    launch: dict[str, Any] | None = None


@dataclass(frozen=True)
class StageTimings:
    """The stages of a whole computation: make a field on the host, send it to the device, advance it, fetch it.

    Attributes:
        kernel: the fastest kernel, which advances it.
        steps: number of steps.
        seconds: median time of each stage and of the total.
        spread: the spread of each.
    """

    kernel: str
    steps: int
    seconds: dict[str, float]
    spread: dict[str, float]


@dataclass(frozen=True)
class Measurement:
    """The measurements in one precision.

    Attributes:
        device: name of the device.
        precision: "float32" or "float64".
        cells: cells along x, y, z.
        copy_GBps: bytes read and written per second by a copy on the device / 1e9.
        ceiling_GCells: copy_GBps / (2 · bytes of a value).
        kernels: one result per kernel.
        copy_spread: the spread of the copy's times.
        cpu_GCells: speed of numba on this machine's CPU; None if it was not measured.
        stages: times of a whole computation; None if no kernel is correct.
        energy: whether the heat through the faces was summed.
        repeats: repeats of each measurement (on a machine with a GPU, the CPU has fewer).
    """

    device: str
    precision: str
    cells: tuple[int, int, int]
    copy_GBps: float
    ceiling_GCells: float
    kernels: tuple[KernelResult, ...]
    copy_spread: float
    cpu_GCells: float | None
    stages: StageTimings | None
    energy: bool
    repeats: int
