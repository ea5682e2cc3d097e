"""The box and its cells."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, Field, PlainValidator, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from heatsim.grid import AXES, Grid
from heatsim.scenario.messages import did_you_mean, fault, refuse, show
from heatsim.scenario.tables.fields import (
    AUTO,
    MAX_CELLS,
    STRICT,
    Cells,
    Coordinate,
    Form,
    Point,
    Size,
    Tolerance,
    read_entries,
)
from heatsim.scenario.tables.materials import MaterialName
from heatsim.scenario.values.quantities import COORDINATE, LENGTH

# The most cells of an axis that has a table: each of them may have another width.
MOST_PLANES = 100_000
# How many times as wide as its neighbour a cell may be: truncation errors grow with it.
_MOST_GROWTH = 2.0
_MOST_ACROSS = 1_000
KEYS_OF_AUTOMATIC = "across", "most", "accuracy"  # keys that only `cells = "auto"` needs
_EQUAL = 1e-12  # widths whose parts differ by less are equal
# The entries of an axial domain along y: one cell, whose middle is 0.
_OF_Y: Mapping[str, float | int] = {"size": 1.0, "cells": 1, "origin": -0.5}
NARROWEST = 1e-9  # a narrower cell, as a part of the largest coordinate, is not exact enough
_AGREE = 1e-9  # how far `size` may differ from the sum of the widths, as a part of it


def _read_widths(value: object) -> tuple[float, ...] | None:
    if value is None:
        return None
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise ValueError(f"got {show(value)}; a list of lengths in m is expected, one for each plane of cells")
    if len(value) > MOST_PLANES:
        raise ValueError(f"got {len(value):,} widths; at most {MOST_PLANES:,} are allowed")
    return tuple(read_entries(value, LENGTH))


def _read_planes(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_PLANES:
        raise ValueError(f"got {show(value)}; a whole number of cells from 1 to {MOST_PLANES:,} is expected")
    return value


def _whole(value: object, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValueError(f"got {show(value)}; a whole number from 1 to {most:,} is expected")
    return value


def _read_across(value: object) -> int:
    return _whole(value, _MOST_ACROSS)


def _read_most(value: object) -> int:
    return _whole(value, MAX_CELLS)


def _read_symmetry(value: object) -> Literal["axial"] | None:
    if value is not None and value != "axial":
        raise ValueError(
            f'got {show(value)}; "axial" is expected{did_you_mean(value, ("axial",))}, or leave the key out'
        )
    return None if value is None else "axial"


def _read_growth(value: object) -> float:
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    if number is None or not 1.0 / _MOST_GROWTH <= number <= _MOST_GROWTH:
        raise ValueError(
            f"got {show(value)}; a number from {1.0 / _MOST_GROWTH:g} to {_MOST_GROWTH:g} is expected: the width of "
            "each cell over that of the one before it"
        )
    return float(number)


def _not_empty(value: object) -> object:
    if isinstance(value, Sequence) and not value:
        raise ValueError("got []; write at least one interval")
    return value


class Interval(BaseModel):
    """Some planes of cells, from the end of the interval before to a coordinate."""

    model_config = STRICT

    to: Coordinate = Field(examples=['to = "20 mm"'], description="Coordinate where the interval ends")
    cells: Annotated[int, PlainValidator(_read_planes), Form("whole number from 1", (1, MOST_PLANES))] = Field(
        examples=["cells = 40"], description="Cells of the interval"
    )
    growth: Annotated[float, PlainValidator(_read_growth), Form("0.5 to 2")] = Field(
        default=1.0, description="Width of each cell over that of the one before it"
    )

    def borders(self, start: float) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The coordinates where the cells end, if the first one begins at ``start``."""
        # The widest cell has width 1, so that long intervals cannot overflow.
        number = np.arange(self.cells, dtype=np.float64)
        sums = np.cumsum(self.growth ** (number - (self.cells - 1 if self.growth > 1.0 else 0)))
        found = start + (self.to - start) * (sums / sums[-1])
        found[-1] = self.to
        return np.asarray(found)


class AxisCells(BaseModel):
    """The cells along one axis: their widths, or intervals."""

    model_config = STRICT

    widths: Annotated[tuple[float, ...] | None, PlainValidator(_read_widths), LENGTH, Form("list of numbers > 0")] = (
        Field(
            default=None,
            examples=["widths = [0.001, 0.001, 0.002]"],
            description="The width of each plane of cells",
            json_schema_extra={"default": "from `intervals`"},
        )
    )
    intervals: Annotated[tuple[Interval, ...], BeforeValidator(_not_empty)] | None = Field(
        default=None,
        examples=['intervals = [{ to = "20 mm", cells = 40 }, { to = "5 m", cells = 30, growth = 1.15 }]'],
        description="Intervals of cells, from the smallest coordinate on",
        json_schema_extra={"default": "from `widths`"},
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> "AxisCells":
        if (self.widths is None) == (self.intervals is None):
            both = "both" if self.widths is not None else "neither"
            raise ValueError(f"{both} of widths and intervals given; write one of them")
        return self

    def faults(self, origin: float) -> list[InitErrorDetails]:
        """What is wrong with the cells if the first one begins at ``origin``, in m; nothing if all could be read."""
        total = sum(interval.cells for interval in self.intervals or ())
        if total > MOST_PLANES:
            return [fault(f"got {total:,} cells in all; at most {MOST_PLANES:,} are allowed", ("intervals",))]
        found, start = [], origin
        for number, interval in enumerate(self.intervals or ()):
            if interval.to <= start:
                message = f"got {interval.to:g}; the interval begins at {start:g} m: write a larger coordinate"
                found.append(fault(message, ("intervals", number, "to")))
            start = max(interval.to, start)
        borders = self.borders(origin)
        if not found and np.diff(borders).min() <= NARROWEST * np.abs(borders).max():
            found.append(fault("some cells are narrower than a billionth of the largest coordinate; make them wider"))
        return found

    def borders(self, origin: float) -> tuple[float, ...]:
        """The coordinates in m of the planes between cells, both ends included."""
        if self.widths is not None:
            return (origin, *(origin + np.cumsum(self.widths)).tolist())
        found = [origin]
        for interval in self.intervals or ():
            found += interval.borders(found[-1]).tolist()
        return tuple(found)

    @property
    def read(self) -> bool:
        """Whether all of it could be read; rules between tables see tables with mistakes too."""
        parts = (None,) if self.intervals is None else self.intervals
        intervals = all(part is not None and None not in (part.to, part.cells, part.growth) for part in parts)
        return intervals if self.widths is None else self.intervals is None


class Domain(BaseModel):
    """The box and its cells; vectors are (x, y, z), lengths in m.

    ``material`` is the material before regions are painted: the name of one of several materials, or "void"; None if
    the scenario has one material without a name. ``x``, ``y`` and ``z`` give the cells along one axis; ``size`` and
    ``cells`` are complete in any case.
    """

    model_config = STRICT

    # Tables of axes and axial symmetry take the place of entries.
    size: Size = Field(
        examples=["size = [0.1, 0.1, 0.1]"], description="Edge lengths of the box", json_schema_extra={"fewest": 0}
    )
    cells: Cells = Field(
        examples=["cells = [64, 64, 64]"],
        description="Cells along x, y, z; 1 along an axis with insulated faces makes the problem exactly 2-D or 1-D; "
        "`auto`: heatsim finds them from the parts, see above",
        json_schema_extra={"fewest": 0},
    )
    across: Annotated[int, PlainValidator(_read_across), Form("whole number from 1", (1, _MOST_ACROSS))] = Field(
        default=4, description='With `cells = "auto"`: fewest cells across each part and each gap between parts'
    )
    most: Annotated[int, PlainValidator(_read_most), Form("whole number from 1", (1, MAX_CELLS))] = Field(
        default=2_000_000, description='With `cells = "auto"`: most cells in all'
    )
    accuracy: Tolerance | None = Field(
        default=None,
        examples=['accuracy = "0.5 K"'],
        description='With `cells = "auto"`: a run makes cells smaller where it matters until its error in space is '
        "below this, see above",
    )
    origin: Point = Field(
        default=(0.0, 0.0, 0.0),
        description="Corner of the box with the smallest coordinates",
        json_schema_extra={"fewest": 2},
    )
    material: MaterialName | None = Field(
        default=None,
        examples=['material = "copper"'],
        description="Material before regions are painted; required with several materials",
    )
    x: AxisCells | None = Field(
        default=None,
        examples=["[domain.x] with widths or intervals"],
        description="Cells of several widths along x; the entries of `size` and `cells` for all axes with such tables "
        "are left out, or agree",
    )
    y: AxisCells | None = Field(
        default=None, examples=["[domain.y] with widths or intervals"], description="The same along y"
    )
    z: AxisCells | None = Field(
        default=None, examples=["[domain.z] with widths or intervals"], description="The same along z"
    )
    symmetry: Annotated[Literal["axial"] | None, PlainValidator(_read_symmetry), Form("`axial`")] = Field(
        default=None,
        examples=['symmetry = "axial"'],
        description="Bodies that are symmetric around an axis: x is the radius, z lies along the axis; `size`, `cells` "
        "and `origin` have entries for x and z only, heats in W and J are those of the whole circle",
        json_schema_extra={"default": "none"},
    )

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, document: Any) -> Any:
        """With entries of ``size`` and ``cells`` for axes that have tables, and for y of an axial domain."""
        if not isinstance(document, Mapping):
            return document
        tables = {name: document[name] for name in AXES if isinstance(document.get(name), Mapping)}
        if document.get("symmetry") == "axial":
            document = {"origin": [0.0, 0.0], **document}
            tables["y"] = {"intervals": [{"to": 0.5, "cells": 1}]}
            document = _with_entries_of_y(document, tables)
        others = len(AXES) - len(tables)
        for key, of_tables in _ends_of(tables, document).items() if tables else ():
            given = document.get(key, None if others else ())
            if isinstance(given, list | tuple) and len(given) == others:
                rest = iter(given)
                document = {**document, key: [of_tables[name] if name in tables else next(rest) for name in AXES]}
        return document

    @model_validator(mode="after")
    def _check_axes(self) -> "Domain":
        faults = self._axial_faults()
        if self.accuracy is not None and not self.automatic:
            message = f'got {self.accuracy:g} K, but the cells are given: write cells = "auto", or remove this key'
            faults.append(fault(message, ("accuracy",)))
        for number, name in enumerate(AXES):
            axis: AxisCells | None = getattr(self, name)
            if axis is None:
                continue
            if self.automatic:
                faults.append(fault(f'beside domain.{name}, "auto" has no meaning; remove one of them', ("cells",)))
                break
            wrong = axis.faults(self.origin[number])
            faults += [{**each, "loc": (name, *each.get("loc", ()))} for each in wrong]
            if wrong:
                continue
            borders = axis.borders(self.origin[number])
            length, cells = borders[-1] - borders[0], len(borders) - 1
            remedy = "or leave this entry and those of all axes with tables out"
            if cells != self.cells[number]:
                message = f"got {self.cells[number]}; domain.{name} has {cells} cells: write {cells}, {remedy}"
                faults.append(fault(message, ("cells", number)))
            if abs(length - self.size[number]) > _AGREE * length:
                message = f"got {self.size[number]:g}; the cells of domain.{name} are {length:.10g} m long: write that"
                faults.append(fault(f"{message}, {remedy}", ("size", number)))
        if faults:
            refuse(faults)
        return self

    def _axial_faults(self) -> list[InitErrorDetails]:
        """What an axial domain may not have."""
        if not self.axial:
            return []
        faults = []
        if self.y is not None:
            faults.append(fault("an axial domain has no cells along y; remove this table", ("y",)))
        for key, of_y in _OF_Y.items():
            given = getattr(self, key)
            if given[1] != of_y and given != AUTO:
                faults.append(fault(f"got {show(list(given))}; an axial domain has two entries, for x and z", (key,)))
        if self.origin[0] < 0.0:
            faults.append(fault(f"got {self.origin[0]:g}; a radius from 0 is expected", ("origin", 0)))
        return faults

    @property
    def automatic(self) -> bool:
        """Whether the cells are still to be found: see :mod:`heatsim.scenario.tables.automatic`."""
        return self.cells == AUTO

    @property
    def least_across(self) -> float:
        """The fewest cells across a part; half as many where a run makes cells smaller until it is accurate."""
        return self.across if self.accuracy is None else 0.5 * self.across

    @property
    def settled(self) -> "Domain":
        """The domain whose cells stay as they are."""
        return self.model_copy(update={key: Domain.model_fields[key].default for key in KEYS_OF_AUTOMATIC})

    @property
    def axial(self) -> bool:
        """Whether x is the radius of bodies that are symmetric around an axis."""
        return self.symmetry == "axial"

    @property
    def grid(self) -> Grid:
        """The cells."""
        x, y, z = (_borders(axis, at) for axis, at in zip((self.x, self.y, self.z), self.origin, strict=True))
        if self.axial and not x:
            x = tuple(np.linspace(self.origin[0], self.origin[0] + self.size[0], self.cells[0] + 1).tolist())
        return _grid(self.cells, self.size, self.origin, (x, y, z), self.axial)


@lru_cache(maxsize=64)
def _borders(axis: AxisCells | None, origin: float) -> tuple[float, ...]:
    """The planes between the cells of an axis; nothing if all cells have one width, or if its table has mistakes."""
    if axis is None or not axis.read or axis.faults(origin):
        return ()
    borders = axis.borders(origin)
    widths = np.diff(borders)
    return () if np.ptp(widths) <= _EQUAL * widths.max() else borders


# Scenarios ask for their grid again and again; its axes are derived once.
_grid = lru_cache(maxsize=64)(Grid)


def _with_entries_of_y(document: Mapping[str, Any], tables: Mapping[str, object]) -> Mapping[str, Any]:
    """An axial domain with its entries along y; refuses lists of another length than two, for x and z."""
    faults = []
    for key, of_y in _OF_Y.items():
        given = document.get(key)
        entries = len(given) if isinstance(given, list | tuple) else None
        if isinstance(given, list | tuple) and entries == 2:
            document = {**document, key: [given[0], of_y, given[1]]}
        elif key in document and not (key == "cells" and isinstance(given, str)):
            others = len(AXES) - len(tables) if key != "origin" else 2
            if entries not in (others, len(AXES)):
                faults.append(fault(f"got {show(given)}; a list of two numbers is expected, for x and z", (key,)))
    if faults:
        refuse(faults)
    return document


def _ends_of(tables: Mapping[str, object], document: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The sizes in m and the numbers of cells of axes from their tables; 1 for a table with mistakes."""
    found: dict[str, dict[str, float]] = {"size": {}, "cells": {}}
    for name, table in tables.items():
        size, cells = 1.0, 1
        try:
            start = COORDINATE.read(document.get("origin", (0.0, 0.0, 0.0))[AXES.index(name)])
            axis = AxisCells.model_validate(table)
            if not axis.faults(start):
                borders = axis.borders(start)
                size, cells = borders[-1] - borders[0], len(borders) - 1
        except (ValidationError, ValueError, TypeError, LookupError):
            pass  # reported where it stands
        found["size"][name], found["cells"][name] = size, cells
    return found
