"""Parameter studies: one scenario at many points, in a folder of runs and one table."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heatsim.study.study import Study

__all__ = ["Study"]


def __getattr__(name: str) -> Any:
    # Imported when first used: the worker processes of a study do not need it.
    if name == "Study":
        from heatsim.study.study import Study

        return Study
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
