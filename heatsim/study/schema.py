"""The JSON Schema of a scenario file, with the table [study]: ``python -m heatsim.study.schema`` writes it."""

from pathlib import Path
from typing import Any

from heatsim.scenario import Scenario
from heatsim.scenario.documents.schema import schema_of
from heatsim.storage.single_file import marked_json
from heatsim.study.model import StudyTable

# The name under which the bundled scenarios refer to it.
NAME = "heatsim.schema.json"
SCENARIOS = Path(__file__).parents[2] / "scenarios"


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema (draft 7) of a scenario file."""
    # Without a title, the name of the file is the title.
    return schema_of(Scenario, "heatsim scenario", optional=("title",), more={"study": StudyTable})


def scenario_schema_text() -> str:
    """The same as text of a JSON file, with heatsim's mark."""
    return marked_json(scenario_schema(), indent=1)


if __name__ == "__main__":
    (SCENARIOS / NAME).write_text(scenario_schema_text(), encoding="utf-8")
