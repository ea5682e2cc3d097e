"""The launch shapes that suit a grid and a GPU: the candidates for autotuning, and the choice by rule."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from heatsim.device import Device
from heatsim.grid import Grid
from heatsim.kernels import compilation, fitting, tiling
from heatsim.kernels.catalog import KERNELS, RESIDENT, KernelSpec
from heatsim.physics.matter.coefficients import Scheme

# Rules of thumb for runs that are not tuned: `resident` where it suits, else `boxed` up to 2¹⁹ cells, and `temporal`
# from 2²³ cells.
_SMALL_GRID = 1 << 19
LARGE_GRID = 1 << 23
# For ensembles: `temporal` from 2²⁰ cells in total; `boxed` if a member has fewer than 24 cells along x or y, because
# `temporal` tiles would be mostly empty.
_LARGE_ENSEMBLE = 1 << 20
_NARROW = 24
# Boxes, each with the smallest and largest grid in cells for which it is tried: enough boxes for the device, few halos.
_BOXES = (((16, 16, 8), 0, 1 << 22), ((8, 8, 8), 0, 1 << 18), ((32, 16, 16), 1 << 18, 1 << 22))

_STREAMED_PLANES = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Shape:
    """A kernel and how it is launched.

    Attributes:
        spec: the kernel, with the tile and the steps a sweep that it is built for.
        planes: planes that a block marches through; None for the default of launch.launches.
    """

    spec: KernelSpec
    planes: int | None = None

    def describe(self) -> dict[str, Any]:
        """The shape as JSON values, for the summary and the cache file."""
        return {
            "kernel": self.spec.name,
            "steps_a_sweep": self.spec.steps,
            "tile": list(self.spec.tile),
            "planes": self.planes,
        }


@dataclass(frozen=True)
class Choice:
    """A shape and its origin: the user, a rule of thumb, a measurement now, or one from the cache file."""

    shape: Shape
    chosen: Literal["asked for", "by rule", "tried", "remembered"]

    def describe(self) -> dict[str, Any]:
        """The choice as JSON values, for the summary."""
        return {**self.shape.describe(), "chosen": self.chosen}


@dataclass(frozen=True)
class Task:
    """The work to tune for.

    Attributes:
        device: a GPU.
        grid, periodic: the cells, and which axes wrap.
        precision, scheme: how steps are summed.
        members: number of grids that the same launches step, one or more; None for a run alone.
    """

    device: Device
    grid: Grid
    periodic: tuple[bool, bool, bool]
    precision: str
    scheme: Scheme
    members: int | None = None

    @property
    def cells(self) -> int:
        """Cells of all members."""
        return (self.members or 1) * self.grid.cell_count

    def suits(self, spec: KernelSpec) -> bool:
        """Whether a kernel works on this grid and device without falling back to single steps."""
        built = self.builds(spec)[0].spec
        return built.resident if spec.resident else built == spec

    def builds(self, spec: KernelSpec) -> tuple[compilation.Build, ...]:
        """The builds that together can do any number of steps."""
        return fitting.builds(
            spec,
            self.precision,
            self.scheme,
            self.grid,
            self.periodic,
            self.device.room(),
            members=self.members is not None,
        )


def candidates(task: Task) -> tuple[Shape, ...]:
    """All shapes to measure; the first is the choice by rule."""
    spec = {kernel.name: kernel for kernel in KERNELS}
    cells = task.cells

    streamed = [Shape(spec["streamed"])]
    streamed += [Shape(spec["streamed"], planes) for planes in _STREAMED_PLANES if planes <= task.grid.cells[2]]
    variants = [
        replace(spec["boxed"], tile=box) for box, least, most in _BOXES if least <= task.grid.cell_count <= most
    ]
    boxed = [Shape(variant) for variant in variants if task.suits(variant)]
    resident = [Shape(kernel) for kernel in RESIDENT if task.suits(kernel)]
    temporal = [Shape(spec["temporal"])] if cells > _SMALL_GRID and task.suits(spec["temporal"]) else []

    together = (task.members or 1) > 1
    shallow = in_three_steps(spec["temporal"])
    if temporal and together and task.precision == "float64" and task.suits(shallow):
        temporal = sorted((*temporal, Shape(shallow)), key=lambda shape: _cells_made(task, shape.spec))
    if resident:
        return (*resident, *boxed, *streamed, *temporal)
    if boxed and (cells <= _SMALL_GRID or (together and min(task.grid.cells[:2]) < _NARROW)):
        return (*boxed, *streamed, *temporal)
    if temporal and cells >= (_LARGE_ENSEMBLE if together else LARGE_GRID):
        return (*temporal, *streamed, *boxed)
    return (*streamed, *temporal, *boxed)


def in_three_steps(temporal: KernelSpec) -> KernelSpec:
    """07 with three steps per sweep, for ensembles in float64: its tiles have 36 rows.

    Two such tiles cover a plane of 64 rows; with four steps per sweep it would take three tiles of 32 rows.
    """
    return replace(temporal, block=(32, 12, 1), rows=3, steps=3)


def _cells_made(task: Task, spec: KernelSpec) -> int:
    """Cells per plane that a pipeline computes, including halos and cells outside the box."""
    pipeline = task.builds(spec)[0].pipeline
    assert pipeline is not None
    tiles = len(tiling.tiles(task.grid.cells, task.periodic, pipeline))
    return tiles * pipeline.threads * pipeline.vector * pipeline.rows
