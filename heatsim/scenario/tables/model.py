"""The whole scenario, and its table [initial], as frozen models in SI units."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import (
    BaseModel,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from heatsim.grid import AXES, Grid
from heatsim.scenario.files import InputFile
from heatsim.scenario.messages import fault, missing_key, refuse
from heatsim.scenario.tables.automatic import AutomaticCells, automatic_cells
from heatsim.scenario.tables.boundaries import Boundaries
from heatsim.scenario.tables.changes import Change, Changes
from heatsim.scenario.tables.channels import Channel
from heatsim.scenario.tables.contacts import Contact
from heatsim.scenario.tables.couplings import Coupling
from heatsim.scenario.tables.domain import Domain
from heatsim.scenario.tables.fields import (
    AUTO,
    STRICT,
    InitialTemperature,
    Text,
)
from heatsim.scenario.tables.initial import ArrayFile, ImageFile
from heatsim.scenario.tables.layers import Layers
from heatsim.scenario.tables.library import with_library
from heatsim.scenario.tables.marks import Widths
from heatsim.scenario.tables.materials import VOID, Material, Materials, MaterialTableOrName
from heatsim.scenario.tables.named import Named
from heatsim.scenario.tables.nodes import Node
from heatsim.scenario.tables.output import Output
from heatsim.scenario.tables.patches import Patches
from heatsim.scenario.tables.probes import Probe
from heatsim.scenario.tables.regions import Region, Regions, Shaped
from heatsim.scenario.tables.solver import Solver
from heatsim.scenario.tables.sources import Sources
from heatsim.scenario.tables.surfaces import Surfaces
from heatsim.scenario.tables.time import Time, not_given
from heatsim.scenario.values.document_quantities import quantities
from heatsim.scenario.values.functions import all_functions_in_time
from heatsim.scenario.values.nodetemperature import NodeTemperature
from heatsim.scenario.values.steered import Resets, Steered
from heatsim.scenario.values.timefunction import Formula, SpaceFormula, Table
from heatsim.scenario.values.written_units import written_units
from heatsim.temperature_units import KELVIN

# The first guess of a steady state, in K, if the scenario gives none.
FIRST_GUESS = 293.15
_INITIAL_EXAMPLE = "[initial] with temperature = 300.0"
MATERIAL_EXAMPLE = "[material] with conductivity = 237.0, density = 2700.0 and specific_heat = 900.0"


class Initial(BaseModel):
    """The field at t = 0: a number in K, an expression in x, y, z, or a file."""

    model_config = STRICT

    temperature: InitialTemperature = Field(examples=["temperature = 300.0"], description="Temperature at t = 0")


class Scenario(BaseModel):
    """One scenario, complete and checked; ``load`` and ``parse`` make it.

    Two scenarios are equal if all of their settings are equal; the folder of the file does not matter.
    """

    model_config = STRICT

    title: Text = Field(description="Title of the results", json_schema_extra={"default": "name of the file"})
    domain: Domain = Field(
        examples=["[domain] with size = [0.1, 0.1, 0.1] and cells = [64, 64, 64]"], description="The box and its cells"
    )
    material: MaterialTableOrName | None = Field(
        default=None,
        examples=[MATERIAL_EXAMPLE],
        description="The material, if there is only one: a table, or `library:NAME`",
    )
    materials: Materials = Field(
        default=Named(()),
        examples=["[materials.copper] with the keys of [material]"],
        description='The materials by name: tables `[materials.copper]`, or `copper = "library:copper"`',
    )
    regions: Regions = Field(
        default=(),
        examples=[
            "each region under its own heading [[regions]], with a name, a material and one of "
            "box, sphere, cylinder, stl, labels, everywhere"
        ],
        description="Parts of the domain with other materials, painted in order: later ones win",
    )
    contacts: tuple[Contact, ...] = Field(
        default=(),
        examples=[
            'each contact under its own heading [[contacts]], with between = ["copper", "silicon"] and '
            "resistance = 1e-5"
        ],
        description="Thermal resistances between materials or regions",
    )
    layers: Layers = Field(
        default=(),
        examples=[
            'each layer under its own heading [[layers]], with material = "copper", thickness = "35 um" and '
            'plane = { axis = "z", at = 0.0016 }'
        ],
        description="Thin conducting layers without cells, such as copper on a circuit board",
    )
    time: Time = Field(examples=["[time] with end = 60.0"], description="Duration and time step")
    initial: Initial = Field(
        default_factory=not_given,
        examples=[_INITIAL_EXAMPLE],
        description="The field at t = 0; the first guess of a steady state",
        json_schema_extra={"default": 'required except with `time.method = "steady"`'},
    )
    boundaries: Boundaries = Field(
        default_factory=Boundaries,
        description="Conditions on the faces of the box",
        json_schema_extra={"default": "all insulated"},
    )
    patches: Patches = Field(
        default=(),
        examples=[
            "each patch under its own heading [[patches]], with face, rectangle = { min = […], max = […] }, type "
            "and the keys of the type"
        ],
        description="Rectangles on faces with their own condition",
    )
    surfaces: Surfaces = Field(
        default=(),
        examples=['each surface under its own heading [[surfaces]], with of = "die", type and the keys of the type'],
        description="Conditions on surfaces towards void: of a region, or towards a void region, a room; instead of "
        "`boundaries.void`",
    )
    nodes: tuple[Node, ...] = Field(
        default=(),
        examples=['each node under its own heading [[nodes]], with name = "air" and what it exchanges heat with'],
        description="Bodies without shape, such as the air of a room, that surfaces have as their ambient",
    )
    channels: tuple[Channel, ...] = Field(
        default=(),
        examples=['each channel under its own heading [[channels]], with name = "cold plate" and region = "slot"'],
        description="Void regions through which a fluid flows that takes up heat on its way",
    )
    sources: Sources = Field(
        default=(),
        examples=['each source under its own heading [[sources]], with region = "die" and power = 120.0 for example'],
        description="Heat sources and beams",
    )
    changes: Changes = Field(
        default=Named(()),
        examples=['[changes] with "sources.heater.power" = { range = [0, 100], every = "1 s" }'],
        description="Values that a program or a recorded table sets during the run, by the paths of their keys",
    )
    solver: Solver = Field(
        default=Solver(), description="Device, kernel and precision", json_schema_extra={"default": "see below"}
    )
    output: Output = Field(
        default=Output(), description="What is written, and when", json_schema_extra={"default": "see below"}
    )
    probes: tuple[Probe, ...] = Field(
        default=(),
        examples=['each probe under its own heading [[probes]], with name = "centre" and point = [0.05, 0.05, 0.05]'],
        description="Points, lines and regions whose temperature is recorded",
    )
    couplings: tuple[Coupling, ...] = Field(
        default=(),
        examples=['each coupling under its own heading [[couplings]], with name and between = ["room", "x_max"]'],
        description="Thermal couplings of surroundings in a linear steady state: L2D and ψ, L3D and χ",
    )
    _path: Path = PrivateAttr(default_factory=Path)
    _hints: tuple[str, ...] = PrivateAttr(default=())
    _origins: Mapping[str, Sequence[int]] = PrivateAttr(default_factory=dict)
    _automatic: AutomaticCells | None = PrivateAttr(default=None)
    _steered: Mapping[str, Steered] = PrivateAttr(default_factory=dict)
    _resets: Resets | None = PrivateAttr(default=None)

    @property
    def path(self) -> Path:
        """The file of the scenario."""
        return self._path

    @property
    def hints(self) -> tuple[str, ...]:
        """Warnings about values that are allowed, but are probably not what was meant."""
        return self._hints

    @property
    def origins(self) -> Mapping[str, Sequence[int]]:
        """By the key of a list of tables with copies, the number in the file of each of its entries."""
        return self._origins

    @property
    def grid(self) -> Grid:
        """The cells of the domain."""
        return self.domain.grid

    @property
    def automatic(self) -> AutomaticCells | None:
        """The cells that heatsim found for a domain that leaves them to it; None if the scenario gives them."""
        return self._automatic if self._automatic is not None and self._automatic.cells == self.domain.cells else None

    @property
    def input_files(self) -> tuple[Path, ...]:
        """The paths of the files and folders that the scenario reads, besides its own file."""
        return tuple(file.path for file in self.inputs)

    @cached_property
    def inputs(self) -> tuple[InputFile, ...]:
        """The files and folders that the scenario reads, besides its own file, each of them once."""
        shaped: tuple[Shaped, ...] = (*self.regions, *self.sources)
        files = [item.stl.file for item in shaped if item.stl is not None]
        files += [region.labels.file.source for region in self.regions if region.labels is not None]
        match self.initial.temperature:
            case ArrayFile(file=file) | ImageFile(image=file):
                files.append(file)
        functions = [function for _, function, _ in all_functions_in_time(self)]
        files += [
            function.origin.file
            for function in (*functions, *(change.recorded for change in self.changes.values()))
            if isinstance(function, Table) and function.origin is not None
        ]
        measured = [probe.measured for probe in self.probes if probe.measured is not None]
        files += [table.origin.file for table in measured if table.origin is not None]
        return tuple({file.path: file for file in files}.values())

    @property
    def palette(self) -> tuple[tuple[str, Material | None], ...]:
        """Every material with its name: the domain's material first, "void" (None) last if any cell may be void.

        If the domain is void, the materials have the order of the file.
        """
        palette = sorted(self.named_materials, key=lambda entry: entry[0] != self.domain.material)
        return (*palette, (VOID, None)) if self.uses_void else tuple(palette)

    @property
    def named_materials(self) -> tuple[tuple[str, Material], ...]:
        """Every material with its name, in the order of the file; a material without a name is called "material".

        For a steady state, properties that do not affect it are left out.
        """
        named = [("material", self.material)] if self.material is not None else list(self.materials.items())
        return tuple((name, material.in_steady_state() if self.steady else material) for name, material in named)

    @property
    def uses_void(self) -> bool:
        """Whether cells may be void, which does not conduct."""
        return self.domain.material == VOID or any(VOID in region.materials for region in self.regions)

    @property
    def rooms(self) -> dict[str, int]:
        """The number from 1 of each region that is void, by its name; surfaces and probes may name these regions."""
        regions: Sequence[Region | None] = self.regions or ()  # None for regions with mistakes
        numbered = enumerate(regions, start=1)
        return {region.name: number for number, region in numbered if region is not None and region.is_void}

    @property
    def steady(self) -> bool:
        """Whether the scenario asks for a steady state."""
        # A scenario with mistakes may have no table [time].
        return bool(self.time) and self.time.method == "steady"

    def with_method(self, method: str) -> "Scenario":
        """The same scenario with another method in time."""
        return self.model_copy(update={"time": self.time.with_method(method)})

    def with_precision(self, precision: str) -> "Scenario":
        """The same scenario with another floating-point type of the field."""
        return self.model_copy(update={"solver": self.solver.model_copy(update={"precision": precision})})

    def with_cells(self, wanted: Sequence[Widths]) -> "Scenario":
        """The same scenario with other automatic cells, none wider than wanted; for a domain with an accuracy.

        Args:
            wanted: for each axis.

        Raises:
            ValueError: no cells can be found.
        """
        free = self.domain.model_copy(update={"cells": AUTO, **dict.fromkeys(AXES)})
        found = automatic_cells(self.model_copy(update={"domain": free}), wanted)
        other = self.model_copy(update={"domain": found.domain(free)})
        other._automatic = found
        return other

    @property
    def settled(self) -> "Scenario":
        """The same scenario, whose cells stay as they are."""
        return self.model_copy(update={"domain": self.domain.settled})

    @property
    def switching_times(self) -> tuple[float, ...]:
        """The times in s between 0 and the end at which a source is switched on or off, in ascending order."""
        edges = {edge for source in self.sources if source.during is not None for edge in source.during}
        return tuple(sorted(edge for edge in edges if 0.0 < edge < self.time.end))

    @property
    def steered(self) -> Mapping[str, Steered]:
        """The values that are set during the run, by the paths of their keys as [changes] has them."""
        return self._steered

    @property
    def resets(self) -> Resets | None:
        """What the field may be set to during the run; None if it may not."""
        return self._resets

    def steer(self, changes: Named[Change], steered: Mapping[str, Steered], resets: Resets | None) -> None:
        """Complete the table [changes], once its values are found."""
        object.__setattr__(self, "changes", changes)
        self._steered, self._resets = steered, resets
        self._tell_bounds_to_nodes()

    @property
    def intervals_of_changes(self) -> tuple[float, ...]:
        """The different intervals in s at whose multiples values may be set during the run."""
        of_fields = () if self._resets is None else (self._resets.every,)
        return tuple(dict.fromkeys((*(each.every for each in self._steered.values()), *of_fields)))

    @cached_property
    def probe_columns(self) -> tuple[str, ...]:
        """The names of the columns of probes.csv after the time."""
        of_couplings = (column for coupling in self.couplings for column in coupling.columns)
        return (*(column for probe in self.probes for column in probe.columns), *of_couplings)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and all(
            getattr(self, name) == getattr(other, name) for name in type(self).model_fields
        )

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, document: Any) -> Any:
        return complete(document)

    @field_validator("initial", mode="before")
    @classmethod
    def _check_initial(cls, initial: object) -> object:
        if initial is None:
            raise ValueError(missing_key(_INITIAL_EXAMPLE))
        return initial

    @model_validator(mode="after")
    def _count_dates(self) -> "Scenario":
        """Count dates in CSV files from the start of the run, if it has a date."""
        start, faults = self.time.start_date, []
        for key, function, _ in all_functions_in_time(self) if start is not None else ():
            if isinstance(function, Table) and start is not None:
                try:
                    function.count_from(start)
                except ValueError as error:
                    faults.append(fault(str(error), key))
        if faults:
            refuse(faults)
        return self

    @model_validator(mode="after")
    def _turn_shapes(self) -> "Scenario":
        """Give the shapes of an axial domain their sections."""
        shaped: tuple[Shaped, ...] = (*self.regions, *self.sources)
        for part in shaped if self.domain.axial else ():
            part.turn()
        return self

    @model_validator(mode="after")
    def _find_cells(self) -> "Scenario":
        """Find the cells of a domain that leaves them to heatsim."""
        if self.domain.automatic:
            try:
                found = automatic_cells(self)
            except ValueError as error:
                refuse([fault(str(error), ("domain", "cells"))])
            object.__setattr__(self, "domain", found.domain(self.domain))
            self._automatic = found
        return self

    @model_validator(mode="after")
    def _set_end_of_formulas(self) -> "Scenario":
        """Set the end of the run in expressions in t, up to which their jumps are found."""
        for _, function, _ in all_functions_in_time(self):
            if isinstance(function, Formula | SpaceFormula):
                object.__setattr__(function, "end", self.time.end)
        return self

    @model_validator(mode="after")
    def _set_bounds_of_nodes(self) -> "Scenario":
        """Tell the temperatures of nodes between which given ones they begin."""
        self._tell_bounds_to_nodes()
        return self

    def _tell_bounds_to_nodes(self) -> None:
        if self.nodes or self.channels:
            known = [each for node in self.nodes for each in node.known_temperatures]
            known += [channel.inlet for channel in self.channels if channel.before is None]
            ends = [end for function in known for end in function.extremes(self.time.end)]
            start = self.initial.temperature
            ends = ends or [start if isinstance(start, float) else FIRST_GUESS]
            for _, function, _ in all_functions_in_time(self):
                if isinstance(function, NodeTemperature):
                    object.__setattr__(function, "bounds", (min(ends), max(ends)))

    @field_validator("output", mode="after")
    @classmethod
    def _write_at_end(cls, output: Output, info: ValidationInfo) -> Output:
        if "time" not in info.data or info.data["time"].method == "steady":
            return output
        return output.until(info.data["time"].end)


def _with_free_axis(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """An axial document whose faces without meaning let no heat through: those across y, and the axis itself."""
    domain, boundaries = document.get("domain"), document.get("boundaries", {})
    if not isinstance(domain, Mapping) or domain.get("symmetry") != "axial" or not isinstance(boundaries, Mapping):
        return document
    origin = domain.get("origin", [0.0])
    at_axis = isinstance(origin, list | tuple) and len(origin) > 0 and origin[0] == 0
    faces = ("x_min", "y_min", "y_max") if at_axis else ("y_min", "y_max")
    return {**document, "boundaries": {**{face: {"type": "insulated"} for face in faces}, **boundaries}}


def with_temperature_unit(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A document with the unit in which temperatures are shown, where it leaves it to heatsim."""
    output = document.get("output", {})
    if not isinstance(output, Mapping) or output.get("temperature", "auto") != "auto":
        return document
    unit = next(iter(written_units(quantities(document, Scenario))), KELVIN).name
    tables = {} if unit == KELVIN.name else {"table_temperature": KELVIN.name}
    return {**document, "output": {**tables, **output, "temperature": unit}}


def complete(document: Any) -> Any:
    """A scenario's document with what follows from other parts of it.

    These are the named materials of the library, the material of the domain if only one material has a name, an
    initial temperature for a steady state, whose search can begin anywhere, and the unit that temperatures have.
    """
    if not isinstance(document, Mapping):
        return document
    time = document.get("time")
    if isinstance(time, Mapping) and time.get("method") == "steady" and "initial" not in document:
        document = {**document, "initial": {"temperature": FIRST_GUESS}}
    document = _with_free_axis(with_library(with_temperature_unit(document)))
    domain, materials = document.get("domain"), document.get("materials")
    if not isinstance(domain, Mapping) or "material" in domain:
        return document
    if not isinstance(materials, Mapping) or len(materials) != 1:
        return document
    return {**document, "domain": {**domain, "material": next(iter(materials))}}
