"""Code that numba compiled, kept on disk: a damaged file costs the time to compile again, and nothing else.

numba takes what it finds in its cache for good. A file that a loss of power left empty ends every later program that
needs it, and one with zeros in the middle would be run as it is. Here code is kept with its checksum, and what cannot
be read back is compiled and kept again. Where nothing can be written the code is compiled in each process.
"""

import pickle
import sys
from collections.abc import Callable
from hashlib import sha256
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.serialize import dumps

Function = TypeVar("Function", bound=Callable[..., Any])

_told: set[str] = set()


def kept(**options: Any) -> Callable[[Function], Function]:
    """A decorator like ``numba.njit(cache=True, **options)``, with a cache that survives damage."""

    def compiled(function: Function) -> Function:
        dispatcher: Any = njit(**options)(function)
        try:
            dispatcher._cache = _Cache(function)
        except (OSError, RuntimeError) as error:  # numba found no folder to write to
            _tell(f"compiled code cannot be kept ({_reason(error)}); every process compiles it again")
        return cast(Function, dispatcher)

    return compiled


class _Code(CompileResultCacheImpl):
    """What is kept of a compiled function: its code as bytes, and their checksum."""

    def reduce(self, result: Any) -> tuple[bytes, bytes]:
        """What to write."""
        code = dumps(super().reduce(result))
        return sha256(code).digest(), code

    def rebuild(self, target: Any, found: tuple[bytes, bytes]) -> Any:
        """The compiled function.

        Raises:
            ValueError: the checksum differs.
        """
        checksum, code = found
        if sha256(code).digest() != checksum:
            raise ValueError("checksum differs")
        return super().rebuild(target, pickle.loads(code))


class _Cache(FunctionCache):
    """The cache of one function."""

    _impl_class = _Code

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The code for a signature; None where there is none that can be used."""
        try:
            return super().load_overload(signature, target)
        except Exception as error:  # whatever pickle, or numba, makes of damaged bytes
            _tell(f"compiled code in {self.cache_path} is damaged ({_reason(error)}); it is compiled and kept again")
            self._forget()
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep the code for a signature, where that can be done."""
        try:
            super().save_overload(signature, result)
        except OSError as error:
            self.disable()
            _tell(f"compiled code cannot be kept in {self.cache_path} ({_reason(error)})")

    def _forget(self) -> None:
        """Have the index name no file: those of other signatures are written again too."""
        try:
            self.flush()
        except OSError:
            self.disable()


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')[:200]}".removesuffix(": ")


def _tell(message: str) -> None:
    """One line for all functions of a process: they lie in the same folders."""
    kind = message.split("(")[0].split(" in ")[0]
    if kind not in _told:
        _told.add(kind)
        print(f"heatsim: warning: {message}", file=sys.stderr, flush=True)
