"""Start worker processes before the study is read, from a preview of its file.

A worker takes about a second to import its modules and to connect to a GPU. The main process takes about as long to
read and check all runs, most of it for imports; a preview takes milliseconds. If the preview was wrong, the main
process ends these workers and starts others.
"""

import threading
import tomllib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

from heatsim.device import connect, listed_gpus
from heatsim.outputs import output_folder
from heatsim.study.worker_processes import Shares, WorkerProcesses, names_of_gpus

_LARGEST = 2**20  # bytes of a file that is previewed


def preview(path: Path, overrides: Sequence[str]) -> tuple[int, str] | None:
    """The number of runs and the device of a study's file, read without any checks.

    Returns:
        The number, and "auto", "cuda" or "cpu"; None if either is not clear.
    """
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        for override in overrides:
            _apply(override, document)
        runs, device = _count(document["study"]), document.get("solver", {}).get("device", "auto")
    except Exception:  # the study is read in full later, which reports what is wrong
        return None
    return (runs, device) if runs > 0 and device in ("auto", "cuda", "cpu") else None


def _apply(override: str, document: dict[str, Any]) -> None:
    key, _, text = override.partition("=")
    *tables, last = key.strip().split(".")
    for name in tables:
        document = document.setdefault(name, {})
    try:
        document[last] = tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        document[last] = text.strip()


def _count(study: Mapping[str, Any]) -> int:
    """The number of runs of a table [study]."""
    if study["method"] == "latin-hypercube":
        return int(study["samples"])
    lengths = [len(values) for values in study.get("parameters", {}).values()]
    lengths += [len(linked["values"]) for linked in study.get("linked", [])]
    return lengths[0] if study["method"] == "zip" else prod(lengths)


class EarlyWorkers:
    """Workers that start before the study is read.

    Args:
        study: the study's folder, which need not exist yet.
        requested: the number of workers that the user wants; None for the default.
    """

    def __init__(self, study: Path, requested: int | None) -> None:
        self._study = study
        self._requested = requested
        self._processes: WorkerProcesses | None = None

    @classmethod
    def started(
        cls, path: Path, overrides: Sequence[str], output: Path | None, requested: int | None
    ) -> "EarlyWorkers":
        """Preview the file of a study, and start workers for it.

        Args:
            path: the TOML file.
            overrides: ``key.path=value`` settings.
            output: the study's folder; None for the default.
            requested: the number of workers that the user wants; None for the default.
        """
        early = cls(output_folder(path, output), requested)
        seen = preview(path, overrides)
        if seen is not None and (requested is None or requested > 0):
            runs, device = seen
            on_gpu = device != "cpu" and find_spec("cupy") is not None
            gpus = names_of_gpus(listed_gpus() if on_gpu else 0)
            if gpus:
                # This process checks the runs on the GPU. The driver connects processes one after the other.
                threading.Thread(target=connect, daemon=True).start()
            early._processes = WorkerProcesses(early._study, Shares.among(runs, gpus, requested), device)
        return early

    def take(self, shares: Shares, device: str) -> WorkerProcesses:
        """The workers, if they have these shares of the machine. Otherwise end them and start others."""
        processes, self._processes = self._processes, None
        if processes is not None and processes.shares != shares:
            processes.close()
            processes = None
        return processes or WorkerProcesses(self._study, shares, device)

    def close(self) -> None:
        """End the workers, unless they have been taken."""
        if self._processes is not None:
            self._processes.close()
            self._processes = None
