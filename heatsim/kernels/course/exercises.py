"""The exercises: the files that a learner gets, and what a kernel of a learner must compute.

A file of this folder is the solution. Between a line with GAP and a line with END is what the learner writes.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import FolderError, InputError
from heatsim.kernels.emulation.machine import Dim3
from heatsim.kernels.primers import primers

FOLDER = Path(__file__).parent
GAP = re.compile(r"^\s*(?://|#) GAP (\d+): (.*)$")
_END = re.compile(r"^\s*(?://|#) END$")
_HEADING = re.compile(r"heatsim exercise (\d+):")
_SEED = 46


@dataclass(frozen=True)
class Exercise:
    """A kernel with gaps.

    Attributes:
        shape: of its array, [z, y, x] or [x].
        threads: of a block along x, y, z.
        tile: values that a block writes along x, y, z.
        oracle: the right result, in the order of additions of the kernel.
    """

    shape: tuple[int, ...]
    threads: Dim3
    tile: Dim3
    oracle: Callable[[NDArray[Any]], NDArray[Any]]

    @property
    def cells(self) -> tuple[int, ...]:
        """Values along x, y, z."""
        return self.shape[::-1]

    @property
    def blocks(self) -> Dim3:
        """Along x, y, z."""
        x, y, z = map(ceil, np.divide((*self.cells, 1, 1)[:3], self.tile))
        return x, y, z

    def values(self) -> NDArray[np.float32]:
        """Random values."""
        return np.random.default_rng(_SEED).random(self.shape, dtype=np.float32)


def conduct(T: NDArray[Any]) -> NDArray[Any]:
    """A step of heat conduction in a box that no heat leaves."""
    padded = np.pad(T, 1, mode="edge")
    inner = slice(1, -1)
    sums = padded[inner, inner, :-2] + padded[inner, inner, 2:]
    sums += padded[inner, :-2, inner]
    sums += padded[inner, 2:, inner]
    sums += padded[:-2, inner, inner]
    sums += padded[2:, inner, inner]
    return np.asarray(T + np.float32(0.1) * (sums - np.float32(6) * T))


_BOX = (7, 9, 19)
KERNELS: Mapping[int, Exercise] = {
    2: Exercise((150,), (64, 1, 1), (64, 1, 1), primers.moving_sum),
    3: Exercise(_BOX, (10, 6, 5), (8, 4, 3), conduct),
    4: Exercise(_BOX, (10, 6, 1), (8, 4, 7), conduct),
    5: Exercise(_BOX, (10, 6, 1), (8, 4, 7), conduct),
    6: Exercise((150,), (64, 1, 1), (60, 1, 1), primers.conduct),
}


def solutions() -> dict[int, Path]:
    """The file of each exercise."""
    return {int(path.name[0]): path for path in sorted(FOLDER.glob("[1-9]_*"))}


def with_gaps(solution: str) -> str:
    """The text of a solution without what a learner writes."""
    kept, in_gap = [], False
    for line in solution.splitlines(keepends=True):
        if not in_gap:
            kept.append(line)
        in_gap = (in_gap or GAP.match(line) is not None) and not _END.match(line)
    return "".join(kept).split("\n\n# Why:")[0].rstrip() + "\n"


def text_of(number: int) -> str:
    """The text of an exercise: its section of README.md."""
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    section = re.search(rf"^## (Exercise {number}: .*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert section is not None
    return f"# {section[1].rstrip()}\n"


def write(number: int, folder: Path) -> list[Path]:
    """Write the text of an exercise and its file with gaps into a folder. Returns their paths.

    Raises:
        InputError: there is no such exercise.
        FolderError: one of the files is there already.
    """
    solution = solutions().get(number)
    if solution is None:
        raise InputError(f"--exercise {number}: there are exercises 1 to {max(solutions())}")
    contents = {
        folder / f"{solution.stem}.md": text_of(number),
        folder / solution.name: with_gaps(solution.read_text(encoding="utf-8")),
    }
    for path in contents:
        if path.exists():
            raise FolderError(f"{path}: is there already; nothing was written; give another folder, or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        path.write_text(content, encoding="utf-8")
    return list(contents)


def number_of(path: Path, text: str) -> int:
    """The exercise that a file belongs to.

    Raises:
        InputError: its first line does not say it.
    """
    found = _HEADING.search(text.partition("\n")[0])
    if found is None or int(found[1]) not in solutions():
        raise InputError(f"{path}: the first line of a file of `heatsim kernels --exercise` says its number")
    return int(found[1])


def open_gaps(text: str) -> list[str]:
    """The gaps that a learner has not filled, each with the number of its line."""
    lines = enumerate(text.splitlines(), 1)
    return [f"line {number}, gap {gap[1]}: {gap[2]}" for number, line in lines if (gap := GAP.match(line))]
