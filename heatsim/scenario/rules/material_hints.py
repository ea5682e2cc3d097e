"""Hints about materials: values that no material has, but that a material has in another unit.

A hint needs two values that no material has together, because many single values are unusual and real: silica aerogel
has 3 kg/m³, graphene foam conducts 2 W/(m K) with 12 kg/m³, and copper at 10 K has 0.9 J/(kg K). Only constant values
are compared.
"""

from collections.abc import Iterator

from heatsim.scenario.messages import show_key
from heatsim.scenario.tables.materials import Material
from heatsim.scenario.tables.model import Scenario
from heatsim.scenario.values.materialfunction import MaterialFunction

# kg/m³: gases at 1 atm are lighter, solids that conduct well are heavier.
_LIGHT = (1.5, 30.0)
# kg/m³: in g/cm³, up to here are glass, stone and ceramics.
_LIGHT_MINERALS = 4.0
_METAL, _MINERAL = 5.0, 0.5  # W/(m K), conductivities above these
# kg/m³: from steel to copper. Heavier powders of tungsten may conduct badly.
_HEAVY = (7500.0, 9000.0)
_BAD = (0.005, 0.12)  # W/(m K): in W/(mm K) or kW/(m K), metals
_SMALL_HEAT = (0.02, 10.0)  # J/(kg K): in kJ/(kg K) or cal/(g K), all materials
_WARM = 150.0  # K: colder bodies may have such a small specific heat


def material_hints(scenario: Scenario) -> list[str]:
    """Warnings about densities, conductivities and specific heats that are probably in another unit."""
    if scenario.steady:
        return []
    alone = scenario.material is not None
    warm = isinstance(scenario.initial.temperature, float) and scenario.initial.temperature >= _WARM
    return [
        f"{show_key(['material', key] if alone else ['materials', name, key])} = {hint}"
        for name, material in scenario.named_materials
        for key, hint in _hints_of(material, warm)
    ]


def _hints_of(material: Material, warm: bool) -> Iterator[tuple[str, str]]:
    """The key and the text of each hint about a material; ``warm``: the body has at least 150 K at the start."""
    density, heat = material.density, material.specific_heat
    if not isinstance(material.conductivity, MaterialFunction):
        k = max(material.conductivity)
        least = _MINERAL if density <= _LIGHT_MINERALS else _METAL
        if _LIGHT[0] <= density < _LIGHT[1] and k > least:
            yield (
                "density",
                f"{density:g} kg/m³: no material as light as this conducts {k:g} W/(m K); if the density is in g/cm³, "
                f'write "{density:g} g/cm^3"; else check the unit of the conductivity',
            )
        if _HEAVY[0] <= density <= _HEAVY[1] and _BAD[0] <= k < _BAD[1]:
            yield (
                "conductivity",
                f"{k:g} W/(m K): no material with {density:g} kg/m³ conducts as badly as this; if the conductivity is "
                f'in kW/(m K) or W/(mm K), write "{k:g} kW/(m K)"',
            )
    # Density and specific heat are both 1 in a scenario without units.
    if warm and isinstance(heat, float) and _SMALL_HEAT[0] < heat < _SMALL_HEAT[1] and not heat == density == 1.0:
        yield (
            "specific_heat",
            f"{heat:g} J/(kg K): above {_WARM:g} K no material has a specific heat as small as this; if it is in "
            f'kJ/(kg K), write "{heat:g} kJ/(kg K)"',
        )
