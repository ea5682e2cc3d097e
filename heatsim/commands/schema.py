"""`heatsim schema`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heatsim.commands.options import Overwrite


def schema(
    file: Annotated[Path | None, Parameter(help="A .json file to write. Default: standard output.")] = None,
    /,
    *,
    overwrite: Overwrite = False,
) -> int:
    """Write a JSON Schema of scenarios, with which editors complete and check keys."""
    from heatsim.storage.single_file import check_replaceable, write_text
    from heatsim.study.schema import scenario_schema_text

    if file is None:
        print(scenario_schema_text(), end="")
        return 0
    check_replaceable(file, (".json",), overwrite)
    write_text(file, scenario_schema_text())
    return 0
