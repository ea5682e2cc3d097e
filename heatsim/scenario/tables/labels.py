"""Label images: a whole number for every cell, from a .npy file, a TIFF, a PNG picture or a folder of PNG slices."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, PlainValidator, ValidationInfo

from heatsim.scenario.context import folder_of
from heatsim.scenario.files import InputFile, input_file, load_array, one_line
from heatsim.scenario.messages import fault, refuse, show
from heatsim.scenario.tables.fields import STRICT, Form
from heatsim.scenario.tables.materials import read_material_name
from heatsim.scenario.tables.named import Named

if TYPE_CHECKING:
    from PIL import Image

T = TypeVar("T")
SUFFIXES = (".npy", ".tif", ".tiff", ".png")
SLAB = 1 << 24
# The data types of pixels; those of all other modes that are allowed are unsigned with 16 bits.
_TYPES = {"1": np.uint8, "L": np.uint8, "P": np.uint8, "I": np.int32}


@dataclass(frozen=True)
class LabelFile:
    """The file, or the folder of slices, of a label image. Its pixels are read later.

    Attributes:
        source: the file or folder.
        shape: of the image, (nz, ny, nx).
        dtype: of its labels.
    """

    source: InputFile
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, source: InputFile) -> "LabelFile":
        """A label image.

        Raises:
            ValueError: it is none; the message continues the name of the file.
        """
        return cls(source, *_header(source))

    @property
    def path(self) -> Path:
        """Of the file or folder."""
        return self.source.path

    @property
    def present(self) -> frozenset[int]:
        """The labels that occur in the image.

        Raises:
            ValueError: as for :func:`load_labels`.
        """
        return _present(self)


def _read_file(value: object, info: ValidationInfo) -> LabelFile:
    if isinstance(value, LabelFile):
        return value
    source = input_file(value, folder_of(info), SUFFIXES, folders=True)
    try:
        return LabelFile.of(source)
    except ValueError as error:
        raise ValueError(f"got {show(value)}, which {error}") from None


def _read_materials(value: object) -> Named[str]:
    if isinstance(value, Named):
        return value
    if not isinstance(value, Mapping) or not value:
        raise ValueError(
            f'got {show(value)}; a material for each label is expected, as in {{ "1" = "bone", "2" = "void" }}'
        )
    faults, names = [], {}
    for label, name in value.items():
        number = _whole(label)
        if number is None or str(number) in names:
            faults.append(fault(f"got {show(label)}; labels are whole numbers in quotes, each of them once", (label,)))
            continue
        try:
            names[str(number)] = read_material_name(name)
        except ValueError as error:
            faults.append(fault(str(error), (label,)))
    if faults:
        refuse(faults)
    return Named.of(names)


def _whole(label: object) -> int | None:
    text = str(label)
    return int(text) if text.removeprefix("-").isdecimal() and text.isascii() and len(text) < 20 else None


@lru_cache(maxsize=8)
def _present(file: LabelFile) -> frozenset[int]:
    found: set[int] = set()
    for piece in _pieces(file):
        found.update(np.unique(piece).tolist())
    return frozenset(found)


class Labels(BaseModel):
    """Materials from a label image with the grid's shape; cells with a label not in ``materials`` stay unchanged."""

    model_config = STRICT

    file: Annotated[LabelFile, PlainValidator(_read_file), Form("path of a file or folder")] = Field(
        examples=['file = "ct.npy"'],
        description="`.npy` file of shape (nz, ny, nx), TIFF of nz pages, folder of nz PNG slices, or a PNG if nz = 1",
    )
    materials: Annotated[
        Named[str], PlainValidator(_read_materials), Form('such as `{ "1" = "bone", "2" = "void" }`')
    ] = Field(
        examples=['materials = { "1" = "bone", "2" = "void" }'],
        description="Material or `void` for each label; cells with other labels keep their material",
    )


def absent_labels(labels: Labels) -> dict[str, str]:
    """The labels of a table that its image does not have, each with a message.

    Raises:
        ValueError: as for :func:`load_labels`.
    """
    present = labels.file.present
    shown = ", ".join(map(str, sorted(present)[:12])) + (" …" if len(present) > 12 else "")
    message = f"is not a label of the file, which holds {shown}"
    return {label: message for label in labels.materials if int(label) not in present}


def load_labels(file: LabelFile) -> NDArray[Any]:
    """Labels of shape (nz, ny, nx), in the data type of the file.

    The pages of a TIFF go from z_min upwards; so do the slices of a folder, in the order of the numbers in their names.
    The top row of a page lies at y_max.

    Raises:
        ValueError: the pixels cannot be read; the message continues the name of the file.
    """
    if _is_array(file.source):
        return load_array(file.source)
    labels = np.empty(file.shape, file.dtype)
    for z, page in enumerate(_pieces(file)):
        labels[z] = page[::-1]
    return labels


def _is_array(source: InputFile) -> bool:
    return source.path.suffix.lower() == ".npy" and not source.slices


def _header(source: InputFile) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and the data type of a label image, without reading its pixels."""
    if _is_array(source):
        array = load_array(source)
        if array.dtype.kind not in "iu":
            raise ValueError(f"holds {array.dtype}; whole numbers are expected")
        if array.ndim != 3 or array.size == 0:
            raise ValueError(f"has shape {array.shape}; three axes (z, y, x) are expected")
        return array.shape, array.dtype
    if source.path.is_dir() and not source.slices:
        raise ValueError("is a folder without PNG files")
    pages = list(_pages(source, lambda page: (page.size, np.dtype(_TYPES.get(page.mode, np.uint16)))))
    if len({size for size, _ in pages}) > 1:
        raise ValueError("holds pictures of different sizes")
    nx, ny = pages[0][0]
    return (len(pages), ny, nx), np.result_type(*{dtype for _, dtype in pages})


def _pieces(file: LabelFile) -> Iterator[NDArray[Any]]:
    """The labels a few planes at a time; pages as they are in the file."""
    if not _is_array(file.source):
        yield from _pages(file.source, lambda page: np.asarray(page, dtype=file.dtype))
        return
    array = load_array(file.source)
    planes = max(1, SLAB // array[0].size)
    for first in range(0, len(array), planes):
        yield array[first : first + planes]


def _pages(source: InputFile, read: Callable[["Image.Image"], T]) -> Iterator[T]:
    """What ``read`` returns for each page of a picture, or for the first page of each slice."""
    from PIL import Image, ImageSequence

    for file in source.files:
        try:
            with warnings.catch_warnings(), file.open() as stream:
                warnings.simplefilter("ignore")
                with Image.open(stream, formats=("PNG", "TIFF")) as picture:
                    for page in ImageSequence.Iterator(picture):
                        # A palette colours the labels; its indices are the labels themselves.
                        if page.mode not in _TYPES and not page.mode.startswith("I;16"):
                            raise ValueError(f"its pixels are {page.mode}; one whole number a pixel is expected")
                        yield read(page)
                        if source.slices:
                            break
        except Exception as error:  # Damaged pictures fail in many ways.
            message = f"cannot be read as a picture ({one_line(error)})"
            raise ValueError(f"holds {file.path.name}, which {message}" if source.slices else message) from None
