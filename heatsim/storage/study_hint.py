"""What to do with the folder of a parameter study where the folder of a run is expected."""

import json
import shlex
from pathlib import Path

STUDY = "study.json"


def study_hint(folder: Path) -> str:
    """The advice for a folder of a study, as the end of a message; "" for other folders."""
    path = folder / STUDY
    if not path.is_file():
        return ""
    try:
        scenario = str(json.loads(path.read_bytes())["path"])
    except (OSError, ValueError, LookupError, TypeError):
        scenario = "SCENARIO"
    command = f"heatsim study {shlex.quote(scenario)} --output {shlex.quote(str(folder))}"
    return f"is the folder of a study; finish it with `{command}`; its runs are in {folder / 'runs' / '0001'}, …"
