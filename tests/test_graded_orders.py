"""Second order of convergence on smoothly graded grids, for each condition, with each method."""

from pathlib import Path

import pytest
from graded_orders import Regridded, Turned, order

pytestmark = pytest.mark.usefixtures("one_thread")

_BAR = {"x": (0.0, 1.0)}
CASES = [
    Regridded("order_held", _BAR, {"x": (16,)}),
    Regridded("order_flux", _BAR, {"x": (16,)}),
    Regridded("order_convection", _BAR, {"x": (16,)}),
    Regridded("order_radiation", _BAR, {"x": (16,)}),
    Regridded("order_beside", _BAR, {"x": (16,)}),
    Regridded("order_falling", _BAR, {"x": (16,)}),
    Regridded("order_surface", _BAR, {"x": (16,)}),
    Regridded("order_insulated", _BAR, {"x": (16,)}),
    Regridded("order_varying", {"x": (1.0, 2.0)}, {"x": (16,)}),
    Regridded("order_contact", {"x": (0.0, 0.4, 1.0)}, {"x": (8, 12)}),
    Regridded("region_surfaces", {"x": (0.0, 0.2, 0.4, 0.6, 1.0)}, {"x": (6, 6, 4, 12)}),
    Regridded("order_void", dict.fromkeys("xy", (0.0, 1.0, 1.25)), dict.fromkeys("xy", (24, 8))),
    Regridded("order_space", dict.fromkeys("xy", (0.0, 1.0)), dict.fromkeys("xy", (24,))),
    Regridded("source_in_space", dict.fromkeys("xy", (0.0, 1.0)), dict.fromkeys("xy", (16,))),
    Regridded("order_mixed", dict.fromkeys("xyz", (0.0, 1.0)), dict.fromkeys("xyz", (12,))),
    Regridded("order_layer", {"x": (0.0, 1.0), "z": (0.0, 0.5)}, {"x": (64,), "z": (48,)}),
    Regridded("heated_layer", {"x": (0.0, 0.4, 0.6, 1.0)}, {"x": (16, 8, 16)}),
    Regridded("resistive_slab", _BAR, {"x": (16,)}),
    Regridded("steady_radiation", {"x": (0.0, 0.1)}, {"x": (16,)}),
    Regridded("steady_reaction", _BAR, {"x": (16,)}),
]
QUICK = {
    *(("order_flux", "euler"), ("order_convection", "implicit"), ("order_radiation", "euler")),
    *(("region_surfaces", "stabilized"), ("order_void", "euler"), ("heated_layer", "steady")),
}
KINDS = ("temperature", "flux", "convection", "radiation", "contact", "void")
QUICKLY_TURNED = {
    *(("void", False, "euler"), ("contact", False, "euler")),
    *(("flux", True, "euler"), ("contact", True, "euler"), ("radiation", True, "euler")),
}
IN_TIME = ("euler", "stabilized", "implicit")
STEADY = ("heated_layer", "resistive_slab", "steady_radiation", "steady_reaction")


def slow(quick: bool, *values: object) -> object:
    return pytest.param(*values, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(
    ("case", "method"),
    [
        slow((case.name, method) in QUICK, case, method)
        for case in CASES
        for method in (*IN_TIME, "steady")
        if (method == "steady" and case.name in STEADY) or (method != "steady" and "steady_" not in case.name)
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_a_case_is_of_second_order(case: Regridded, method: str, tmp_path: Path) -> None:
    found = order(*(case.error(times, method, tmp_path) for times in (1, 2)))
    assert found == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize(
    ("kind", "solid", "method"),
    [
        slow((kind, solid, method) in QUICKLY_TURNED, kind, solid, method)
        for kind in KINDS
        for solid in (False, True)
        for method in IN_TIME
    ],
)
def test_turned_bodies_are_of_second_order(kind: str, solid: bool, method: str) -> None:
    """In the mean over the volume, and nearly at the axis, where heat in the body adds a logarithm of the width."""
    (coarse, at_axis), (fine, finer_at_axis) = (Turned(kind, solid, method).error(cells) for cells in (32, 64))
    assert order(coarse, fine) == pytest.approx(2.0, abs=0.05)
    if solid:
        assert order(at_axis, finer_at_axis) >= 1.8
