"""What a benchmark found. Field names are those of its JSON."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class KernelResult:
    """One kernel. All but name and error are None where it is wrong.

    Attributes:
        name: in the catalog.
        GCells: cells · steps / s / 1e9, from the median time.
        fraction: of the ceiling.
        spread: of the time, the largest less the smallest as a fraction of the median.
        registers: of a thread; None on a CPU.
        spills: bytes of local memory that a thread spills to; None on a CPU.
        effective_GBps: 2 values a cell and step / s / 1e9.
        GFLOPs: 13 operations a cell and step / s / 1e9.
        intensity: operations a byte of memory traffic that its idea needs: one value read and one written, a sweep.
        over_naive: times as fast as naive; None where that was not measured.
        over_cpu: times as fast as numba on this machine's CPU, t_CPU / t_this; None where that was not measured.
        error: what is wrong with it, None if nothing is.
        launch: of "auto", what it has chosen; None for kernels that were named.
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
class Stages:
    """A whole computation: a field made on the host, sent to the device, advanced, fetched.

    Attributes:
        kernel: what advances it, the fastest.
        steps: how far.
        seconds: median of each stage and of the total.
        spread: of each.
    """

    kernel: str
    steps: int
    seconds: dict[str, float]
    spread: dict[str, float]


@dataclass(frozen=True)
class Measurement:
    """What was measured in one precision.

    Attributes:
        device: its name.
        precision: "float32" or "float64".
        cells: along x, y, z.
        copy_GBps: bytes read and written a second by a copy on the device / 1e9.
        ceiling_GCells: that, by the bytes of one value read and one written.
        kernels: one result each.
        copy_spread: of the copy's time.
        cpu_GCells: of numba on this machine's CPU; None where it was not measured.
        stages: None where no kernel is right.
        energy: whether the heat through the faces was summed.
        repeats: of every time but the CPU's on a machine with a GPU.
    """

    device: str
    precision: str
    cells: tuple[int, int, int]
    copy_GBps: float
    ceiling_GCells: float
    kernels: tuple[KernelResult, ...]
    copy_spread: float
    cpu_GCells: float | None
    stages: Stages | None
    energy: bool
    repeats: int
