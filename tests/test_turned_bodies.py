"""Bodies that are turned or mirrored, with all that acts on them, have the same temperatures."""

from itertools import permutations

import numpy as np
import pytest
from covering import mostly_slow
from turned_bodies import Document, RandomBody, back, turned

from heatsim import Simulation
from heatsim.errors import HeatsimError

pytestmark = pytest.mark.usefixtures("one_thread")


def final(document: Document) -> tuple[np.ndarray, float] | None:  # type: ignore[type-arg]
    """The last field in K, and the tolerance of the run in K; None if the scenario is refused."""
    try:
        simulation = Simulation.from_dict(document, in_memory=True)
        simulation.run()
    except HeatsimError:
        return None
    method = simulation.state.method
    return simulation.temperature.copy(), 1e-9 if method is None else method.tolerance


@pytest.mark.parametrize("seed", mostly_slow(range(100), 2, 3, 5, 50))
def test_turned_bodies_have_the_same_temperatures(seed: int) -> None:
    """A layer belongs to the cells on one side of its plane, so bodies with layers are turned only."""
    random = np.random.default_rng(seed + 1000)
    order = list(permutations(range(3)))[random.integers(1, 6)]
    document = RandomBody(seed).document
    mirrored = set() if "layers" in document else {int(axis) for axis in np.flatnonzero(random.random(3) < 0.4)}
    found, other = final(turned(document, (0, 1, 2))), final(turned(document, order, mirrored))
    if found is None or other is None:
        assert found is None
        assert other is None
        pytest.skip("no such body")
    np.testing.assert_allclose(back(other[0], order, mirrored), found[0], rtol=0.0, atol=found[1])
