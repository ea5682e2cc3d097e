"""The cells of a flat section in the coordinates of its axes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.amounts import Unit
from heatsim.grid import Axis, Grid
from heatsim.render.page.axes import ends_of

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SectionCells:
    """The cells of a section: those of two axes of a grid.

    Attributes:
        grid: the cells.
        across: the axis to the right.
        up: the axis upwards.
        unit: of lengths.
    """

    grid: Grid
    across: int
    up: int
    unit: Unit

    @property
    def axes(self) -> tuple[Axis, Axis]:
        """The axes across and up."""
        return self.grid.axes[self.across], self.grid.axes[self.up]

    @property
    def centres(self) -> tuple[_Floats, _Floats]:
        """The centres of the cells across and up."""
        across, up = (axis.centres / self.unit.size for axis in self.axes)
        return across, up

    @property
    def ends(self) -> tuple[float, float, float, float]:
        """The left, right, lower and upper end."""
        return *ends_of(self.grid, self.across, self.unit), *ends_of(self.grid, self.up, self.unit)

    def at(self, places: NDArray[np.floating[Any]]) -> _Floats:
        """The coordinates of points that are counted in cells from the lower left corner; both of shape (…, 2)."""
        pairs = zip(self.axes, np.moveaxis(places, -1, 0), strict=True)
        return np.stack([axis.coordinates(along) / self.unit.size for axis, along in pairs], axis=-1)

    def show(self, axes: Any, values: NDArray[Any], interpolation: str = "nearest", **style: Any) -> None:
        """Draw an image of values, indexed [up, across], in which each cell has its real borders.

        Args:
            axes: of Matplotlib.
            values: numbers, or RGB or RGBA.
            interpolation: of the image; cells of several widths are always drawn with sharp edges.
            style: the colour map and the norm of numbers.
        """
        if all(axis.uniform for axis in self.axes):
            axes.imshow(values, extent=self.ends, origin="lower", aspect="auto", interpolation=interpolation, **style)
            return
        from matplotlib.image import PcolorImage

        x, y = (axis.borders / self.unit.size for axis in self.axes)
        axes.add_image(PcolorImage(axes, x, y, values, **style))
