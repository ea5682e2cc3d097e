"""Verification of a kernel before it is timed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim import device as devices
from heatsim.benchmark.case import SCHEME, BenchmarkCase, Stepping, new_ledger, random_case, random_field, upload
from heatsim.device import Device
from heatsim.grid import FACES
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.cpu.oracle import advance_numpy
from heatsim.kernels.launch_shapes import Shape
from heatsim.solver.field.field import Field

# Grids that are no multiple of any tile, with their periodic axes: long rows, flat, thin, small. The first ones consist
# of whole vectors and patches, as kernels with several steps per sweep need; the others do not.
_GRIDS = (
    ((260, 36, 11), (False, False, False)),
    ((132, 60, 7), (True, False, True)),
    ((36, 4, 37), (False, True, False)),
    ((257, 31, 11), (False, False, False)),
    ((131, 61, 7), (True, False, True)),
    ((35, 3, 37), (False, True, False)),
    ((5, 1, 7), (True, True, True)),
)
_ROUNDINGS_A_STEP = 16.0  # upper bound for the roundings of one term in a step
# The largest grid that is compared: a few tiles along each axis.
_KIN = (256, 64, 16)


def fault(spec: KernelSpec, device: Device, precision: str, cells: tuple[int, int, int]) -> str:
    """A text that describes the kernel's error; empty if it is correct.

    Several steps of random fields, with the output filled with NaN before each sweep, are compared with the NumPy
    kernel in float64, also the heat through the faces. The tolerance is a bound for rounding: errors do not grow,
    because the coefficient c0 of every cell is positive.

    Args:
        spec: the kernel.
        device: a device of the kernel.
        precision: "float32" or "float64".
        cells: the grid to be measured. One of the compared grids is a small one with the same divisors, for which the
            kernel is compiled in the same way.
    """
    kin = tuple(min(n, large + n % 32) for n, large in zip(cells, _KIN, strict=True))
    for number, (grid_cells, periodic) in enumerate((*_GRIDS, (kin, (False, False, False)))):
        nx, ny, nz = grid_cells
        # A sweep of several steps twice, and a remainder.
        case = random_case((nx, ny, nz), periodic, steps=2 * spec.steps + 1, seed=number)
        T, sums = _computed(spec, device, precision, case, seed=number)
        T_exact, exact_sums = _exact(case, seed=number)
        bound = _rounding_bound(case, precision)
        where = f"{nx} × {ny} × {nz} cells"
        for name, values, exact in (("field", T, T_exact), *zip(FACES, sums, exact_sums, strict=True)):
            if not np.isfinite(values).all():
                return f"{name} not finite on {where}: some cells were not written"
            off = float(np.abs(values.astype(np.float64) - exact).max(initial=0.0))
            if off > bound:
                return f"{name} off by {off:.2g} on {where}; rounding explains {bound:.2g}"
    return ""


def _computed(
    spec: KernelSpec, device: Device, precision: str, case: BenchmarkCase, seed: int
) -> tuple[NDArray[Any], list[NDArray[Any]]]:
    """The field and the sums of the faces after all steps, on the host."""
    steps = len(case.f)
    field = Field(device, case.grid, precision, reference=0.0)
    upload(field, random_field(case.grid, "float32", seed).astype(precision))
    ledger = new_ledger(device, case, enabled=True)
    Stepping(Shape(spec), field, case, ledger, steps, poisoned=True).advance(steps)
    return device.to_host(field.deviation), [device.to_host(sums) for sums in ledger]


def _exact(case: BenchmarkCase, seed: int) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """The field and the sums of the faces after all steps, computed by the oracle in float64."""
    T = random_field(case.grid, "float32", seed).astype(np.float64)
    T_new = np.empty_like(T)
    c, f, g = (values.astype(np.float64) for values in (case.c, case.f, case.g))
    ledger = new_ledger(devices.choose("cpu"), case, enabled=True)
    for step in range(len(f)):
        advance_numpy(T, T_new, case.periodic, c, f[step], g[step], ledger, SCHEME)
        T, T_new = T_new, T
    return T, ledger


def _rounding_bound(case: BenchmarkCase, precision: str) -> float:
    """A bound for the rounding error of a field with values in 0…1 K, and of its sums."""
    unit_roundoff = float(np.finfo(precision).eps) / 2.0
    size = 2.0 + 6.0 * float(np.abs(case.f).max())
    return _ROUNDINGS_A_STEP * len(case.f) * unit_roundoff * size
