"""The connection to a Dask scheduler."""

import logging
import socket
from typing import Any

from heatsim.errors import DeviceError

SECONDS_TO_CONNECT = 10
_LENGTH, _MOST_BYTES = 8, 1 << 32


def connected(address: str) -> Any:
    """A Dask client that is connected to a scheduler.

    Raises:
        DeviceError: no scheduler answers at the address, or Dask is not installed.
    """
    distributed = import_distributed()
    # One message of heatsim replaces what Dask logs when a scheduler disappears.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        _call_at(address)
        connect: Any = distributed.Client
        return connect(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise DeviceError(
            f"--cluster {address}: no Dask scheduler answers there ({error}); start one with `dask scheduler`, which "
            "prints its address"
        ) from None
    except ValueError:
        raise DeviceError(
            f"--cluster {address}: is not the address of a Dask scheduler; write for example tcp://10.0.0.1:8786"
        ) from None


def import_distributed() -> Any:
    """The module distributed of Dask.

    Raises:
        DeviceError: it is not installed.
    """
    try:
        import distributed
    except ImportError:
        raise DeviceError("--cluster needs Dask; install heatsim[cluster]") from None
    return distributed


def _call_at(address: str) -> None:
    """Check that a scheduler may listen at an address; a client of Dask that cannot connect leaves threads behind.

    Raises:
        ValueError: it is not the address of a scheduler.
        OSError: nothing listens there, or another program.
    """
    from distributed.comm.addressing import get_address_host_port, parse_address

    host, port = get_address_host_port(address)
    if not host or not 0 < port < 2**16:
        raise ValueError(address)
    with socket.create_connection((host, port), SECONDS_TO_CONNECT) as connection:
        if parse_address(address)[0] != "tcp":
            return
        # A scheduler sends first, beginning with the length of the message. Dask would wait for another program, such
        # as its own dashboard, without a time limit, or reserve memory for the length.
        length = int.from_bytes(connection.recv(_LENGTH, socket.MSG_WAITALL), "little")
        if not 0 < length < _MOST_BYTES:
            raise OSError("another program listens there")
