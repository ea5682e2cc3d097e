"""The error of a value from its values on several grids: Richardson's extrapolation with Celik's safety factors.

Celik et al., *J. Fluids Eng.* 130 (2008) 078001; ASME V&V 20.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, log

ORDER = 2.0  # of the scheme in space
# The observed orders that are near enough to the theory for the small safety factor.
_NEAR = (1.5, 2.5)
_SAFE, _CAUTIOUS = 1.25, 3.0
_LEAST_ORDER = 0.5  # below it values hardly converge
_LOOPS = 60

SMOOTH, ROUGH, SAME, TWO, ONE = "converges", "does not converge monotonically", "does not depend on the grid", "", "-"


@dataclass(frozen=True)
class SpaceError:
    """The error of a value in space.

    Attributes:
        order: observed; None if the values have none.
        extrapolated: the value for cells without size; None if the values do not converge.
        error: ±, of the value on the grid that was asked for.
        finest: the same of the value on the finest grid.
        verdict: how the values behave: one of the texts above.
    """

    order: float | None
    extrapolated: float | None
    error: float
    finest: float
    verdict: str


def space_error(values: Sequence[float], ratios: Sequence[float], which: int, noise: float) -> SpaceError:
    """The error in space of a value.

    Args:
        values: on one to three grids, the finest first.
        ratios: of the spacings of neighbouring grids, each above 1.
        which: the number of the grid whose value is the answer.
        noise: differences that errors in time and rounding explain.
    """
    if len(values) < 2 or not all(map(isfinite, values)):
        return SpaceError(None, None, inf, inf, ONE)
    fine, medium = values[0], values[1]
    step = medium - fine
    if len(values) == 2:
        # An order of at least 1 is assumed.
        finest = abs(step) / (ratios[0] - 1.0) * (_CAUTIOUS / 2.0)
        return SpaceError(None, None, finest + abs(values[which] - fine), finest, TWO)
    before = values[2] - medium
    spread = max(values) - min(values)
    if spread <= noise:
        return SpaceError(None, fine, spread, spread, SAME)
    # The error of the finest value that each pair predicts with the order of the scheme.
    pairs = (
        abs(step) / (ratios[0] ** ORDER - 1.0),
        abs(before) / (ratios[1] ** ORDER - 1.0) / ratios[0] ** ORDER,
    )
    order = _observed_order(step, before, ratios)
    if order is None or order < _LEAST_ORDER:
        finest, extrapolated, verdict = _CAUTIOUS * max(pairs), None, ROUGH
    else:
        used = min(order, ORDER)
        correction = step / (ratios[0] ** used - 1.0)
        extrapolated, verdict = fine - correction, SMOOTH
        near = _NEAR[0] <= order <= _NEAR[1]
        finest = max((_SAFE if near else _CAUTIOUS) * abs(correction), _SAFE * max(pairs))
    return SpaceError(order, extrapolated, finest + abs(values[which] - fine), finest, verdict)


def _observed_order(step: float, before: float, ratios: Sequence[float]) -> float | None:
    """Celik's observed order p of three values; None if they do not converge monotonically.

    p·ln(r21) = |ln(e32/e21) + q(p)|, q = ln((r21^p − 1)/(r32^p − 1)).
    """
    if step == 0.0 or before / step <= 0.0:
        return None
    order = ORDER
    for _ in range(_LOOPS):
        if order < 1e-3:
            return None
        shift = log((ratios[0] ** order - 1.0) / (ratios[1] ** order - 1.0))
        order = min(0.5 * (order + (log(before / step) + shift) / log(ratios[0])), 20.0)
    return order
