"""How long a plan may time work, and the clock for it."""

import time
from collections.abc import Callable, Iterator

# Seconds for the steps of one method. Reading the initial field and compiling come before.
SECONDS = 0.4
LONGEST = 1.2  # s for the steps of a method, apart from the last batch
# On grids with at most this number of cells more steps are timed, because the first steps have few units; and steps of
# "euler" are timed in new memory.
SHORT = 2**19
# Number of steps before timing starts. They compile the code of later steps.
WARM_STEPS = 3


def timed(work: Iterator[float], look: Callable[[], object] = lambda: None) -> Iterator[tuple[float, float]]:
    """The work of each batch, and its time in s; ``look`` is called after each batch and is not timed."""
    started = time.perf_counter()
    for count in work:
        yield count, time.perf_counter() - started
        look()
        started = time.perf_counter()
