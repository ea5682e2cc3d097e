"""The sizes of regions as the scenario draws them, and as their cells have them."""

from collections.abc import Iterator
from dataclasses import dataclass

from heatsim.counts import counted, minus
from heatsim.grid import AXES, Grid
from heatsim.physics.geometry.shapes import OTHER_UNIT, Solid, cells_between, is_of_other_unit
from heatsim.physics.geometry.stl import Surface
from heatsim.scenario import Scenario, Stl
from heatsim.scenario.documents.copies import base_of

MOST_OFF = 0.1  # of the drawn size; the user is warned about larger differences
_ROUNDING = 1e-9
_MOST_NAMED = 4


@dataclass(frozen=True)
class PaintedSize:
    """The bounding box of a region, clipped to the domain.

    Attributes:
        region: its name.
        drawn: the lengths along x, y, z in m.
        painted: the lengths of its cells in m.
        cells: the number of cells along x, y, z.
        through: for each axis, whether it spans the whole domain.
    """

    region: str
    drawn: tuple[float, ...]
    painted: tuple[float, ...]
    cells: tuple[int, ...]
    through: tuple[bool, ...]

    @property
    def worst(self) -> int:
        """The axis along which the painted size differs most from the drawn one."""
        return max(range(3), key=lambda axis: abs(self.part_off(axis)))

    def part_off(self, axis: int) -> float:
        """The relative error of the painted length along an axis; positive if it is too long."""
        return self.painted[axis] / self.drawn[axis] - 1.0 if self.drawn[axis] > 0.0 else 0.0

    @property
    def thin_axes(self) -> list[int]:
        """The axes along which it has at most one cell and does not span the domain."""
        return [axis for axis in range(3) if self.cells[axis] < 2 and not self.through[axis]]


def painted_sizes(scenario: Scenario, files: bool = True) -> Iterator[PaintedSize]:
    """The sizes of all regions with a shape, in the order of the scenario; of STL files only with ``files``."""
    grid = scenario.grid
    for region in scenario.regions:
        shape = region.shape
        if shape is None or (isinstance(shape, Stl) and not files):
            continue
        solid = Solid.of(shape)
        drawn = [_overlap(solid, grid, axis) for axis in range(3)]
        spans = [cells_between(grid, axis, solid.low[axis], solid.high[axis]) for axis in range(3)]
        cells = [max(span.stop - span.start, 0) for span in spans]
        yield PaintedSize(
            region=region.name,
            drawn=tuple(drawn),
            painted=tuple(float(axis.widths[span].sum()) for axis, span in zip(grid.axes, spans, strict=True)),
            cells=tuple(cells),
            through=tuple(one >= (1.0 - _ROUNDING) * whole for one, whole in zip(drawn, grid.size, strict=True)),
        )


def file_hints(scenario: Scenario) -> list[str]:
    """Warnings about STL files: those of another unit than m, and shells that paint no cell."""
    hints, grid = [], scenario.grid
    for index, region in enumerate(scenario.regions):
        if not isinstance(region.shape, Stl):
            continue
        solid = Solid.of(region.shape)
        begin = f'regions.{index}.stl: "{region.name}"'
        if is_of_other_unit(solid.low, solid.high, grid):
            lengths = " × ".join(f"{end - start:.4g}" for start, end in zip(solid.low, solid.high, strict=True))
            size = " × ".join(f"{length:.4g}" for length in grid.size)
            hints.append(f"{begin} is {lengths} m large, and the domain {size} m: {OTHER_UNIT}")
        assert isinstance(solid.shape, Surface)
        boxes, lost = solid.shape.boxes, solid.shape.shells_without_cells(grid)
        if lost:
            low, high = (f"({', '.join(f'{coordinate:.4g}' for coordinate in end)})" for end in boxes[lost[0]].tolist())
            one = "s" if len(lost) == 1 else ""
            hints.append(
                f"{begin}: {len(lost)} of its {counted(len(boxes), 'shell')} contain{one} no centre of a cell and "
                f"paint{one} none, the first from {low} to {high} m; use more cells"
            )
    return hints


def _overlap(solid: Solid, grid: Grid, axis: int) -> float:
    """The length in m along an axis that a shape and the domain have in common."""
    start, end = grid.origin[axis], grid.origin[axis] + grid.size[axis]
    return max(min(solid.high[axis], end) - max(solid.low[axis], start), 0.0)


def thickness_hints(scenario: Scenario) -> list[str]:
    """A warning about regions whose cells are more than 10 % thicker or thinner than drawn."""
    every = [size for size in painted_sizes(scenario, files=False) if abs(size.part_off(size.worst)) > MOST_OFF]
    if not every:
        return []
    off = list({base_of(size.region): size for size in reversed(every)}.values())[::-1]  # of copies the first
    named = [
        f'"{size.region}" is {1e3 * size.painted[axis]:.4g} mm along {AXES[axis]} instead of '
        f"{1e3 * size.drawn[axis]:.4g} mm ({minus(f'{100.0 * size.part_off(axis):+.0f}')} %)"
        for size in off[:_MOST_NAMED]
        for axis in (size.worst,)
    ]
    left = len(every) - min(len(off), _MOST_NAMED)
    more = f", and {counted(left, 'more region')}" if left else ""
    return [
        f"regions: cells are painted whole: {', '.join(named)}{more}; choose domain.cells so that borders of regions "
        "lie between cells, or use [[layers]] or [[contacts]] for what is thinner than a cell"
    ]
