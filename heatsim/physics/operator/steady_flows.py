"""Where the heat of a steady state enters and leaves a body."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Flows:
    """Heat in W into the body.

    Attributes:
        sources: of each source by its name, beams among them.
        faces: through each face, that of its patches among it, that of beams left out.
        patches: through each patch.
        void: through the surfaces towards void.
        surfaces: through those of each region that has a condition towards void; ``void`` contains them.
        turnover: heat that flows through the body: half of the sum of the magnitudes of all sources and of all
            conditions at each face and towards void.
    """

    sources: dict[str, float]
    faces: dict[str, float]
    patches: dict[str, float]
    void: float
    surfaces: tuple[float, ...] = ()
    turnover: float = 0.0

    @property
    def imbalance(self) -> float:
        """What enters and does not leave, in W."""
        return float(sum((*self.sources.values(), *self.faces.values(), self.void)))
