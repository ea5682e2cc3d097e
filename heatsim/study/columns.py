"""The fixed columns of a study's results: all except its responses.

The columns are: run, the number; one for every key that varies; status (done, failed, waiting) and message; if probes
or responses have limits, limits (pass, fail, or open if the run ended before it could be told);
final_min, final_max and final_mean of the body; the maximum and the final value of every probe; the root mean square of
the deviations of every probe with measured values, in K for temperatures; the responses; energy_residual in J; folder;
and last wall_time in s, the only column that depends on the clock. Temperatures have the unit of `output.temperature`;
times are in s, and all other values of keys in SI units.
"""

DONE, FAILED, WAITING = "done", "failed", "waiting"
RUN, STATUS, MESSAGE, FOLDER, WALL_TIME = "run", "status", "message", "folder", "wall_time"
LIMITS, PASS, FAIL, OPEN = "limits", "pass", "fail", "open"
FINAL_COLUMNS = ("final_min", "final_max", "final_mean")
RESIDUAL = "energy_residual"
COLUMNS = (RUN, STATUS, MESSAGE, LIMITS, *FINAL_COLUMNS, RESIDUAL, FOLDER, WALL_TIME)


def probe_columns(probe: str) -> tuple[str, str]:
    """The columns of a probe's maximum and final value."""
    return f"{probe} max", f"{probe} final"


def rms_column(probe: str) -> str:
    """The column of a probe's deviation from its measured values."""
    return f"{probe} rms"
