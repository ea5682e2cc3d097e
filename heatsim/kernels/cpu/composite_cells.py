"""The plan of the compiled CPU kernel for composite bodies, and what it needs of a single cell."""

from typing import Any

import numpy as np

from heatsim.kernels.cpu.graded_lines import GRADED
from heatsim.kernels.cpu.lines import compiled, whole_vectors, wrap
from heatsim.kernels.cpu.march import RowBlock
from heatsim.kernels.cpu.plan import MARCH, behind, constant, get, longs_at, put, reals_at

# Fields of a plan besides those of march.py. Tables have the shapes of their classes; what changes from step to step
# has a stride, the numbers from one step to the next: 0 if one row holds for all steps.
PLAN = (
    *MARCH,
    # ring_axes.py: the axis of the ring that lies along y and z of the grid.
    *("along_y", "along_z"),
    # An index of SCHEMES, the number of the call's first step, the first type with sources.
    *("scheme", "first_heated"),
    # Parts of a worker's memory: from a cell to its potential, 0 if no material varies with temperature; where the sums
    # of some rows begin, and the numbers of some surfaces.
    *("potentials", "sums", "surfaces"),
    # Class CompositeLayout.
    *("run_first", "run_end", "run_stencil", "odd_first", "odd_x", "odd_stencil"),
    *("dense_of", "dense_first", "dense_begin", "dense_end", "dense_type"),
    *(
        "surface_first",
        "surface_row",
        "surface_x",
        "surface_type",
        "surface_condition",
        "surface_weight",
        "surface_fraction",
        "surface_sum",
        "surface_last",
        "surface_lit",
        "surface_u",
        "surface_v",
        "surface_side",
        "own",
        "around",
        "weights",
        "between",
    ),
    # c0…c6 of each stencil, c1…c6 of dense rows in stretches of ``dense_stride``, the half cells behind void
    # surfaces; classes LinkTables and EnthalpyTables.
    *(
        "types",
        "dense_c",
        "dense_stride",
        "c",
        "surface_conductance",
        "surface_share",
        "halves",
        "places",
        "bases",
        "potential_table",
        "states",
        "resistances",
    ),
    # Class StepRows. Each of its beams: face, −1 if no face absorbs it; the place of its weights along u and how many
    # each spot has, the same along v; TURNED; FIRST_SPOT; NUMBER. Each step: the places among these of the beams that
    # are on, ascending, and −1 behind them; how many spots each beam has, where their weights start.
    *("conditions", "conditions_stride", "held", "held_stride", "heat", "heat_stride", "factors", "factors_stride"),
    *("beams", "beams_on", "beams_on_stride", "beam_spots", "beam_spots_stride"),
    *("beam_first", "beam_first_stride", "beam_weights", "beam_weights_stride"),
    # The number of open faces. Each face: whether it is open, types of its cells, their conditions, sums of heat, the
    # conductance, share and gain of its half cells; the face of the ring at which it lies.
    *("open_faces", "faces", "scale", "void_conditions", "mixed_cells", "mixed_places", "mixed_first", "mixed_numbers"),
    # The sums of parts of mixed cells, and behind them those towards void; from a sum to that of beams, 0 without them.
    *("mixed_fractions", "listed_sums", "to_beams"),
    # Cells that sources heat individually (class HeatTables): the first of each row, their places along x, their types.
    # Of each row also whether its cells are neighbours with equal amounts, without gaps; whether they have nothing but
    # beams; and the numbers of entries of its beams, ascending. Then the entries with amounts.
    *(
        "heated_rows",
        "heated_alike",
        "heated_by_beams",
        "heated_beam_first",
        "heated_beam_numbers",
        "heated_x",
        "heated_type",
        "heated_first",
        "heated_numbers",
        "heated_weights",
    ),
    # The weights of rows of equal amounts as they read them. Entries of beams and gaps.
    *("alike_weights", "others_first", "others_numbers", "others_weights", "others_spots"),
    *("heated_table_of", "heated_tables", "heated_entries", "amount_count", "amounts", "amounts_stride", "heat_sums"),
    # Gaps (class HeatTables): the types of the neighbours at entries, T_ref.
    *("heated_across", "others_beside", "reference"),
    # Whether beams fall on surfaces towards void.
    "lit",
    # Addresses of the parts of a step (composite.py), 0 of those that the body does not need.
    *("sums_part", "varying_part", "void_part", "faces_part", "heat_part"),
    # Another field to which the increments of a single step are added, if ``has_base``; 0 if there is none.
    *("has_base", "base"),
    # The gain of the half cells behind void surfaces, for light.
    "surface_gain",
    # For cells of several widths (graded_sums.py): GRADED, the weights of links of each stencil; stretches of odd cells
    # and their first ones, coefficients and types of all odd cells.
    *(*GRADED, "ring_weights"),
    *("stretch_first", "stretch_x", "stretch_count", "stretch_odd", "odd_c", "odd_type"),
)
FACE_FIELDS = IS_OPEN, TYPES, MAP, SUMS, CONDUCTANCES, SHARES, GAINS, SIDE = tuple(range(8))
# The last fields of a beam: whether its u and v are v and u of the ring; the place of its first spot among all spots;
# the number of its entries.
BEAM_FIELDS, TURNED, FIRST_SPOT, NUMBER = 8, 5, 6, 7

# Numbers of a type's half cell along an axis, and of a place in an enthalpy table.
HALF, PLACE = 4, 3
CONDUCTANCE, SHARE, GAIN = 0, 1, 2


@compiled
def row_number(plan: Any, rows: RowBlock) -> Any:
    """The number of the first of some rows among all rows of the grid."""
    z, y = wrap(rows.z, plan.nz), wrap(rows.y, plan.ny)
    return z * plan.ny + y


@compiled
def around(plan: Any, rows: RowBlock) -> Any:
    """Where the neighbours of the first of some rows begin: in z− and y− of the grid, itself, in y+ and z+.

    The cells before and after each one are its neighbours in x, unless there is one cell along x: then rows lie along
    another axis, and the coefficients of x are 0.
    """
    south, north = _beside(plan, rows, plan.along_y)
    below, above = _beside(plan, rows, plan.along_z)
    return below, south, rows.here, north, above


@compiled
def _beside(plan: Any, rows: RowBlock, axis: int) -> Any:
    """The neighbours of some rows along an axis of the ring."""
    if axis == 0:
        return rows.here - 1, rows.here + 1
    if axis == 1:
        return rows.here - plan.stride, rows.here + plan.stride
    return rows.below, rows.above


@compiled
def moved(neighbours: Any, by: int) -> Any:
    """The neighbours of the cell that lies ``by`` values further on in memory."""
    below, south, here, north, above = neighbours
    return below + by, south + by, here + by, north + by, above + by


@compiled
def half_cell(plan: Any, T: Any, cell_type: int, axis: int) -> Any:
    """(conductance, share, gain) of the half cell of a type along an axis."""
    half = behind(reals_at(plan.halves, T), HALF * (3 * np.int64(cell_type) + axis))
    return half[CONDUCTANCE], half[SHARE], half[GAIN]


@compiled
def state(plan: Any, T: Any, cell_type: int, content: Any) -> Any:
    """(T − T_ref, k(T)/k(T_ref)) of a cell."""
    if plan.potentials == 0:
        return content, type(content)(1.0)
    place = behind(reals_at(plan.places, T), PLACE * np.int64(cell_type))
    steps = content * place[0]
    step = np.floor(steps)
    step = step if step > place[1] else place[1]
    step = step if step < place[2] else place[2]
    entry, into = longs_at(plan.bases)[np.int64(cell_type)] + np.int64(step), steps - step
    numbers = behind(reals_at(plan.states, T), 4 * entry)
    return numbers[0] + numbers[1] * into, numbers[2] + numbers[3] * into


@compiled
def sum_constant(c: Any, T: Any, here: int, south: int, north: int, below: int, above: int) -> Any:
    """c1·(T(x−) − T) + … + c6·(T(z+) − T) of one cell; arguments are indices."""
    centre = T[here]
    return (
        c[1] * (T[here - 1] - centre)
        + c[2] * (T[here + 1] - centre)
        + c[3] * (T[south] - centre)
        + c[4] * (T[north] - centre)
        + c[5] * (T[below] - centre)
        + c[6] * (T[above] - centre)
    )


@compiled
def sum_dense(c: Any, n: int, T: Any, neighbours: Any, stride: int, sums: int, count: int) -> None:
    """The same for rows of n cells whose c1 … c6 are n numbers each, one after the other, the same for all rows.

    Args:
        c: the coefficients of a row.
        n: the number of its cells.
        T: the ring.
        neighbours: those of the first cell, from :func:`around`.
        stride: cells from one row to the next.
        sums: the place of the first sum.
        count: the number of rows.
    """
    whole_vectors()
    below, south_of, here, north_of, above = neighbours
    cells = np.uint64(n)
    c2, c3, c4, c5, c6 = behind(c, n), behind(c, 2 * n), behind(c, 3 * n), behind(c, 4 * n), behind(c, 5 * n)
    for row in range(count):
        at = row * stride
        i, out = np.uint64(here + at), np.uint64(sums + at)
        west, east = np.uint64(here + at - 1), np.uint64(here + at + 1)
        south, north = np.uint64(south_of + at), np.uint64(north_of + at)
        down, up = np.uint64(below + at), np.uint64(above + at)
        for x in range(cells):
            centre = get(T, i + x)
            total = constant(c, x) * (get(T, west + x) - centre) + constant(c2, x) * (get(T, east + x) - centre)
            total += constant(c3, x) * (get(T, south + x) - centre)
            total += constant(c4, x) * (get(T, north + x) - centre)
            total += constant(c5, x) * (get(T, down + x) - centre)
            total += constant(c6, x) * (get(T, up + x) - centre)
            put(T, out + x, total)


@compiled
def look_up(plan: Any, T: Any, here: int, n: int, cell_type: int) -> None:
    """Look up the potentials of n cells of one material; ``here`` is the first."""
    place = behind(reals_at(plan.places, T), PLACE * cell_type)
    per_kelvin, first_step, last_step = place[0], place[1], place[2]
    whole_vectors()
    table, base = reals_at(plan.potential_table, T), longs_at(plan.bases)[cell_type]
    i, out = np.uint64(here), np.uint64(here + plan.potentials)
    for x in range(np.uint64(n)):
        steps = get(T, i + x) * per_kelvin
        step = np.floor(steps)
        step = step if step > first_step else first_step  # also for NaN
        step = step if step < last_step else last_step
        entry = np.uint64(2 * (base + np.int64(step)))
        value, rise = constant(table, entry), constant(table, entry + np.uint64(1))
        put(T, out + x, value + rise * (steps - step))
