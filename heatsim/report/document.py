"""The HTML of report.html: one page that needs no other file and no network.

Everything that comes from a scenario or a table is escaped. A content security policy in the page forbids requests,
so that even a fault in this could not make the page load anything.
"""

import base64
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from heatsim.errors import StorageError
from heatsim.render.descriptions import description_of
from heatsim.report.number_tables import FAIL, NumberTable
from heatsim.storage.disk import reason
from heatsim.version import version

_POLICY = "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
_TYPES = {
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".gif": "image/gif",
    ".mp4": "video/mp4",
}
_LONGEST_NUMBER = 24  # characters; a column with longer texts has words
_MOST_COLUMNS = 9  # beside the names, that fit a sheet of paper
_NBSP = "\N{NO-BREAK SPACE}"
_AMOUNT = re.compile(r"(?<=\d) (?=[^\W\d]|°)|(?<=[≤≥]) |(?<=[m²g]) (?=K\b)")
_UNIT = re.compile(r"\((?:[^()]|\([^()]*\)){1,16}\)$")  # at the end of a header
_LARGEST_PICTURE = 8 << 20  # bytes


@dataclass(frozen=True)
class Part:
    """A part of the page with a heading; ``content`` is HTML."""

    heading: str
    content: str


@dataclass(frozen=True)
class Badge:
    """A short statement at the top of the page; ``good`` is None for one that is neither good nor bad."""

    text: str
    good: bool | None = None


def page(title: str, subtitle: str, badges: Sequence[Badge], sections: Iterable[Part]) -> str:
    """The whole page; sections without content are left out."""
    kept = [section for section in sections if section.content]
    anchors = {section.heading: section.heading.lower().replace(" ", "-") for section in kept}
    links = "".join(f'<a href="#{anchors[section.heading]}">{escape(section.heading)}</a>' for section in kept)
    parts = "".join(
        f'<section id="{anchors[section.heading]}"><h2>{escape(section.heading)}</h2>{section.content}</section>'
        for section in kept
    )
    looks = {True: "", False: ' class="bad"', None: ' class="plain"'}
    items = "".join(f"<li{looks[badge.good]}>{escape(badge.text)}</li>" for badge in badges)
    resources = files(__package__)
    style, script = (resources.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="generator" content="heatsim {escape(version(), quote=True)}">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>\n{style}</style></head>\n<body>'
        f"<h1>{escape(title)}</h1><p>{escape(subtitle)}</p>"
        f'<ul class="badges">{items}</ul><nav>{links}</nav>\n{parts}'
        f"<script>\n{script}</script></body></html>\n"
    )


def name_list(lines: Iterable[tuple[str, str]]) -> str:
    """Names and texts, in which lines are not broken between a number and its unit."""
    items = (f"<dt>{escape(name)}</dt><dd>{escape(_AMOUNT.sub(_NBSP, text))}</dd>" for name, text in lines)
    return f"<dl>{''.join(items)}</dl>"


def table(numbers: NumberTable) -> str:
    """A table with its title and remark; one of many columns as several, each with the names."""
    columns = range(1, len(numbers.headers))
    if len(columns) > _MOST_COLUMNS:
        groups = [[0, *columns[start : start + _MOST_COLUMNS]] for start in range(0, len(columns), _MOST_COLUMNS)]
        pieces = [
            NumberTable(
                numbers.title if group is groups[0] else "",
                [numbers.headers[column] for column in group],
                [[row[column] for column in group] for row in numbers.rows],
                numbers.remark if group is groups[-1] else "",
            )
            for group in groups
        ]
        return "".join(map(table, pieces))
    longest = (max(map(len, column)) for column in zip(*numbers.rows, strict=True))
    plain = any(numbers.headers)
    looks = [' class="words"' if size > _LONGEST_NUMBER or not plain else "" for size in longest]
    looks = looks or [""] * len(numbers.headers)
    head = "".join(f"<th{look}>{_header(text)}</th>" for look, text in zip(looks, numbers.headers, strict=True))
    rows = "".join(
        f"<tr{_look_of(row)}>"
        + "".join(f"<td{look}>{escape(text)}</td>" for look, text in zip(looks, row, strict=True))
        + "</tr>"
        for row in numbers.rows
    )
    head = f"<thead><tr>{head}</tr></thead>" if plain else ""
    caption = f"<caption>{escape(numbers.title)}</caption>" if numbers.title else ""
    remark = f'<p class="remark">{escape(numbers.remark)}</p>' if numbers.remark else ""
    return f'<div class="wide"><table>{caption}{head}<tbody>{rows}</tbody></table></div>{remark}'


def _header(text: str) -> str:
    """A header, whose unit is not broken."""
    return escape(_UNIT.sub(lambda unit: unit[0].replace(" ", _NBSP), text))


def _look_of(row: Sequence[str]) -> str:
    """Rows of limits that are not kept stand out."""
    return ' class="bad"' if any(text.startswith(FAIL) for text in row[1:]) else ""


def sentences(texts: Iterable[str], kind: str = "") -> str:
    """A list of sentences."""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    look = f' class="{kind}"' if kind else ""
    return f"<ul{look}>{items}</ul>" if items else ""


def pictures(paths: Iterable[Path]) -> str:
    """Pictures, embedded, with their descriptions as captions; those of other types and very large ones are named only.

    Raises:
        StorageError: a picture cannot be read.
    """
    shown, named = [], []
    for path in paths:
        kind = _TYPES.get(path.suffix)
        try:
            if kind is None or path.stat().st_size > _LARGEST_PICTURE:
                named.append(path.name)
                continue
            words = escape(description_of(path), quote=True)
            data = f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
        except OSError as error:
            raise StorageError(f"{path}: could not be read: {reason(error)}") from error
        element = (
            f'<video src="{data}" controls loop muted></video>'
            if kind.startswith("video")
            else f'<img src="{data}" alt="{words}" loading="lazy">'
        )
        shown.append(f"<figure>{element}<figcaption>{words}</figcaption></figure>")
    others = f'<p class="remark">Also in figures/: {escape(", ".join(named))}</p>' if named else ""
    return (f'<div class="pictures">{"".join(shown)}</div>' if shown else "") + others


def folded(content: str, summary: str) -> str:
    """HTML in a collapsed section with a heading."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def listing(text: str, summary: str) -> str:
    """A text as it is, folded away."""
    return folded(f"<pre>{escape(text)}</pre>", summary)
