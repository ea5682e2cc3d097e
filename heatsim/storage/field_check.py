"""Opening a fields.vtkhdf in which a run goes on, after a check of the times that it keeps."""

from pathlib import Path
from typing import Any

import numpy as np

from heatsim.counts import counted
from heatsim.errors import StorageError
from heatsim.grid import AXES, Grid
from heatsim.parallel.team import ALONE, Team
from heatsim.storage.disk import AGAIN
from heatsim.storage.field_file import FieldFile, Record


def open_checked(
    path: Path,
    grid: Grid,
    dtype: np.dtype[Any],
    keep: int,
    record: Record | None,
    checked: bool = False,
    team: Team = ALONE,
) -> tuple[FieldFile, list[float], list[int]]:
    """An existing file whose first `keep` times are good, these times, and the checksums; nothing is changed.

    Args:
        path: the file.
        grid: the cells that it must have.
        dtype: the type that its values must have.
        keep: number of times to keep.
        record: what a checkpoint stores of the file; without it, the file must be undamaged.
        checked: whether the values were compared with their checksums just before.
        team: each rank compares the values of some of the times.

    Raises:
        StorageError: the file is missing, damaged or another one, or holds fewer times.
    """
    if not path.is_file():
        raise StorageError(f"{path}: is missing, the checkpoint counts {counted(keep, 'time')} in it; {AGAIN}")
    fields = FieldFile.found(path, keep) if record is None else FieldFile.known(path, record)
    layout = fields.layout
    found, of_found = (layout.times, [0] * (keep + 1)) if record is None else (record["times"], record["checksums"])
    times, sums = [float(time) for time in found[:keep]], [int(checksum) for checksum in of_found]
    try:
        if (layout.grid, layout.dtype) != (grid, dtype):
            held, needed = (f"{kind} on {_cells(of)}" for kind, of in ((layout.dtype, layout.grid), (dtype, grid)))
            what = needed if needed != held else "other widths of cells"
            raise StorageError(f"{path}: holds {held}, the run needs {what}; {AGAIN}")
        whole = fields.file.length >= layout.length
        if record is not None and not (checked and whole):
            try:
                fields.compare(times, sums, team)
            except StorageError:
                if whole:
                    raise
                # A run that ends early releases space after its last checkpoint: the structure is for fewer times.
                fields.file.close()
                fields = FieldFile.found(path, keep)
                fields.compare(times, sums, team)
    except BaseException:
        fields.file.close()
        raise
    return fields, times, sums


def _cells(grid: Grid) -> str:
    """The cells of a grid in words, without all widths."""
    graded = ", ".join(f"{name} graded" for name, axis in zip(AXES, grid.axes, strict=True) if not axis.uniform)
    return f"{grid.cells} cells in {grid.size} m from {grid.origin}{graded and f' ({graded})'}"
