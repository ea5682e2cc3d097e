"""Pictures that a notebook shows."""

import base64
import html
from collections.abc import Iterable
from pathlib import Path


class ShownPictures(tuple[Path, ...]):
    """The paths of pictures; a notebook shows the pictures themselves."""

    __slots__ = ()

    def __new__(cls, paths: Iterable[Path]) -> "ShownPictures":
        """Keep the paths in their order."""
        return super().__new__(cls, paths)

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "no pictures"

    def _repr_html_(self) -> str:
        return "".join(_shown(path) for path in self) or "no pictures"


def _shown(path: Path) -> str:
    data, kind = base64.b64encode(path.read_bytes()).decode(), path.suffix.lstrip(".")
    return f'<img src="data:image/{kind};base64,{data}" alt="{html.escape(path.name)}" style="max-width: 100%">'
