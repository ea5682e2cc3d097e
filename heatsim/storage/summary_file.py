"""summary.json: the numbers of a finished run."""

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from heatsim.errors import FolderError, StorageError
from heatsim.storage import manifest
from heatsim.storage.disk import reason, resume_command
from heatsim.storage.folder import KNOWN, SUMMARY, require_run

_KNOWN_KEYS = ("error_in_space", "refinement")  # of what is known before a run


def write_summary(folder: Path, summary: Mapping[str, Any]) -> None:
    """Write summary.json, completely or not at all, with its keys in the order of `summary`: the run is complete.

    Values may be numbers and arrays of NumPy, and paths; infinity and NaN become null.

    Raises:
        FolderError: the user has put a file there.
        StorageError: the disk refused.
    """
    _write(folder, SUMMARY, summary)
    manifest.end(folder)


def write_known(folder: Path, summary: Mapping[str, Any]) -> None:
    """Write cells.json, what summary.json will say that was found before the run; errors as :func:`write_summary`."""
    _write(folder, KNOWN, summary)


def read_known(folder: Path) -> dict[str, Any]:
    """The content of cells.json; nothing without the file, or if it is damaged."""
    from heatsim.storage.summary_model import mistake_in

    try:
        known = json.loads((folder / KNOWN).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(known, dict) or mistake_in(known) is not None:
        return {}
    return {key: known[key] for key in _KNOWN_KEYS if key in known}


def _write(folder: Path, name: str, content: Mapping[str, Any]) -> None:
    text = json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False)
    manifest.write_own(folder, name, (text + "\n").encode())


def read_summary(folder: Path) -> dict[str, Any]:
    """The content of summary.json of a finished run.

    Raises:
        FolderError: the run has not finished, or the folder is not of a run.
        StorageError: the file is damaged.
    """
    path = require_run(folder) / SUMMARY
    try:
        summary = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise FolderError(
            f"{path}: is missing, the run has not finished; continue it with `{resume_command(folder)}`"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise StorageError(f"{path}: could not be read: {reason(error)}") from error
    if not isinstance(summary, dict):
        raise StorageError(f"{path}: could not be read: it is not a JSON object; the file is damaged")
    from heatsim.storage.summary_model import mistake_in

    if (mistake := mistake_in(summary)) is not None:
        raise StorageError(f"{path}: could not be read: {mistake}; the file is damaged")
    return summary


def describe_finished(folder: Path) -> str | None:
    """The title and the time of the finished run in a folder, as text; None without one."""
    try:
        written = (folder / SUMMARY).stat().st_mtime
        title = read_summary(folder).get("title")
    except (OSError, FolderError, StorageError):
        return None
    moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(written))
    return f'"{title}" of {moment}' if title else f"of {moment}"


def _plain(value: Any) -> Any:
    """The same value with JSON's types."""
    match value:
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case np.ndarray() | np.generic():
            return _plain(value.tolist())
        case list() | tuple():
            return [_plain(item) for item in value]
        case float():
            return float(value) if math.isfinite(value) else None
        case Path():
            return str(value)
        case _:
            return value
