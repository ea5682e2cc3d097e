"""A material of a body as numbers."""

from dataclasses import dataclass

from heatsim.physics.matter.enthalpy import EnthalpyTable


@dataclass(frozen=True)
class MaterialNumbers:
    """A material as numbers.

    Attributes:
        name: its name in the scenario.
        conductivity: (kx, ky, kz) in W/(m K); None for void.
        heat_capacity: ρ·cp in J/(m³ K); 0 for void.
        enthalpy: how both change with temperature; None if the material is constant.
        region: the region whose cells it stands for, if contacts or surfaces name the region; else "".
    """

    name: str
    conductivity: tuple[float, float, float] | None
    heat_capacity: float
    enthalpy: EnthalpyTable | None = None
    region: str = ""


VOID = MaterialNumbers("void", None, 0.0)
