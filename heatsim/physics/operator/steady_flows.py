"""Where the heat of a steady state enters and leaves a body."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Flows:
    """Heat in W into the body.

    Attributes:
        sources: of each source by its name, beams among them.
        faces: through each face, that of its patches among it, that of beams left out.
        patches: through each patch.
        void: through the surfaces towards void.
        surfaces: through each of ``Boundary.named``; ``void`` contains them.
        entering: what enters at each of these: the sums over boundary faces, or heated cells, of positive heat; None of
            such flows themselves.
    """

    sources: dict[str, float]
    faces: dict[str, float]
    patches: dict[str, float]
    void: float
    surfaces: tuple[float, ...] = ()
    entering: "Self | None" = None

    @property
    def imbalance(self) -> float:
        """What enters and does not leave, in W."""
        return float(sum((*self.sources.values(), *self.faces.values(), self.void)))

    @property
    def turnover(self) -> float:
        """The heat in W that flows through the body: the mean of what enters and what leaves."""
        return 0.0 if self.entering is None else self.entering.imbalance - 0.5 * self.imbalance
