"""Results in Python: a run or a study that is in a folder, as arrays and data frames."""

from pathlib import Path

from heatsim.errors import FolderError
from heatsim.opened.run import Run
from heatsim.opened.study import StudyResults
from heatsim.storage.folder import SCENARIO
from heatsim.storage.study_hint import STUDY

__all__ = ["Run", "StudyResults", "open"]


def open(folder: str | Path) -> Run | StudyResults:
    """The results in the folder of a run or a study, finished or not; nothing large is read yet.

    Args:
        folder: for instance "outputs/cube".

    Raises:
        FolderError: there is no run or study in the folder.
    """
    path = Path(folder)
    if (path / STUDY).is_file():
        return StudyResults(path)
    if path.is_dir() and not (path / SCENARIO).is_file():
        # A common slip is the folder above.
        inside = sorted(found.parent.name for name in (SCENARIO, STUDY) for found in path.glob(f"*/{name}"))
        hint = f", but it contains {', '.join(inside[:4])}" if inside else ""
        raise FolderError(f"{path}: is not the folder of a heatsim run or study{hint}; give for instance outputs/cube")
    return Run(path)
