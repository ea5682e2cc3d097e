"""The cell types of a field on its device, and the thermometers of materials that vary with temperature."""

from functools import partial
from typing import Any

import numpy as np

from heatsim.kernels.composite.arrays import CompositeArrays
from heatsim.physics.cells.cell_types import CELL_TYPE
from heatsim.physics.matter.enthalpy import Thermometer
from heatsim.physics.problem import HeatProblem
from heatsim.solver.field.field import Field


def own_cells(arrays: CompositeArrays, field: Field) -> Any:
    """The type of each own cell of a field, one byte, on its device; empty if there is one type."""
    cells = arrays.body.cells
    return cells[field.slab.own] if cells.size else cells


def set_thermometers(problem: HeatProblem, field: Field, cells: Any) -> None:
    """Give a field its thermometers if a material varies. ``cells``: from :func:`own_cells`."""
    materials = problem.materials
    if materials.varies:
        field.thermometer, field.point_thermometer = (
            Thermometer(xp, materials.enthalpies, partial(_types_at, None if materials.uniform else of_cells))
            for xp, of_cells in ((field.device.xp, cells), (np, materials.cells))
        )
        if materials.held.slab is not None:
            field.point_thermometer = Thermometer(np, materials.enthalpies, materials.types_of)


def _types_at(cells: Any, place: Any) -> Any:
    """The types of the cells at an index of the field; 0 if there is one type."""
    return 0 if cells is None else cells[place] & CELL_TYPE
