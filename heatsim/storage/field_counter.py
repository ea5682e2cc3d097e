"""Counting the times in fields.vtkhdf when they are on the disk, in a thread, while the caller continues."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from heatsim.storage.disk import writing
from heatsim.storage.field_file import FieldFile
from heatsim.storage.field_layout import integer


class TimeCounter:
    """Syncs the file, then counts the times that it has.

    Args:
        counted: number of times that count already.
    """

    def __init__(self, counted: int) -> None:
        self._counted = counted
        self._thread: ThreadPoolExecutor | None = None
        self._counting: Future[None] | None = None

    def begin(self, fields: FieldFile, written: Callable[[], int]) -> None:
        """Have all times counted that are written when the thread comes to it; ``written`` returns their number."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "heatsim-sync")
        self._counting = self._thread.submit(self._count, fields, written)

    def wait(self, until_counted: bool = True) -> None:
        """Wait until all times count; or only look whether counting has failed.

        Raises:
            StorageError: it failed.
        """
        counting = self._counting  # The checkpoint thread may wait here while another thread appends.
        if counting is not None and (until_counted or counting.done()):
            counting.result()

    def end(self) -> None:
        """End the thread."""
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None

    def _count(self, fields: FieldFile, written: Callable[[], int]) -> None:
        times = written()
        if times > self._counted:
            with writing(fields.path):
                fields.file.sync()
                fields.file.write(fields.layout.count_at, integer(times))
            self._counted = times
