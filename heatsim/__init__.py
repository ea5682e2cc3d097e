"""heatsim: 3-D heat conduction on a GPU or CPU, from a TOML scenario to temperatures, energy balances and pictures.

- ``Simulation.from_scenario("scenarios/cube.toml").run()`` computes a run; ``Study`` computes a parameter study.
- ``open("outputs/cube")`` gives the results of a run or a study as arrays and data frames.
"""

# Nothing is imported yet: Ctrl-C during these imports would show a traceback (see __main__.py). Type checkers take
# TYPE_CHECKING as true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from heatsim.errors import HeatsimError
    from heatsim.opened import Run, StudyResults, open
    from heatsim.run.simulation import Simulation
    from heatsim.study import Study

__all__ = ["HeatsimError", "Run", "Simulation", "Study", "StudyResults", "open"]

# Imported when first used, so that `heatsim --help` does not wait for NumPy, h5py and pydantic.
_MODULES = {
    "HeatsimError": "heatsim.errors",
    "Run": "heatsim.opened",
    "Simulation": "heatsim.run.simulation",
    "Study": "heatsim.study",
    "StudyResults": "heatsim.opened",
    "open": "heatsim.opened",
}


def __getattr__(name: str) -> "Any":
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(_MODULES[name]), name)
    if name == "__version__":
        from heatsim.version import version

        return version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__", *(name for name in globals() if name.startswith("__"))})
