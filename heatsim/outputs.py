"""The folders that commands write to."""

from pathlib import Path

from heatsim.errors import InputError


def output_folder(path: str | Path, output: str | Path | None) -> Path:
    """The folder that a run or a study writes to: ``output``, or by default outputs/<stem of the scenario's file>.

    Raises:
        InputError: the output is an empty text, which would be the current folder.
    """
    if output == "":
        raise InputError('output: got ""; write the path of a folder, or leave it out')
    return Path("outputs") / Path(path).stem if output is None else Path(output)
