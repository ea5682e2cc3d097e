"""Boundary conditions: on faces of the box, on patches and on surfaces towards void.

A condition is six numbers, which may vary in time: :mod:`heatsim.physics.conditions.condition_numbers`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.grid import FACES
from heatsim.physics.conditions.condition_numbers import largest_film, largest_radiating_film, numbers_of
from heatsim.physics.conditions.condition_terms import NOTHING, Condition, Functions, ambient_of_law, time_functions
from heatsim.physics.conditions.gap_laws import GapLaw, enter_gaps
from heatsim.physics.conditions.law_nodes import EVERYWHERE, Followed
from heatsim.physics.conditions.mixed_cells import MIXED, Maps, MixedCells, lay_out
from heatsim.physics.conditions.surface_balance import AMBIENT, NUMBERS, SURROUNDINGS
from heatsim.physics.conditions.surface_laws import LawTables, Rise, SurfaceLaw
from heatsim.physics.nodes.network import Network
from heatsim.physics.time.stage_times import StageTimes
from heatsim.scenario import Scenario
from heatsim.scenario.tables.boundaries import Insulated, Periodic, depends_on_surface, is_linear, radiates
from heatsim.scenario.tables.materials import VOID

Array = NDArray[np.float64]

# A byte holds a condition's number on a face with patches; one number says that several conditions share a cell.
MAXIMUM_PATCHES = 248


@dataclass(frozen=True, eq=False)
class Boundary:
    """All boundary conditions of a scenario.

    Attributes:
        scenario: the scenario.
        keys: the key of each condition in the scenario.
        conditions: of the six faces in the order of FACES, of the patches, of surfaces towards void, and of those that
            [[surfaces]] name; then those of surfaces whose heat belongs to a room too, see :attr:`rooms`.
        maps: for each face the number of each cell's condition, of the ledger's shape, MIXED where several share the
            cell; empty where there is no patch.
        mixed: the cells that several conditions share, at faces and towards void.
        owners: the number of the condition in the scenario of each one; a condition whose values vary in space has
            several.
        rooms: for each condition the number of the region, counted from 1, if it is that of surfaces towards this room
            alone; else 0.
        hottest: the highest temperature in K of the initial field and of the surroundings; 0 for bodies without layers
            and nodes.
        network: the nodes that conditions have as their surroundings; None without nodes.
        gaps: the laws of contacts whose conductance depends on temperatures or on time.
        followed: at which temperatures tables of laws of surfaces follow them.
    """

    scenario: Scenario
    keys: tuple[str, ...]
    conditions: tuple[Condition, ...]
    maps: Maps
    mixed: MixedCells
    owners: tuple[int, ...] = ()
    rooms: tuple[int, ...] = ()
    hottest: float = 0.0
    network: Network | None = None
    gaps: tuple[GapLaw, ...] = ()
    followed: Followed = EVERYWHERE

    @classmethod
    def from_scenario(cls, scenario: Scenario) -> "Boundary":
        """Read the conditions of a scenario.

        Raises:
            ScenarioError: there are too many patches.
        """
        if len(scenario.patches) > MAXIMUM_PATCHES:
            message = f"got {len(scenario.patches)} patches; at most {MAXIMUM_PATCHES} are allowed"
            raise ScenarioError(scenario.path, [Mistake("patches", message)])
        maps, mixed = lay_out(scenario)
        keys = (
            *(f"boundaries.{name}" for name in FACES),
            *(f"patches.{number}" for number in range(len(scenario.patches))),
            "boundaries.void",
            *(f"surfaces.{number}" for number in range(len(scenario.surfaces))),
        )
        conditions = (
            *(scenario.boundaries.face(name) for name in FACES),
            *(patch.condition for patch in scenario.patches),
            scenario.boundaries.void,
            *(surface.condition for surface in scenario.surfaces),
        )
        of_entries = [scenario.rooms.get(surface.room(scenario.rooms) or "", 0) for surface in scenario.surfaces]
        rooms = [0] * (len(conditions) - len(of_entries)) + of_entries
        owners = list(range(len(conditions)))
        # The rest of a room whose parts have entries: a part of other surfaces, but its heat is also the room's.
        whole = [
            number for number, surface in zip(of_entries, scenario.surfaces, strict=True) if surface.of is not None
        ]
        first = len(conditions) - len(of_entries) - 1
        for room in dict.fromkeys(number for number in of_entries if number and number not in whole):
            others = [number for number in owners[first : len(conditions)] if rooms[number] == 0]
            owners, rooms = owners + others, rooms + [room] * len(others)
        return cls(
            scenario=scenario,
            keys=tuple(keys[owner] for owner in owners),
            conditions=tuple(conditions[owner] for owner in owners),
            maps=maps,
            mixed=mixed,
            owners=tuple(owners),
            rooms=tuple(rooms),
            network=Network(scenario) if scenario.nodes or scenario.channels else None,
        )

    @property
    def first_towards_void(self) -> int:
        """The number of the first condition on surfaces towards void."""
        return len(FACES) + len(self.scenario.patches)

    def is_towards_void(self, number: int) -> bool:
        """Whether a condition is one on surfaces towards void."""
        return self.owners[number] >= self.first_towards_void

    @property
    def exposes(self) -> bool:
        """Whether heat can pass any surface towards void."""
        return bool(self.scenario.channels) or any(
            self.is_towards_void(n) and not isinstance(each, Insulated) for n, each in enumerate(self.conditions)
        )

    @cached_property
    def accounts(self) -> tuple[int, ...]:
        """For each condition the first one with the same owner and room: the heat of both is booked together."""
        pairs = [*zip(self.owners, self.rooms, strict=True)]
        return tuple(map(pairs.index, pairs))

    @cached_property
    def named(self) -> Mapping[str, frozenset[int]]:
        """The numbers of the conditions of each named surface towards void: each of [[surfaces]], then other rooms."""
        scenario, first = self.scenario, self.first_towards_void + 1
        owners, rooms, names = (
            np.array(self.owners),
            np.array(self.rooms),
            {r: name for name, r in scenario.rooms.items()},
        )
        found = {of.name: owners == number for number, of in enumerate(scenario.surfaces, start=first)}
        found |= {names[room]: rooms == room for room in sorted({*self.rooms} - {0}) if names[room] not in found}
        return {name: frozenset(np.flatnonzero(where).tolist()) for name, where in found.items()}

    def of_surroundings(self, names: Iterable[str]) -> frozenset[int]:
        """The numbers of the conditions with one of these names of faces, patches, "void", surfaces and rooms."""
        faces = [*FACES, *(patch.name for patch in self.scenario.patches), VOID]
        found = {number for number, owner in enumerate(self.owners) if owner < len(faces) and faces[owner] in names}
        return frozenset(found.union(*(of for name, of in self.named.items() if name in names)))

    @property
    def periodic(self) -> tuple[bool, bool, bool]:
        """Which axes wrap."""
        x, y, z = (isinstance(condition, Periodic) for condition in self.conditions[:6:2])
        return x, y, z

    @property
    def nonlinear_faces(self) -> list[str]:
        """The faces with a heat flux that is not linear in the surface's temperature."""
        return [name for name, condition in zip(FACES, self.conditions[:6], strict=True) if not is_linear(condition)]

    @property
    def divided_faces(self) -> list[str]:
        """The faces with several conditions."""
        return [name for name, numbers in zip(FACES, self.maps, strict=True) if numbers.size]

    @property
    def constant(self) -> bool:
        """Whether none varies in time, and no law of a gap."""
        functions = (function for condition in self.conditions for function in time_functions(condition))
        return all(function.constant for function in functions) and all(law.constant for law in self.gaps)

    def on_face(self, face: int) -> list[int]:
        """The numbers of the conditions on a face."""
        if not self.maps[face].size:
            return [face]
        parts, _ = self.mixed.on_face(face)
        numbers = np.concatenate((np.unique(self.maps[face]), self.mixed.numbers[parts]))
        return [int(number) for number in np.unique(numbers[numbers != MIXED])]

    def exchanging(self, face: int) -> bool:
        """Whether heat can pass a face to or from outside the box."""
        return any(not isinstance(self.conditions[number], Insulated | Periodic) for number in self.on_face(face))

    def rows(self, times: Array, reference: float, means: StageTimes | None = None) -> Array:
        """The six numbers of every condition at times in s, shape (times, conditions, 6).

        Behind them are the tables of :attr:`laws` and :attr:`gaps`, as more rows of six numbers.

        Args:
            times: in s.
            reference: the temperature in K that deviations are counted from.
            means: stages over whose intervals a given flux is averaged; None to take its values at ``times``.

        Raises:
            ScenarioError: a value is not finite, or is negative but must not be.
        """
        rows, physical = self._evaluate(times, reference, means)
        for number, of_condition in enumerate(physical.T):
            if not of_condition.all():
                raise self.not_physical(number, float(times[int(np.argmin(of_condition))]))
        return rows

    def unchecked_rows(self, time: float) -> Array:
        """The same numbers at one time, with temperatures in K, shape (conditions, 6); some may be not finite.

        If no condition varies in time, it is the same array each time.
        """
        return self._evaluate(np.array([time]), 0.0, None)[0][0] if self._lasting is None else self._lasting

    @property
    def lasts(self) -> bool:
        """Whether all conditions are constant in time."""
        return self._lasting is not None

    @cached_property
    def _lasting(self) -> Array | None:
        """The result of :meth:`unchecked_rows` at any time, if no condition varies in time."""
        varies = self._varying or not all(law.constant and law.flux.constant for law in self.laws)
        varies = varies or not all(law.constant for law in self.gaps)
        return None if varies else self._evaluate(np.zeros(1), 0.0, None)[0][0]

    def not_physical(self, number: int, time: float) -> ScenarioError:
        """The error to raise where condition ``number`` has no usable value at a time in s."""
        law = next((law for law in self.laws if law.number == number), None)
        key, message = (law and law.fault(time)) or ("", f"is not a finite, physical value at t = {time!r} s")
        return ScenarioError(self.scenario.path, [Mistake(f"{self.keys[number]}{key}", message)])

    def _evaluate(self, times: Array, reference: float, means: StageTimes | None) -> tuple[Array, NDArray[np.bool_]]:
        """The six numbers, and which conditions are finite and physical, shape (times, conditions)."""
        constant, constant_physical = self._constants
        rows = np.repeat(constant[np.newaxis], len(times), axis=0)
        physical = np.repeat(constant_physical[np.newaxis], len(times), axis=0)
        for number in self._varying:
            row, physical[:, number] = self._numbers_of(number, times, means)
            rows[:, number] = row
        rows[..., AMBIENT] -= reference
        rows[..., SURROUNDINGS] -= reference
        self.take_nodes(rows, reference)
        if self.gaps:
            rows = np.pad(rows, ((0, 0), (0, len(self.gaps)), (0, 0)))
        rows = self._law_tables.append_to(rows, times, means, physical)
        return enter_gaps(rows, self.first_gap, self.gaps, times, reference), physical

    def take_nodes(self, rows: Array, reference: float) -> None:
        """Enter the present temperatures of nodes into rows of :meth:`rows`."""
        if self.network is not None:
            for column, numbers, nodes in self._columns_of_nodes:
                rows[..., numbers, column] = self.network.temperatures[nodes] - reference

    @cached_property
    def of_nodes(self) -> dict[int, tuple[int, int]]:
        """For each condition that exchanges heat with nodes the nodes of its fluid and of its radiation, or −1."""
        if self.network is None:
            return {}
        find = self.network.number_of
        pairs = {
            number: (find(of.ambient) if of.film != NOTHING else -1, find(of.surroundings))
            for number, of in enumerate(self._functions)
        }
        radiating = {
            number: (fluid, other if radiates(self.conditions[number]) else -1)
            for number, (fluid, other) in pairs.items()
        }
        return {number: pair for number, pair in radiating.items() if max(pair) >= 0}

    @property
    def same_towards_nodes(self) -> bool:
        """Whether nothing but temperatures changes in the conditions that exchange heat with nodes."""
        of = (self._functions[number] for number in self.of_nodes)
        return all(each.constant for some in of for each in (some.film, some.flux, some.emissivity))

    @cached_property
    def places_of_nodes(self) -> dict[int, int]:
        """Where the rows of :meth:`rows` at one time, flattened, have temperatures of nodes, and of which nodes."""
        return {
            int(number) * NUMBERS + column: int(node)
            for column, numbers, nodes in self._columns_of_nodes
            for number, node in zip(numbers, nodes, strict=True)
        }

    @cached_property
    def _columns_of_nodes(self) -> list[tuple[int, NDArray[np.intp], NDArray[np.intp]]]:
        """Columns of rows, the conditions that have the temperatures of nodes there, and the nodes."""
        found: dict[int, list[tuple[int, int]]] = {AMBIENT: [], SURROUNDINGS: []}
        for number, (fluid, other) in self.of_nodes.items():
            if fluid >= 0:
                found[AMBIENT].append((number, fluid))
            if other >= 0:
                found[SURROUNDINGS].append((number, other))
                if self._functions[number].film == NOTHING:
                    found[AMBIENT].append((number, other))
        return [(column, *np.array(pairs, dtype=np.intp).T) for column, pairs in found.items() if pairs]

    @property
    def laws(self) -> tuple[SurfaceLaw, ...]:
        """The conditions whose film coefficient or emissivity depends on the temperature of the surface."""
        return self._law_tables.laws

    def rises_of_laws(self, low: float, high: float) -> dict[int, Rise]:
        """Where the heat flux of each law rises fastest with the temperature of surfaces from ``low`` to ``high`` K.

        Laws whose heat flux never rises are left out.
        """
        nodes, end = self._law_tables.nodes, self.scenario.time.end
        rises = {law.number: law.steepest(nodes, end, low, high) for law in self.laws}
        return {number: rise for number, rise in rises.items() if rise.slope > 0.0}

    @cached_property
    def laws_rise(self) -> bool:
        """Whether the heat flux of any law rises anywhere with the temperature of the surface."""
        return bool(self.rises_of_laws(0.0, np.inf))

    @cached_property
    def ends_of_laws(self) -> dict[str, list[tuple[str, float, float]]]:
        """For conditions that are laws, by their keys: what :meth:`SurfaceLaw.ends` says, if anything."""
        nodes, end, found = self._law_tables.nodes, self.scenario.time.end, dict[str, list[tuple[str, float, float]]]()
        for law in self.laws:
            of_key = found.setdefault(self.keys[law.number], [])
            of_key.extend(ends for ends in law.ends(nodes, end) if ends not in of_key)
        return {key: ends for key, ends in found.items() if ends}

    @cached_property
    def _law_tables(self) -> LawTables:
        laws = [
            SurfaceLaw(number, of.film, of.emissivity, ambient_of_law(of), of.surroundings, of.flux)
            for number, of in enumerate(self._functions)
            if depends_on_surface(self.conditions[number])
        ]
        return LawTables(laws, self.scenario.time.end, self.followed)

    @cached_property
    def row_count(self) -> int:
        """The number of rows of six numbers: of conditions and of tables."""
        return int(self.unchecked_rows(0.0).shape[0])

    @property
    def first_gap(self) -> int:
        """The number of the row of the first law of a gap."""
        return len(self.conditions)

    @cached_property
    def _functions(self) -> "tuple[Functions, ...]":
        """The terms of each condition."""
        return tuple(map(time_functions, self.conditions))

    @cached_property
    def _varying(self) -> tuple[int, ...]:
        """The numbers of the conditions that vary in time."""
        return tuple(
            number
            for number, functions in enumerate(self._functions)
            if not all(function.constant for function in functions)
        )

    @cached_property
    def _constants(self) -> tuple[Array, NDArray[np.bool_]]:
        """The numbers of the constant conditions, shape (conditions, 6), and which are finite and physical."""
        rows = np.zeros((len(self.conditions), NUMBERS))
        physical = np.ones(len(self.conditions), dtype=bool)
        for number in set(range(len(self.conditions))).difference(self._varying):
            row, physical[number : number + 1] = self._numbers_of(number, np.zeros(1), None)
            rows[number] = row[0]
        return rows, physical

    def _numbers_of(self, number: int, times: Array, means: StageTimes | None) -> tuple[Array, NDArray[np.bool_]]:
        return numbers_of(self.conditions[number], self._functions[number], times, means)

    def largest_films(self, end: float) -> Array:
        """The largest h of each condition between 0 and ``end`` (s) in W/(m² K); infinite for held and radiating ones.

        The h of radiation grows with the temperature, and an h that depends on the temperature may too; the half cell
        in series with it bounds what a surface takes.
        """
        return np.array([largest_film(*each, end) for each in zip(self.conditions, self._functions, strict=True)])

    def largest_slopes(self, end: float) -> Array:
        """The largest −dq/dT_s of each condition between 0 and ``end`` (s) in W/(m² K), on surfaces up to ``hottest``.

        It is h for convection, and infinite for held temperatures.
        """
        slopes = self.largest_films(end)
        for number, (condition, functions) in enumerate(zip(self.conditions, self._functions, strict=True)):
            if radiates(condition) and not depends_on_surface(condition):
                slopes[number] = largest_radiating_film(functions, end, self.hottest)
        for law in self.laws:
            slopes[law.number] = law.largest_slope(self._law_tables.nodes, end, self.hottest)
        return slopes
