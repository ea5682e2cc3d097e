"""Matplotlib figures in the style of all pictures.

Positions and sizes are in pixels: 100 pixels are 1 cm, so that a figure of 1600 pixels is 16 cm wide, the text width of
a page, and texts have their size in points in print.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from textwrap import shorten
from typing import Any
from warnings import catch_warnings, filterwarnings

from heatsim.render.page.scales import PlainScale, Scale, TemperatureScale
from heatsim.storage.single_file import picture_metadata, saving

WIDTH, HEIGHT = 1600, 1200
DPI = 254
_COMPRESSION = 3  # of PNG, 0 to 9; the default, 6, takes 1.4 times as long for files a fifth smaller
SMALL, TICK_SIZE, NORMAL, LARGE = 7.0, 7.5, 8.0, 9.5  # pt
_TEXT_SIZES = {
    "font.size": NORMAL,
    "axes.titlesize": NORMAL,
    "axes.labelsize": NORMAL,
    "xtick.labelsize": TICK_SIZE,
    "ytick.labelsize": TICK_SIZE,
    "legend.fontsize": 7.5,
    "legend.title_fontsize": 7.5,
}
_STYLE: dict[Any, Any] = {
    "axes.formatter.useoffset": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.labelpad": 2.5,
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.0,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.pad": 2.0,
    "ytick.major.pad": 2.0,
    "figure.dpi": DPI,
    "savefig.dpi": DPI,
    "savefig.facecolor": "white",
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    # Dollar signs in titles and names of probes are not math.
    "text.parse_math": False,
    # Texts of PDF and SVG files can be searched and edited.
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}
# Between the title of a scenario and a remark. The no-break space tells it from dashes within them.
_DASH = " —\N{NO-BREAK SPACE}"
QUIET = "#444444"  # the colour of remarks


# DejaVu Sans comes with Matplotlib. The others, if installed, have the letters of more languages.
_FONT = "DejaVu Sans"
_MORE_FONTS = ("Noto Sans CJK SC", "Noto Sans CJK JP", "Microsoft YaHei", "Yu Gothic", "PingFang SC", "Malgun Gothic")


def import_matplotlib() -> None:
    """Import Matplotlib, also if MPLBACKEND names a backend that this environment does not have.

    Pictures need no backend. Everything that draws, or makes a report, calls this before other imports of Matplotlib.
    """
    try:
        import matplotlib
    except ValueError:
        backend = os.environ.pop("MPLBACKEND")
        for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
            del sys.modules[name]  # imported in part
        try:
            import matplotlib  # noqa: F401
        finally:
            os.environ["MPLBACKEND"] = backend


@lru_cache(maxsize=1)
def _fonts() -> list[str]:
    """The fonts of pictures, the preferred one first."""
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    return [_FONT, *(name for name in _MORE_FONTS if name in installed)]


@contextmanager
def style(larger: float = 1.0) -> Iterator[None]:
    """The style of all pictures inside the context; text is scaled by ``larger``."""
    import matplotlib

    sizes: dict[Any, Any] = {key: size * larger for key, size in _TEXT_SIZES.items()}
    with matplotlib.rc_context({**_STYLE, **sizes, "font.family": _fonts()}), catch_warnings():
        # Matplotlib warns about a letter that no font has, and draws a box.
        filterwarnings("ignore", "Glyph")
        yield


@contextmanager
def new_figure(
    path: Path, title: str, width: int = WIDTH, height: int = HEIGHT, larger: float = 1.0, description: str = ""
) -> Iterator[Any]:
    """A Matplotlib figure of ``width`` × ``height`` pixels, saved to ``path`` at exit in the format of its suffix.

    Args:
        path: the file.
        title: above the picture.
        width: in pixels.
        height: in pixels.
        larger: the scale of the texts.
        description: what the picture shows, in a few words. The file keeps it as its title, from which a report makes
            the caption (:mod:`heatsim.render.descriptions`). By default it is the title without that of the scenario.

    Raises:
        StorageError: the picture could not be written.
    """
    from matplotlib.figure import Figure

    with style(larger):
        figure = Figure(figsize=(width / DPI, height / DPI))
        text, size = _fit_title(title, 0.96 * width / larger)
        place = 1.0 - 40.0 * larger / height
        figure.text(0.5, place, text, ha="center", va="center", fontsize=size * larger, linespacing=1.05)
        yield figure
        words = description or title.rpartition(_DASH)[2]
        save(figure, path, words[:1].upper() + words[1:])


def save(figure: Any, path: Path, title: str) -> None:
    """Write a figure in the format of the file's suffix, with its title and heatsim's mark.

    Raises:
        StorageError: it could not be written.
    """
    options: Any = {"pil_kwargs": {"compress_level": _COMPRESSION}} if path.suffix == ".png" else {}
    with saving(path):
        figure.savefig(path, metadata=picture_metadata(path.suffix, title), **options)


def _fit_title(title: str, room: float) -> tuple[str, float]:
    """A title that fits a width in pixels, and its size in points. It may get smaller, two lines, or shorter."""
    wide = text_width(title, LARGE)
    if wide <= room:
        return title, LARGE
    if wide * NORMAL / LARGE <= room:
        return title, LARGE * room / wide
    name, dash, remark = title.rpartition(_DASH)
    lines = [name, remark] if dash else [title]
    return "\n".join(_shorten(line, room) for line in lines), NORMAL


def _shorten(text: str, room: float) -> str:
    """A text shortened to a width in pixels at the normal size, with "…" at its end; unchanged if it fits."""
    if text_width(text) <= room:
        return text
    most = len(text) - 1
    while most > 1 and text_width(text[:most].rstrip() + " …") > room:
        most -= 1
    return text[:most].rstrip() + " …"


def warm_up() -> None:
    """Draw a small figure in memory: Matplotlib loads fonts and modules when it first needs them."""
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(1.0, 1.0))
        figure.add_subplot().plot([0.0, 1.0], label="0.5")
        figure.legend(title="−1 K")
        add_colour_bar(figure, TemperatureScale(0.0, 1.0), (10.0, 10.0, 20.0, 100.0))
        figure.savefig(BytesIO(), format="png")


def title_of(title: str, remark: str) -> str:
    """The title of a picture: the scenario's title, shortened if it is too long, and a remark."""
    return f"{shorten(title, 80, placeholder=' …')}{_DASH}{remark}" if title else remark


@lru_cache(maxsize=4096)
def text_width(text: str, points: float = NORMAL) -> float:
    """The width of a text in pixels in the font of pictures, at a size in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    with catch_warnings():
        filterwarnings("ignore", "Glyph")
        font = FontProperties(family=_fonts(), size=points)
        width, _, _ = TextToPath().get_text_width_height_descent(text, font, ismath=False)
    return float(width) * DPI / 72.0


def add_axes(figure: Any, x: float, y: float, width: float, height: float) -> Any:
    """Axes at a position in pixels from the lower left."""
    across, up = figure.get_size_inches() * DPI
    return figure.add_axes((x / across, y / up, width / across, height / up))


def add_text(figure: Any, x: float, y: float, text: str, **options: Any) -> Any:
    """A text at a position in pixels from the lower left."""
    across, up = figure.get_size_inches() * DPI
    return figure.text(x / across, y / up, text, **options)


def add_colour_bar(figure: Any, scale: Scale, place: tuple[float, float, float, float]) -> None:
    """Add a colour bar to a figure; ``place`` is (x, y, width, height) in pixels from the lower left."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    axes = add_axes(figure, *place)
    orientation = "vertical" if place[3] > place[2] else "horizontal"
    bar = figure.colorbar(
        ScalarMappable(Normalize(*scale.limits), scale.colour_map),
        cax=axes,
        orientation=orientation,
        extend=scale.extend,
    )
    bar.set_label(scale.label, labelpad=3)
    bar.outline.set_linewidth(0.6)
    if isinstance(scale, PlainScale) and scale.categories:
        axes.set_visible(False)
