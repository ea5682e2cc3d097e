"""Files that heatsim can recreate: compiled kernels and results of autotuning.

They lie in HEATSIM_CACHE_DIR, or in the cache folder of the platform. Those that no process has read for 90 days are
removed. Files with names that heatsim does not give are the user's, wherever they lie.
"""

import os
import re
import threading
import time
from contextlib import suppress
from pathlib import Path

from heatsim.storage.disk import remove_if_there

_DAY = 86400.0  # s
_MOST_DAYS = 90
# The paths that heatsim gives to files below the folder, also while they are written.
_OWN = re.compile(r"(kernels/[0-9a-f]{32}/[0-9a-f]{8}\.cubin|tuning/[0-9a-f]{32}\.json)(\.\d+-\d+\.part)?")


def cache_folder() -> Path:
    """The folder: HEATSIM_CACHE_DIR, or the cache folder of the platform."""
    named = os.environ.get("HEATSIM_CACHE_DIR")
    if named:
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_cache_dir("heatsim", appauthor=False))


def load(path: Path) -> bytes:
    """The content of a file, which then counts as used today.

    Raises:
        OSError: it cannot be read.
    """
    content = path.read_bytes()
    if time.time() - path.stat().st_mtime > _DAY:
        with suppress(OSError):  # a folder of other users
            os.utime(path)
    return content


def store(path: Path, content: bytes) -> None:
    """Write a file, so that other processes see all of it or nothing. Also removes unused files.

    Args:
        path: the file, in a folder of the cache, which is made if it is missing.
        content: its content.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except OSError:  # otherwise each process would leave a file on a full disk
        remove_if_there(part)
        raise
    with suppress(OSError):
        _remove_unused(cache_folder() / path.relative_to(cache_folder()).parts[0])


def is_own(path: Path) -> bool:
    """Whether heatsim gave this path to a file of the cache; files behind links are others'."""
    folder = cache_folder()
    linked = path.is_symlink() or path.parent.is_symlink()
    return not linked and _OWN.fullmatch(path.relative_to(folder).as_posix()) is not None


def _remove_unused(folder: Path) -> None:
    oldest = time.time() - _MOST_DAYS * _DAY
    for path in [*folder.rglob("*")]:
        with suppress(OSError):  # another process may have removed it
            if is_own(path) and path.is_file() and path.stat().st_mtime < oldest:
                path.unlink()
                path.parent.rmdir()  # refused while it has other files
