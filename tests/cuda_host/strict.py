"""Arrays that, like CuPy's, do not mix with NumPy's: what would raise on a GPU raises here."""

from collections.abc import Iterable
from typing import Any

import numpy as np


class StrictArray(np.ndarray[Any, Any]):
    """An array of the device; NumPy's scalars may stand beside it, its arrays may not."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        refuse((*inputs, *options.get("out", ())))
        plain = {**options, "out": tuple(map(plainly, options["out"]))} if "out" in options else options
        found = getattr(ufunc, method)(*map(plainly, inputs), **plain)
        return options["out"][0] if "out" in options else strictly(found)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        raise TypeError(f"{function.__name__} is NumPy's; call the array module's")

    def __getitem__(self, index: Any) -> Any:
        refuse(index if isinstance(index, tuple) else (index,))
        return strictly(np.asarray(plainly(self)[plain_index(index)]))

    def __setitem__(self, index: Any, values: Any) -> None:
        refuse(index if isinstance(index, tuple) else (index,))
        refuse((values,))
        plainly(self)[plain_index(index)] = plainly(values)

    def get(self) -> Any:
        """A copy on the host."""
        return plainly(self).copy()


class StrictModule:
    """NumPy's functions for these arrays."""

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        if not callable(function) or isinstance(function, type):
            return function

        def call(*arguments: Any, **options: Any) -> Any:
            if name not in ("asarray", "array"):
                refuse(arguments)
            if name == "where" and isinstance(arguments[0], bool):
                raise TypeError("CuPy's where takes no bool of Python as its condition")
            return strictly(function(*map(plainly, arguments), **{key: plainly(o) for key, o in options.items()}))

        return call


def refuse(values: Iterable[Any]) -> None:
    for value in values:
        if isinstance(value, np.ndarray) and not isinstance(value, StrictArray):
            raise TypeError("an array of the host beside one of the device")
        if isinstance(value, tuple | list):
            refuse(value)


def plainly(value: Any) -> Any:
    if isinstance(value, StrictArray):
        return value.view(np.ndarray)
    return type(value)(map(plainly, value)) if type(value) in (tuple, list) else value


def plain_index(index: Any) -> Any:
    return tuple(map(plainly, index)) if isinstance(index, tuple) else plainly(index)


def strictly(value: Any) -> Any:
    return value.view(StrictArray) if isinstance(value, np.ndarray) else value
