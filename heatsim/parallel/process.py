"""The processes of a job, and the state of those on this machine."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

KILLED = "its process was killed"

# The states of a process in /proc that explain why it gives no sign of life.
_ON_DISK = "D"
_STATES = {
    "T": "its process is stopped, for instance by SIGSTOP or Ctrl-Z",
    "t": "its process is stopped by a debugger",
    _ON_DISK: "its process waits for a disk, a network file system or a driver that does not answer",
    "Z": KILLED,
    "X": KILLED,
    "": KILLED,
}
_UNKNOWN = "its process hangs, was stopped or killed, or its machine cannot be reached"


@dataclass(frozen=True)
class Process:
    """A process of a job.

    Attributes:
        host: the name of its machine.
        namespace: the PID namespace, which differs between containers; "" if unknown.
        number: its PID in this namespace.
        cores: the CPU cores that it may use.
    """

    host: str
    namespace: str
    number: int
    cores: frozenset[int] = frozenset()

    @classmethod
    def this(cls) -> "Process":
        """The process that calls."""
        try:
            namespace = os.readlink("/proc/self/ns/pid")
        except OSError:
            namespace = ""
        has_mask = hasattr(os, "sched_getaffinity")
        cores = os.sched_getaffinity(0) if has_mask else range(os.cpu_count() or 1)
        return cls(socket.gethostname(), namespace, os.getpid(), frozenset(cores))

    def why_silent(self) -> str:
        """Text that says why it gives no sign of life, as far as this machine knows."""
        return self.known_reason() or _UNKNOWN

    def known_reason(self) -> str:
        """Text with the reason why it sends no heartbeat; "" if it may be alive, or runs on another machine."""
        here = Process.this()
        if not self.namespace or (self.host, self.namespace) != (here.host, here.namespace):
            return ""
        return _STATES.get(self._state(), "")

    def is_stopped(self) -> bool:
        """Whether a signal or a debugger has stopped it, as far as this machine knows."""
        return self.known_reason() in (_STATES["T"], _STATES["t"])

    @property
    def waits_for_disk(self) -> bool:
        """Whether it waits for a disk, as far as this machine knows. Then none of its threads may be able to run."""
        return self.known_reason() == _STATES[_ON_DISK]

    def _state(self) -> str:
        """The letter of its state in /proc; "" if there is no such process."""
        try:
            content = Path(f"/proc/{self.number}/stat").read_text(errors="replace")
        except OSError:
            return ""
        return content.rpartition(")")[2].split()[0]


def cores_of(rank: int, processes: Sequence[Process]) -> int:
    """The number of CPU cores for a rank. Ranks that may use the same cores share them equally.

    Args:
        rank: the number of the rank.
        processes: the processes of all ranks.
    """
    own = processes[rank]
    sharing = sum(other.host == own.host and not own.cores.isdisjoint(other.cores) for other in processes)
    return len(own.cores) // max(sharing, 1)
