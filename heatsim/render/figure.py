"""Matplotlib figures in the style of all pictures, with sizes in pixels."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from textwrap import shorten
from typing import Any

from heatsim.errors import StorageError
from heatsim.render.scales import TemperatureScale, colour_map
from heatsim.storage.disk import reason

WIDTH, HEIGHT = 1600, 1200
_DPI = 100
_COMPRESSION = 3  # of PNG, 0 to 9; the default, 6, takes 1.4 times as long for files a fifth smaller
_TEXT_SIZES = {"font.size": 14.0, "axes.titlesize": 15.0, "axes.labelsize": 14.0}
_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "axes.formatter.useoffset": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.dpi": _DPI,
    "savefig.dpi": _DPI,
    "savefig.facecolor": "white",
    "legend.frameon": False,
    # Dollar signs in titles and names of probes are not math.
    "text.parse_math": False,
}


@contextmanager
def new_figure(path: Path, title: str, width: int = WIDTH, height: int = HEIGHT, larger: float = 1.0) -> Iterator[Any]:
    """A Matplotlib figure of ``width`` × ``height`` pixels, saved to ``path`` at exit; text is scaled by ``larger``."""
    import matplotlib
    from matplotlib.figure import Figure

    sizes: dict[Any, Any] = {key: size * larger for key, size in _TEXT_SIZES.items()}
    with matplotlib.rc_context({**_STYLE, **sizes}):
        figure = Figure(figsize=(width / _DPI, height / _DPI))
        text = figure.text(0.5, 1.0 - 40.0 * larger / height, title, ha="center", va="center", fontsize=20.0 * larger)
        text.set_fontsize(20.0 * larger * min(1.0, 0.94 * width / text.get_window_extent().width))
        yield figure
        try:
            figure.savefig(path, pil_kwargs={"compress_level": _COMPRESSION})
        except OSError as error:
            raise StorageError(f"{path}: could not be written: {reason(error)}") from error


def warm_up() -> None:
    """Draw a small figure in memory: Matplotlib loads fonts and modules when it first needs them."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(2.0, 2.0))
        figure.add_subplot().plot([0.0, 1.0], label="0.5")
        figure.legend(title="−1 K")
        add_colour_bar(figure, TemperatureScale(0.0, 1.0), (10.0, 10.0, 20.0, 100.0))
        figure.savefig(BytesIO(), format="png")


def title_of(title: str, remark: str) -> str:
    """The title of a picture: the scenario's title, shortened if it is too long, and a remark."""
    return f"{shorten(title, 80, placeholder=' …')} — {remark}" if title else remark


def add_axes(figure: Any, x: float, y: float, width: float, height: float) -> Any:
    """Axes at a position in pixels from the lower left."""
    across, up = figure.get_size_inches() * _DPI
    return figure.add_axes((x / across, y / up, width / across, height / up))


def add_colour_bar(figure: Any, scale: TemperatureScale, place: tuple[float, float, float, float]) -> None:
    """Add a colour bar to a figure; ``place`` is (x, y, width, height) in pixels from the lower left."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    axes = add_axes(figure, *place)
    orientation = "vertical" if place[3] > place[2] else "horizontal"
    bar = figure.colorbar(ScalarMappable(Normalize(*scale.limits), colour_map()), cax=axes, orientation=orientation)
    bar.set_label(scale.label, labelpad=10)
    bar.outline.set_linewidth(0.8)
