"""Folders as a run writes them, with fields in closed form."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES, Grid
from heatsim.storage import folder as run_folder
from heatsim.storage import manifest
from heatsim.storage.field_writer import FieldWriter
from heatsim.storage.summary_file import write_summary
from heatsim.storage.tables import TableWriter

Field = Callable[[Grid, float], NDArray[np.float64]]


def gaussian(grid: Grid, time: float) -> NDArray[np.float64]:
    """A hot spot off the centre that spreads."""
    x, y, z = ((grid.centres(axis) - grid.origin[axis] - 0.4 * grid.size[axis]) / max(grid.size) for axis in range(3))
    width = 0.02 * (1.0 + time)
    squares = (x**2)[None, None, :] + (y**2)[None, :, None] + (z**2)[:, None, None]
    return 300.0 + 50.0 * (1.0 + time) ** -1.5 * np.exp(-squares / width)


def uniform(grid: Grid, time: float) -> NDArray[np.float64]:
    return np.full(grid.shape, 300.0)


def write_fields(folder: Path, grid: Grid, field: Field, times: Sequence[float], dtype: Any = np.float32) -> None:
    with FieldWriter.create(folder / run_folder.FIELDS, grid, dtype, len(times)) as writer:
        for time in times:
            writer.append(time, [field(grid, time).astype(dtype)])


def write_table(path: Path, columns: Sequence[str], rows: Sequence[Sequence[float]]) -> None:
    with TableWriter.create(path, columns) as writer:
        for row in rows:
            writer.append(row)


def write_run(
    folder: Path,
    grid: Grid,
    field: Field = gaussian,
    times: Sequence[float] = (0.0, 1.0),
    dtype: Any = np.float32,
    title: str = "A block that costs $5 and $6",
    probes: Sequence[str] = ("centre", "edge, upper"),
    **summary: Any,
) -> Path:
    """A finished run: fields, probes, an energy ledger in which x_min adds and removes heat, and a summary."""
    folder.mkdir(parents=True)
    manifest.create(folder, run_folder.FILES)
    (folder / run_folder.SCENARIO).write_text(f'title = "{title}"\n')
    write_fields(folder, grid, field, times, dtype)
    steps = np.linspace(0.0, 1.0, 11) * times[-1]
    if probes:
        rows = [[t, *(350.0 - t * (number + 1) for number in range(len(probes)))] for t in steps]
        write_table(folder / run_folder.PROBES, ["time (s)", *(f"{name} (K)" for name in probes)], rows)
    ledger = [[t, -1234.5 * t, 0.0, -1234.5 * t, 0.0, 0.0, 0.0, 0.0, 0.0, 1e-9 * t] for t in steps]
    write_table(
        folder / run_folder.ENERGY,
        ["time (s)", *(f"{name} (J)" for name in ("stored", "sources", *FACES, "residual"))],
        ledger,
    )
    write_summary(folder, {"title": title, "time": times[-1], "energy_bound": 1e-8, **summary})
    return folder
