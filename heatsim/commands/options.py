"""Arguments that several commands share."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin

from cyclopts import Parameter, Token

if TYPE_CHECKING:
    from heatsim.scenario import Scenario as ScenarioModel

Scenario = Annotated[Path, Parameter(help="A TOML file.")]
Overrides = Annotated[
    tuple[str, ...],
    Parameter(name="--set", help="Replace one value of the scenario: KEY.PATH=VALUE; may be repeated.", negative=""),
]
Device = Annotated[Literal["auto", "cuda", "cpu"] | None, Parameter(help="Replace the scenario's solver.device.")]
Kernel = Annotated[str | None, Parameter(help="Replace solver.kernel; `heatsim kernels` lists all kernels.")]
Precision = Annotated[Literal["auto", "float32", "float64"] | None, Parameter(help="Replace solver.precision.")]
Overwrite = Annotated[bool, Parameter(help="Also replace a file that heatsim did not write.", negative="")]
Ranks = Annotated[
    str | None,
    Parameter(help="Divide the grid among N MPI processes; `all`: one for each GPU.", show_default=False),
]
Folder = Annotated[Path, Parameter(help="The output folder of a run.")]
Quiet = Annotated[bool, Parameter(help="Print errors and warnings only.", negative="")]
Verbose = Annotated[bool, Parameter(help="Also print all heats, the speed, the files and the numerics.", negative="")]


# Suffixes of the pictures that options name.
PICTURES = (".png", ".pdf", ".svg")


def whole_numbers(kind: Any, tokens: Sequence[Token]) -> Any:
    """The value of an option of whole numbers: one, or a tuple as ``kind`` says. cyclopts alone would round 1.5."""
    for token in tokens:
        if re.fullmatch(r"[+-]?[0-9]{1,18}", token.value, re.ASCII) is None:
            raise ValueError(f'"{token.value}" is not a whole number, such as 4')
    numbers = tuple(int(token.value) for token in tokens)
    return numbers if get_origin(kind) is tuple else numbers[0]


Workers = Annotated[
    int | None,
    Parameter(
        help="Processes on this machine. Default: up to eight per GPU, else one per core.", converter=whole_numbers
    ),
]
Cluster = Annotated[str | None, Parameter(help="Address of a Dask scheduler; its workers compute the runs.")]


def all_overrides(overrides: Sequence[str], device: str | None, kernel: str | None, precision: str | None) -> list[str]:
    """Turn command-line options into overrides. They come after ``--set``, so they win."""
    options = {"solver.device": device, "solver.kernel": kernel, "solver.precision": precision}
    return [*overrides, *(f"{key}={value}" for key, value in options.items() if value is not None)]


def requested_ranks(ranks: str | None, scenario: "ScenarioModel") -> int:
    """The number of processes to start; 1 without --ranks, where nothing of it needs to be imported."""
    if ranks is None:
        return 1
    from heatsim.commands.ranks import ranks_to_start

    return ranks_to_start(ranks, scenario)
