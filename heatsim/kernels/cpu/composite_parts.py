"""The compiled parts of the CPU kernel for composite bodies: those that a body needs, compiled on several cores."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.cpu import (
    called_parts,
    composite_cells,
    composite_faces,
    composite_heat,
    composite_sums,
    composite_surfaces,
    composite_void,
    linked_functions,
    march,
    plan,
    rows,
    surface_rises,
    varying_cells,
)
from heatsim.kernels.cpu.called_parts import called_part
from heatsim.kernels.cpu.compiling import Code, compile_all, sweeps
from heatsim.kernels.cpu.composite import advance
from heatsim.kernels.cpu.composite_body import HostBody
from heatsim.kernels.cpu.composite_cells import PLAN
from heatsim.kernels.cpu.composite_faces import adding_faces
from heatsim.kernels.cpu.composite_heat import add_cell_heat
from heatsim.kernels.cpu.composite_sums import sum_rows
from heatsim.kernels.cpu.composite_void import add_void
from heatsim.kernels.cpu.varying_cells import sum_varying_cells
from heatsim.kernels.source_key import source_key
from heatsim.numba_cache import Callback
from heatsim.physics import mixed_cells, surface_balance

SOURCES = (
    *(called_parts, composite_cells, composite_faces, composite_heat, composite_sums),
    *(composite_surfaces, composite_void, linked_functions, march, plan, rows, surface_rises, varying_cells),
    *(mixed_cells, surface_balance),
)
_KEY = source_key(SOURCES)


class OptionalParts(NamedTuple):
    """What only some bodies have.

    Attributes:
        varying: materials that vary with temperature.
        void: surfaces towards void.
        heated: cells that sources heat individually.
        faces: faces of the box that let heat through.
        beams: beams on faces of the box, or on cells.
        mixed: cells whose surface has several conditions.
    """

    varying: bool
    void: bool
    heated: bool
    faces: bool
    beams: bool
    mixed: bool

    @classmethod
    def of(cls, body: HostBody, periodic: tuple[bool, bool, bool], beams: bool) -> "OptionalParts":
        """What a body has; ``beams``: whether there are any."""
        return cls(
            varying=body.enthalpies.vary,
            void=len(body.void_conditions) > 0,
            heated=len(body.heated) > 0,
            faces=any(is_open and not periodic[face // 2] for face, is_open in enumerate(body.open_faces)),
            beams=beams,
            mixed=len(body.mixed.places) > 0,
        )


# The fields of a plan with the addresses of parts.
_PARTS = [PLAN.index(name) for name in ("sums_part", "varying_part", "void_part", "faces_part", "heat_part")]


def kernel_for(has: OptionalParts, numbers: NDArray[np.int64], dtype: np.dtype[Any]) -> Any:
    """The kernel for a body. Enters the addresses of the parts that it needs into the numbers of a plan."""
    numbers[_PARTS] = _addresses(has, dtype)
    return advance


def codes(has: OptionalParts, dtype: np.dtype[Any]) -> list[Code]:
    """The kernel and the parts that a body needs; the one that takes longest to compile is first."""
    return [sweeps(advance, dtype), *(Code(part) for part in _parts(has, dtype) if part is not None)]


@cache
def _parts(has: OptionalParts, dtype: np.dtype[Any]) -> tuple[Callback | None, ...]:
    """The parts, in the order of their addresses; None for those that a body does not need."""
    faces = "_".join(("faces", *["beams"] * has.beams, *["mixed"] * has.mixed))
    return (
        _part("sums", sum_rows, dtype),
        _part("varying", sum_varying_cells, dtype) if has.varying else None,
        _part("void", add_void, dtype) if has.void else None,
        _part(faces, adding_faces(beams=has.beams, mixed=has.mixed), dtype) if has.faces else None,
        _part("heat", add_cell_heat, dtype) if has.heated else None,
    )


def _part(name: str, advance_part: Any, dtype: np.dtype[Any]) -> Callback:
    return called_part(name, PLAN, advance_part, dtype, _KEY)


@cache
def _addresses(has: OptionalParts, dtype: np.dtype[Any]) -> tuple[int, ...]:
    """The addresses of the parts, 0 for those that a body does not need."""
    compile_all(codes(has, dtype))
    return tuple(0 if part is None else part.address or 0 for part in _parts(has, dtype))
