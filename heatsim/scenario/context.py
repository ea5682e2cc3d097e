"""The validation context: the folder of the scenario's file."""

from pathlib import Path

from pydantic import ValidationInfo


def folder_of(info: ValidationInfo) -> Path:
    """The folder in which relative paths start; the working folder for a model built in Python."""
    return info.context if isinstance(info.context, Path) else Path()
