"""The tables of a run as numbers in SI units, by the names and units in their headers.

A header is `name (unit)`: `time (s)`, `centre (degC)`, `stored (J)`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import StorageError
from heatsim.storage import tables
from heatsim.storage.folder import ENERGY, NODES, PROBES
from heatsim.storage.tables import GROSS, PARTS
from heatsim.temperature_units import KELVIN, TEMPERATURE_UNITS

Values = NDArray[np.float64]
TIME, JOULE, WATT, PERCENT, SECOND, METRE = "time", "J", "W", "%", "s", "m"
_LARGEST = 1e100


def header(name: str, unit: str) -> str:
    """The header of a column: `name (unit)`; the name alone for a number without a unit."""
    return f"{name} ({unit})" if unit else name


def split_header(text: str) -> tuple[str, str]:
    """The name and the unit of a header; the unit is empty if the header has none."""
    name, bracket, unit = text.rpartition(" (")
    return (name, unit[:-1]) if bracket and unit.endswith(")") else (text, "")


@dataclass(frozen=True)
class RunTable:
    """A table of a run.

    Attributes:
        times: in s, shape (rows,).
        columns: the other columns by name and unit, in the order of the file, each of shape (rows,); temperatures in K.
    """

    times: Values
    columns: Mapping[tuple[str, str], Values]

    @classmethod
    def of(cls, columns: Sequence[tuple[str, str]], rows: Values) -> Self:
        """The table with some rows, shape (rows, 1 + columns): the time in s, then the columns with names and units."""
        found: dict[tuple[str, str], Values] = {}
        for (name, unit), values in zip(columns, rows.T[1:], strict=True):
            temperatures = TEMPERATURE_UNITS.get(unit)
            found[name, unit if temperatures is None else KELVIN.name] = (
                values if temperatures is None else temperatures.kelvins(values)
            )
        return cls(rows[:, 0], found)

    def in_unit(self, unit: str) -> dict[str, Values]:
        """The columns with a unit, by name."""
        return {name: values for (name, its_unit), values in self.columns.items() if its_unit == unit}

    def of_body(self, unit: str) -> dict[str, Values]:
        """The terms of the balance of the whole body in J or W, by name: without those of parts."""
        return {name: values for name, values in self.in_unit(unit).items() if not name.startswith((*PARTS, *GROSS))}

    def of_gross(self, way: str) -> dict[str, Values]:
        """What enters or leaves in W by surface and source; none in tables of earlier versions.

        Args:
            way: ENTERING or LEAVING.
        """
        found = {name: values for name, values in self.in_unit(WATT).items() if name.startswith(way)}
        return {name.removeprefix(way): values for name, values in found.items()}

    def of_parts(self, unit: str) -> dict[str, Values]:
        """The heats in J or W of regions, contacts and surfaces of regions, by name."""
        return {name: values for name, values in self.in_unit(unit).items() if name.startswith(PARTS)}


def read_probes(folder: Path) -> RunTable | None:
    """The temperatures of a run's probes, all in K; None if the run has no probes.csv.

    Raises:
        StorageError: the file cannot be read, or is not such a table.
    """
    return _read(folder / PROBES)


def read_energy(folder: Path) -> RunTable | None:
    """The heats in J since the start and the heat flows in W of a run; None if the run has no energy.csv.

    Raises:
        StorageError: the file cannot be read, or is not such a table.
    """
    return _read(folder / ENERGY)


def read_nodes(folder: Path) -> RunTable | None:
    """The temperatures of nodes, and the heats in J that they took up, of a run; None if the run has no nodes.csv.

    Raises:
        StorageError: the file cannot be read, or is not such a table.
    """
    return _read(folder / NODES)


def _read(path: Path) -> RunTable | None:
    if not path.exists():
        return None
    headers, rows = tables.read(path)
    # A value that a row does not have is NaN; the first row has no heat flows.
    if (np.abs(rows) > _LARGEST).any() or not np.isfinite(rows[:, 0]).all() or (np.diff(rows[:, 0]) < 0.0).any():
        raise StorageError(f"{path}: its times do not rise, or a value is infinite; the file is damaged")
    if headers[0] != header(TIME, SECOND):
        raise StorageError(
            f"{path}: its first column is not {header(TIME, SECOND)}; it was not written by this version of heatsim"
        )
    return RunTable.of([*map(split_header, headers[1:])], rows)
