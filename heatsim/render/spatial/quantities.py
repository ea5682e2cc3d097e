"""The quantities that pictures show, read cell by cell like temperatures, and their scales."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heatsim.amounts import FLUXES, Unit, choose_unit
from heatsim.errors import InputError
from heatsim.render.choice import HEAT_FLUX, LIQUID_FRACTION, MATERIAL, TEMPERATURE
from heatsim.render.page.scales import PlainScale, Scale, TemperatureScale
from heatsim.storage.field_reader import Cells, FieldReader
from heatsim.storage.run_settings import RunSettings
from heatsim.storage.vtkhdf import VOID, Field

_NUMBER = Unit("", 1.0, 0.0)


class HeatFluxReader(FieldReader):
    """Reads the magnitude of the heat flux in W/m² instead of temperatures."""

    def _slab(self, i: int, planes: slice) -> Field:
        vectors = self.read_heat_flux(i, planes).astype(np.float64)
        size: NDArray[np.float64] = np.sqrt(np.einsum("...c,...c->...", vectors, vectors))
        return size


class LiquidFractionReader(FieldReader):
    """Reads the liquid fraction, 0 to 1, instead of temperatures; materials that do not melt have 0."""

    def __init__(self, path: Path, settings: RunSettings, cells: Cells | None = None) -> None:
        super().__init__(path, cells)
        self._melting = melting_of(self, settings)

    def _slab(self, i: int, planes: slice) -> Field:
        return liquid_fraction(super()._slab(i, planes), self._melting[self.read_materials(planes)])


def melting_of(reader: FieldReader, settings: RunSettings) -> NDArray[np.float64]:
    """Solidus and liquidus in K by the number of the material, shape (materials, 2); infinite if it does not melt."""
    names = reader.materials or (settings.material,)
    return np.array([settings.melting.get(name, (np.inf, np.inf)) for name in names])


def liquid_fraction(temperatures: Field, melting: NDArray[np.float64]) -> NDArray[np.float64]:
    """The liquid fraction, 0 to 1, of cells: linear from solidus to liquidus.

    Args:
        temperatures: in K.
        melting: solidus and liquidus of each cell in K, the shape of ``temperatures`` + (2,).
    """
    solidus, liquidus = np.moveaxis(melting, -1, 0)
    melts = np.isfinite(solidus)
    low, high = np.where(melts, solidus, 0.0), np.where(melts, liquidus, 1.0)
    part = (np.asarray(temperatures, dtype=np.float64) - low) / (high - low)
    fraction: NDArray[np.float64] = np.where(melts, np.clip(part, 0.0, 1.0), 0.0)
    return fraction


class MaterialReader(FieldReader):
    """Reads the number of each cell's material instead of temperatures."""

    def _slab(self, i: int, planes: slice) -> Field:
        numbers: NDArray[np.float64] = self.read_materials(planes).astype(np.float64)
        return numbers


def open_reader(path: Path, quantity: str, settings: RunSettings, cells: Cells | None = None) -> FieldReader:
    """A reader of a quantity from fields.vtkhdf, of all cells or of a box of them.

    Raises:
        FolderError: there is no such file.
        InputError: the run has no such quantity.
        StorageError: the file is damaged.
    """
    if quantity == TEMPERATURE:
        return FieldReader(path, cells)
    if quantity == MATERIAL:
        return MaterialReader(path, cells)
    if quantity == LIQUID_FRACTION:
        if not settings.melting:
            raise InputError(f"{path}: no material of this run melts; choose another --quantity")
        return LiquidFractionReader(path, settings, cells)
    reader = HeatFluxReader(path, cells)
    if not reader.has_heat_flux:
        reader.close()
        raise InputError(f"{path}: has no heat flux; run the scenario with output.heat_flux = true")
    return reader


def scale_of(low: float, high: float, quantity: str, reader: FieldReader, settings: RunSettings) -> Scale:
    """The scale for values from ``low`` to ``high`` in SI."""
    if quantity == TEMPERATURE:
        return TemperatureScale.spanning(low, high, reader.dtype, settings.temperature_unit)
    if quantity == MATERIAL:
        names = tuple(name for name in reader.materials or ("material",) if name != VOID)
        return PlainScale(-0.5, len(names) - 0.5, "Material", _NUMBER, categories=names)
    uniform = high - low <= 4.0 * float(np.finfo(reader.dtype).eps) * max(abs(low), abs(high))
    if uniform:
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    if quantity == LIQUID_FRACTION:
        return PlainScale(0.0, 1.0, "Liquid fraction", _NUMBER, uniform)
    assert quantity == HEAT_FLUX
    return PlainScale(low, high, "Heat flux", choose_unit(FLUXES, max(abs(low), abs(high))), uniform)
