"""The scenario: frozen models of the tables of a TOML file, everything in SI."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, PlainValidator, PrivateAttr, ValidationInfo, field_validator, model_validator

from heatsim.grid import FACES, Grid
from heatsim.scenario.boundaries import Boundaries, radiates
from heatsim.scenario.context import reading
from heatsim.scenario.fields import (
    NOTED,
    STRICT,
    Cells,
    Device,
    Duration,
    Flag,
    Fraction,
    InitialTemperature,
    Method,
    Point,
    Precision,
    Rounding,
    Size,
    TemperatureRate,
    Text,
    TimeStep,
    Tolerance,
)
from heatsim.scenario.initial import ArrayFile, ImageFile
from heatsim.scenario.materials import VOID, Material, MaterialName, Materials, Named
from heatsim.scenario.patches import Patch
from heatsim.scenario.probes import Probe
from heatsim.scenario.problems import missing_key, show
from heatsim.scenario.quantities import DURATION
from heatsim.scenario.regions import Contact, Regions, Shaped
from heatsim.scenario.sources import Source

NEVER = float("inf")
# The temperature in K from which the search for a steady state begins where none is given.
FIRST_GUESS = 293.15
_END_EXAMPLE, _INITIAL_EXAMPLE = "end = 60.0", "[initial] with temperature = 300.0"
MATERIAL_EXAMPLE = "[material] with conductivity = 237.0, density = 2700.0 and specific_heat = 900.0"


class Domain(BaseModel):
    """The box and its cells; vectors are (x, y, z), lengths in m.

    ``material`` is what is there before any region is painted: the name of one of several materials, or "void"; None
    where the scenario has one material without a name.
    """

    model_config = STRICT

    size: Annotated[Size, NOTED] = Field(examples=["size = [0.1, 0.1, 0.1]"])
    cells: Annotated[Cells, NOTED] = Field(examples=["cells = [64, 64, 64]"])
    origin: Annotated[Point, NOTED] = (0.0, 0.0, 0.0)
    material: MaterialName | None = Field(default=None, examples=['material = "copper"'])

    @field_validator("material", mode="after")
    @classmethod
    def _choose_material(cls, name: str | None, info: ValidationInfo) -> str | None:
        context = reading(info)
        known = context.material_names or ()
        if name is None and len(known) > 1:
            names = ", ".join(map(show, known))
            raise ValueError(f"missing; what is there before regions are painted must be said: one of {names}, or void")
        if name is None and len(known) == 1:
            name = known[0]
        context.domain_material = name
        return name


class Initial(BaseModel):
    """The field at t = 0: a number in K, an expression in x, y, z, or a file."""

    model_config = STRICT

    temperature: InitialTemperature = Field(examples=["temperature = 300.0"])


def _not_given() -> Any:
    """The validator of a key that only some methods need says what to do without it."""
    return None


def _read_end(value: object, info: ValidationInfo) -> float:
    """A steady state has no end: 0."""
    if info.data.get("method") == "steady" and (value is None or value == 0.0):
        return 0.0
    if value is None:
        raise ValueError(missing_key(_END_EXAMPLE))
    end = DURATION.read(value)
    return 0.0 if info.data.get("method") == "steady" else end


class Time(BaseModel):
    """Duration and time step in s; ``safety`` is the fraction of the stability limit that "auto" uses.

    The run ends before ``end`` when no cell changes faster than ``stop_below`` in K/s. With ``method`` "steady" no time
    passes: the temperatures at which nothing changes are found to ``tolerance`` in K, by default 0.01 % of their range.
    """

    model_config = STRICT

    method: Method = "euler"
    end: Annotated[float, PlainValidator(_read_end), NOTED] = Field(default_factory=_not_given, examples=[_END_EXAMPLE])
    tolerance: Tolerance | None = None
    dt: TimeStep = "auto"
    safety: Fraction = 0.9
    stop_below: TemperatureRate | None = None

    @field_validator("tolerance", mode="after")
    @classmethod
    def _check_tolerance(cls, tolerance: float | None, info: ValidationInfo) -> float | None:
        if tolerance is not None and info.data.get("method") == "euler":
            message = 'with method = "euler", whose steps have a fixed length; leave it out, or write method = "steady"'
            raise ValueError(f"got {tolerance!r} {message}")
        return tolerance


class Solver(BaseModel):
    """Where and how it is calculated; ``kernel`` is any text here, its name is looked up where kernels are known."""

    model_config = STRICT

    device: Device = "auto"
    kernel: Text = "auto"
    precision: Precision = "float32"
    rounding: Rounding = "nearest"


class Output(BaseModel):
    """What is written when; s of simulated time, ``checkpoint_wall`` in s of wall-clock time."""

    model_config = STRICT

    every: Duration = Field(default=NEVER, validate_default=False)
    probe_every: Duration = Field(default=NEVER, validate_default=False)
    checkpoint_wall: Duration = 60.0
    fields: Flag = True
    energy: Flag = True
    heat_flux: Flag = False
    figures: Flag = True


class Scenario(BaseModel):
    """One scenario, complete and checked; made by ``load`` or ``parse``.

    Tables are validated in this order; what a later one is checked against stands in an earlier one. Scenarios are
    equal when all of their settings are, wherever their files are.
    """

    model_config = STRICT

    title: Text
    domain: Domain = Field(examples=["[domain] with size = [0.1, 0.1, 0.1] and cells = [64, 64, 64]"])
    material: Material | None = Field(default=None, examples=[MATERIAL_EXAMPLE])
    materials: Materials = Field(default=Named(()), examples=["[materials.copper] with the keys of [material]"])
    regions: Annotated[Regions, NOTED] = Field(
        default=(),
        examples=[
            "each region under its own heading [[regions]], with a name, a material and one of "
            "box, sphere, cylinder, stl, labels, everywhere"
        ],
    )
    contacts: tuple[Contact, ...] = Field(
        default=(),
        examples=[
            'each contact under its own heading [[contacts]], with between = ["copper", "silicon"] and '
            "resistance = 1e-5"
        ],
    )
    time: Time = Field(examples=["[time] with end = 60.0"])
    initial: Initial = Field(default_factory=_not_given, examples=[_INITIAL_EXAMPLE])
    boundaries: Annotated[Boundaries, NOTED] = Field(default_factory=Boundaries)
    patches: tuple[Patch, ...] = Field(
        default=(),
        examples=[
            "each patch under its own heading [[patches]], with face, rectangle = { min = […], max = […] }, type "
            "and the keys of the type"
        ],
    )
    sources: tuple[Source, ...] = Field(
        default=(),
        examples=['each source under its own heading [[sources]], with region = "die" and power = 120.0 for example'],
    )
    solver: Solver = Solver()
    output: Output = Output()
    probes: tuple[Probe, ...] = Field(
        default=(),
        examples=['each probe under its own heading [[probes]], with name = "centre" and point = [0.05, 0.05, 0.05]'],
    )
    _path: Path = PrivateAttr(default_factory=Path)

    @property
    def path(self) -> Path:
        """The file that the scenario came from."""
        return self._path

    @property
    def grid(self) -> Grid:
        """The cells of the domain."""
        return Grid(self.domain.cells, self.domain.size, self.domain.origin)

    @property
    def input_files(self) -> tuple[Path, ...]:
        """The files, and folders of files, that the scenario reads, apart from its own; each once."""
        shaped: tuple[Shaped, ...] = (*self.regions, *self.sources)
        files = [item.stl.file.path for item in shaped if item.stl is not None]
        files += [region.labels.file.path for region in self.regions if region.labels is not None]
        match self.initial.temperature:
            case ArrayFile(file=path) | ImageFile(image=path):
                files.append(path)
        return tuple(dict.fromkeys(files))

    @property
    def palette(self) -> tuple[tuple[str, Material | None], ...]:
        """Every material with its name: the domain's own first, "void" (None) last if anything is void.

        A material without a name is called "material". Where the domain itself is void the materials stand in the
        order of the file. Of a steady state they are without what only matters while temperatures change.
        """
        named = [("material", self.material)] if self.material is not None else list(self.materials.items())
        named.sort(key=lambda entry: entry[0] != self.domain.material)
        palette: list[tuple[str, Material | None]] = [
            (name, material.in_steady_state() if self.steady else material) for name, material in named
        ]
        return (*palette, (VOID, None)) if self.uses_void else tuple(palette)

    @property
    def base_material(self) -> Material:
        """The material without a name, or the first of the palette."""
        material = self.palette[0][1]
        assert material is not None, "a scenario has a material"
        return material

    @property
    def uses_void(self) -> bool:
        """Whether there may be cells that do not conduct."""
        return self.domain.material == VOID or any(VOID in region.materials for region in self.regions)

    @property
    def composite(self) -> bool:
        """Whether it needs more than one constant material, conditions linear in T on whole faces, and no sources."""
        conditions = [self.boundaries.face(name) for name in FACES]
        return bool(
            self.regions
            or self.contacts
            or self.patches
            or self.sources
            or self.uses_void
            or any(map(radiates, conditions))
            or any(material is not None and material.varies for _, material in self.palette)
        )

    @property
    def steady(self) -> bool:
        """Whether a steady state is wanted, and no time passes."""
        return self.time.method == "steady"

    @property
    def switching_times(self) -> tuple[float, ...]:
        """The times in s between 0 and the end at which a source is switched on or off, in ascending order."""
        edges = {edge for source in self.sources if source.during is not None for edge in source.during}
        return tuple(sorted(edge for edge in edges if 0.0 < edge < self.time.end))

    @property
    def probe_columns(self) -> tuple[str, ...]:
        """The names of the columns of the probes, in their order."""
        return tuple(column for probe in self.probes for column in probe.columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and all(
            getattr(self, name) == getattr(other, name) for name in type(self).model_fields
        )

    @model_validator(mode="before")
    @classmethod
    def _note_names(cls, document: Any, info: ValidationInfo) -> Any:
        reading(info).note_names(document)
        return document

    @field_validator("material", mode="after")
    @classmethod
    def _check_material(cls, material: Material | None, info: ValidationInfo) -> Material | None:
        names = reading(info).material_names
        if material is None and not names:
            raise ValueError(missing_key(MATERIAL_EXAMPLE))
        if material is not None and names:
            raise ValueError(
                f"got [material] beside [materials.{names[0]}]; for one material write [material], for several "
                "[materials.NAME] for each"
            )
        return material

    @field_validator("initial", mode="before")
    @classmethod
    def _guess(cls, initial: object, info: ValidationInfo) -> object:
        if initial is None and "time" in info.data and info.data["time"].method == "steady":
            return {"temperature": FIRST_GUESS}
        if initial is None:
            raise ValueError(missing_key(_INITIAL_EXAMPLE))
        return initial

    @field_validator("patches", "sources", mode="before")
    @classmethod
    def _name_by_number(cls, tables: object, info: ValidationInfo) -> object:
        """A patch or source without a name is called "patch 1" or "source 1", by its place in the list."""
        if not isinstance(tables, list | tuple):
            return tables
        kind = {"patches": "patch", "sources": "source"}[str(info.field_name)]
        return [
            {"name": f"{kind} {number}", **table} if isinstance(table, Mapping) else table
            for number, table in enumerate(tables, 1)
        ]

    @field_validator("output", mode="after")
    @classmethod
    def _write_at_end(cls, output: Output, info: ValidationInfo) -> Output:
        """Without ``every`` fields are written at 0 and at the end; without ``probe_every`` rows come with fields."""
        if "time" not in info.data or info.data["time"].method == "steady":
            return output
        every = info.data["time"].end if output.every == NEVER else output.every
        probe_every = every if output.probe_every == NEVER else output.probe_every
        return output.model_copy(update={"every": every, "probe_every": probe_every})
