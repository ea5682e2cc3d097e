"""A disk cache for code compiled by numba that survives damaged files: at worst the code is compiled again.

numba trusts its cache. If a power failure leaves a file empty, every later program that needs it fails; a file with
zeros in the middle would be executed. This cache stores a checksum with the code. A file that cannot be read is
compiled and stored again. If the folder is not writable, each process compiles the code.

numba numbers the files of a function. Two processes that compile different code at the same time may write the same
file; then the index of one refers to the code of the other. So each file also stores what its code is for.
"""

import gc
import pickle
import sys
from collections.abc import Callable
from functools import wraps
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.ccallback import CFunc
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

Function = TypeVar("Function", bound=Callable[..., Any])

_told: set[str] = set()


def kept(**options: Any) -> Callable[[Function], Function]:
    """A decorator like ``numba.njit(cache=True, **options)``, with a cache that survives damage."""

    def compiled(function: Function) -> Function:
        dispatcher: Any = njit(**options)(function)
        _keep(dispatcher, function)
        return cast(Function, dispatcher)

    return compiled


class Callback(CFunc):
    """A function that other compiled functions call by its address, with the same cache.

    :meth:`compile` loads or compiles it; afterwards it has an ``address``.

    Args:
        function: the Python function; its ``__qualname__`` becomes ``name``.
        signature: the types of its arguments and of its result.
        name: its name among all callbacks of its module. numba names files and machine code after the function; one
            that is built in several forms would have the same name in all of them, and the first one loaded would win.
        sources: a digest of the other sources that it is compiled from; see :mod:`heatsim.kernels.source_key`.
        options: of ``numba.cfunc``.
    """

    _cache: Any
    _sig: Any
    _targetdescr: Any

    def __init__(
        self, function: Callable[..., Any], signature: Any, name: str, sources: str = "", **options: Any
    ) -> None:
        function.__qualname__ = name
        super().__init__(function, (signature.args, signature.return_type), {}, options)
        _keep(self, function, sources or name)

    @property
    def stored(self) -> bool:
        """Whether the cache has its code, as far as the index of the cache knows."""
        cache = self._cache
        return isinstance(cache, _Cache) and cache.knows(self._sig, self._targetdescr.target_context)


def is_kept(function: Any) -> bool:
    """Whether the code of a kept function or a callback goes to a folder, from which other processes load it."""
    cache = function._cache
    return isinstance(cache, _Cache) and bool(cache._enabled)


def folder_of(function: Any) -> Path:
    """The folder of the code of a kept function."""
    return Path(function._cache.cache_path)


def stored(function: Any, types: tuple[Any, ...]) -> bool:
    """Whether the code of a kept function for these types of its arguments is loaded or, as far as known, on disk."""
    cache = function._cache
    return types in function.overloads or (isinstance(cache, _Cache) and cache.knows(types, function.targetctx))


def _keep(code: Any, function: Callable[..., Any], sources: str = "") -> None:
    """Give a function of numba's this cache."""
    code._compiler.compile = _without_collecting(code._compiler.compile)
    try:
        code._cache = _Cache(function, sources)
    except (OSError, RuntimeError) as error:  # numba found no folder to write to
        _tell(f"cannot cache compiled code ({_reason(error)}); every process compiles it again")


def _without_collecting(compile_code: Function) -> Function:
    """A function of numba's without garbage collection: numba makes millions of objects, which takes a tenth longer."""

    @wraps(compile_code)
    def compiling(*arguments: Any) -> Any:
        collecting = gc.isenabled()
        gc.disable()
        try:
            return compile_code(*arguments)
        finally:
            if collecting:
                gc.enable()

    return cast(Function, compiling)


class _Code(CompileResultCacheImpl):
    """The cached data of a compiled function: its code as bytes, and their checksum."""

    def reduce(self, result: Any) -> tuple[bytes, bytes]:
        """The checksum and the code to store."""
        code = dumps(super().reduce(result))
        return sha256(code).digest(), code

    def rebuild(self, target: Any, found: tuple[bytes, bytes]) -> Any:
        """The compiled function.

        Raises:
            ValueError: the checksum is wrong.
        """
        checksum, code = found
        if sha256(code).digest() != checksum:
            raise ValueError("checksum differs")
        return super().rebuild(target, pickle.loads(code))


class _Files(IndexDataCacheFile):
    """The index of a function's code, and a file for each entry with its key."""

    def knows(self, key: Any) -> bool:
        """Whether the index has a key."""
        return key in self._load_index()

    def save(self, key: Any, data: Any) -> None:
        """Store the code of a key."""
        super().save(key, (self._source_stamp, key, data))

    def load(self, key: Any) -> Any:
        """The code of a key; None if there is none, or if the file has code for something else."""
        found = super().load(key)
        if found is None or len(found) != 3 or found[:2] != (self._source_stamp, key):
            return None
        return found[2]


class _Cache(FunctionCache):
    """The cache of one function.

    Args:
        function: the Python function.
        sources: a digest of what its code depends on besides its own file; "" to let numba look at the functions that
            it calls. numba distinguishes these by their identity, which changes from process to process.
    """

    _impl_class = _Code

    def __init__(self, function: Callable[..., Any], sources: str) -> None:
        super().__init__(function)
        self._sources = sources
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def _index_key(self, signature: Any, codegen: Any) -> tuple[Any, ...]:
        """The key of the code for a signature. It has the function's name, so the file of another one is not used."""
        function = self._py_func
        name = f"{function.__module__}.{function.__qualname__}"
        if not self._sources:
            return *super()._index_key(signature, codegen), name
        return signature, codegen.magic_tuple(), sha256(function.__code__.co_code).hexdigest(), self._sources, name

    def knows(self, signature: Any, target: Any) -> bool:
        """Whether the index has code for a signature."""
        try:
            return cast(_Files, self._cache_file).knows(self._index_key(signature, target.codegen()))
        except Exception:  # a damaged index; loading reports it
            return False

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The code for a signature; None if there is no valid one."""
        try:
            rtsys.initialize(target)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(signature, target)
        except Exception as error:  # damaged bytes can raise anything in pickle or numba
            _tell(f"cached code in {self.cache_path} is damaged ({_reason(error)}); compiling it again")
            self._forget()
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Store the code for a signature, if the folder is writable."""
        try:
            super().save_overload(signature, result)
        except OSError as error:
            self.disable()
            _tell(f"cannot cache compiled code in {self.cache_path} ({_reason(error)})")

    def _forget(self) -> None:
        """Clear the index. The code of other signatures is stored again too."""
        try:
            self.flush()
        except OSError:
            self.disable()


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')[:200]}".removesuffix(": ")


def _tell(message: str) -> None:
    """Print one warning of each type per process: all functions use the same folders."""
    kind = message.split("(")[0].split(" in ")[0]
    if kind not in _told:
        _told.add(kind)
        print(f"heatsim: warning: {message}", file=sys.stderr, flush=True)
