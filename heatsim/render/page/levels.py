"""Choose the levels of isosurfaces: a few round numbers, and the temperatures at which materials melt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heatsim.counts import plain
from heatsim.render.page.scales import Scale, TemperatureScale, colour_map, ticks

_MOST = 5
# Fractions of the range: levels nearer to an end are small specks; levels nearer to a melting point hide it.
_FROM_ENDS, _FROM_MELTING = 0.04, 0.1
# Ends of the used range of the colour map, which excludes its black and its palest colours.
_DARKEST, _BRIGHTEST = 0.2, 0.9
_BRIGHT = 110.0  # brightness of a colour, of 255, on which black is easier to see than white
_ON_DARK = "#00e5ff"


@dataclass(frozen=True)
class MeltFront:
    """The border of a melt: the isotherm half-way between solidus and liquidus.

    Attributes:
        temperature: in K.
        material: the number of the material; None for the only one.
        text: its text in a legend.
        colour: its colour, which differs from that of the temperatures around it.
    """

    temperature: float
    material: int | None
    text: str
    colour: str


def melt_fronts(scale: Scale, melting: Mapping[str, tuple[float, float]], materials: Sequence[str]) -> list[MeltFront]:
    """The melt fronts within a scale of temperatures.

    Args:
        scale: the scale of a picture; scales of other quantities have no melt fronts.
        melting: the solidus and the liquidus in K of each material that melts.
        materials: the names of all materials in the order of their numbers; empty or one for a body of one material.
    """
    if not isinstance(scale, TemperatureScale) or scale.uniform:
        return []
    found = []
    for name, (solidus, liquidus) in melting.items():
        temperature = 0.5 * (solidus + liquidus)
        if scale.low < temperature < scale.high:
            of = "" if name == "material" else f" of {name}"
            number = materials.index(name) if len(materials) > 1 and name in materials else None
            behind = scale.colours([temperature])[0].astype(float)
            bright = float(behind @ (0.299, 0.587, 0.114)) > _BRIGHT
            text = f"melt front{of}, {scale.unit.text(temperature)}"
            found.append(MeltFront(temperature, number, text, "black" if bright else _ON_DARK))
    return found


@dataclass(frozen=True)
class Isotherm:
    """An isosurface: its drawn number, its text in the legend, and its colour."""

    value: float
    text: str
    colour: str


def choose_levels(scale: Scale, melting: Mapping[str, tuple[float, float]]) -> list[Isotherm]:
    """The isosurfaces of a field, from low to high; an empty list for a uniform field.

    Args:
        scale: the scale of the field.
        melting: the solidus and the liquidus in K of each material that melts. The level half-way between them is the
            melt front; round numbers near it are left out.
    """
    if scale.uniform:
        return []
    bottom, top = scale.limits
    span = top - bottom
    fronts = {}
    if isinstance(scale, TemperatureScale):
        for name, (solidus, liquidus) in melting.items():
            (value,) = scale.drawn([0.5 * (solidus + liquidus)]).tolist()
            if bottom + _FROM_ENDS * span < value < top - _FROM_ENDS * span:
                who = "" if name == "material" else f"{name} "
                fronts[value] = f"{plain(value, 6)}: {who}melts"
    found = {
        value: text
        for value, text in ticks(bottom, top, _MOST).items()
        if bottom + _FROM_ENDS * span <= value <= top - _FROM_ENDS * span
        and all(abs(value - front) > _FROM_MELTING * span for front in fronts)
    }
    return [
        Isotherm(value, text, _colour(_DARKEST + (value - bottom) / span * (_BRIGHTEST - _DARKEST)))
        for value, text in sorted({**found, **fronts}.items())
    ]


def uniform_colour() -> str:
    """The colour of a body whose field is uniform."""
    return _colour(0.5)


def _colour(fraction: float) -> str:
    from matplotlib.colors import to_hex

    return str(to_hex(colour_map()(fraction)))
