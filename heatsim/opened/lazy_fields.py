"""Arrays of fields.vtkhdf that read from the file when their values are needed.

xarray asks for a part of the array by an index; only that part is read. The file is open only while it is read, so a
run may go on writing to it.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray.backends import BackendArray
from xarray.core import indexing

from heatsim.render.spatial.quantities import liquid_fraction, melting_of
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.run_settings import RunSettings
from heatsim.storage.vtkhdf import TEMPERATURE


class LazyField(BackendArray):
    """A quantity of all times of a file, shape (times, z, y, x) or (times, z, y, x, 3).

    Values in void cells are NaN.

    Attributes:
        shape: of the array.
        dtype: float32 or float64.
    """

    def __init__(self, path: Path, times: int, name: str) -> None:
        """``times``: the number of times; ``name``: as FieldReader.read_part takes it."""
        self._path, self._name = path, name
        with FieldReader(path) as reader:
            self.shape = (times, *reader.shape_of(name)[1:])
            self.dtype = reader.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """The part of the array at an index of xarray."""
        support = indexing.IndexingSupport.OUTER_1VECTOR
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._read)

    def _read(self, key: tuple[Any, ...]) -> NDArray[np.floating[Any]]:
        with FieldReader(self._path) as reader:
            return reader.read_part(self._name, key)


class LazyLiquidFraction(LazyField):
    """The liquid fraction of all times of a file, shape (times, z, y, x); NaN in void."""

    def __init__(self, path: Path, times: int, settings: RunSettings) -> None:
        """``settings``: with the solidus and the liquidus of the materials."""
        super().__init__(path, times, TEMPERATURE)
        self._settings = settings

    def _read(self, key: tuple[Any, ...]) -> NDArray[np.floating[Any]]:
        with FieldReader(self._path) as reader:
            temperatures = reader.read_part(TEMPERATURE, key)
            melting = melting_of(reader, self._settings)[reader.read_materials()]
        # One axis after the other: a list and a number together would reorder the axes.
        for axis, index in reversed(list(enumerate(key[1:]))):
            melting = melting[(slice(None),) * axis + (index,)]
        fractions = liquid_fraction(temperatures, np.broadcast_to(melting, (*np.shape(temperatures), 2)))
        return np.where(np.isnan(temperatures), np.nan, fractions).astype(self.dtype)
