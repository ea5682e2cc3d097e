"""Run a scenario with another method in time: for verification and benchmarks."""

from heatsim.scenario import Scenario


def method_override(scenario: Scenario, method: str, tolerance: float | None = None, end: float | None = None) -> str:
    """The override "time={…}" that runs a scenario in which time passes with ``method``.

    The table [time] is replaced as a whole, because each method has keys that the others refuse. ``stop_below`` is
    kept unless another end is given.

    Args:
        scenario: whose keys of [time] are kept where the method has them.
        method: "euler", "stabilized" or "implicit".
        tolerance: the error of the run in K, except with "euler"; None for the default.
        end: in s; None for that of the scenario.
    """
    time = scenario.time
    keys: dict[str, str | float | None] = {"method": method, "end": time.end if end is None else end}
    if method == "euler":
        keys |= {"dt": time.dt, "safety": time.safety if time.dt == "auto" else None}
    else:
        keys["tolerance"] = tolerance
    if end is None:
        keys["stop_below"] = time.stop_below
    shown = (
        f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value!r}"
        for key, value in keys.items()
        if value is not None
    )
    return f"time={{ {', '.join(shown)} }}"
