"""The copies of input files in the folder of a run."""

import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from heatsim.storage.own_files import is_own_file, is_own_folder

# The keys of a scenario whose value is the path of an input file.
INPUT_KEYS = ("file", "image", "stl")


def input_copies(folder: Path, scenario: Path) -> list[Path]:
    """The copies of input files inside `folder` that a scenario file names, complete or partial, then their folders."""
    try:
        tables = tomllib.loads(scenario.read_text("utf-8"))
    except (OSError, ValueError):
        return []
    copies: list[Path] = []
    folders: set[Path] = set()
    for name in _input_names(tables):
        for relative in (PurePosixPath(f"{name}.part"), PurePosixPath(name), *PurePosixPath(name).parents[:-1]):
            path = folder / relative
            inside = bool(relative.parts) and not relative.is_absolute() and ".." not in relative.parts
            # A path through a symbolic link does not count.
            if not inside or path.resolve() != folder.resolve() / relative:
                continue
            if is_own_file(path):
                copies.append(path)
            elif is_own_folder(path):
                folders.add(path)
                if path.name == PurePosixPath(name).name:  # The slices of a label image.
                    slices = sorted(file for file in path.iterdir() if is_own_file(file))
                    copies += [file for file in slices if file.name.lower().removesuffix(".part").endswith(".png")]
    return [*copies, *sorted(folders, key=lambda path: len(path.parts), reverse=True)]


def _input_names(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key in INPUT_KEYS and isinstance(value, str):
                yield value
            else:
                yield from _input_names(value)
    elif isinstance(node, list):
        for value in node:
            yield from _input_names(value)
