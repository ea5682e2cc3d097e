"""What the reading of one scenario file keeps at hand while its tables are validated."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationInfo

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
        end: ``time.end``.
        probe_names: the names of the probes read so far.
    """

    folder: Path = field(default_factory=Path)
    size: tuple[float, float, float] | None = None
    cells: tuple[int, int, int] | None = None
    origin: tuple[float, float, float] | None = None
    end: float | None = None
    probe_names: set[str] = field(default_factory=set)


def reading(info: ValidationInfo) -> Reading:
    """The context of a validation; an empty one for a model built in Python on its own."""
    return info.context if isinstance(info.context, Reading) else Reading()


def note(value: Value, info: ValidationInfo) -> Value:
    """Keep a valid value for the keys that follow; for use as an ``AfterValidator``."""
    setattr(reading(info), str(info.field_name), value)
    return value
