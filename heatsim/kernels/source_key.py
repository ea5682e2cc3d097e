"""What numba's cache on disk does not look at by itself: of compiled code it knows the date of one file only."""

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from types import ModuleType


def source_key(modules: Iterable[ModuleType]) -> str:
    """A digest of the sources of modules that a compiled function takes functions or constants from.

    As the default of an argument it is a part of the key under which the function's code is kept: code compiled from
    other sources is not found. The order of the modules does not matter.
    """
    digests = sorted(sha256(Path(str(module.__file__)).read_bytes()).digest() for module in modules)
    return sha256(b"".join(digests)).hexdigest()
