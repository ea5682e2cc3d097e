"""The cell types of a scenario: its regions painted, its materials as numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.grid import Grid
from heatsim.parallel.slab import HALO, Slab
from heatsim.parallel.team import Team
from heatsim.physics.cells import cell_type_map
from heatsim.physics.cells.cell_type_map import Contacts, resistances
from heatsim.physics.cells.cell_types import CellTypes, TooManyCellTypesError
from heatsim.physics.cells.layer_types import half
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.gap_laws import GapLaw
from heatsim.physics.conditions.law_nodes import Followed
from heatsim.physics.estimates import kernel_costs, temperature_range
from heatsim.physics.estimates.initial import InitialField
from heatsim.physics.estimates.temperature_range import Occurring
from heatsim.physics.geometry import cell_faces, surface_areas
from heatsim.physics.geometry.cell_faces import NO_AREAS, FaceAreas
from heatsim.physics.geometry.division import Division
from heatsim.physics.geometry.painted_planes import EVERYTHING, PaintedPlanes
from heatsim.physics.geometry.regions import Parts, are_painted, paint, source_mask
from heatsim.physics.layers.layer_layout import lay
from heatsim.physics.layers.layer_planes import sheets_of
from heatsim.physics.layers.layering import NO_LAYERS, Layering
from heatsim.physics.layers.near_layers import NearLayers
from heatsim.physics.layers.unlayered import Unlayered
from heatsim.physics.matter.enthalpy import tabulate
from heatsim.physics.matter.material_numbers import VOID, MaterialNumbers
from heatsim.physics.operator.fixed_surfaces import FixedSurfaces
from heatsim.physics.operator.gap_links import with_gaps
from heatsim.physics.operator.rooms import numbers_towards_void, with_rooms
from heatsim.physics.operator.surface_powers import with_areas
from heatsim.physics.operator.values_in_space import is_in_space, with_values_in_space
from heatsim.physics.sources import cell_sources
from heatsim.scenario import Scenario
from heatsim.scenario.tables.boundaries import depends_on_surface

# Methods that solve equations by multigrid.
SOLVING = ("steady", "implicit")


@dataclass(frozen=True, eq=False)
class Body:
    """The materials of a body.

    Attributes:
        materials: the cell types.
        boundary: the conditions, with powers of surfaces as fluxes, and mixtures for values that vary in space.
        parts: the painted cells; None if nothing is painted.
        reference: the temperature in K at which ``materials`` gives the properties of materials that vary; 0 if no
            material varies.
    """

    materials: CellTypes
    boundary: Boundary
    parts: Parts | None
    reference: float

    @classmethod
    def from_scenario(cls, scenario: Scenario, boundary: Boundary, held: PaintedPlanes = EVERYTHING) -> "Body":
        """Paint the regions and derive the cell types. Collective.

        Args:
            scenario: the scenario.
            boundary: its conditions.
            held: the planes to paint.

        Raises:
            ScenarioError: all cells are void, a region paints no cell, a source heats no cell, two surfaces have
                boundary faces in common, a room has none, there are too many cell types, or a material has an
                impossible property at a temperature that can occur.
        """
        parts = paint(scenario, held) if are_painted(scenario) else None
        varies = kernel_costs.varies(scenario)
        start = InitialField.from_scenario(scenario, parts, held=held) if varies else None
        division = Division.of(scenario)
        palette = _palette(division, start)
        contacts: Contacts = division.resistances
        exposed = boundary.exposes
        surfaces = cells = None
        if parts is not None and scenario.regions:
            cells = division.cells(parts)
            weighted = cell_type_map.weighted(palette, contacts, exposed)
            in_space = any(is_in_space(of) for of in boundary.conditions[boundary.first_towards_void :])
            surfaces = surface_areas.find(division, parts, cells, weighted, boundary.periodic, centres=in_space)
            contacts, surfaces = _touching(scenario.grid, contacts, surfaces, cells, held)
        layering = _lay(division, contacts, palette, cells, parts, boundary, surfaces, held)
        try:
            materials = cell_type_map.build(
                scenario.grid,
                palette,
                cells,
                contacts=contacts,
                heated=_heated(scenario, parts),
                periodic=boundary.periodic,
                void_conditions=numbers_towards_void(boundary, division)[:, 0].tolist() if exposed else None,
                surfaces=surfaces,
                layering=layering,
                held=held,
            )
        except TooManyCellTypesError as error:
            key = "layers" if scenario.layers else "sources"
            raise ScenarioError(scenario.path, [Mistake(key, str(error))]) from None
        materials = replace(materials, heated=cell_sources.find(scenario, materials, parts))
        boundary, materials = with_rooms(boundary, materials, division, parts)
        boundary, materials = with_values_in_space(with_areas(boundary, materials), materials, surfaces, varies)
        if scenario.layers or boundary.network is not None:
            field = InitialField.from_scenario(scenario, parts, held=held)
            boundary = replace(boundary, hottest=temperature_range.hottest(field, boundary))
        gaps = any(contact.constant_resistance is None for contact in scenario.contacts)
        if varies or gaps or materials.heated.tables or any(map(depends_on_surface, boundary.conditions)):
            field = start or InitialField.from_scenario(scenario, parts, held=held)
            occurring = Occurring.in_run(scenario, field, boundary, materials)
            resolution = temperature_range.resolution(field, boundary, materials)
            followed = Followed(occurring.low, occurring.high, resolution)
            boundary = replace(boundary, followed=followed)
            if varies:
                palette = _enthalpies(scenario, field.reference, occurring, materials, resolution)
                materials = materials.with_palette(palette)
            heated = cell_sources.followed(materials.heated, scenario, *followed)
            materials = replace(materials, heated=heated)
            if gaps:
                boundary = replace(boundary, gaps=_gap_laws(scenario, occurring))
                left = {pair: number for pair, number in division.contacts.items() if pair in contacts}
                materials = with_gaps(materials, boundary, left)
        return cls(materials, boundary, parts, start.reference if start is not None else 0.0)


def planes_to_hold(scenario: Scenario, boundary: Boundary, slab: Slab, team: Team) -> PaintedPlanes:
    """The planes that a rank has to paint.

    Args:
        scenario: the scenario.
        boundary: its conditions.
        slab: the rank's own planes.
        team: the ranks.
    """
    weighs = boundary.exposes or any(contact.constant_resistance != 0.0 for contact in scenario.contacts)
    # One plane more than the halo: whether a cell is interior depends on the planes beside it.
    return PaintedPlanes.around(slab, HALO + 1 + (surface_areas.reach(scenario) if weighs else 0), team)


def _touching(
    grid: Grid, contacts: Contacts, surfaces: FaceAreas, material: NDArray[np.uint8], held: PaintedPlanes
) -> tuple[Contacts, FaceAreas]:
    """The contacts and surfaces without contacts of parts whose shapes do not touch, though cells do. Collective."""
    areas = cell_faces.total_areas(grid, surfaces, material, held)
    apart = [pair for pair in contacts if len(pair) == 2 and areas.get(pair) == 0.0]
    if not apart:
        return contacts, surfaces
    dropped = np.zeros((256, 256), dtype=bool)
    for one, other in apart:
        dropped[one, other] = dropped[other, one] = True
    plane = grid.cells[0] * grid.cells[1]
    below, above = (
        material.reshape(-1)[held.local_cells(of, plane)] for of in cell_faces.cells_beside(grid, surfaces.faces)
    )
    kept = ~dropped[below, above]
    centres = surfaces.centres[kept] if len(surfaces.centres) else surfaces.centres
    left = {pair: resistance for pair, resistance in contacts.items() if pair not in apart}
    return left, FaceAreas(surfaces.faces[kept], surfaces.areas[kept], centres)


def _lay(
    division: Division,
    contacts: Contacts,
    palette: Sequence[MaterialNumbers],
    material: NDArray[np.uint8] | None,
    parts: Parts | None,
    boundary: Boundary,
    surfaces: FaceAreas | None,
    held: PaintedPlanes,
) -> Layering:
    """What the layers of a scenario change in the whole body. Collective."""
    scenario, periodic = division.scenario, boundary.periodic
    if not scenario.layers:
        return NO_LAYERS
    near = NearLayers(scenario, held)
    matter = Unlayered(
        grid=scenario.grid,
        periodic=periodic,
        material=None if material is None else near.materials(material),
        half=np.array([half(scenario.grid, substance) for substance in palette]).T,
        heat_capacity=np.array([substance.heat_capacity for substance in palette]),
        resistance=resistances(range(len(palette)), contacts),
        surfaces=NO_AREAS if surfaces is None else near.areas(surfaces),
        held=FixedSurfaces.of(boundary, division, None if parts is None else near.materials(parts.owner)).parts,
    )
    return lay(sheets_of(scenario, matter.solid, periodic), matter)


def _palette(division: Division, start: InitialField | None) -> tuple[MaterialNumbers, ...]:
    """The kinds of cells; if materials vary, with their properties at the reference temperature."""
    reference, scenario = 0.0, division.scenario
    materials = dict(scenario.palette)
    if start is not None:
        temperature_range.check(scenario, Occurring(start.lowest, start.highest))
        reference = start.reference
    return tuple(
        VOID
        if (material := materials[name]) is None
        else MaterialNumbers(
            name,
            division.turned(material.conductivity_at(reference), region),
            material.density * material.specific_heat_at(reference),
            region=region,
        )
        for name, region in division.kinds
    )


def _enthalpies(
    scenario: Scenario, reference: float, occurring: Occurring, materials: CellTypes, resolution: float
) -> tuple[MaterialNumbers, ...]:
    """The materials with enthalpy tables over the temperatures that can occur."""
    temperature_range.check(scenario, occurring)
    palette = dict(scenario.palette)
    return tuple(
        substance
        if (material := palette[substance.name]) is None or not material.varies
        else replace(substance, enthalpy=tabulate(material, reference, *occurring.followed(material), resolution))
        for substance in materials.palette
    )


def _gap_laws(scenario: Scenario, occurring: Occurring) -> tuple[GapLaw, ...]:
    """The laws of contacts over the temperatures that can occur."""
    laws = tuple(
        GapLaw.of(number, contact, occurring.low, occurring.high, scenario.time.end)
        for number, contact in enumerate(scenario.contacts)
        if contact.constant_resistance is None
    )
    temperature_range.check(scenario, occurring, laws)
    return laws


def _heated(scenario: Scenario, parts: Parts | None) -> Iterator[NDArray[np.bool_] | None]:
    """The cells of each source that heats all its cells alike; None if it heats all cells that conduct."""
    for source in scenario.sources:
        if source.even:
            everywhere = source.region is None and source.shape is None
            yield None if everywhere or parts is None else source_mask(source, scenario, parts)
