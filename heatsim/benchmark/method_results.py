"""Results of a comparison of methods in time. Field names are those of its JSON."""

from dataclasses import asdict, dataclass

from heatsim.storage.single_file import marked_json


@dataclass(frozen=True)
class MethodResult:
    """A run with one method. Field names are those of its JSON; all but the first three are None if it did not end.

    Attributes:
        method: "euler", "stabilized" or "implicit".
        tolerance: the error in K that the run may have; None for "euler".
        skipped: why there are no numbers; None if there are.
        kernel: name of the kernel.
        steps: number of steps.
        stages: number of stages, those of rejected steps included; None for "euler", whose steps have one each.
        rejected: number of rejected steps; None for "euler".
        error: the largest difference from the reference in K, over all fields and probes that are due.
        error_place: "field", or the column of ``probes.csv`` where it is.
        error_time: the time in s at which it is.
        seconds: wall-clock time of stepping.
        cells_per_second: cells · (stages or steps) / seconds.
    """

    method: str
    tolerance: float | None
    skipped: str | None = None
    kernel: str | None = None
    steps: int | None = None
    stages: int | None = None
    rejected: int | None = None
    error: float | None = None
    error_place: str | None = None
    error_time: float | None = None
    seconds: float | None = None
    cells_per_second: float | None = None


@dataclass(frozen=True)
class WorkPrecision:
    """The methods on one scenario.

    Attributes:
        scenario: its file.
        title: its title.
        device: name of the device.
        precision: "float32" or "float64", for all runs but the reference.
        cells: cells along x, y, z.
        end: the end of all runs in s.
        range: the range of temperatures in K.
        reference: the run that the others are compared with; its errors are None.
        methods: a result for each method and tolerance.
    """

    scenario: str
    title: str
    device: str
    precision: str
    cells: tuple[int, int, int]
    end: float
    range: float
    reference: MethodResult
    methods: tuple[MethodResult, ...]


def to_json(found: WorkPrecision) -> str:
    """JSON text: one object."""
    return marked_json(asdict(found))
