"""The results of a parameter study."""

from pathlib import Path
from typing import TYPE_CHECKING

from heatsim.counts import counted
from heatsim.errors import FolderError
from heatsim.opened.run import Run
from heatsim.render.notebook import ShownPictures
from heatsim.storage.folder import SCENARIO
from heatsim.storage.own_files import refuse_others
from heatsim.storage.run_tables import header
from heatsim.storage.study_hint import study_command
from heatsim.study import folder as study_folder
from heatsim.study.columns import DONE, RUN, STATUS
from heatsim.study.figures import draw
from heatsim.study.results import Results, column_units

if TYPE_CHECKING:
    import pandas


class StudyResults:
    """The results of a study, which may still be running: each access reads what the runs have written then.

    >>> import heatsim
    >>> study = heatsim.open("outputs/heat_sink_study")
    >>> study.results.plot.scatter("boundaries.default.coefficient (W/(m^2 K))", "foot at the end (K)")

    Attributes:
        folder: of the study.
    """

    def __init__(self, folder: Path) -> None:
        """Look at a folder.

        Raises:
            FolderError: it is not the folder of a study.
            StorageError: the definition of the study is damaged.
        """
        self.folder = folder
        self._definition = study_folder.read_study(folder)
        self._results = Results(folder, self._definition)

    @property
    def results(self) -> "pandas.DataFrame":
        """One row for each run, with the headers of results.csv; the index is the number of the run."""
        frame = self._results.table().to_pandas().set_index(RUN)
        units = column_units(self._definition)
        return frame.rename(columns={name: header(name, unit) for name, unit in units.items()})

    def run(self, number: int) -> Run:
        """The results of one run.

        Raises:
            FolderError: there is no such run, or it has not begun.
        """
        if number not in self._definition.numbers:
            raise FolderError(f"{self.folder}: got run {number}; the runs are 1 to {len(self._definition.points)}")
        path = study_folder.run_path(self.folder, number)
        refuse_others((), [path])
        if not (path / SCENARIO).is_file():
            failure = study_folder.read_failure(path)
            state = "has not started" if failure is None else f"failed: {failure[0]}"
            raise FolderError(f"{self.folder}: run {number} {state}; finish it with {study_command(self.folder)}")
        return Run(path)

    def plot(self) -> ShownPictures:
        """Draw the responses and probes of the finished runs, and show the pictures in a notebook; their paths.

        Raises:
            StorageError: a picture could not be written.
        """
        return ShownPictures(draw(self.folder, self._definition, self._results.rows()))

    def __repr__(self) -> str:
        rows = self._results.rows()
        done = sum(row[STATUS] == DONE for row in rows)
        runs = counted(len(rows), "run")
        title = self._definition.document.get("title", self._definition.path.stem)
        return f'<heatsim study "{title}" in {self.folder}: {done} of {runs} done>'

    def _repr_html_(self) -> str:
        return str(self.results.to_html(max_rows=20))
