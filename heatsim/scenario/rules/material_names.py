"""The rules about the materials of a scenario, and about the places that name them."""

from collections.abc import Iterable

from heatsim.errors import Mistake
from heatsim.scenario.messages import did_you_mean, missing_key, show, show_key
from heatsim.scenario.rules.interfaces import materials_of
from heatsim.scenario.rules.validation import entries, known
from heatsim.scenario.tables.library import PREFIX, VARYING, is_of_library, library_names, properties_of
from heatsim.scenario.tables.materials import VOID
from heatsim.scenario.tables.model import MATERIAL_EXAMPLE, Scenario


def one_form_of_materials(scenario: Scenario) -> list[Mistake]:
    """A scenario has either one table [material] or several tables [materials.NAME]."""
    if not known(scenario.materials):
        return []
    names = list(scenario.materials)
    if scenario.material is None and not names and not _misses_library(scenario):
        return [Mistake("material", missing_key(MATERIAL_EXAMPLE))]
    if scenario.material is not None and names:
        message = (
            f"got both [material] and [{show_key(['materials', names[0]])}]; write [material] for one material, "
            "or [materials.NAME] for each of several materials"
        )
        return [Mistake("material", message)]
    return []


def _misses_library(scenario: Scenario) -> bool:
    """Whether the domain names a material that the library does not have, which is another mistake."""
    return known(scenario.domain) and is_of_library(scenario.domain.material)


def domain_names_its_material(scenario: Scenario) -> list[Mistake]:
    """With several materials, ``domain.material`` names the material before regions are painted."""
    if not known(scenario.domain, scenario.materials) or scenario.domain.material is not None:
        return []
    names = list(scenario.materials)
    if len(names) < 2:
        return []
    message = f"missing; write the material outside all regions: one of {', '.join(map(show, names))}, or void"
    return [Mistake("domain.material", message)]


def materials_exist(scenario: Scenario) -> list[Mistake]:
    """The materials of the domain, regions and label images exist in the scenario, or are void."""
    named: list[tuple[str, str | None]] = []
    if known(scenario.domain):
        named.append(("domain.material", scenario.domain.material))
    for index, region in entries(scenario.regions):
        named.append((f"regions.{index}.material", region.material))
        if region.labels is not None and known(region.labels.materials):
            labels = region.labels.materials.items()
            named += [(show_key(["regions", index, "labels", "materials", label]), name) for label, name in labels]
    return _unknown_materials(scenario, named, void=True)


def layers_have_constant_materials(scenario: Scenario) -> list[Mistake]:
    """The material of a layer exists and conducts; no material of a scenario with layers changes with temperature."""
    layers = [(index, layer) for index, layer in entries(scenario.layers) if known(layer.material)]
    named: list[tuple[str, str | None]] = [(f"layers.{index}.material", layer.material) for index, layer in layers]
    mistakes = _unknown_materials(scenario, named, void=False)
    if mistakes or not layers or not known(scenario.materials) or not known(*scenario.materials.values()):
        return mistakes
    used = _names_used(scenario)
    varying = next(
        (
            name
            for name, material in scenario.named_materials
            if material.varies and (name in used or scenario.material is not None)
        ),
        None,
    )
    if varying is None:
        return []
    constant = varying.removesuffix(VARYING)
    remedy = f"use {show(constant)}" if is_of_library(varying) and constant != varying else "give constant values"
    message = (
        f"in a body with layers, all materials must have constant properties; those of {show(varying)} change with "
        f"temperature: {remedy}, or make each layer a region with cells"
    )
    return [Mistake(f"layers.{layers[0][0]}.material", message)]


def _names_used(scenario: Scenario) -> set[str | None]:
    """The materials that the domain, regions and layers name."""
    of_domain = {scenario.domain.material} if known(scenario.domain) else set()
    of_regions = (materials_of(region) or set() for _, region in entries(scenario.regions))
    return of_domain.union({layer.material for _, layer in entries(scenario.layers)}, *of_regions)


def _unknown_materials(scenario: Scenario, named: Iterable[tuple[str, str | None]], void: bool) -> list[Mistake]:
    mistakes = []
    for key, name in named:
        message = None if name is None else _unknown_material(scenario, name, void)
        if message is not None:
            mistakes.append(Mistake(key, message))
    return mistakes


def _unknown_material(scenario: Scenario, name: str, void: bool) -> str | None:
    if name == VOID:
        return None if void else f'got "{VOID}", which does not conduct; the name of a material is expected'
    if not known(scenario.materials) or name in scenario.materials:
        return None
    if is_of_library(name):
        try:
            properties_of(name)
        except ValueError as error:
            return str(error)
    if not scenario.materials:
        example = name if name.isidentifier() and name.isascii() else "NAME"
        in_library = PREFIX + name in library_names()
        library = f", or {show(PREFIX + name)} for the material of the library" if in_library else ""
        return (
            f"got {show(name)}; there are no materials with names: write [materials.{example}] for each material, in "
            f"place of [material]{library}"
        )
    names = [*scenario.materials, VOID] if void else list(scenario.materials)
    near = did_you_mean(name, names)
    if not near and PREFIX + name in library_names():
        near = f"; for the material of the library write {show(PREFIX + name)}"
    return f"got {show(name)}; one of {', '.join(map(show, names))} is expected{near}"
