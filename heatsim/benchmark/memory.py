"""Whether a measurement fits in memory."""

from heatsim import device as devices
from heatsim.device import Device
from heatsim.errors import CapacityError
from heatsim.run.capacity import size


def check_memory(what: str, device: Device, needed: int, host: int = 0, remedy: str = "use fewer cells") -> None:
    """Check that a measurement fits, before anything is allocated.

    Args:
        what: needs the memory; a text that ends with the verb.
        device: the device.
        needed: bytes on it.
        host: bytes on the host of a GPU.
        remedy: what to do.

    Raises:
        CapacityError: it does not fit.
    """
    needs = [(needed, device.free_memory(), device.name)]
    needs += [(host, devices.host_memory(), "the host")] if host else []
    for bytes_needed, free, where in needs:
        if bytes_needed > free:
            raise CapacityError(
                f"{what} {size(bytes_needed)} of memory on {where}, which has {size(free)} free; {remedy}"
            )
