"""The initial temperature: a number, an expression in x, y, z, an array file, a time of another run or a picture."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import ceil, floor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.files import InputFile, input_file, load_array, one_line
from heatsim.scenario.messages import fault, key_faults, refuse, show
from heatsim.scenario.stored_field import Planes, StoredField
from heatsim.scenario.values import units
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.quantities import LARGEST, MOMENT, TEMPERATURE

if TYPE_CHECKING:
    from PIL import Image

FIELD_SUFFIX = ".vtkhdf"
CHUNK = 1 << 22
# Formats that Pillow decodes without other programs and whose black and white are defined.
PICTURE_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP", "PPM")
PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".webp", ".pgm", ".ppm")
FORMS = (
    'a temperature in K as a number, text with a unit such as "20 degC", an expression in x, y, z, '
    '{ file = "start.npy" } or { image = "photo.png", range = [300.0, 400.0] } is expected'
)


@dataclass(frozen=True)
class ArrayFile:
    """Temperatures in K of all cells from a .npy file of shape (nz, ny, nx), or from one time of a fields.vtkhdf.

    Attributes:
        file: the file.
    """

    file: InputFile

    @property
    def missing(self) -> tuple[int, ...] | None:
        """The first place (z, y, x) of NaN, which is allowed in void; None if there is none.

        Raises:
            ValueError: the file has a value that no cell may have, or cannot be read.
        """
        return _contents(self)[0]

    @property
    def lowest(self) -> float:
        """The lowest temperature in K, which void gets; errors as for :attr:`missing`."""
        return _contents(self)[1]

    def load(self) -> NDArray[Any] | Planes:
        """The array in the file's data type; a large one is read where it is indexed.

        Raises:
            ValueError: not a readable file of real numbers.
        """
        if isinstance(self.file, StoredField) and not self.file.in_memory:
            return self.file.planes
        array = load_array(self.file)
        if array.dtype.kind not in "fiu":
            raise ValueError(f"holds {array.dtype}; real numbers are expected")
        if array.ndim != 3:
            raise ValueError(f"has shape {array.shape}; three axes (z, y, x) are expected")
        return array


@dataclass(frozen=True)
class ImageFile:
    """Temperatures from a picture, black ``range[0]`` to white ``range[1]`` in K; the top row lies at y_max."""

    image: InputFile
    range: tuple[float, float]

    def load(self, nx: int, ny: int) -> NDArray[np.float64]:
        """Temperatures in K of one layer of cells, shape (ny, nx), row 0 at y_min.

        A cell has the mean of the pixels that it covers.

        Raises:
            ValueError: not a readable picture.
        """
        from PIL import Image

        picture, white = open_picture(self.image)
        width, height = picture.size
        rows = np.empty((ny, nx), dtype=np.float32)
        # A few rows of cells at a time: in 32 bits a picture takes four times its memory.
        step = max(1, CHUNK * ny // (width * height))
        for first in range(0, ny, step):
            last = min(first + step, ny)
            top, bottom = first * height / ny, last * height / ny
            begin, end = floor(top), ceil(bottom)
            pixels = np.asarray(picture.crop((0, begin, width, end)), dtype=np.float32) / white
            grey = np.clip(pixels, np.float32(0.0), np.float32(1.0))
            if (width, height) != (nx, ny):
                box = (0, top - begin, width, bottom - begin)
                grey = np.asarray(Image.fromarray(grey).resize((nx, last - first), Image.Resampling.BOX, box))
            rows[first:last] = grey
        low, high = self.range
        return np.ascontiguousarray(low + (high - low) * rows[::-1].astype(np.float64))


def open_picture(file: InputFile) -> tuple["Image.Image", np.float32]:
    """A picture with one number for each pixel, row 0 at the top; 0 is black. Returns it and the number of white.

    Raises:
        ValueError: not a readable picture in one of ``PICTURE_FORMATS``.
    """
    import warnings

    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings(), file.open() as stream:
            # Pillow warns about large pictures; it still refuses files whose size is false.
            warnings.simplefilter("ignore")
            with Image.open(stream, formats=PICTURE_FORMATS) as source:
                ImageOps.exif_transpose(source, in_place=True)
                deep = source.mode.startswith("I")
                if source.mode == "F":
                    raise ValueError("its pixels are floating-point numbers, which have no black and white")
                picture: Image.Image = source.convert("RGBA") if source.mode in ("P", "PA") else source
                picture = picture if deep or picture.mode == "L" else picture.convert("L")
                picture.load()
    except Exception as error:  # Damaged pictures fail in many ways.
        raise ValueError(f"cannot be read as a picture ({one_line(error)})") from None
    return picture, np.float32(65535.0 if deep else 255.0)


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


def _read_array(table: Mapping[str, object], folder: Path) -> ArrayFile:
    of_run = str(table.get("file", "")).lower().endswith(FIELD_SUFFIX) or "time" in table
    needed = {"file": 'file = "start.npy", or image = "photo.png" and range = [300.0, 400.0]'}
    if of_run:
        needed["time"] = "time = 60.0, one of the times in the file"
    faults = key_faults(table, needed)
    array = time = None
    if "time" in table:
        try:
            time = MOMENT.read(table["time"])
        except ValueError as error:
            faults.append(fault(str(error), ("time",)))
    if "file" in table and (not of_run or time is not None):
        try:
            file = input_file(table["file"], folder, (FIELD_SUFFIX,) if of_run else (".npy", FIELD_SUFFIX))
            try:
                array = ArrayFile(file if time is None else StoredField.at(file.path, time))
                array.load()
            except ValueError as error:
                raise ValueError(f"got {show(table['file'])}, which {error}") from None
        except ValueError as error:
            faults.append(fault(str(error), ("file",)))
    if faults or array is None:
        refuse(faults)
    return array


def value_fault(array: ArrayFile, uses_void: bool) -> str | None:
    """The message about a value that no cell of a body may have; None if there is none. Reads the whole array."""
    try:
        if array.missing is None or uses_void:
            return None
    except ValueError as error:
        return str(error)
    place = ", ".join(map(str, array.missing))
    return f"holds nan at [{place}] (z, y, x); {TEMPERATURE.range_fault(float('nan'))}"


@lru_cache(maxsize=8)
def _contents(file: ArrayFile) -> tuple[tuple[int, ...] | None, float]:
    """The first place of NaN, or None; the lowest value.

    Raises:
        ValueError: a value is one that no cell may have.
    """
    array = file.load()
    nz, ny, nx = array.shape
    layers, rows = max(1, CHUNK // max(1, nx * ny)), max(1, CHUNK // max(1, nx))
    missing, lowest = None, np.inf
    for z, y in product(range(0, nz, layers), range(0, ny, rows)):
        with np.errstate(over="ignore"):
            block = np.asarray(array[z : z + layers, y : y + rows], dtype=np.float64)
        wrong = ~((block >= 0.0) & (block <= LARGEST))
        empty = np.isnan(block) if wrong.any() else wrong
        lowest = min(lowest, float(np.min(block, initial=np.inf, where=~empty)))
        if missing is None and empty.any():
            k, j, i = (int(index) for index in np.argwhere(empty)[0])
            missing = z + k, y + j, i
        if (wrong & ~empty).any():
            k, j, i = (int(index) for index in np.argwhere(wrong & ~empty)[0])
            number = float(block[k, j, i])
            outside = TEMPERATURE.range_fault(number)
            raise ValueError(f"holds {number!r} at [{z + k}, {y + j}, {i}] (z, y, x); {outside}")
    return missing, lowest


def _read_image(table: Mapping[str, object], folder: Path) -> ImageFile:
    faults = key_faults(
        table, {"image": 'image = "photo.png"', "range": "range = [300.0, 400.0], the temperatures of black and white"}
    )
    path = None
    try:
        path = input_file(table["image"], folder, PICTURE_SUFFIXES)
        try:
            open_picture(path)
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
