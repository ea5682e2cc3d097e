"""The number of steps that are queued before the clock and signals are checked."""

# Seconds of device work that are queued before the clock and signals are checked; twice as many with steps ahead.
BATCH_SECONDS = 0.25
_LONGER = 8


class BatchSize:
    """Adapts the number of steps of a batch to the time that they take. No result depends on it.

    If several ranks do a run, rank 0 decides.

    Args:
        least: the most steps that the kernel can do per read and write of the field. Batches reach this number even if
            they then take up to 8 times as long.

    Attributes:
        steps: the most steps of the next batch.
    """

    def __init__(self, least: int = 1) -> None:
        self.steps = 1
        self._least = least

    def took(self, steps: int, seconds: float) -> None:
        """Adapt the number to the last batch, which had ``steps`` steps and took ``seconds``."""
        if steps == self.steps or seconds > BATCH_SECONDS:
            in_time = steps * BATCH_SECONDS / max(seconds, 1e-9)
            self.steps = max(1, min(2 * steps, max(int(in_time), min(self._least, int(_LONGER * in_time)))))
