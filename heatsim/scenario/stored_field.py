"""The temperature at one time in a fields.vtkhdf, as an input file: its copy is a .npy file of this time alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import HeatsimError
from heatsim.grid import Grid
from heatsim.scenario.files import KEPT, InputFile, checked

if TYPE_CHECKING:
    from heatsim.storage.field_reader import FieldReader

_SAME = 1e-9  # times that differ by less than this part are equal
_SHOWN = 6


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredField(InputFile):
    """The field at a time. Later times that a run appends do not count.

    Attributes:
        number: of the time in the file.
        grid: of the run.
    """

    number: int
    grid: Grid

    @classmethod
    def at(cls, path: Path, time: float) -> "StoredField":
        """The field at a time in s.

        Raises:
            ValueError: the file cannot be read, or does not have this time; the message continues "fields.vtkhdf …".
        """
        try:
            with _opened(path) as reader:
                near = np.flatnonzero(np.abs(reader.times - time) <= _SAME * abs(time))
                if not len(near):
                    shown = [f"{each:.10g}" for each in reader.times.tolist()]
                    some = shown if len(shown) <= _SHOWN else [*shown[:2], "…", *shown[-2:]]
                    raise ValueError(f"has no field at t = {time:.10g} s; its times are {', '.join(some)} s")
                grid = reader.grid
        except HeatsimError as error:
            raise ValueError(f"cannot be read: {error}") from None
        draft = cls(path, 0, 0, number=int(near[-1]), grid=grid)
        size, checksum, kept = checked(draft.stream(), KEPT)
        return cls(path, size, checksum, (), kept, number=draft.number, grid=grid)

    @property
    def name(self) -> str:
        """Of its copy."""
        return f"{self.path.stem}.npy"

    def stream(self) -> Iterator[bytes]:
        """The content of the copy."""
        with _opened(self.path) as reader:
            header = {"descr": np.lib.format.dtype_to_descr(reader.dtype), "fortran_order": False}
            beginning = BytesIO()
            np.lib.format.write_array_header_1_0(beginning, {**header, "shape": reader.grid.shape})
            yield beginning.getvalue()
            for planes, _ in reader.slabs(self.number):
                yield _part(reader, self.number, planes).tobytes()

    @cached_property
    def planes(self) -> "Planes":
        """The array, read from the file where it is indexed."""
        return Planes(self.path, self.number)


class Planes:
    """An array in a file; each index reads a part."""

    def __init__(self, path: Path, number: int) -> None:
        self._path, self._number = path, number
        with _opened(path) as reader:
            self.shape, self.dtype = reader.grid.shape, reader.dtype
        self.ndim = 3

    def __getitem__(self, index: slice | tuple[slice, ...]) -> NDArray[Any]:
        parts = index if isinstance(index, tuple) else (index,)
        with _opened(self._path) as reader:
            return _part(reader, self._number, *parts)


def _opened(path: Path) -> "FieldReader":
    from heatsim.storage.field_reader import FieldReader  # with h5py, which other scenarios do not need

    return FieldReader(path)


def _part(reader: "FieldReader", number: int, *parts: slice) -> NDArray[Any]:
    from heatsim.storage.vtkhdf import TEMPERATURE

    return reader.read_part(TEMPERATURE, (number, *parts))
