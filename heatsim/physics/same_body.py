"""Whether the runs of a study have the same body: then one of them paints it and finds its stability limit for all."""

from dataclasses import replace
from typing import Protocol

from heatsim.physics.body import Body
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.estimates import kernel_costs
from heatsim.physics.geometry.painted_planes import EVERYTHING, PaintedPlanes
from heatsim.physics.geometry.regions import Parts
from heatsim.physics.operator.stability import Stability
from heatsim.scenario import Scenario, Source


class WithBody(Protocol):
    """The part of :class:`heatsim.physics.problem.HeatProblem` that is shared, and its scenario."""

    @property
    def scenario(self) -> Scenario:
        """The scenario."""

    @property
    def materials(self) -> CellTypes:
        """The cell types."""

    @property
    def boundary(self) -> Boundary:
        """The conditions."""

    @property
    def parts(self) -> Parts | None:
        """The painted cells."""

    @property
    def reference(self) -> float:
        """The reference temperature of the materials in K."""

    @property
    def stability(self) -> Stability:
        """The limits of the time step."""


def body_of(scenario: Scenario, held: PaintedPlanes, like: WithBody | None) -> tuple[Body, Stability]:
    """The materials of a scenario and its stability limits. Collective.

    They are those of ``like`` if it has the same body.

    Args:
        scenario: the scenario.
        held: the planes to paint.
        like: a problem of the whole grid; None to paint in any case.

    Raises:
        ScenarioError: as for :meth:`Body.from_scenario`.
    """
    if like is not None and held is EVERYTHING and same_body(scenario, like.scenario):
        boundary = replace(like.boundary, scenario=scenario)
        # Laws and heats with tables in T follow the temperatures that powers cause.
        if scenario.sources == like.scenario.sources or not (boundary.laws or like.materials.heated.tables):
            return Body(like.materials, boundary, like.parts, like.reference), like.stability
    painted = Body.from_scenario(scenario, Boundary.from_scenario(scenario), held)
    return painted, Stability(painted.materials, painted.boundary)


def same_body(scenario: Scenario, other: Scenario) -> bool:
    """Whether cell types, conditions and stability limits of two scenarios are the same, with equal input files.

    The scenarios may differ in their titles, in method in time and precision, and in the numbers that are powers of
    sources. Materials and gaps that vary with temperature have tables that depend on powers, and each run has its own
    nodes and its own values that are set on the way; then the answer is False.
    """
    varies = kernel_costs.varies(scenario) or any(of.constant_resistance is None for of in scenario.contacts)
    if scenario.path != other.path or varies or scenario.nodes or scenario.channels or scenario.changes:
        return False
    return _without_powers(scenario) == _without_powers(other)


def _without_powers(scenario: Scenario) -> Scenario:
    """The scenario with 1 for each power that heats all cells of a source alike."""
    sources = tuple(_of_power_1(source) if source.even else source for source in scenario.sources)
    alike = scenario.with_method("auto").with_precision("auto")
    return alike.model_copy(update={"title": "", "sources": sources})


def _of_power_1(source: Source) -> Source:
    given = {name: 1.0 for name in ("power", "power_density") if getattr(source, name) is not None}
    return source.model_copy(update=given)
