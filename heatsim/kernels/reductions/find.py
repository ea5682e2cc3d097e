"""The first cell with a given value of each of many fields: on a GPU with one launch."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.kernels import compiled

SOURCE = "find.cu"
THREADS = 256
CHUNK = 1 << 15  # cells of a block

# struct Wanted of find.cu.
WANTED = np.dtype(
    [
        *((name, np.uint64) for name in ("field", "labels", "count")),
        ("value", np.float64),
        *((name, np.uint32) for name in ("mask", "label")),
    ],
    align=True,
)


@dataclass(frozen=True, eq=False)
class Labelled:
    """Restricts a search to the cells with a certain label.

    Attributes:
        labels: bytes of all cells on the device.
        mask: the bits of a label that count.
        label: the value of these bits.
    """

    labels: Any
    mask: int
    label: int


def first_of_each(
    device: Device, fields: Sequence[Any], values: Sequence[float], among: Sequence[Labelled | None] | None = None
) -> list[int]:
    """The index of the first cell of each flattened field that equals its value.

    Args:
        device: of the fields.
        fields: contiguous arrays of one precision.
        values: for each field a number that one of its cells has.
        among: the cells to search in each field, or None for all its cells; None to search all cells of all fields.

    Raises:
        ValueError: on the CPU, no cell has it.
    """
    among = among or [None] * len(fields)
    if device.backend == "cpu":
        searches = zip(fields, values, among, strict=True)
        return [_on_cpu(field.reshape(-1), value, labelled) for field, value, labelled in searches]
    precision = str(fields[0].dtype)
    table = np.zeros(len(fields), WANTED)
    table["field"] = [field.data.ptr for field in fields]
    table["count"] = [field.size for field in fields]
    table["value"] = values
    for row, labelled in zip(table, among, strict=True):
        if labelled is not None:
            row["labels"], row["mask"], row["label"] = labelled.labels.data.ptr, labelled.mask, labelled.label
    chunks = ceil(int(table["count"].max()) / CHUNK)
    on_device = device.xp.asarray(table.view(np.uint8))
    first = device.xp.empty(len(fields) * chunks, dtype=np.uint64)
    function = compiled.function(SOURCE, "find", {"REAL": compiled.REAL[precision], "THREADS": THREADS, "CHUNK": CHUNK})
    function((len(fields) * chunks,), (THREADS,), (on_device, np.uint32(chunks), first))
    found: list[int] = device.to_host(first).reshape(len(fields), chunks).min(axis=1).tolist()
    return found


def _on_cpu(field: NDArray[Any], value: float, among: Labelled | None) -> int:
    labels = None if among is None else among.labels.reshape(-1)
    for first in range(0, field.size, CHUNK):
        equal = field[first : first + CHUNK] == value
        if among is not None and labels is not None:
            equal &= labels[first : first + CHUNK] & np.uint8(among.mask) == among.label
        place = int(equal.argmax())
        if equal[place]:
            return first + place
    raise ValueError(f"no cell has the value {value!r}")
