"""What to do with the folder of a parameter study where the folder of a run is expected."""

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

STUDY = "study.json"
OF_DICTIONARY = "dictionary"  # the name of the file of a study that was given as a dictionary
# The first parameters of the study that `heatsim converge` makes; with cells of several widths it has tables of them.
CONVERGENCE_KEYS = ("domain.cells", "time", "solver.precision")


def study_hint(folder: Path) -> str:
    """The advice for a folder of a study, as the end of a message; "" for other folders."""
    if not (folder / STUDY).is_file():
        return ""
    runs = folder / "runs" / "0001"
    return (
        f"is the folder of a study; give one of its runs, such as {runs}, or finish the study: {study_command(folder)}"
    )


def study_command(folder: Path) -> str:
    """The command that finishes the study in a folder, quoted for a shell, and what must be added to it."""
    content = _content(folder)
    scenario = str(content.get("path", "SCENARIO"))
    if Path(scenario).name == OF_DICTIONARY:
        return f'heatsim.Study.from_dict(…, "{folder}").run() with the dictionary that it began with'
    name = "converge" if is_convergence(content.get("document")) else "study"
    command = f"`heatsim {name} {shlex.quote(scenario)} --output {shlex.quote(str(folder))}`"
    document = _document(Path(scenario))
    if not content or document is None or document == content.get("document"):
        return command
    return f"{command}, with the scenario and the options --set that it began with"


def _content(folder: Path) -> dict[str, Any]:
    """The content of study.json; empty if it is damaged."""
    try:
        content = json.loads((folder / STUDY).read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _document(path: Path) -> object:
    """The tables of a scenario's file as study.json holds them; None if the file cannot be read."""
    try:
        return json.loads(json.dumps(tomllib.loads(path.read_text(encoding="utf-8")), default=str))
    except (OSError, ValueError):
        return None


def is_convergence(document: Any) -> bool:
    """Whether the document of a study is one of `heatsim converge`."""
    try:
        return tuple(document["study"]["parameters"])[: len(CONVERGENCE_KEYS)] == CONVERGENCE_KEYS
    except (LookupError, TypeError):
        return False
