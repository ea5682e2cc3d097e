"""`heatsim schema`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heatsim.errors import RunError


def schema(
    file: Annotated[Path | None, Parameter(help="A .json file to write. Default: standard output.")] = None, /
) -> int:
    """Write a JSON Schema of scenarios, with which editors complete and check keys."""
    from heatsim.storage.disk import check_writable
    from heatsim.study.schema import scenario_schema_text

    if file is not None:
        check_writable(file, (".json",))
    text = scenario_schema_text()
    if file is None:
        print(text, end="")
        return 0
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunError(f"{file}: could not be written: {error.strerror or error}") from None
    return 0
