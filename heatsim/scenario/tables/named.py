"""Tables with names: a frozen mapping of them, and default names."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BeforeValidator

Value = TypeVar("Value")


@dataclass(frozen=True)
class Named(Mapping[str, Value]):
    """A frozen mapping from names, in the order of the file."""

    items_in_order: tuple[tuple[str, Value], ...]

    @classmethod
    def of(cls, mapping: Mapping[str, Value]) -> "Named[Value]":
        """A frozen copy of a mapping."""
        return cls(tuple(mapping.items()))

    def __getitem__(self, name: str) -> Value:
        for other, value in self.items_in_order:
            if other == name:
                return value
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.items_in_order)

    def __len__(self) -> int:
        return len(self.items_in_order)


DEFAULT_NOUNS = {"patches": "patch", "layers": "layer", "sources": "source"}


def default_names(key: str) -> BeforeValidator:
    """Names tables without a name, of a list such as `patches`, "patch 1", "patch 2", … by their numbers in it."""
    noun = DEFAULT_NOUNS[key]

    def name(tables: object) -> object:
        if not isinstance(tables, list | tuple):
            return tables
        return [
            {"name": f"{noun} {number}", **table} if isinstance(table, Mapping) else table
            for number, table in enumerate(tables, 1)
        ]

    return BeforeValidator(name)
