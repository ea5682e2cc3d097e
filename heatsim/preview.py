"""A look at a scenario's file before it is read and checked.

Reading it in full takes a third of a second, most of it for imports. A preview takes milliseconds, and tells a command
which processes it will probably need. If the preview was wrong, the command ends them.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heatsim.errors import InputError

_LARGEST = 2**20  # bytes of a file that is previewed


def output_folder(path: str | Path, output: str | Path | None) -> Path:
    """The folder that a run or a study writes to: ``output``, or by default outputs/<stem of the scenario's file>.

    Raises:
        InputError: the output is an empty text, which would be the current folder.
    """
    if output == "":
        raise InputError('output: got ""; write the path of a folder, or leave it out')
    return Path("outputs") / Path(path).stem if output is None else Path(output)


def preview(path: Path, overrides: Sequence[str]) -> dict[str, Any] | None:
    """The contents of a scenario's file without any checks; None if it cannot be read.

    Args:
        path: the TOML file.
        overrides: ``key.path=value`` settings.
    """
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        for override in overrides:
            _apply(override, document)
    except Exception:  # the file is read in full later, which reports what is wrong
        return None
    return document


def _apply(override: str, document: dict[str, Any]) -> None:
    key, _, text = override.partition("=")
    *tables, last = key.strip().split(".")
    for name in tables:
        document = document.setdefault(name, {})
    try:
        document[last] = tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        document[last] = text.strip()
