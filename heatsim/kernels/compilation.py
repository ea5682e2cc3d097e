"""What is compiled: a kernel's source, the variant that a run needs, and its macros."""

from dataclasses import dataclass, replace
from math import ceil, prod
from pathlib import Path
from typing import Any

import numpy as np

from heatsim.grid import Grid
from heatsim.kernels import compiled, structs, tiling
from heatsim.kernels.catalog import SINGLE_STEP, KernelSpec
from heatsim.physics.matter.coefficients import SCHEMES, Scheme

FOLDER = Path(__file__).parent

_PLANES_KEPT = 4  # ROOMS of 07
# Stages in the table of a kernel in constant memory: as many as the longest CUDA graph does. 32 KiB in float64.
_STAGES_IN_TABLE = 1024
_MOST_THREADS = 1024  # of a block; then a thread has 64 registers, too few for enthalpy tables in float64
_RESIDENT_OF_MEMBERS = 640  # threads of 06 per multiprocessor for ensembles in float64: coefficients take registers
_BARRIER = 16  # bytes of a barrier with its alignment
_REAL = {"float32": "float", "float64": "double"}


def source(name: str) -> str:
    """The source of a .cu file with its headers inserted."""
    return compiled.spliced(FOLDER / name)


@dataclass(frozen=True)
class Variant:
    """The features that a run needs from a kernel; none for one constant material with linear faces f − g·T.

    Attributes:
        faces: conditions solved for the surface temperature, or sources; the other features of a body need this one.
        materials: several materials.
        varying: materials that vary with temperature; needs ``materials``.
        heated: sources in some types of cells.
        mixed: several conditions on one face cell.
        contacts: links with weights: contacts with smooth areas, layers; needs ``materials``.
        stages: steps of different lengths, each with its own c0…c6 or, with ``faces``, a factor of its increments.
        rate: the increments are added to another field than T, or to 0; needs ``faces``, ``stages`` and increments.
            Such a kernel does single steps.
        laws: film coefficients or emissivities that depend on the temperature of the surface; needs ``faces``.
        cell_heat: sources heat single cells; needs ``faces``. Such a kernel does single steps.
        lit: beams fall on surfaces towards void; needs ``materials``. Such a kernel does single steps.
    """

    faces: bool = False
    materials: bool = False
    varying: bool = False
    heated: bool = False
    mixed: bool = False
    contacts: bool = False
    stages: bool = False
    rate: bool = False
    laws: bool = False
    cell_heat: bool = False
    lit: bool = False


LINEAR = Variant()


def threads_of_bricks(precision: str, variant: Variant, graded: bool) -> int:
    """The most threads of a block of a kernel with bricks: composite bodies and graded grids need more registers."""
    return 1024 if not (variant.faces or graded) else 768 if precision == "float32" else 512


@dataclass(frozen=True)
class Build:
    """A kernel for one precision, scheme and kind of grid.

    Attributes:
        spec: the kernel.
        precision, scheme: its arithmetic.
        vector: consecutive cells in x that a thread owns.
        access: number of them that one instruction moves; it divides the row length of the grid.
        variant: the features that the body needs.
        room: bytes of shared memory for boxes of any size; 0 for kernels without such boxes.
        members: whether a launch steps the members of an ensemble.
        graded: whether cells have different widths.
    """

    spec: KernelSpec
    precision: str
    scheme: Scheme
    vector: int = 1
    access: int = 1
    variant: Variant = LINEAR
    room: int = 0
    members: bool = False
    graded: bool = False

    @property
    def itemsize(self) -> int:
        """Bytes of a value."""
        return np.dtype(self.precision).itemsize

    @property
    def source(self) -> str:
        """The .cu file."""
        spec = self.spec
        general = spec.varying_source if self.variant.varying else spec.general_source
        return general if self.variant.faces and general else spec.source

    @property
    def sweep_dtype(self) -> np.dtype[Any]:
        """The layout of struct StepData."""
        variant = self.variant
        if variant.faces:
            return structs.general_sweep_dtype(self.precision, variant.rate, variant.cell_heat)
        return structs.sweep_dtype(self.precision, variant.stages)

    @property
    def tile(self) -> tuple[int, int, int]:
        """Cells along x, y, z that a block writes, in kernels without a pipeline."""
        x, y, z = self.spec.tile
        rows = 1 if self.variant.faces else self.spec.rows  # code for faces needs the registers
        return (x if self.spec.boxed else x * self.vector), y * rows, z

    @property
    def pipeline(self) -> tiling.Pipeline | None:
        """The block of a kernel that streams planes through several steps; None for other kernels."""
        spec = self.spec
        if spec.steps == 1 or spec.boxed:
            return None
        return tiling.Pipeline(
            prod(spec.block), self.vector, spec.rows, spec.steps, self.itemsize, corrected=self.variant.faces
        )

    @property
    def stage_table(self) -> int:
        """Stages whose coefficients are in constant memory for several sweeps; 0 for kernels without such a table."""
        has_own = self.variant.stages and not self.variant.faces
        return _STAGES_IN_TABLE if has_own and self.pipeline is not None and not self.members else 0

    @property
    def deferred_planes(self) -> int | None:
        """The most planes that a block marches if it defers cells (deferred_cells.cuh); None if it defers none.

        Deferred cells should still be in a cache when they are updated. For materials that vary with temperature, more
        planes save table look-ups at the ends of the march.
        """
        if not (self.variant.faces and self.spec.vectorised) or self.spec.steps > 1 or self.spec.resident:
            return None
        return 6 if self.variant.varying else 5 if self.variant.materials and self.itemsize == 4 else 4

    @property
    def shared_bytes(self) -> int:
        """Bytes of dynamic shared memory of a block: two boxes, or struct Shared of 07."""
        spec, pipeline = self.spec, self.pipeline
        if self.room or spec.resident:
            return self.room
        if spec.boxed:
            halo = (ceil(spec.steps / self.vector) * self.vector, spec.steps, spec.steps)
            return 2 * prod(n + 2 * extra for n, extra in zip(spec.tile, halo, strict=True)) * self.itemsize
        if pipeline is None:
            return 0
        cells = pipeline.threads * pipeline.vector  # in a row of each thread
        edges, planes = 2 * (pipeline.steps - 1) * 2 * cells, (_PLANES_KEPT + 1) * pipeline.rows * cells
        narrowest = min(tiling.LANES)
        border = 2 * (pipeline.height(narrowest) + narrowest * pipeline.vector)
        heats = 2 * pipeline.steps * border
        # Of each stage: f and g of the faces, and what distinguishes it from the others.
        own = 0 if self.stage_table or not self.variant.stages else 1 if self.variant.faces else 4
        terms = (12 + own) * pipeline.steps
        size = (edges + planes + heats + terms) * self.itemsize + 4 * (border + pipeline.steps)
        size += tiling.SEGMENT.itemsize + _BARRIER
        if self.members:
            size += structs.LEDGER.itemsize
        return ceil(size / 16) * 16

    @property
    def _bounds(self) -> tuple[int, int, int]:
        """Threads of a block along x, y, z; for bricks, whose blocks differ in shape, the largest total."""
        bricked = self.spec.resident and self.spec.boxed
        threads = threads_of_bricks(self.precision, self.variant, self.graded)
        return (threads, 1, 1) if bricked else self.spec.block

    @property
    def options(self) -> tuple[str, ...]:
        """Compiler options: the macros of stencil.cuh; contraction to fma is off, so that all kernels agree."""
        macros = {
            "REAL": _REAL[self.precision],
            "SCHEME": SCHEMES.index(self.scheme),
            **dict(zip(("BLOCK_X", "BLOCK_Y", "BLOCK_Z"), self._bounds, strict=True)),
            "VECTOR": self.vector,
            "ACCESS": self.access,
            "STEPS": self.spec.steps,
            "ROWS": self.spec.rows,
            "FACES": int(self.variant.faces),
            "MATERIALS": 2 if self.variant.varying else int(self.variant.materials),
            "CONTACTS": int(self.variant.contacts),
            "MEMBERS": int(self.members),
            "HEATED": int(self.variant.heated),
            "MIXED": int(self.variant.mixed),
            "LAWS": int(self.variant.laws),
            "CELL_HEAT": int(self.variant.cell_heat),
            "LIT": int(self.variant.lit),
            "STAGES": int(self.variant.stages),
            "STAGE_TABLE": self.stage_table,
            "RATE": int(self.variant.rate),
            "GRADED": int(self.graded),
        }
        if self.deferred_planes:
            macros["DEFERRED_PLANES"] = self.deferred_planes
        if self.members and self.precision == "float64" and self.spec == SINGLE_STEP:
            macros["RESIDENT"] = _RESIDENT_OF_MEMBERS
        if self.spec.boxed and not self.spec.resident:
            macros |= dict(zip(("BOX_X", "BOX_Y", "BOX_Z"), self.spec.tile, strict=True))
        return ("--std=c++17", "--fmad=false", *(f"-D{name}={value}" for name, value in macros.items()))


def build(
    spec: KernelSpec,
    precision: str,
    scheme: Scheme,
    grid: Grid,
    variant: Variant = LINEAR,
    members: bool = False,
) -> Build:
    """The build of a kernel for a grid, with the widest accesses that divide its rows."""
    if spec.resident and not spec.boxed and variant.faces and (precision == "float64" or variant.varying):
        many_registers = precision == "float64" and (variant.varying or variant.mixed)
        many_registers |= variant.varying and not grid.uniform
        threads = _MOST_THREADS // (4 if many_registers else 2)
        spec = replace(spec, block=(threads, 1, 1), tile=(threads, 1, 1))
    widest = 16 // np.dtype(precision).itemsize if spec.vectorised else 1
    access = next(width for width in (widest, 2, 1) if grid.cells[0] % width == 0)
    vector = access if spec.steps == 1 or spec.boxed else widest
    return Build(spec, precision, scheme, vector, access, variant, members=members, graded=not grid.uniform)
