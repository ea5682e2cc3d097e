"""Triangles from the content of STL files, binary or text."""

import re

import numpy as np
from numpy.typing import NDArray

from heatsim.counts import counted

_HEADER = 84  # bytes: 80 of text and the number of triangles
_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attributes", "<u2")])
_PIECE = 1 << 22  # bytes of text at once
_NAMES = re.compile(rb"(?m)^[ \t]*(?:end)?solid\b[^\r\n]*")
_CORNER = re.compile(rb"\bvertex\s+(\S+)\s+(\S+)\s+(\S+)")
_FACET = re.compile(rb"\bfacet\b")


def read_triangles(content: bytes) -> NDArray[np.float64]:
    """The corners (x, y, z) of all triangles, shape (n, 3, 3); upper and lower case of a text are the same.

    Raises:
        ValueError: not a complete STL file; the message continues "part.stl …".
    """
    text = content[:_HEADER].lstrip()[:5].lower() == b"solid" and b"\0" not in content[:_HEADER]
    found = _of_text(content.lower()) if text else _of_binary(content)
    if not len(found):
        raise ValueError("cannot be read as an STL file, or has no triangles")
    if not np.isfinite(found).all():
        raise ValueError("has coordinates that are not finite")
    return found


def _of_binary(content: bytes) -> NDArray[np.float64]:
    held = (len(content) - _HEADER) // _TRIANGLE.itemsize
    if held < 0:
        return np.zeros((0, 3, 3))
    named = int.from_bytes(content[_HEADER - 4 : _HEADER], "little")
    if named != held:
        raise ValueError(
            f"cannot be read as an STL file: its header names {counted(named, 'triangle')}, and it holds {held:,}; "
            "export it again"
        )
    return np.frombuffer(content, _TRIANGLE, held, _HEADER)["corners"].astype(np.float64)


def _of_text(content: bytes) -> NDArray[np.float64]:
    content = _NAMES.sub(b"", content)
    pieces, start = [np.zeros((0, 3))], 0
    while start < len(content):
        end = content.find(b"endfacet", start + _PIECE)
        end = len(content) if end < 0 else end
        corners = np.array(_CORNER.findall(content, start, end), dtype=bytes).reshape(-1, 3)
        try:
            pieces.append(corners.astype(np.float64))
        except ValueError:
            raise ValueError("has a corner whose coordinates are not numbers; export it again") from None
        start = end
    found, facets = np.concatenate(pieces), len(_FACET.findall(content))
    if len(found) != 3 * facets:
        raise ValueError(f"has {counted(facets, 'facet')} and {counted(len(found), 'corner')}; export it again")
    return found.reshape(-1, 3, 3)
