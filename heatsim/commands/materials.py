"""`heatsim materials`."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from heatsim.scenario.tables.library import LibraryMaterial

_BETWEEN = 2  # spaces between columns
_HEADINGS = (
    "library:",
    "k, W/(m K)",
    "kg/m³",
    "cp, J/(kg K)",
    "at, K",
    "±10 % in, K",
    "(T), K",
    "source",
    "material",
)


def materials(name: Annotated[str, Parameter(help="A material, to see its tables for a scenario.")] = "", /) -> int:
    """List the materials of the library with their ranges and sources, or show one of them."""
    from heatsim.errors import InputError
    from heatsim.scenario.messages import did_you_mean, show
    from heatsim.scenario.tables.library import bare_name, library

    if name:
        found = library().get(bare_name(name))
        if found is None:
            near = did_you_mean(bare_name(name), library())
            raise InputError(f"got {show(name)}; the library has no such material, `heatsim materials` lists all{near}")
        _show(found)
        return 0
    references = list(dict.fromkeys(material.reference for material in library().values()))
    rows = [_HEADINGS, *(_entries(each, references.index(each.reference) + 1) for each in library().values())]
    widths = [max(map(len, column)) + _BETWEEN for column in zip(*rows, strict=True)]
    for row in rows:
        print("".join(entry.ljust(width) for entry, width in zip(row, widths, strict=True)).rstrip())
    print()
    for number, reference in enumerate(references, 1):
        print(f"[{number}] {reference}")
    print(
        '\nIn a scenario: material = "library:copper" for the values above; "library:copper(T)" for tables over the\n'
        "temperatures in the column (T). `heatsim materials copper` shows both as tables."
    )
    return 0


def _entries(material: "LibraryMaterial", reference: int) -> tuple[str, ...]:
    rows, (low, high), k = material.table, material.range, material.conductivity
    return (
        material.name,
        f"{k[0]:g}" if len(set(k)) == 1 else ", ".join(f"{each:g}" for each in k),
        f"{material.density:g}",
        f"{material.specific_heat:g}",
        f"{material.at:g}",
        f"{low:g} to {high:g}",
        f"{rows[0][0]:g} to {rows[-1][0]:g}" if rows else "–",
        f"[{reference}]",
        material.title,
    )


def _show(material: "LibraryMaterial") -> None:
    """Print a material as the tables of a scenario, with its source."""
    import tomli_w

    low, high = material.range
    print(f"# {material.title}, at {material.at:g} K; ±10 % from {low:g} to {high:g} K")
    print(f"# Source: {material.reference}\n")
    for varying in (False, True)[: 2 if material.table else 1]:
        name = f"library:{material.name}{'(T)' if varying else ''}"
        print(tomli_w.dumps({"materials": {name: material.properties(varying)}}))
