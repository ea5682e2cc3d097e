"""The initial temperature: a number, an expression in x, y, z, an array file or a picture."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.scenario import units
from heatsim.scenario.expressions import Expression
from heatsim.scenario.files import existing, one_line, same_file
from heatsim.scenario.messages import fault, key_faults, refuse, show
from heatsim.scenario.quantities import LARGEST, TEMPERATURE

TRIED_PER_AXIS = 17
CHUNK = 1 << 22
# Formats that Pillow decodes without other programs and whose black and white are defined.
PICTURE_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP", "PPM")
PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".webp", ".pgm", ".ppm")
FORMS = (
    'a temperature in K as a number, text with a unit such as "20 degC", an expression in x, y, z, '
    '{ file = "start.npy" } or { image = "photo.png", range = [300.0, 400.0] } is expected'
)


@dataclass(frozen=True, eq=False)
class ArrayFile:
    """Temperatures in K from a .npy file of shape (nz, ny, nx).

    Two are equal if the files have the same name and content.
    """

    file: Path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrayFile) and same_file(self.file, other.file)

    def __hash__(self) -> int:
        return hash(self.file.name)

    def load(self) -> NDArray[Any]:
        """The array, mapped from the file, in the file's data type.

        Raises:
            ValueError: not a readable .npy file of real numbers.
        """
        try:
            array = np.lib.format.open_memmap(self.file, mode="r")
        except Exception as error:  # The header of a damaged file fails in many ways.
            raise ValueError(f"cannot be read as a .npy file ({one_line(error)})") from None
        if array.dtype.kind not in "fiu":
            raise ValueError(f"holds {array.dtype}; real numbers are expected")
        return array


@dataclass(frozen=True, eq=False)
class ImageFile:
    """Temperatures from a picture, black ``range[0]`` to white ``range[1]`` in K; the top row lies at y_max.

    Two are equal if their ranges and the names and contents of their files are equal.
    """

    image: Path
    range: tuple[float, float]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ImageFile) and self.range == other.range and same_file(self.image, other.image)

    def __hash__(self) -> int:
        return hash((self.image.name, self.range))

    def load(self, nx: int, ny: int) -> NDArray[np.float64]:
        """Temperatures in K of one layer of cells, shape (ny, nx), row 0 at y_min.

        A cell has the mean of the pixels that it covers.

        Raises:
            ValueError: not a readable picture.
        """
        from PIL import Image

        grey = read_grey(self.image)
        if grey.shape != (ny, nx):
            grey = np.asarray(Image.fromarray(grey).resize((nx, ny), Image.Resampling.BOX))
        low, high = self.range
        return np.ascontiguousarray(low + (high - low) * grey[::-1].astype(np.float64))


def read_grey(path: Path) -> NDArray[np.float32]:
    """The pixels of a picture: 0 for black to 1 for white, row 0 at the top.

    Raises:
        ValueError: not a readable picture in one of ``PICTURE_FORMATS``.
    """
    import warnings

    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings():
            # Pillow warns about large pictures; it still refuses files whose size is false.
            warnings.simplefilter("ignore")
            with Image.open(path, formats=PICTURE_FORMATS) as source:
                picture = ImageOps.exif_transpose(source)
                deep = picture.mode.startswith("I")
                if picture.mode == "F":
                    raise ValueError("its pixels are floating-point numbers, which have no black and white")
                if picture.mode in ("P", "PA"):
                    picture = picture.convert("RGBA")
                pixels = np.asarray(picture if deep else picture.convert("L"), dtype=np.float32)
    except Exception as error:  # Damaged pictures fail in many ways.
        raise ValueError(f"cannot be read as a picture ({one_line(error)})") from None
    white = np.float32(65535.0 if deep else 255.0)
    grey: NDArray[np.float32] = np.clip(pixels / white, np.float32(0.0), np.float32(1.0))
    return grey


def read_initial(value: object, folder: Path) -> float | Expression | ArrayFile | ImageFile:
    """``initial.temperature`` from TOML; files are relative to ``folder``.

    Raises:
        ValueError: the value has none of the forms allowed, or is not physical; the message is for the user.
        ValidationError: mistakes inside a table, each at its key.
    """
    if isinstance(value, Expression | ArrayFile | ImageFile):
        return value
    if isinstance(value, Mapping):
        return _read_image(value, folder) if "image" in value else _read_array(value, folder)
    if isinstance(value, str) and units.split(value) is None:
        try:
            return Expression(value, ("x", "y", "z"))
        except ValueError as error:
            advice = TEMPERATURE.advice(value)
            text = f"{error}; {FORMS}" if advice == TEMPERATURE.expected else advice
            raise ValueError(f"got {show(value)}; {text}") from None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        if isinstance(value, list):
            save = 'numpy.save("start.npy", array), shape (nz, ny, nx) in K'
            raise ValueError(f'got an array; write it to a file, {save}, and give {{ file = "start.npy" }}')
        raise ValueError(f"got {show(value)}; {FORMS}")
    return TEMPERATURE.read(value)


def find_unphysical(expression: Expression, grid: Grid) -> str | None:
    """The message about the first cell whose temperature is not physical, or None.

    Evaluates at most 17 cell centres along each axis, including the first and the last.
    """
    axes = []
    for n, length, start in zip(grid.cells, grid.size, grid.origin, strict=True):
        cells = np.unique(np.linspace(0, n - 1, TRIED_PER_AXIS).round())
        axes.append(start + length * ((2.0 * cells + 1.0) / (2.0 * n)))
    x, y, z = axes
    values = expression.evaluate(x=x[None, None, :], y=y[None, :, None], z=z[:, None, None])
    for (k, j, i), number in zip(product(*(range(n) for n in values.shape)), values.ravel().tolist(), strict=True):
        outside = TEMPERATURE.range_fault(number)
        if outside:
            place = f"x = {float(x[i])!r}, y = {float(y[j])!r}, z = {float(z[k])!r}"
            return f"got {show(expression.text)}, which is {number!r} at {place}; {outside}"
    return None


def _read_array(table: Mapping[str, object], folder: Path) -> ArrayFile:
    faults = key_faults(table, {"file": 'file = "start.npy", or image = "photo.png" and range = [300.0, 400.0]'})
    array = None
    if "file" in table:
        try:
            array = ArrayFile(existing(table["file"], folder, (".npy",)))
            try:
                _check_array(array.load())
            except ValueError as error:
                raise ValueError(f"got {show(table['file'])}, which {error}") from None
        except ValueError as error:
            faults.append(fault(str(error), ("file",)))
    if faults or array is None:
        refuse(faults)
    return array


def _check_array(array: NDArray[Any]) -> None:
    if array.ndim != 3:
        raise ValueError(f"has shape {array.shape}; three axes (z, y, x) are expected")
    nz, ny, nx = array.shape
    layers, rows = max(1, CHUNK // max(1, nx * ny)), max(1, CHUNK // max(1, nx))
    for z, y in product(range(0, nz, layers), range(0, ny, rows)):
        with np.errstate(over="ignore"):
            block = np.asarray(array[z : z + layers, y : y + rows], dtype=np.float64)
        wrong = ~((block >= 0.0) & (block <= LARGEST))
        if wrong.any():
            k, j, i = (int(index) for index in np.argwhere(wrong)[0])
            number = float(block[k, j, i])
            outside = TEMPERATURE.range_fault(number)
            raise ValueError(f"holds {number!r} at [{z + k}, {y + j}, {i}] (z, y, x); {outside}")


def _read_image(table: Mapping[str, object], folder: Path) -> ImageFile:
    faults = key_faults(
        table, {"image": 'image = "photo.png"', "range": "range = [300.0, 400.0], the temperatures of black and white"}
    )
    path = None
    try:
        path = existing(table["image"], folder, PICTURE_SUFFIXES)
        try:
            read_grey(path)
        except ValueError as error:
            raise ValueError(f"got {show(table['image'])}, which {error}") from None
    except ValueError as error:
        faults.append(fault(str(error), ("image",)))
    ends: list[float] = []
    limits = table.get("range", ())
    if not isinstance(limits, list | tuple) or len(limits) != 2:
        if "range" in table:
            faults.append(
                fault(f"got {show(limits)}; two temperatures are expected, of black and of white", ("range",))
            )
    else:
        for index, limit in enumerate(limits):
            try:
                ends.append(TEMPERATURE.read(limit))
            except ValueError as error:
                faults.append(fault(str(error), ("range", index)))
    if len(ends) == 2 and ends[0] >= ends[1]:
        faults.append(fault(f"got {show(limits)}; black must be colder than white", ("range",)))
    if faults or path is None:
        refuse(faults)
    return ImageFile(path, (ends[0], ends[1]))
