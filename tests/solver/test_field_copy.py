"""A copy of the field that is read while the field itself is stepped on."""

import numpy as np
import pytest

from heatsim import device
from heatsim.grid import Grid
from heatsim.solver.field import field_copy
from heatsim.solver.field.field import Field
from heatsim.solver.field.field_copy import FieldCopy

BACKENDS = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def field(backend: str, precision: str) -> Field:
    made = Field(device.choose(backend), Grid((5, 4, 7), (1.0, 1.0, 1.0)), precision, 293.15)
    made.load_deviations(np.random.default_rng(4).normal(0.0, 40.0, (7, 4, 5)).astype(precision))
    return made


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("slab_bytes", [1, 3 * 4 * 5 * 4, 1 << 20])
def test_it_keeps_every_bit_while_the_field_goes_on(
    backend: str, precision: str, slab_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(field_copy, "SLAB_BYTES", slab_bytes)
    stepped = field(backend, precision)
    deviation = stepped.device.to_host(stepped.deviation).copy()
    temperature = (deviation.astype(np.float64) + 293.15).astype(precision)
    kept = FieldCopy(stepped, stepped.device.xp.empty_like(stepped.deviation))
    stepped.deviation[...] = 1.0
    assert (kept.shape, kept.precision) == (deviation.shape, precision)
    # A slab is gone when the next comes.
    assert b"".join(slab.tobytes() for slab in kept.deviations()) == deviation.tobytes()
    assert b"".join(slab.tobytes() for slab in kept.temperatures()) == temperature.tobytes()
    assert kept.planes(2, 5).tobytes() == (deviation[2:5].astype(np.float64) + 293.15).tobytes()


def test_without_room_for_a_copy_it_reads_the_field_itself() -> None:
    stepped = field("cpu", "float32")
    kept = FieldCopy(stepped)
    stepped.deviation[...] = 1.0
    assert all((slab == 1.0).all() for slab in kept.deviations())
