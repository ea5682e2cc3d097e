"""What to do with the folder of a parameter study where the folder of a run is expected."""

import json
import shlex
from pathlib import Path

STUDY = "study.json"


def study_hint(folder: Path) -> str:
    """The advice for a folder of a study, as the end of a message; "" for other folders."""
    if not (folder / STUDY).is_file():
        return ""
    runs = folder / "runs" / "0001"
    return f"is the folder of a study; finish it with `{study_command(folder)}`; its runs are in {runs}, …"


def study_command(folder: Path) -> str:
    """The command that finishes the study in a folder, quoted for a shell."""
    try:
        scenario = str(json.loads((folder / STUDY).read_bytes())["path"])
    except (OSError, ValueError, LookupError, TypeError):
        scenario = "SCENARIO"
    return f"heatsim study {shlex.quote(scenario)} --output {shlex.quote(str(folder))}"
