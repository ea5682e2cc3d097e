"""The compiled parts of the CPU kernel for composite bodies: those that a body needs, compiled on several cores."""

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

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
    graded_lines,
    graded_sums,
    lines,
    linked_functions,
    march,
    plan,
    planes,
    surface_rises,
    varying_cells,
)
from heatsim.kernels.cpu.called_parts import called_part
from heatsim.kernels.cpu.compiling import Code, compile_all, sweeps
from heatsim.kernels.cpu.composite import advance
from heatsim.kernels.cpu.composite_cells import PLAN
from heatsim.kernels.cpu.composite_faces import adding_faces
from heatsim.kernels.cpu.composite_heat import add_cell_heat
from heatsim.kernels.cpu.composite_sums import summing_rows
from heatsim.kernels.cpu.composite_void import adding_void
from heatsim.kernels.cpu.graded_sums import sum_graded_rows
from heatsim.kernels.cpu.planes import graded
from heatsim.kernels.cpu.varying_cells import sum_varying_cells
from heatsim.kernels.source_key import source_key
from heatsim.numba_cache import Callback
from heatsim.physics.cells import cell_heat
from heatsim.physics.conditions import gap_laws, mixed_cells, surface_balance

if TYPE_CHECKING:
    from heatsim.kernels.cpu.composite_body import HostBody

SOURCES = (
    *(called_parts, composite_cells, composite_faces, composite_heat, composite_sums),
    *(composite_surfaces, composite_void, graded_lines, graded_sums, linked_functions, march, plan, planes),
    *(lines, surface_rises, varying_cells),
    *(cell_heat, gap_laws, mixed_cells, surface_balance),
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
        radiating: conditions with radiation, or with a table of fluxes.
        seven_term: the scheme of sums of that name.
        graded: cells of several widths.
    """

    varying: bool
    void: bool
    heated: bool
    faces: bool
    beams: bool
    mixed: bool
    radiating: bool
    seven_term: bool
    graded: bool

    @classmethod
    def of(
        cls, body: "HostBody", periodic: tuple[bool, bool, bool], *, radiating: bool, seven_term: bool
    ) -> "OptionalParts":
        """What a body has; the other arguments are as the attributes."""
        return cls(
            varying=body.enthalpies.vary,
            void=body.exposed,
            heated=len(body.heated) > 0,
            faces=any(is_open and not periodic[face // 2] for face, is_open in enumerate(body.open_faces)),
            beams=body.beams > 0,
            mixed=len(body.mixed.places) > 0,
            radiating=radiating,
            seven_term=seven_term,
            graded=graded(body.planes),
        )


# The fields of a plan with the addresses of parts.
_PARTS = [PLAN.index(f"{name}_part") for name in ("sums", "varying", "void", "faces", "heat")]


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
    beams, radiating = ["beams"] * has.beams, ["radiating"] * has.radiating
    sums, sum_rows = ["seven_term"] * has.seven_term, summing_rows(seven_term=has.seven_term)
    if has.graded:
        sums, sum_rows = ["graded"], sum_graded_rows
    void = adding_void(beams=has.beams, radiating=has.radiating)
    faces = adding_faces(beams=has.beams, mixed=has.mixed, radiating=has.radiating)
    return (
        _part(["sums", *sums], sum_rows, dtype),
        _part(["varying"], sum_varying_cells, dtype) if has.varying else None,
        _part(["void", *beams, *radiating], void, dtype) if has.void else None,
        _part(["faces", *beams, *["mixed"] * has.mixed, *radiating], faces, dtype) if has.faces else None,
        _part(["heat"], add_cell_heat, dtype) if has.heated else None,
    )


def _part(names: list[str], advance_part: Any, dtype: np.dtype[Any]) -> Callback:
    return called_part("_".join(names), PLAN, advance_part, dtype, _KEY)


@cache
def _addresses(has: OptionalParts, dtype: np.dtype[Any]) -> tuple[int, ...]:
    """The addresses of the parts, 0 for those that a body does not need."""
    compile_all(codes(has, dtype))
    return tuple(0 if part is None else part.address or 0 for part in _parts(has, dtype))
