"""The textbook ladder of sums on a GPU: one file per rung, launched again on its results until one value is left.

The sums are computed in the precision of the values, as in the textbooks; heatsim itself uses :mod:`.fused`.
"""

from dataclasses import dataclass
from math import ceil, log2
from typing import Any

import numpy as np

from heatsim.kernels import compiled

THREADS = 256  # of a block
# Blocks that a multiprocessor holds at once, for the rung that fills the device once.
_RESIDENT = 8


@dataclass(frozen=True)
class Rung:
    """One way to sum.

    Attributes:
        name: its name in tables.
        source: its file in this folder.
        idea: its idea in a few words.
        loads: values that a thread loads; 0 if the device is filled once and its threads share all values.
    """

    name: str
    source: str
    idea: str
    loads: int

    def macros(self, precision: str) -> dict[str, str | int]:
        """The macros of its file."""
        return {"REAL": compiled.REAL[precision], "THREADS": THREADS}

    def blocks(self, count: int, multiprocessors: int) -> int:
        """Blocks of a launch on ``count`` values; each writes one sum."""
        if self.loads:
            return ceil(count / (THREADS * self.loads))
        return min(ceil(count / (2 * THREADS)), _RESIDENT * multiprocessors)

    def depth(self, count: int, multiprocessors: int) -> int:
        """The largest number of additions that a value passes through; each rounds by at most half a unit."""
        depth = 0
        while count > 1:
            blocks = self.blocks(count, multiprocessors)
            depth += ceil(count / (blocks * THREADS)) + ceil(log2(THREADS))
            count = blocks
        return depth


LADDER = (
    Rung("interleaved", "R1_interleaved.cu", "a tree whose steps grow", 1),
    Rung("non_divergent", "R2_non_divergent.cu", "its additions by the first threads", 1),
    Rung("sequential", "R3_sequential.cu", "its upper half to the lower", 1),
    Rung("first_add", "R4_first_add.cu", "two values a thread", 2),
    Rung("unrolled_warp", "R5_unrolled_warp.cu", "the last warp by shuffles", 2),
    Rung("unrolled", "R6_unrolled.cu", "no loop", 2),
    Rung("more_work", "R7_more_work.cu", "the device filled once", 0),
)


@dataclass(frozen=True)
class Summing:
    """A rung on one device array.

    Attributes:
        rung: the way to sum.
        function: its compiled kernel.
        values: the array, contiguous.
        sums: buffers for the sums of the first and of the second launch; later launches use them alternately.
    """

    rung: Rung
    function: Any
    values: Any
    sums: tuple[Any, Any]
    multiprocessors: int

    @classmethod
    def of(cls, rung: Rung, xp: Any, values: Any, multiprocessors: int) -> "Summing":
        """Compile the rung and allocate its buffers."""
        precision = str(values.dtype)
        first = rung.blocks(values.size, multiprocessors)
        second = rung.blocks(first, multiprocessors)
        return cls(
            rung,
            compiled.function(rung.source, "reduce", rung.macros(precision)),
            values,
            (xp.empty(first, dtype=precision), xp.empty(second, dtype=precision)),
            multiprocessors,
        )

    def queue(self) -> Any:
        """Launch until one sum is left; return the device array that will hold it in its first element."""
        source, count = self.values, int(self.values.size)
        targets = self.sums
        while True:
            blocks = self.rung.blocks(count, self.multiprocessors)
            self.function((blocks,), (THREADS,), (source, targets[0], np.uint64(count)))
            if blocks == 1:
                return targets[0]
            source, count, targets = targets[0], blocks, targets[::-1]
