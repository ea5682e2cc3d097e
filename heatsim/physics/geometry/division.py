"""The materials of a body, divided where contacts or surfaces name regions, or a region turns its material.

The cells of such a region have their own cell types: they have the material's properties, but contacts, conditions
towards void and axes are separate. So kernels know cell types only, and no regions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import AXES
from heatsim.physics.geometry.regions import Parts
from heatsim.scenario import VOID, Scenario
from heatsim.scenario.tables.fields import Vector

NOWHERE = ""  # for cells of no such region


@dataclass(frozen=True, eq=False)
class Division:
    """The kinds of cells of a body, in the order of its palette: materials first, then named regions, then void.

    Attributes:
        scenario: the scenario.
        kinds: the material and the region of each kind; the region is "" for cells outside of named regions.
    """

    scenario: Scenario
    kinds: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, scenario: Scenario) -> "Division":
        """The kinds of cells that a scenario can have."""
        named = {name for surface in scenario.surfaces for name in surface.names}
        named.update(name for contact in scenario.contacts for name in contact.between)
        named.difference_update(scenario.materials)
        named.update(region.name for region in scenario.regions if region.axes is not None)
        materials = [name for name, _ in scenario.palette if name != VOID]
        kinds = [(name, NOWHERE) for name in materials]
        for region in scenario.regions:
            if region.name in named:
                kinds += [(name, region.name) for name in region.materials if name != VOID]
        return cls(scenario, (*kinds, (VOID, NOWHERE)) if scenario.uses_void else tuple(kinds))

    @property
    def divides(self) -> bool:
        """Whether any region has its own cell type."""
        return any(region for _, region in self.kinds)

    def kind(self, material: str, region: str) -> int:
        """The number of the kind of a region's cells of a material."""
        return self._numbers.get((material, region), self._numbers[material, NOWHERE])

    def turned(self, conductivity: Vector, region: str) -> Vector:
        """A material's conductivities along the axes of the domain in a region; "" for cells of no named region."""
        axes = next((other.axes for other in self.scenario.regions if other.name == region), None) or AXES
        x, y, z = (conductivity[axes.index(axis)] for axis in AXES)
        return x, y, z

    def cells(self, parts: Parts) -> NDArray[np.uint8]:
        """The kind of each cell, shape (nz, ny, nx)."""
        palette = [name for name, _ in self.scenario.palette]
        if not self.divides:
            return parts.material
        lookup = np.empty((len(self.scenario.regions) + 1, len(palette)), dtype=np.uint8)
        for owner, region in enumerate(("", *(region.name for region in self.scenario.regions))):
            lookup[owner] = [self.kind(material, region) for material in palette]
        found = np.empty_like(parts.material)
        for z, (owners, materials) in enumerate(zip(parts.owner, parts.material, strict=True)):
            found[z] = lookup[owners, materials]
        return found

    @cached_property
    def towards_void(self) -> NDArray[np.bool_]:
        """Whether each of [[surfaces]] holds on cells of each kind towards void that each region painted.

        Shape (surfaces, kinds, 1 + regions); the first column is void that no region painted.
        """
        scenario, rooms = self.scenario, self.scenario.rooms
        found = np.zeros((len(scenario.surfaces), len(self.kinds), 1 + len(scenario.regions)), dtype=bool)
        for holds, surface in zip(found, scenario.surfaces, strict=True):
            part, room = surface.part(rooms), surface.room(rooms)
            kinds = range(len(self.kinds)) if part is None else self._named(part)
            holds[np.ix_(kinds, range(holds.shape[1]) if room is None else [rooms[room]])] = True
        return found

    @cached_property
    def contacts(self) -> Mapping[frozenset[int], int]:
        """The number of the contact between two kinds; one between regions prevails over one between materials."""
        found: dict[frozenset[int], tuple[int, int]] = {}
        for number, contact in enumerate(self.scenario.contacts):
            rank = sum(name not in self.scenario.materials for name in contact.between)
            one, other = (self._named(name) for name in contact.between)
            for pair in {frozenset((a, b)) for a in one for b in other if a != b}:
                if pair not in found or found[pair][0] < rank:
                    found[pair] = rank, number
        return {pair: number for pair, (_, number) in found.items()}

    @property
    def resistances(self) -> dict[frozenset[int], float]:
        """Contact resistances in m² K/W between two kinds; 1 where they are not constant: body.py finds their laws."""
        found = {pair: self.scenario.contacts[number].constant_resistance for pair, number in self.contacts.items()}
        return {pair: 1.0 if resistance is None else resistance for pair, resistance in found.items()}

    def _named(self, name: str) -> list[int]:
        """The kinds that a contact or surface means by the name of a material, or else of a region."""
        place = 0 if name in self.scenario.materials else 1
        return [number for number, kind in enumerate(self.kinds) if kind[place] == name]

    @cached_property
    def _numbers(self) -> Mapping[tuple[str, str], int]:
        return {kind: number for number, kind in enumerate(self.kinds)}
