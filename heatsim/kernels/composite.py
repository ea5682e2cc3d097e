"""What kernels consume of a composite body: the tables of composite.cuh, on the host and on a device."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.field import Field
from heatsim.grid import Grid
from heatsim.kernels import launch
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.cpu_composite import COMPOSITE_KERNELS, Rows, Tables
from heatsim.ledger import Ledger
from heatsim.physics.conditions import Conditions
from heatsim.physics.medium import Medium
from heatsim.physics.problem import CompositeProblem, HeatProblem
from heatsim.physics.sources import BeamRows

# Steps whose rows are made and sent to the device together, and the bytes that they may take.
_STEPS_PER_TABLE = 16_384
_BYTES_PER_TABLE = 2**24


def tables(medium: Medium, coefficients: NDArray[Any], dt: float, precision: str) -> Tables:
    """What depends on the length of the steps.

    Args:
        medium: the kinds of cells.
        coefficients: c0…c6 of the first material, for one material alone.
        dt: in s.
        precision: of the tables.
    """
    links = medium.coefficients(dt).astype(precision)
    inner = np.zeros((len(medium.kinds), 4), dtype=precision)
    inner[:, :3] = links.diagonal(axis1=1, axis2=2).T
    halves = np.zeros((len(medium.kinds), 3, 4), dtype=precision)
    halves[:, :, :3] = medium.half_cells(dt)
    return Tables(coefficients, inner, links, halves)
