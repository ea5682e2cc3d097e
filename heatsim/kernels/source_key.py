"""A cache key from source files: numba's disk cache checks the date of one file only, not of imported modules."""

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from types import ModuleType


def source_key(modules: Iterable[ModuleType]) -> str:
    """A digest of the sources of all modules whose functions or constants a compiled function uses.

    Use it as the default of an argument: then it is part of the key under which numba stores the compiled code, and
    code compiled from other sources is not found. The order of the modules does not matter.
    """
    digests = sorted(sha256(Path(str(module.__file__)).read_bytes()).digest() for module in modules)
    return sha256(b"".join(digests)).hexdigest()
