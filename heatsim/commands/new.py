"""`heatsim new`: templates of scenarios."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from heatsim.errors import FolderError, InputError

_SCHEMA = re.compile(r"#:schema (\S+)")
_COLUMN = 20  # of the titles


def new(
    template: Annotated[str, Parameter(help="A template, such as cube. Default: list all of them.")] = "",
    /,
    *,
    overwrite: Annotated[bool, Parameter(help="Replace files that are there.", negative="")] = False,
) -> int:
    """Write a template of a scenario and its input files to the current folder, or list the templates."""
    if not template:
        for path in sorted(template_folder().glob("*.toml")):
            print(f"{path.stem.ljust(_COLUMN)}{tomllib.loads(path.read_text('utf-8'))['title']}")
        print("\n`heatsim new cube` writes cube.toml and the files that it needs to this folder.")
        return 0
    path = find_template(template)
    written = copy_template(path, Path(), overwrite)
    command = "heatsim study" if "study" in tomllib.loads(path.read_text("utf-8")) else "heatsim"
    print(f"wrote {', '.join(each.name for each in written)}; next: {command} {path.name}")
    return 0


def template_folder() -> Path:
    """The folder with the templates: in an installed package its own, in a checkout the scenarios beside it.

    Raises:
        InputError: there is none.
    """
    package = Path(__file__).parents[1]
    for folder in (package / "templates", package.parent / "scenarios"):
        if (folder / "cube.toml").is_file():
            return folder
    raise InputError(f"{package / 'templates'}: there are no templates in this installation; install heatsim again")


def find_template(name: str) -> Path:
    """The file of a template.

    Raises:
        InputError: there is no such template.
    """
    from heatsim.scenario.messages import did_you_mean, show

    stems = {path.stem: path for path in template_folder().glob("*.toml")}
    found = stems.get(name.removesuffix(".toml"))
    if found is None:
        raise InputError(
            f"got {show(name)}; there is no such template, `heatsim new` lists them{did_you_mean(name, stems)}"
        )
    return found


def copy_template(path: Path, target: Path, overwrite: bool) -> list[Path]:
    """Copy a template and the files that it names. Returns the copies, the scenario first.

    Args:
        path: the file of the template.
        target: the folder to write to.
        overwrite: replace files with other contents.

    Raises:
        FolderError: a file with another content is there. Nothing was written.
    """
    text = path.read_text("utf-8")
    names = [path.name, *_SCHEMA.findall(text), *_texts(tomllib.loads(text))]
    sources = {name: path.parent / name for name in names if name and (path.parent / name).is_file()}
    contents = {target / name: source.read_bytes() for name, source in sources.items()}
    # Its comments name the file as it is called from the folder above.
    contents[target / path.name] = text.replace(f"scenarios/{path.name}", path.name).encode()
    for copy, content in contents.items():
        if copy.exists() and not overwrite and (copy.is_dir() or copy.read_bytes() != content):
            raise FolderError(f"{copy}: is there already; nothing was written; replace it with --overwrite")
    for copy, content in contents.items():
        copy.write_bytes(content)
    return list(contents)


def _texts(value: Any) -> Iterator[str]:
    """All texts in a TOML document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
