"""`heatsim kernels`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heatsim.commands.terminal import show_table
from heatsim.errors import InputError

Listing = Annotated[
    str | None,
    Parameter(help="Instead, print one rung, such as 04, as a file of CUDA C that stands alone, for one material."),
]


Exercise = Annotated[
    tuple[int, Path] | None,
    Parameter(
        help="Instead, write the text of exercise 1 to 6 and a file with gaps into a folder: --exercise 2 DIR.",
        negative="",
    ),
]
Check = Annotated[
    Path | None,
    Parameter(
        help="Instead, check the file of an exercise. No GPU is needed: g++ compiles the kernel, and its threads run "
        "one after the other, forward and in reverse. This finds wrong values, missing barriers, and threads that use "
        "the same value. It finds no lost updates, where threads read a value before either writes it, and no races "
        "between blocks."
    ),
]


def kernels(*, listing: Listing = None, exercise: Exercise = None, check: Check = None) -> int:
    """List the kernels, and which of them this machine can run."""
    if sum(option is not None for option in (listing, exercise, check)) > 1:
        raise InputError("--listing, --exercise and --check exclude each other: give one of them")
    if exercise is not None:
        from heatsim.kernels.course.exercises import write

        print(f"{', '.join(map(str, write(*exercise)))}; next: fill the gaps, then `heatsim kernels --check`")
        return 0
    if check is not None:
        from heatsim.kernels.course import check as checks

        print(checks.check(check))
        return 0
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
