"""`heatsim kernels`."""

from typing import Annotated

from cyclopts import Parameter

from heatsim.commands.terminal import show_table

Listing = Annotated[
    str | None,
    Parameter(help="Instead, print one rung, such as 04, as a file of CUDA C that stands alone, for one material."),
]


def kernels(*, listing: Listing = None) -> int:
    """List the kernels, and which of them this machine can run."""
    if listing is not None:
        from heatsim.kernels import listing as listings

        print(listings.listing(listings.rung(listing)), end="")
        return 0
    _list()
    return 0


def _list() -> None:
    """Print the table of kernels."""
    from rich.table import Table

    from heatsim.device import choose
    from heatsim.errors import DeviceError
    from heatsim.kernels.catalog import AUTO, KERNELS

    table = Table("kernel", "device", "here", "composite\nbodies", "idea")
    for kernel in KERNELS:
        try:
            here = choose(kernel.backend).name
        except DeviceError:
            here = "no GPU or no CuPy"
        is_auto = kernel.backend == "cpu" and AUTO["cpu"] == kernel.name
        name = f"{kernel.name} (auto)" if is_auto else kernel.name
        table.add_row(name, kernel.backend, here, "yes" if kernel.composite else "no", kernel.idea)
    show_table(table)
    print("A body is composite if it is more than one constant material with linear conditions and without sources.")
    print("On a GPU, auto measures at the start of a run which kernel is fastest on its grid.")
