"""The files in which autotuning keeps its results.

There is one small JSON file for each (device, driver, CuPy, text of the kernels, grid, precision, scheme), in the cache
folder. A file that cannot be read or written is ignored.
"""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from heatsim.kernels import disk_cache
from heatsim.kernels.catalog import KERNELS
from heatsim.kernels.compilation import FOLDER

# The code that launches the kernels and chooses among them.
_LAUNCHING = ("tiling.py", "launch_shapes.py", "autotune.py", "autotune_cache.py")


def path_of(circumstances: dict[str, Any]) -> Path:
    """The cache file of a choice; its name is a digest of all that the choice depends on.

    Args:
        circumstances: device, grid, precision and so on, as JSON values.
    """
    text = json.dumps([circumstances, _kernels_digest()], sort_keys=True)
    return disk_cache.cache_folder() / "tuning" / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def read(path: Path) -> Any:
    """The description of the fastest shape in a cache file; None if there is none."""
    try:
        return json.loads(disk_cache.load(path))["shape"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(
    path: Path, fastest: dict[str, Any], circumstances: dict[str, Any], microseconds: Sequence[dict[str, Any]]
) -> None:
    """Write a cache file.

    Args:
        path: the file.
        fastest: the description of the fastest shape.
        circumstances: as for :func:`path_of`.
        microseconds: the measured time per step of each shape.
    """
    content = {"shape": fastest, "for": circumstances, "microseconds_a_step": microseconds}
    with suppress(OSError):
        disk_cache.store(path, json.dumps(content, indent=1).encode())


def _kernels_digest() -> str:
    """A digest of the kernels' text and of the code that launches them."""
    digest = hashlib.sha256(repr([spec for spec in KERNELS if spec.backend == "cuda"]).encode())
    for path in sorted([*FOLDER.rglob("*.cu*"), *(FOLDER / name for name in _LAUNCHING)]):
        digest.update(path.read_bytes())
    return digest.hexdigest()
