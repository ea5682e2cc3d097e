"""`heatsim bench`: verify the kernels, then measure them against a copy of the field in the same run."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from heatsim import device as devices
from heatsim.benchmark.ensembles import EnsembleMeasurement, measure_ensembles
from heatsim.benchmark.measure import AUTO, measure
from heatsim.benchmark.reductions import ReductionMeasurement, measure_reductions
from heatsim.benchmark.results import KernelResult, Measurement, Stages
from heatsim.device import Device
from heatsim.errors import CapacityError, DeviceError, FolderError, InputError
from heatsim.kernels import catalog
from heatsim.kernels.catalog import KERNELS, KernelSpec
from heatsim.run.capacity import size

__all__ = [
    "EnsembleMeasurement",
    "KernelResult",
    "Measurement",
    "ReductionMeasurement",
    "Stages",
    "benchmark",
    "benchmark_ensembles",
    "benchmark_reductions",
    "check_writable",
    "to_json",
]

FEWEST_REPEATS = 5
_EDGE = {"cuda": 512, "cpu": 256}
_PRECISIONS = ("float32", "float64")


def benchmark(
    cells: Sequence[int] | None = None,
    precisions: Sequence[str] = _PRECISIONS,
    kernels: Sequence[str] = (),
    device: str = "auto",
    repeats: int = 7,
    energy: bool = False,
    say: Callable[[str], None] = lambda doing: None,
) -> list[Measurement]:
    """Verify and measure kernels.

    Args:
        cells: one number, for a cube, or three along x, y, z; None for 512³ on a GPU and 256³ on a CPU.
        precisions: of "float32" and "float64".
        kernels: names in the catalog, and "auto"; none for all that the device can run.
        device: "auto", "cuda" or "cpu".
        repeats: of every time, at least 5.
        energy: whether the heat through the faces is summed too.
        say: told what is being done.

    Returns:
        One for each precision.

    Raises:
        InputError: numbers that make no grid, or too few repeats.
        DeviceError: no such device or kernel.
        CapacityError: the grid does not fit the memory; nothing has been allocated.
    """
    chosen = devices.choose(device)
    specs = [spec for spec in KERNELS if spec.backend == chosen.backend]
    auto = chosen.backend == "cuda" and (not kernels or AUTO in kernels)
    if kernels:
        named = [name for name in kernels if not (auto and name == AUTO)]
        specs = list(dict.fromkeys(catalog.choose(name, chosen.backend) for name in named))
    _check_repeats(repeats)
    grid_cells = _three((_EDGE[chosen.backend],) if cells is None else cells)
    for precision in precisions:
        _check_capacity(chosen, [*specs, *(catalog.SINGLE_STEP,) * auto], grid_cells, precision)
    return [measure(chosen, specs, auto, grid_cells, precision, repeats, energy, say) for precision in precisions]


def benchmark_reductions(
    cells: Sequence[int] | None = None,
    precisions: Sequence[str] = _PRECISIONS,
    device: str = "auto",
    repeats: int = 7,
    say: Callable[[str], None] = lambda doing: None,
) -> list[ReductionMeasurement]:
    """Verify and measure sums over a field on a GPU; arguments as for :func:`benchmark`.

    Raises:
        InputError: numbers that make no grid, or too few repeats.
        DeviceError: no GPU.
        CapacityError: the grid does not fit the memory; nothing has been allocated.
    """
    _check_repeats(repeats)
    grid_cells = _three((_EDGE["cuda"],) if cells is None else cells)
    if device == "cpu":
        raise DeviceError('--reductions measures sums on a GPU; use device "cuda" or "auto"')
    gpu = devices.choose("cuda")
    return [measure_reductions(gpu, grid_cells, precision, repeats, say) for precision in precisions]


def benchmark_ensembles(
    cells: Sequence[int] | None,
    members: int,
    precisions: Sequence[str] = _PRECISIONS,
    kernels: Sequence[str] = (),
    device: str = "auto",
    repeats: int = 7,
    energy: bool = False,
    say: Callable[[str], None] = lambda doing: None,
    alone: Sequence[int] | None = None,
) -> list[EnsembleMeasurement]:
    """Verify and measure kernels that step the members of an ensemble, beside one large grid.

    Args:
        cells: of a member; None for 64³.
        members: how many.
        precisions: of "float32" and "float64".
        kernels: names in the catalog, and "auto"; none for all.
        device: "auto" or "cuda".
        repeats: of every time, at least 5.
        energy: whether the heat through the faces is summed too.
        say: told what is being done.
        alone: cells of the large grid; None for 512³.

    Raises:
        InputError: numbers that make no grid or ensemble, or too few repeats.
        DeviceError: no GPU, or no such kernel.
        CapacityError: the grids do not fit the memory; nothing has been allocated.
    """
    _check_repeats(repeats)
    if members < 1:
        raise InputError(f"--members {members}: a whole number from 1 is wanted")
    member_cells, alone_cells = _three((64,) if cells is None else cells), _three(alone or (_EDGE["cuda"],))
    if device == "cpu":
        raise DeviceError('--members measures launches of a GPU; use device "cuda" or "auto"')
    backend = devices.choose("cuda").backend
    auto = not kernels or AUTO in kernels
    specs = [catalog.choose(name, backend) for name in dict.fromkeys(kernels) if name != AUTO]
    if not kernels:
        specs = [spec for spec in KERNELS if spec.backend == backend]
    return [
        measure_ensembles(specs, auto, member_cells, members, alone_cells, precision, repeats, energy, say)
        for precision in precisions
    ]


def to_json(
    measurements: Sequence[Measurement] | Sequence[ReductionMeasurement] | Sequence[EnsembleMeasurement],
) -> str:
    """A list of objects, one for each precision; numbers in their shortest form that reads back the same."""
    return json.dumps([asdict(measurement) for measurement in measurements], indent=2, ensure_ascii=False) + "\n"


def check_writable(path: Path) -> None:
    """See that a file can be put there, before minutes are spent on what goes into it.

    Raises:
        FolderError: there is no such folder, or the path is one itself.
    """
    if path.is_dir():
        raise FolderError(f"{path}: is a folder; give the name of a file")
    if not path.absolute().parent.is_dir():
        raise FolderError(f"{path}: there is no folder {path.parent}; make it, or choose another")


def _check_repeats(repeats: int) -> None:
    if repeats < FEWEST_REPEATS:
        raise InputError(f"--repeats {repeats}: at least {FEWEST_REPEATS} are needed for a median and its spread")


def _three(cells: Sequence[int]) -> tuple[int, int, int]:
    if len(cells) not in (1, 3) or min(cells) < 1:
        given = " ".join(str(n) for n in cells)
        raise InputError(f"--cells {given}: wanted is one number for a cube, or three along x, y, z, each at least 1")
    return cells[0], cells[len(cells) // 2], cells[-1]


def _check_capacity(device: Device, specs: Sequence[KernelSpec], cells: tuple[int, int, int], precision: str) -> None:
    """Count the two buffers and the faces' sums, and what the host needs to make, compare and fetch fields."""
    nx, ny, nz = cells
    field = nx * ny * nz * (4 if precision == "float32" else 8)
    # What is wanted, what there is, and where.
    needs: tuple[tuple[int, int, str], ...]
    buffers = 2 * field + 2 * 8 * (ny * nz + nx * nz + nx * ny) * len(specs)
    if device.backend == "cuda":
        needs = ((buffers, device.free_memory(), device.name), (3 * field, devices.host_memory(), "the host"))
    else:
        # The NumPy oracle makes whole-array temporaries.
        temporaries = 6 * field if any(spec.name == "numpy" for spec in specs) else 2 * field
        needs = ((buffers + temporaries, device.free_memory(), device.name),)
    for needed, free, where in needs:
        if needed > free:
            raise CapacityError(
                f"--cells {nx} {ny} {nz} in {precision} needs {size(needed)} of memory on {where}, which has "
                f"{size(free)} free; use fewer cells"
            )
