"""Pictures of a run's output, drawn from its folder, without a display."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heatsim.render.drawing import draw_some, picture_names, render, replacing_usual

__all__ = ["draw_some", "picture_names", "render", "replacing_usual"]


def __getattr__(name: str) -> Any:
    # Import on first use: a run needs only the units from this folder.
    if name in __all__:
        from heatsim.render import drawing

        return getattr(drawing, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
