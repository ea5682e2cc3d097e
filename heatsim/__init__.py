"""heatsim: 3-D heat conduction on a GPU or CPU, from a TOML scenario to temperatures, energy balances and pictures."""

from typing import TYPE_CHECKING, Any

from heatsim.errors import HeatsimError

if TYPE_CHECKING:
    from heatsim.run.simulation import Simulation
    from heatsim.study import Study

__all__ = ["HeatsimError", "Simulation", "Study"]


def __getattr__(name: str) -> Any:
    # Imported when first used, so that `heatsim --help` does not wait for NumPy, h5py and pydantic.
    if name == "Simulation":
        from heatsim.run.simulation import Simulation

        return Simulation
    if name == "Study":
        from heatsim.study import Study

        return Study
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
