"""Importing PyVista, which draws, and reads and writes VTK's files."""

from typing import Any

from heatsim.errors import InputError


def import_pyvista() -> Any:
    """The module PyVista.

    Raises:
        InputError: it cannot be imported; says how to install it.
    """
    try:
        import pyvista
    except ImportError as error:
        raise InputError(
            f"PyVista, which draws 3-D views and writes VTI files, cannot be imported ({error}); pip install pyvista"
        ) from error
    return pyvista
