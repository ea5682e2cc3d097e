"""NumPy dtypes of the kernels' structs, field by field as in stencil.cuh and composite/materials.cuh."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid

_GRID: list[Any] = [
    *(("cells", np.int32, 3), ("periodic", np.int32), ("first_yz", np.int32, 2), ("planes", np.int32)),
    *(("first_stage", np.int32), ("steps", np.int32), ("brick", np.int32, 3), ("segments", np.uint64)),
]
GRID = np.dtype(_GRID, align=True)
COUNT_STRIDE = 32  # numbers from the count of steps of one block to that of the next: resident.cuh
# struct EnsembleGrid of ensemble/members.cuh.
GRID_OF_MEMBERS = np.dtype([*_GRID, ("layers", np.int32), ("first_member", np.int32)], align=True)
LEDGER = np.dtype([("face", np.uint64, 6)], align=True)
# Structs of builds with FACES: composite/materials.cuh.
GENERAL_LEDGER = np.dtype(
    [
        ("face", np.uint64, 6),
        *((name, np.uint64) for name in ("parts", "exposed", "cells")),
        ("beams", np.int64),
    ],
    align=True,
)
BEAM_SPOT = np.dtype(
    [
        *(("weights", np.uint64, 2), ("face", np.int32), ("beam", np.int32)),
        *(("first", np.int32, 2), ("count", np.int32, 2)),
    ],
    align=True,
)
NO_SPOT = -2  # the face of the struct after the last spot of a step

# struct HeatedCells.
HEATED = np.dtype([("arrays", np.uint64, 10), ("count", np.int32), ("amounts", np.int32)], align=True)


def periodic_bits(periodic: tuple[bool, bool, bool]) -> int:
    """Which axes wrap, as in struct Grid: bit 0 for x, bit 1 for y, bit 2 for z."""
    return sum(1 << axis for axis, wraps in enumerate(periodic) if wraps)


def enthalpy_dtype(precision: str) -> np.dtype[Any]:
    """The layout of struct EnthalpyTable."""
    size = 16 if precision == "float32" else 32
    names, formats = ["place", "base"], [(precision, 3), np.int32]
    offsets = [0, 3 * np.dtype(precision).itemsize]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


def part_dtype(precision: str) -> np.dtype[Any]:
    """The layout of struct Part."""
    return np.dtype([("number", np.int32), ("fraction", precision)], align=True)


def planes(grid: Grid, precision: str) -> NDArray[Any]:
    """The factors of graded axes as graded.cuh reads them; empty if all cells are equal.

    Six numbers for all planes along x, each kind by itself (:meth:`heatsim.grid.Axis.kernel_factors`), then along y
    and z; shape (6 (nx + ny + nz),).
    """
    if grid.uniform:
        return np.zeros(0, dtype=precision)
    ones = (np.ones((len(axis), 6), dtype=precision) for axis in grid.axes)
    found = (axis.kernel_factors(precision) for axis in grid.axes)
    return np.concatenate([(own if len(own) else one).T.reshape(-1) for own, one in zip(found, ones, strict=True)])


def general_coefficients_dtype(
    precision: str,
    varying: bool = False,
    mixed: bool = False,
    cell_heat: bool = False,
    lit: bool = False,
    graded: bool = False,
) -> np.dtype[Any]:
    """The layout of struct Coefficients with struct CellTypes.

    ``varying`` adds the enthalpy tables, ``mixed`` the mixed cells, ``cell_heat`` the cells that sources heat one by
    one, ``lit`` the sides that beams fall on, ``graded`` the factors of the planes.
    """
    enthalpies = [("enthalpies", np.uint64, 4), ("held", np.int32)] if varying else []
    cells = [("mixed", np.uint64, 3), ("mixed_cells", np.int32)] if mixed else []
    counts = ("count", "first_heated", "beams", "void_type", "exposed", "open", "numbers")
    cell_types = np.dtype(
        [
            *((name, np.uint64) for name in ("cells", "inner", "links", "halves")),
            ("patches", np.uint64, 6),
            *((name, np.uint64) for name in ("weighted", "before", "weights")),
            ("reference", precision),
            *((name, np.int32) for name in counts),
            *enthalpies,
            *cells,
            *([("heated", HEATED)] * cell_heat),
            *([("lit", np.uint64)] * lit),
            *([("planes", np.uint64)] * graded),
        ],
        align=True,
    )
    return np.dtype([("c", precision, 7), ("materials", cell_types)], align=True)


@cache
def coefficients_dtype(precision: str, graded: bool = False) -> np.dtype[Any]:
    """The layout of struct Coefficients; ``graded`` adds the factors of the planes."""
    return np.dtype([("c", precision, 7), *([("planes", np.uint64)] * graded)], align=True)


@cache
def sweep_dtype(precision: str, stages: bool = False) -> np.dtype[Any]:
    """The layout of struct StepData; ``stages`` adds (c0, cx, cy, cz) of each step."""
    own = [("c", precision, 4)] if stages else []
    return np.dtype([("f", precision, 6), ("g", precision, 6), *own], align=True)


@cache
def general_sweep_dtype(precision: str, rate: bool = False, cell_heat: bool = False) -> np.dtype[Any]:
    """The layout of struct StepData of builds with FACES.

    ``rate`` adds the address of the field to add to, ``cell_heat`` that of the amounts.
    """
    base = [("base", np.uint64)] * rate + [("amounts", np.uint64)] * cell_heat
    pointers = [(name, np.uint64) for name in ("conditions", "heat", "spots")]
    return np.dtype([*pointers, ("factor", precision), *base], align=True)


@cache
def member_dtype(precision: str) -> np.dtype[Any]:
    """The layout of struct Member."""
    return _member_dtype(LEDGER, np.dtype((precision, 7)))


def general_member_dtype(coefficients: np.dtype[Any]) -> np.dtype[Any]:
    """The layout of struct Member of builds with FACES; ``coefficients``: that of struct Coefficients."""
    return _member_dtype(GENERAL_LEDGER, coefficients)


def _member_dtype(ledger: np.dtype[Any], coefficients: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(
        [
            *(("field", np.uint64, 2), ("sweeps", np.uint64), ("ledger", ledger)),
            *(("c", coefficients), ("count", np.uint32), ("stride", np.uint32)),
        ],
        align=True,
    )


def coefficients_struct(c: Sequence[float] | NDArray[Any], precision: str, planes: int = 0) -> NDArray[Any]:
    """Struct Coefficients, a 0-d array.

    Args:
        c: c0…c6; all 0 if each step has its own.
        precision: that of the numbers.
        planes: the address of :func:`planes` on the device; 0 on uniform grids.
    """
    return np.array((c, planes) if planes else (c,), dtype=coefficients_dtype(precision, planes > 0))
