"""Images in a figure, pixel by pixel."""

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.transforms import Affine2D
from numpy.typing import NDArray

from heatsim.render.page.figure import DPI


class Raster(Artist):
    """An RGB image below everything else in a figure: one of its pixels is one pixel of a PNG.

    ``Figure.figimage`` gives the same pixels, but resamples the image first, which takes five times as long.
    """

    zorder = -1

    def __init__(self, image: NDArray[np.uint8], x: int, y: int) -> None:
        """Place an image.

        Args:
            image: RGB, shape (height, width, 3), the upper row first.
            x: position of its left edge in pixels from the left.
            y: position of its lower edge in pixels from below.
        """
        super().__init__()
        self._place = x, y
        opaque = np.full((*image.shape[:2], 1), 255, dtype=np.uint8)
        self._pixels = np.concatenate((image, opaque), axis=2)[::-1]

    def draw(self, renderer: Any) -> None:
        """Copy the image into the figure."""
        context = renderer.new_gc()
        if renderer.option_scale_image():
            # PDF and SVG count lengths in points, whatever the resolution of the figure.
            points = 72.0 / DPI
            height, width, _ = self._pixels.shape
            x, y = (place * points for place in self._place)
            size = Affine2D().scale(width * points, height * points)
            renderer.draw_image(context, x, y, self._pixels, size)
        else:
            renderer.draw_image(context, *self._place, self._pixels)
        context.restore()
