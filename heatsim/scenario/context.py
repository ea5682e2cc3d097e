"""What the reading of one scenario file keeps at hand while its tables are validated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationInfo

from heatsim.grid import Grid
from heatsim.scenario.messages import show

if TYPE_CHECKING:
    from heatsim.scenario.boundaries import Boundaries
    from heatsim.scenario.patches import Patch
    from heatsim.scenario.regions import Region

Value = TypeVar("Value")


@dataclass
class Reading:
    """Pydantic's validation context for one scenario.

    Tables are validated in the order of the model. What later keys are checked against is noted here as soon as it is
    known to be valid, and stays None otherwise: so a mistake in one key does not hide those in others.

    Attributes:
        folder: where relative paths start.
        size: ``domain.size``.
        cells: ``domain.cells``.
        origin: ``domain.origin``.
        domain_material: ``domain.material``.
        end: ``time.end``.
        material_names: the names under ``materials`` as they stand in the file, whether their tables are valid or not.
        region_names: those of ``regions``, likewise.
        regions: ``regions``.
        boundaries: ``boundaries``.
        contacts: the pairs of materials that have a contact so far.
        patches: the patches read so far.
        taken: the names given so far, for each array of tables in which they must differ.
    """

    folder: Path = field(default_factory=Path)
    size: tuple[float, float, float] | None = None
    cells: tuple[int, int, int] | None = None
    origin: tuple[float, float, float] | None = None
    domain_material: str | None = None
    end: float | None = None
    material_names: tuple[str, ...] | None = None
    region_names: tuple[str, ...] | None = None
    regions: "tuple[Region, ...] | None" = None
    boundaries: "Boundaries | None" = None
    contacts: set[frozenset[str]] = field(default_factory=set)
    patches: "list[Patch]" = field(default_factory=list)
    taken: dict[str, set[str]] = field(default_factory=dict)

    @property
    def grid(self) -> Grid | None:
        """The cells of the domain, where all of its keys are valid."""
        if self.size is None or self.cells is None or self.origin is None:
            return None
        return Grid(self.cells, self.size, self.origin)

    def note_names(self, document: object) -> None:
        """Look through the tables as they stand in the file for the names of materials and regions."""
        if not isinstance(document, Mapping):
            return
        materials, regions = document.get("materials"), document.get("regions")
        self.material_names = tuple(map(str, materials)) if isinstance(materials, Mapping) else ()
        tables = [table for table in regions if isinstance(table, Mapping)] if isinstance(regions, list | tuple) else []
        self.region_names = tuple(str(table["name"]) for table in tables if "name" in table)

    def take(self, name: str, tables: str, reserved: Sequence[str] = ()) -> str:
        """Give a name away, once.

        Raises:
            ValueError: it is ``reserved`` or already taken among the same ``tables``; the message is the user's.
        """
        if name in reserved:
            raise ValueError(f"got {show(name)}; this name has a meaning of its own here: choose another")
        names = self.taken.setdefault(tables, set())
        if name in names:
            raise ValueError(f"got {show(name)} a second time; all {tables} need names of their own")
        names.add(name)
        return name


def reading(info: ValidationInfo) -> Reading:
    """The context of a validation; an empty one for a model built in Python on its own."""
    return info.context if isinstance(info.context, Reading) else Reading()


def note(value: Value, info: ValidationInfo) -> Value:
    """Keep a valid value for the keys that follow; for use as an ``AfterValidator``."""
    setattr(reading(info), str(info.field_name), value)
    return value
