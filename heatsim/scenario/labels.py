"""Label images: one whole number a cell, from a .npy file, a TIFF of several pages or a folder of PNG slices."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.files import one_line, slice_files

SUFFIXES = (".npy", ".tif", ".tiff")


def load_labels(path: Path) -> NDArray[Any]:
    """Labels of shape (nz, ny, nx), in the data type of the file.

    The pages of a TIFF, and the slices of a folder in the order of the numbers in their names, follow each other from
    z_min upwards; the top row of each lies at y_max.

    Raises:
        ValueError: not readable, or not whole numbers.
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
        raise ValueError(f"holds {array.dtype}; whole numbers are wanted")
    if array.ndim != 3 or array.size == 0:
        raise ValueError(f"has shape {array.shape}; three axes (z, y, x) are wanted")
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
                        raise ValueError(f"its pixels are {page.mode}; one whole number a pixel is wanted")
                    yield np.array(page).astype(np.uint8) if page.mode == "1" else np.array(page)
    except Exception as error:  # Damaged pictures fail in many ways.
        raise ValueError(f"cannot be read as a picture ({one_line(error)})") from None
