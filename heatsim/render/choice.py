"""What to draw of a run, as options of `heatsim render` choose it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import InputError
from heatsim.grid import AXES, Grid
from heatsim.render.page.view import CAMERAS, Camera
from heatsim.storage.field_reader import Cells
from heatsim.temperature_units import KELVIN, TemperatureUnit

SLICES, SECTIONS, SURFACE, ISOSURFACE = "slices", "sections", "surface", "isosurface"
PLANE = "plane"  # the view of a grid of one plane
VIEWS = (SLICES, SECTIONS, SURFACE, ISOSURFACE)
TEMPERATURE, HEAT_FLUX, LIQUID_FRACTION, MATERIAL = "temperature", "heat_flux", "liquid_fraction", "material"
QUANTITIES = (TEMPERATURE, HEAT_FLUX, LIQUID_FRACTION, MATERIAL)
# The unit of each quantity in SI.
_UNITS = {TEMPERATURE: "K", HEAT_FLUX: "W/m^2", LIQUID_FRACTION: "", MATERIAL: ""}


@dataclass(frozen=True)
class PictureChoice:
    """What to draw.

    Attributes:
        views: of bodies; empty for the usual ones.
        times: in s; empty for the usual ones.
        quantity: one of ``QUANTITIES``.
        planes: by axis (0 = x), the coordinate in m of the section normal to it; heatsim chooses the others.
        span: the ends of the colour scale in SI; None for the range of the values.
        cells: the part of the body to draw; None for all of it.
        camera: of 3-D views; None for one that sees the warm side.
        format: the suffix of the pictures.
        owners: finds, in the folder of a run, the names of its regions and the number of each cell's region from 1,
            shape (nz, ny, nx); pictures then name the hottest ones.
    """

    views: Sequence[str] = ()
    times: Sequence[float] = ()
    quantity: str = TEMPERATURE
    planes: Mapping[int, float] = field(default_factory=dict)
    span: tuple[float, float] | None = None
    cells: Cells | None = None
    camera: Camera | None = None
    format: str = "png"
    owners: Callable[[Path], tuple[Sequence[str], NDArray[np.uint8]] | None] | None = field(default=None, compare=False)

    @property
    def prefix(self) -> str:
        """The prefix of picture names; empty for temperatures of the whole body."""
        quantity = "" if self.quantity == TEMPERATURE else f"{self.quantity}_"
        return quantity if self.cells is None else f"{quantity}zoom_"

    @property
    def usual(self) -> bool:
        """Whether all usual pictures are drawn, with the curves, in whatever format."""
        return (
            not (self.views or self.times or self.planes or self.span or self.cells or self.camera)
            and self.quantity == TEMPERATURE
        )


def read_times(text: str | None) -> tuple[float, ...]:
    """Times in s from a text such as ``"2, 10, 20 h"``: numbers without a unit have the unit of the others.

    Raises:
        InputError: an entry is no time, or its unit is unclear; the message names it.
    """
    return tuple(read_number(entry, "s", "--times") for entry in _with_units(_entries(text), "--times"))


def read_planes(text: str | None, grid: Grid) -> dict[int, float]:
    """Coordinates in m by axis from a text such as ``"x = 20 mm, z = 0.003"``.

    Raises:
        InputError: names the entry that is no plane in the domain.
    """
    planes = {}
    for entry in _entries(text):
        axis, equals, value = entry.partition("=")
        if not equals or axis.strip() not in AXES:
            raise InputError(f'--planes: got "{entry}"; write for example --planes "x = 20 mm, z = 0"')
        number = AXES.index(axis.strip())
        place = read_number(value, "m", "--planes")
        low = grid.origin[number]
        if not low <= place <= low + grid.size[number]:
            raise InputError(
                f'--planes: got "{entry}"; the domain reaches from {low:g} to {low + grid.size[number]:g} m along '
                f"{AXES[number]}"
            )
        planes[number] = place
    return planes


def read_camera(text: str | None) -> Camera | None:
    """A camera from its name, or from its azimuth and its elevation in degrees, as in ``"-57, 26"``.

    Raises:
        InputError: the text is neither.
    """
    if text is None or text.strip() in CAMERAS:
        return CAMERAS[text.strip()] if text is not None else None
    entries = _entries(text)
    if len(entries) == 2 and all(_is_number(entry) for entry in entries) and abs(float(entries[1])) <= 90.0:
        return Camera(float(entries[0]) % 360.0, float(entries[1]))
    raise InputError(
        f'--camera: got "{text}"; one of {", ".join(CAMERAS)} is expected, or the azimuth (0 looks from x_max, 90 from '
        'y_max) and the elevation (-90 to 90) in degrees, as in --camera "-57, 26"'
    )


def read_span(text: str | None, quantity: str, unit: TemperatureUnit) -> tuple[float, float] | None:
    """The ends of a colour scale in SI from a text such as ``"20 degC, 80 degC"``.

    A number without a unit has the unit of the other end. If neither has a unit, both are in the unit of the run.

    Raises:
        InputError: the text does not contain two ends, or the first is not below the second.
    """
    if text is None:
        return None
    entries = _with_units(_entries(text), "--range")
    if len(entries) != 2:
        raise InputError(f'--range: got "{text}"; write two ends, for example --range "20 degC, 80 degC"')
    plain = quantity == TEMPERATURE and unit is not KELVIN
    low, high = (
        unit.kelvins(float(entry)) if plain and _is_number(entry) else read_number(entry, _UNITS[quantity], "--range")
        for entry in entries
    )
    if low >= high:
        raise InputError(f'--range: got "{text}"; the first end must be below the second')
    return low, high


def _entries(text: str | None) -> list[str]:
    return [entry.strip() for entry in (text or "").split(",") if entry.strip()]


def _with_units(entries: Sequence[str], option: str) -> list[str]:
    """The entries; plain numbers get the unit of the other entries.

    Raises:
        InputError: the other entries have different units.
    """
    from heatsim.scenario.values.units import split

    plain = [entry for entry in entries if _is_number(entry)]
    units = list(dict.fromkeys(parts[1] for entry in entries if (parts := split(entry)) is not None))
    if not units:
        return list(entries)
    unclear = [entry for entry in plain if float(entry) != 0.0]
    if len(units) > 1 and unclear:
        example = f"{unclear[0]} {units[-1]}"
        raise InputError(
            f'{option}: got "{unclear[0]}" beside {" and ".join(units)}; write its unit, as in "{example}"'
        )
    return [f"{entry} {units[-1]}" if entry in plain else entry for entry in entries]


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False


def read_number(text: str, unit: str, option: str) -> float:
    """A number, or a number with a unit, in SI.

    Raises:
        InputError: the text is neither.
    """
    if _is_number(text):
        return float(text)
    from heatsim.scenario.values.units import convert, split

    parts = split(text)
    if parts is not None and unit:
        try:
            return convert(*parts, unit)
        except ValueError as error:
            raise InputError(f"{option}: {error}") from None
    expected = f"a number in {unit}, or one with its unit, is expected" if unit else "a number is expected"
    raise InputError(f'{option}: got "{text.strip()}"; {expected}')
