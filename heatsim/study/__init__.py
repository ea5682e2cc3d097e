"""Parameter studies: one scenario at many points, in a folder of runs and one table."""

from heatsim.study.study import Study

__all__ = ["Study"]
