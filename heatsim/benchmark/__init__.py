"""`heatsim bench`: verify the kernels, then measure them; the reference is a copy of the field in the same run."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

from heatsim import device as devices
from heatsim.benchmark.emulated import PrimerEmulation, emulate_primers
from heatsim.benchmark.ensembles import EnsembleMeasurement, measure_ensembles
from heatsim.benchmark.measure import AUTO, measure
from heatsim.benchmark.memory import check_memory
from heatsim.benchmark.primers import PrimerMeasurement, measure_primers
from heatsim.benchmark.reductions import ReductionMeasurement, measure_reductions
from heatsim.benchmark.results import KernelResult, Measurement, StageTimings
from heatsim.device import Device
from heatsim.errors import DeviceError, InputError
from heatsim.kernels import catalog
from heatsim.kernels.catalog import KERNELS, KernelSpec
from heatsim.storage.single_file import marked_json

__all__ = [
    "EnsembleMeasurement",
    "KernelResult",
    "Measurement",
    "PrimerEmulation",
    "PrimerMeasurement",
    "ReductionMeasurement",
    "StageTimings",
    "benchmark",
    "benchmark_ensembles",
    "benchmark_primers",
    "benchmark_reductions",
    "check_primers",
    "to_json",
]

FEWEST_REPEATS = 5
_EDGE = {"cuda": 512, "cpu": 256}
_IMAGE_EDGE = 8192
_EMULATED_EDGE = 200
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
        cells: one number for a cube, or three along x, y, z; None for 512³ on a GPU and 256³ on a CPU.
        precisions: "float32", "float64" or both.
        kernels: names in the catalog, or "auto"; empty for all that the device can run.
        device: "auto", "cuda" or "cpu".
        repeats: repeats of each measurement, at least 5.
        energy: whether the heat through the faces is also summed.
        say: called with a text before each part of the work.

    Returns:
        One measurement for each precision.

    Raises:
        InputError: the numbers are not a grid, or there are too few repeats.
        DeviceError: no such device or kernel.
        CapacityError: the grid does not fit in memory; nothing has been allocated.
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
        InputError: the numbers are not a grid, or there are too few repeats.
        DeviceError: no GPU.
        CapacityError: the grid does not fit in memory; nothing has been allocated.
    """
    _check_repeats(repeats)
    grid_cells = _three((_EDGE["cuda"],) if cells is None else cells)
    gpu = _gpu(device, "--reductions measures sums on a GPU")
    return [measure_reductions(gpu, grid_cells, precision, repeats, say) for precision in precisions]


def benchmark_primers(
    cells: Sequence[int] | None = None,
    precisions: Sequence[str] = _PRECISIONS,
    device: str = "auto",
    repeats: int = 7,
    say: Callable[[str], None] = lambda doing: None,
) -> list[PrimerMeasurement]:
    """Verify and measure the primers on a GPU: small stencils along a line and on an image.

    Args:
        cells: one number, the pixels along either axis of the image; None for 8,192. The line has as many values.
        precisions: "float32", "float64" or both.
        device: "auto" or "cuda".
        repeats: repeats of each measurement, at least 5.
        say: called with a text before each part of the work.

    Raises:
        InputError: more than one number of cells, or too few repeats.
        DeviceError: no GPU.
        CapacityError: the arrays do not fit in memory; nothing has been allocated.
    """
    _check_repeats(repeats)
    edge = _edge(cells, _IMAGE_EDGE)
    gpu = _gpu(device, "--primers measures kernels of a GPU", ", or add --emulate: it checks them and prints no speeds")
    return [found for precision in precisions for found in measure_primers(gpu, edge, precision, repeats, say)]


def check_primers(
    cells: Sequence[int] | None = None,
    precisions: Sequence[str] = _PRECISIONS,
    say: Callable[[str], None] = lambda doing: None,
) -> list[PrimerEmulation]:
    """Compile the primers with g++ and compare them with NumPy, without a GPU and without speeds.

    Args:
        cells: one number, the pixels along either axis of the image; None for 200. The line has as many values.
        precisions: "float32", "float64" or both.
        say: called with a text before each part of the work.

    Raises:
        InputError: more than one number of cells.
        DeviceError: no g++.
    """
    edge = _edge(cells, _EMULATED_EDGE)
    return [found for precision in precisions for found in emulate_primers(edge, precision, say)]


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
    """Verify and measure kernels that step an ensemble, and compare them with one large grid.

    Args:
        cells: cells of a member; None for 64³.
        members: number of members.
        precisions: "float32", "float64" or both.
        kernels: names in the catalog, or "auto"; empty for all.
        device: "auto" or "cuda".
        repeats: repeats of each measurement, at least 5.
        energy: whether the heat through the faces is also summed.
        say: called with a text before each part of the work.
        alone: cells of the large grid; None for 512³.

    Raises:
        InputError: the numbers are not a grid or ensemble, or there are too few repeats.
        DeviceError: no GPU, or no such kernel.
        CapacityError: the grids do not fit in memory; nothing has been allocated.
    """
    _check_repeats(repeats)
    if members < 1:
        raise InputError(f"--members {members}: give a whole number, at least 1")
    member_cells, alone_cells = _three((64,) if cells is None else cells), _three(alone or (_EDGE["cuda"],))
    backend = _gpu(device, "--members measures launches of a GPU").backend
    auto = not kernels or AUTO in kernels
    specs = [catalog.choose(name, backend) for name in dict.fromkeys(kernels) if name != AUTO]
    if not kernels:
        specs = [spec for spec in KERNELS if spec.backend == backend]
    return [
        measure_ensembles(specs, auto, member_cells, members, alone_cells, precision, repeats, energy, say)
        for precision in precisions
    ]


def to_json(
    measurements: Sequence[
        Measurement | ReductionMeasurement | PrimerMeasurement | PrimerEmulation | EnsembleMeasurement
    ],
) -> str:
    """JSON text: `measurements` is a list with one object for each measurement."""
    return marked_json({"measurements": [asdict(measurement) for measurement in measurements]})


def _gpu(requested: str, what: str, instead: str = "") -> Device:
    """The GPU that a measurement needs; ``instead``: what else a user may do."""
    if requested == "cpu":
        raise DeviceError(f'{what}; use device "cuda" or "auto"{instead}')
    try:
        return devices.choose("cuda")
    except DeviceError as error:
        reason, *_ = str(error).split("; ")  # what follows advises the CPU
        raise DeviceError(f"{what}, but {reason}; check with `heatsim doctor`{instead}") from None


def _edge(cells: Sequence[int] | None, default: int) -> int:
    """The pixels along an axis of the image of the primers."""
    if cells is not None and (len(cells) != 1 or cells[0] < 1):
        raise InputError(f"--cells {' '.join(map(str, cells))}: --primers takes one number, at least 1")
    return default if cells is None else cells[0]


def _check_repeats(repeats: int) -> None:
    if repeats < FEWEST_REPEATS:
        raise InputError(f"--repeats {repeats}: give at least {FEWEST_REPEATS}, for a median and its spread")


def _three(cells: Sequence[int]) -> tuple[int, int, int]:
    if len(cells) not in (1, 3) or min(cells) < 1:
        given = " ".join(str(n) for n in cells)
        raise InputError(f"--cells {given}: give one number for a cube, or three along x, y, z, each at least 1")
    return cells[0], cells[len(cells) // 2], cells[-1]


def _check_capacity(device: Device, specs: Sequence[KernelSpec], cells: tuple[int, int, int], precision: str) -> None:
    """Check the memory for two buffers and the sums of the faces, and the host's for making and comparing fields."""
    nx, ny, nz = cells
    field = nx * ny * nz * (4 if precision == "float32" else 8)
    buffers = 2 * field + 2 * 8 * (ny * nz + nx * nz + nx * ny) * len(specs)
    what = f"--cells {nx} {ny} {nz} in {precision} needs"
    if device.backend == "cuda":
        check_memory(what, device, buffers, host=3 * field)
    else:
        # The NumPy oracle makes whole-array temporaries.
        temporaries = 6 * field if any(spec.name == "numpy" for spec in specs) else 2 * field
        check_memory(what, device, buffers + temporaries)
