"""The files in which autotuning keeps its results.

There is one small JSON file for each (device, driver, CuPy, text of the kernels, grid, precision, scheme), in
HEATSIM_CACHE_DIR or in the cache folder of the platform. A file that cannot be read or written is ignored.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heatsim.kernels.catalog import KERNELS
from heatsim.kernels.compilation import FOLDER

# The code that launches the kernels and chooses among them.
_LAUNCHING = ("tiling.py", "launch_shapes.py", "autotune.py", "autotune_cache.py")


def cache_folder() -> Path:
    """The folder for files that heatsim can recreate: HEATSIM_CACHE_DIR, else the cache folder of the platform."""
    named = os.environ.get("HEATSIM_CACHE_DIR")
    if named:
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_cache_dir("heatsim", appauthor=False))


def path_of(circumstances: dict[str, Any]) -> Path:
    """The cache file of a choice; its name is a digest of all that the choice depends on.

    Args:
        circumstances: device, grid, precision and so on, as JSON values.
    """
    text = json.dumps([circumstances, _kernels_digest()], sort_keys=True)
    return cache_folder() / "tuning" / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def read(path: Path) -> Any:
    """The description of the fastest shape in a cache file; None if there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))["shape"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(
    path: Path, fastest: dict[str, Any], circumstances: dict[str, Any], microseconds: Sequence[dict[str, Any]]
) -> None:
    """Write a cache file, under another name first, so that it is never seen in part.

    Args:
        path: the file.
        fastest: the description of the fastest shape.
        circumstances: as for :func:`path_of`.
        microseconds: the measured time per step of each shape.
    """
    content = {"shape": fastest, "for": circumstances, "microseconds_a_step": microseconds}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
        os.replace(name, path)
    except OSError:
        return


def _kernels_digest() -> str:
    """A digest of the kernels' text and of the code that launches them."""
    digest = hashlib.sha256(repr([spec for spec in KERNELS if spec.backend == "cuda"]).encode())
    for path in sorted([*FOLDER.rglob("*.cu*"), *(FOLDER / name for name in _LAUNCHING)]):
        digest.update(path.read_bytes())
    return digest.hexdigest()
