"""A small scenario as text, to be changed by the tests beside this file."""

from pathlib import Path

TEXT = """
[domain]
size = [0.1, 0.2, 0.3]
cells = [4, 5, 6]

[material]
conductivity = 237.0
density = 2700.0
specific_heat = 900.0

[initial]
temperature = 300.0

[time]
end = 60.0
"""


def write(folder: Path, *changes: tuple[str, str], extra: str = "", name: str = "rod.toml") -> Path:
    """The scenario in a file, each pair (old, new) replaced in its text and ``extra`` added at the end."""
    text = TEXT
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / name
    path.write_text(text + extra, encoding="utf-8")
    return path
