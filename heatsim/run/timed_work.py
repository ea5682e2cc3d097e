"""How long a plan may time work, and the clock for it."""

import time
from collections.abc import Iterator

# Seconds for the steps of one method. Reading the initial field and compiling come before.
SECONDS = 0.4
LONGEST = 1.2  # s for the steps of a method, apart from the last batch, and from places in a long run of "euler"
# On grids with at most this number of cells more steps of methods with a tolerance are timed, because the first steps
# have few units.
SHORT = 2**19
# Number of their steps before timing starts. They compile the code of later steps.
WARM_STEPS = 3


def timed(work: Iterator[float]) -> Iterator[tuple[float, float]]:
    """The work of each batch, and its time in s."""
    started = time.perf_counter()
    for count in work:
        yield count, time.perf_counter() - started
        started = time.perf_counter()
