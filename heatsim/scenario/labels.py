"""Label images: a whole number for every cell, from a .npy file, a TIFF of several pages or a folder of PNG slices."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, PlainValidator, ValidationInfo, field_validator

from heatsim.scenario.context import folder_of
from heatsim.scenario.fields import STRICT, Form
from heatsim.scenario.files import InputFile, existing, one_line, slice_files
from heatsim.scenario.materials import read_material_name
from heatsim.scenario.messages import fault, refuse, show
from heatsim.scenario.named import Named

SUFFIXES = (".npy", ".tif", ".tiff")
SLAB = 1 << 24


@dataclass(frozen=True, eq=False)
class LabelFile(InputFile):
    """The file, or the folder of slices, of a label image.

    Attributes:
        shape: of the image, (nz, ny, nx).
        present: the labels that occur in it.
    """

    shape: tuple[int, ...]
    present: frozenset[int]


def _read_file(value: object, info: ValidationInfo) -> LabelFile:
    if isinstance(value, LabelFile):
        return value
    path = existing(value, folder_of(info), SUFFIXES, folders=True)
    try:
        labels = load_labels(path)
    except ValueError as error:
        raise ValueError(f"got {show(value)}, which {error}") from None
    return LabelFile(path, labels.shape, frozenset(_labels_in(labels)))


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


def _labels_in(array: NDArray[Any]) -> set[int]:
    planes = max(1, SLAB // max(1, array[0].size))
    present: set[int] = set()
    for first in range(0, len(array), planes):
        present.update(np.unique(array[first : first + planes]).tolist())
    return present


class Labels(BaseModel):
    """Materials from a label image with the grid's shape; cells with a label not in ``materials`` stay unchanged."""

    model_config = STRICT

    file: Annotated[LabelFile, PlainValidator(_read_file), Form("path of a file or folder")] = Field(
        examples=['file = "ct.npy"'],
        description="`.npy` file of shape (nz, ny, nx), TIFF with nz pages, or folder with nz PNG slices",
    )
    materials: Annotated[
        Named[str], PlainValidator(_read_materials), Form('such as `{ "1" = "bone", "2" = "void" }`')
    ] = Field(
        examples=['materials = { "1" = "bone", "2" = "void" }'],
        description="Material or `void` for each label; cells with other labels keep their material",
    )

    @field_validator("materials", mode="after")
    @classmethod
    def _check_present(cls, materials: Named[str], info: ValidationInfo) -> Named[str]:
        file = info.data.get("file")
        if file is not None:
            absent = [label for label in materials if int(label) not in file.present]
            if absent:
                shown = ", ".join(map(str, sorted(file.present)[:12])) + (" …" if len(file.present) > 12 else "")
                refuse([fault(f"is not a label of the file, which holds {shown}", (label,)) for label in absent])
        return materials


def load_labels(path: Path) -> NDArray[Any]:
    """Labels of shape (nz, ny, nx), in the data type of the file.

    The pages of a TIFF go from z_min upwards; so do the slices of a folder, in the order of the numbers in their names.
    The top row of a page lies at y_max.

    Raises:
        ValueError: the file is not readable, or its pixels are not whole numbers.
    """
    if path.suffix.lower() == ".npy":
        return _load_array(path)
    pages = list(_slices(path) if path.is_dir() else _pages(path))
    if len({page.shape for page in pages}) > 1:
        raise ValueError("holds pictures of different sizes")
    return np.stack(pages)[:, ::-1]


def _load_array(path: Path) -> NDArray[Any]:
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # The header of a damaged file fails in many ways.
        raise ValueError(f"cannot be read as a .npy file ({one_line(error)})") from None
    if array.dtype.kind not in "iu":
        raise ValueError(f"holds {array.dtype}; whole numbers are expected")
    if array.ndim != 3 or array.size == 0:
        raise ValueError(f"has shape {array.shape}; three axes (z, y, x) are expected")
    return array


def _slices(folder: Path) -> Iterator[NDArray[Any]]:
    files = slice_files(folder)
    if not files:
        raise ValueError("is a folder without PNG files")
    for file in files:
        try:
            yield next(_pages(file))
        except ValueError as error:
            raise ValueError(f"holds {file.name}, which {error}") from None


def _pages(path: Path) -> Iterator[NDArray[Any]]:
    from PIL import Image, ImageSequence

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path, formats=("PNG", "TIFF")) as source:
                for page in ImageSequence.Iterator(source):
                    # A palette colours the labels; its indices are the labels themselves.
                    if page.mode not in ("1", "L", "P", "I") and not page.mode.startswith("I;16"):
                        raise ValueError(f"its pixels are {page.mode}; one whole number a pixel is expected")
                    yield np.array(page).astype(np.uint8) if page.mode == "1" else np.array(page)
    except Exception as error:  # Damaged pictures fail in many ways.
        raise ValueError(f"cannot be read as a picture ({one_line(error)})") from None
