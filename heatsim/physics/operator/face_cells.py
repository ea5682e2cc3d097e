"""The cells at a face of the box: their indices, and the flux of beams on them."""

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.sources.beam_rows import BeamRows

Array = NDArray[np.float64]


def slices_at(face: int) -> tuple[slice, ...]:
    """The cells at a face of the box, as an index of an array of shape (nz, ny, nx)."""
    at = slice(-1, None) if face % 2 else slice(0, 1)
    return tuple(at if axis == face // 2 else slice(None) for axis in (2, 1, 0))


def beam_flux(beams: list[BeamRows], shape: tuple[int, int]) -> Array:
    """The flux of beams at the cells of a face in W/m²."""
    flux = np.zeros(shape)
    for beam in beams:
        beam.add_to(flux, 0)
    return flux
