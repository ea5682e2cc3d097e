"""The geometry that a scenario describes, for a picture before it runs."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.physics.regions import Parts, are_painted, paint, region_mask, source_mask
from heatsim.render.parts import Geometry, Path3D, Rectangle3D, ShownContact, ShownSource
from heatsim.scenario import MaterialFormula, Scenario, SpaceFormula, face_axes
from heatsim.scenario.resolved import document
from heatsim.temperature_units import TemperatureUnit

_Mask = NDArray[np.bool_]


def geometry_of(scenario: Scenario) -> Geometry:
    """The geometry of a scenario.

    Raises:
        ScenarioError: a region, source or probe does not fit the domain.
    """
    shape = scenario.grid.shape
    parts = paint(scenario) if are_painted(scenario) else None
    labels = np.zeros(shape, dtype=np.uint8) if parts is None else parts.material
    tables = document(scenario)
    return Geometry(
        scenario.title,
        scenario.grid,
        [name for name, _ in scenario.palette],
        labels,
        list(_sources(scenario, parts)),
        list(_contacts(scenario, labels, parts)),
        [*_patches(scenario, tables), *_layers(scenario)],
        list(_beams(scenario)),
        [Path3D(probe.name, np.array(probe.points)) for probe in scenario.probes if probe.points],
        list(_remarks(scenario, tables)),
    )


def _sources(scenario: Scenario, parts: Parts | None) -> Iterator[ShownSource]:
    for source in scenario.sources:
        if source.beam is not None:
            continue
        everywhere = np.ones(scenario.grid.shape, dtype=bool)
        amount = f"{source.power:g} W" if source.power is not None else _density(source.power_density)
        yield ShownSource(
            f"source {source.name}: {amount}", everywhere if parts is None else source_mask(source, scenario, parts)
        )


def _density(density: object) -> str:
    """A power density as text."""
    if isinstance(density, float):
        return f"{density:g} W/m³"
    if isinstance(density, SpaceFormula | MaterialFormula):
        return f"{density.expression.text} W/m³"
    return "a table in temperature"


def _contacts(scenario: Scenario, labels: NDArray[np.uint8], parts: Parts | None) -> Iterator[ShownContact]:
    for contact in scenario.contacts:
        one, other = (_cells_of(name, scenario, labels, parts) for name in contact.between)
        text = f"contact {' – '.join(contact.between)}: {contact.resistance:g} m² K/W"
        yield ShownContact(text, one, other)


def _cells_of(name: str, scenario: Scenario, labels: NDArray[np.uint8], parts: Parts | None) -> _Mask:
    """The cells of a material or of a region."""
    names = [material for material, _ in scenario.palette]
    if name in names or parts is None:
        return np.asarray(labels == names.index(name))
    return region_mask(name, scenario, parts)


def _patches(scenario: Scenario, tables: Mapping[str, Any]) -> Iterator[Rectangle3D]:
    for patch, table in zip(scenario.patches, tables.get("patches", ()), strict=True):
        low, high = [0.0] * 3, [0.0] * 3
        normal = FACES.index(patch.face) // 2
        low[normal] = high[normal] = _place(scenario, patch.face)
        for index, axis in enumerate(face_axes(patch.face)):
            low[axis], high[axis] = patch.rectangle.min[index], patch.rectangle.max[index]
        text = f"patch {patch.name} on {patch.face}: {_condition(table, scenario.output.temperature_unit)}"
        yield Rectangle3D(text, normal, (low[0], low[1], low[2]), (high[0], high[1], high[2]))


def _layers(scenario: Scenario) -> Iterator[Rectangle3D]:
    for layer in scenario.layers:
        low, high = [0.0] * 3, [0.0] * 3
        low[layer.plane.across] = high[layer.plane.across] = layer.plane.at
        for axis, start, end in zip(layer.plane.along, *layer.plane.corners(scenario.grid), strict=True):
            low[axis], high[axis] = start, end
        text = f"{layer.name}: {layer.material}, {1e6 * layer.thickness:g} µm"
        yield Rectangle3D(text, layer.plane.across, (low[0], low[1], low[2]), (high[0], high[1], high[2]))


def _place(scenario: Scenario, face: str) -> float:
    """The coordinate in m of a face of the box."""
    axis, upper = divmod(FACES.index(face), 2)
    return scenario.grid.origin[axis] + upper * scenario.grid.size[axis]


def _beams(scenario: Scenario) -> Iterator[Path3D]:
    for source in scenario.sources:
        beam = source.beam
        if beam is None:
            continue
        points = np.full((len(beam.path), 3), _place(scenario, beam.face))
        points[:, list(face_axes(beam.face))] = beam.path
        if len(points) == 1:
            # A spot that does not move, as a cross.
            u, v = face_axes(beam.face)
            points = np.repeat(points, 5, axis=0)
            points[[0, 1], u] += (-beam.radius, beam.radius)
            points[[3, 4], v] += (-beam.radius, beam.radius)
        yield Path3D(f"beam {source.name}: {beam.power:g} W, radius {1e3 * beam.radius:g} mm", points)


def _remarks(scenario: Scenario, tables: Mapping[str, Any]) -> Iterator[str]:
    """The conditions of faces and of surfaces towards void, those that are equal together; and probes of regions."""
    conditions: dict[str, list[str]] = {}
    unit = scenario.output.temperature_unit
    for face in (*FACES, "void"):
        table = tables.get("boundaries", {}).get(face) or tables.get("boundaries", {}).get("default")
        if table is None and face == "void":
            continue
        if face == "void" and not scenario.uses_void:
            continue
        conditions.setdefault("insulated" if table is None else _condition(table, unit), []).append(face)
    for table in tables.get("surfaces", ()):
        conditions.setdefault(_condition(table, unit), []).append(f"{table['of']} towards void")
    for text, faces in conditions.items():
        yield f"{', '.join(faces)}: {text}."
    regions = [f"{probe.name} ({probe.statistic} of {probe.region})" for probe in scenario.probes if probe.region]
    if regions:
        yield f"Probes of regions: {', '.join(regions)}."


def _condition(table: Mapping[str, Any], unit: TemperatureUnit) -> str:
    """A condition in words: its type and the values of its keys."""
    words = [str(table.get("type", ""))]
    if "power" in table:
        words.append(_value(table["power"], "W"))
    elif "value" in table:
        words.append(
            _temperature(table["value"], unit) if words[0] == "temperature" else _value(table["value"], "W/m²")
        )
    if "coefficient" in table:
        words.append(_value(table["coefficient"], "W/(m² K)"))
    if "ambient" in table:
        words.append(f"to {_temperature(table['ambient'], unit)}")
    radiating = []
    if table.get("emissivity"):
        radiating.append(f"emissivity {_value(table['emissivity'], '')}")
        if table.get("surroundings") not in (None, table.get("ambient")):
            radiating.append(f"surroundings {_temperature(table['surroundings'], unit)}")
    return ", ".join([" ".join(words).strip(), *radiating])


def _temperature(value: object, unit: TemperatureUnit) -> str:
    number = isinstance(value, int | float)
    return unit.text(float(value)) if number else _value(value, "K")  # type: ignore[arg-type]


def _value(value: object, unit: str) -> str:
    """A number with its unit, a short formula, or a word for a table."""
    if isinstance(value, bool | int | float):
        return f"{value:g} {unit}".strip()
    if isinstance(value, str):
        return value if len(value) <= 30 else "a formula"
    return "a table in time"
