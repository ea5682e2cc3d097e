"""The reference of the keys of a study: ``python -m heatsim.study.reference`` writes it to the README."""

from pathlib import Path

from heatsim.scenario.documents.reference import insert, sections
from heatsim.study.model import Linked, Range, Response, StudyTable

PAGE = Path(__file__).parent / "README.md"
SECTIONS = (
    ("[study]", StudyTable),
    ("Ranges", Range),
    ("[[study.linked]]", Linked),
    ("[[study.responses]]", Response),
)


def keys() -> str:
    """The reference of all keys of a study, as Markdown."""
    return sections(SECTIONS)


if __name__ == "__main__":
    PAGE.write_text(insert(PAGE.read_text(encoding="utf-8"), keys()), encoding="utf-8")
