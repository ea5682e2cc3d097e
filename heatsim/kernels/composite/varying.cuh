// Materials that vary with temperature. Included by composite/composite.cuh.
//
// The field holds contents: the enthalpy of a cell, in kelvins of a constant heat capacity (heatsim/physics/matter/enthalpy.py).
// Tables with equal steps of content, linear in between, give
//
//        content ──► potential                    within a material: heat = c (potential_b - potential_a), c constant
//        content ──► temperature, conductivity    at faces and between materials: as in composite/composite.cuh; each half cell
//                                                 has the conductivity of its own cell; held faces use potentials
//
// Steps are powers of two, so the index into a table is computed without rounding. A material that does not vary has a
// table of one step of 1 K, the identity.

// A type's table: its place among all entries, and its steps of content.
struct __align__(16) EnthalpyTable {
    Real per_kelvin;   // steps per kelvin
    Real first, last;  // first and last step; beyond them the table is extrapolated linearly
    int base;          // entry of step 0; the same for all types of one material
};

// Potential at the lower end of a step, and its rise across the step.
struct __align__(2 * sizeof(Real)) Potential {
    Real value, rise;
};

// Temperature (a deviation) and k(T)/k(T_ref): each at the lower end of a step, and its change across the step.
struct __align__(16) State {
    Real temperature, warming;
    Real conductivity, change;
};

// floor(a), also as an integer, for |a| < 2^22. Adding 1.5 times a power of two, rounded down, leaves the integer in the lowest
// bits. A conversion instruction has an eighth of this speed.
__device__ __forceinline__ float whole(float a, int& integer)
{
    const float shifted = __fadd_rd(a, 12582912.0f);
    integer = __float_as_int(shifted) - 0x4B400000;
    return shifted - 12582912.0f;
}
__device__ __forceinline__ double whole(double a, int& integer)
{
    const double shifted = __dadd_rd(a, 6755399441055744.0);
    integer = (int)__double_as_longlong(shifted);
    return shifted - 6755399441055744.0;
}

// In double precision fmax and fmin would take several instructions each.
__device__ __forceinline__ float held_between(float least, float most, float a) { return fminf(fmaxf(a, least), most); }
__device__ __forceinline__ double held_between(double least, double most, double a)
{
    const double held = a > least ? a : least;
    return held < most ? held : most;
}

// The table entry for a content; `into` is the distance from the start of its step, in steps.
__device__ __forceinline__ int step_of(const EnthalpyTable& table, Real content, Real& into)
{
    const Real steps = content * table.per_kelvin;
    int step;
    into = steps - whole(held_between(table.first, table.last, steps), step);
    return table.base + step;
}

__device__ __forceinline__ Real potential(const EnthalpyTables& tables, const EnthalpyTable& table, Real content)
{
    Real into;
    const Potential entry = tables.potentials[step_of(table, content, into)];
    return multiply_add(entry.rise, into, entry.value);
}

__device__ __forceinline__ Real temperature(const EnthalpyTables& tables, const EnthalpyTable& table, Real content,
                                            Real& conducting)
{
    Real into;
    const State entry = tables.states[step_of(table, content, into)];
    conducting = multiply_add(entry.change, into, entry.conductivity);
    return multiply_add(entry.warming, into, entry.temperature);
}

// Temperature, conducting = k(T)/k(T_ref) and potential (driving) of a cell of a type.
__device__ __forceinline__ Real degrees(const CellTypes& cell_types, int cell_type, Real content, Real& conducting, Real& driving)
{
    const EnthalpyTable table = cell_types.enthalpies.of_type[cell_type];
    driving = potential(cell_types.enthalpies, table, content);
    return temperature(cell_types.enthalpies, table, content, conducting);
}

// Heat from the neighbour in direction `side`, of another material, into a cell, in kelvin of the cell. `place`: of the cell along
// the axis of this direction.
__device__ __forceinline__ Drop drop_between(const Grid& grid, const CellTypes& cell_types, size_t cell, int side, int place,
                                             int cell_type, Real content, int other, Real beside)
{
    const int n = side < 2 ? grid.nx : side < 4 ? grid.ny : grid.nz;
    const int there = place + (side & 1 ? step_up(place, n, true) : step_down(place, n, true));
    const EnthalpyTables& tables = cell_types.enthalpies;
    const HalfCell half = half_cell(grid, cell_types, cell_type, side, place);
    const HalfCell further = half_cell(grid, cell_types, other, side ^ 1, there);
    if (half.conductance == Real(0) || further.conductance == Real(0)) return {Real(0), Real(0)};
    Real conducting, conducting_there;
    const Real T = temperature(tables, tables.of_type[cell_type], content, conducting);
    const Real T_there = temperature(tables, tables.of_type[other], beside, conducting_there);
    const Real resistance = Real(1) / (half.conductance * conducting) + Real(1) / (further.conductance * conducting_there);
    Real contact = tables.resistances[cell_type * cell_types.count + other];
#if CONTACTS
    if (const Real* const weights = weights_of(cell_types, cell)) contact *= weights[side];
#endif
    return {half.gain / (resistance + contact), T_there - T};
}

// sum, plus the heat from a neighbour. `there` is its potential by the cell's own table, which nearly all neighbours share.
__device__ __forceinline__ Real add_neighbour(const Grid& grid, const CellTypes& cell_types, const EnthalpyTable& table, size_t cell,
                                              int side, int place, int cell_type, Real T, Real here, int other, Real beside, Real there,
                                              Real sum)
{
    Drop drop = {cell_types.links[((side >> 1) * cell_types.count + cell_type) * cell_types.count + other], there - here};
#if GRADED
    drop.share *= link_factor(grid, cell_types.planes, side, place);
#endif
    if (other != cell_type && cell_types.enthalpies.of_type[other].base != table.base)
        drop = drop_between(grid, cell_types, cell, side, place, cell_type, T, other, beside);
    return multiply_add(drop.share, drop.difference, sum);
}

// The new content from the sum over neighbours. `here` is the cell's potential; bit n of `sides` is set if the neighbour in
// direction n is void.
__device__ __forceinline__ Real finish_cell(const Grid& grid, const CellTypes& cell_types, const StepData* sweep, const Ledger& ledger,
                                            int x, int y, int z, int cell_type, unsigned int sides, Real T, Real here, Real sum,
                                            bool owned)
{
    if (!cell_types.exposed || cell_type == cell_types.void_type) sides = 0;
    sum = source_heat(cell_types, sweep, cell_type) + sum;
    const bool at_face = touches_face(grid, x, y, z);
    if (sides || at_face) {
        Real conducting;
        const Real warmth = temperature(cell_types.enthalpies, cell_types.enthalpies.of_type[cell_type], T, conducting);
        if (sides)
            sum = add_exposed(grid, cell_types, sweep, ledger, x, y, z, cell_type, sides, warmth, sum, owned, conducting, here);
        if (at_face)
            sum = add_general_faces(grid, cell_types, sweep, ledger, x, y, z, cell_type, warmth, sum, owned, conducting, here);
    }
    sum = with_cell_heat(cell_types, cell_index(grid, x, y, z), sum);
    return finish(sweep, start_of(sweep, cell_index(grid, x, y, z), T), sum);
}

// The new content of a cell from the types and contents of its neighbours, in the order x-, x+ ... z+. All potentials are
// looked up together.
__device__ __forceinline__ Real update_among(const Grid& grid, const Coefficients& c, const StepData* sweep, const Ledger& ledger,
                                             int x, int y, int z, int cell_type, const int (&beside)[6], Real T,
                                             const Real (&values)[6], bool owned = true)
{
    const CellTypes& cell_types = c.cell_types;
    const EnthalpyTable table = cell_types.enthalpies.of_type[cell_type];
    const Real here = potential(cell_types.enthalpies, table, T);
    Real there[6];
#pragma unroll
    for (int n = 0; n < 6; ++n) there[n] = potential(cell_types.enthalpies, table, values[n]);
    unsigned int sides = 0;
    Real sum = Real(0);
    const size_t cell = cell_index(grid, x, y, z);
#pragma unroll
    for (int n = 0; n < 6; ++n) {
        const int place = n < 2 ? x : n < 4 ? y : z;
        sum = add_neighbour(grid, cell_types, table, cell, n, place, cell_type, T, here, beside[n], values[n], there[n], sum);
        sides |= (unsigned)(beside[n] == cell_types.void_type) << n;
    }
    return finish_cell(grid, cell_types, sweep, ledger, x, y, z, cell_type, sides, T, here, sum, owned);
}

// The same; the values are loaded from the field, axis by axis. Loading all together would need more registers, and the warps
// lost to them would cost more than it gains.
__device__ __forceinline__ Real update_from_memory(const Real* field, const Grid& grid, const Coefficients& c,
                                                   const StepData* sweep, const Ledger& ledger, int x, int y, int z)
{
    const CellTypes& cell_types = c.cell_types;
    const size_t cell = cell_index(grid, x, y, z);
    const unsigned int byte = byte_of(cell_types, cell);
    const int cell_type = byte & ~INTERIOR;
    const EnthalpyTable table = cell_types.enthalpies.of_type[cell_type];
    const Real T = field[cell], here = potential(cell_types.enthalpies, table, T);
    unsigned int sides = 0;
    Real sum = Real(0);
#pragma unroll 1
    for (int axis = 0; axis < 3; ++axis) {
        const int at = axis == 0 ? x : axis == 1 ? y : z, n = axis == 0 ? grid.nx : axis == 1 ? grid.ny : grid.nz;
        const ptrdiff_t stride = axis == 0 ? 1 : axis == 1 ? grid.nx : (ptrdiff_t)grid.nx * grid.ny;
        const bool wraps = grid.periodic >> axis & 1;
        const size_t below = cell + step_down(at, n, wraps) * stride, above = cell + step_up(at, n, wraps) * stride;
        const Real lower = field[below], upper = field[above];
        int type_below = cell_type, type_above = cell_type;
        if (!(byte & INTERIOR)) {
            type_below = byte_of(cell_types, below) & ~INTERIOR;
            type_above = byte_of(cell_types, above) & ~INTERIOR;
        }
        const Real there_below = potential(cell_types.enthalpies, table, lower),
                   there_above = potential(cell_types.enthalpies, table, upper);
        sum = add_neighbour(grid, cell_types, table, cell, 2 * axis, at, cell_type, T, here, type_below, lower, there_below, sum);
        sum = add_neighbour(grid, cell_types, table, cell, 2 * axis + 1, at, cell_type, T, here, type_above, upper, there_above, sum);
        sides |= ((unsigned)(type_below == cell_types.void_type) | (unsigned)(type_above == cell_types.void_type) << 1) << 2 * axis;
    }
    return finish_cell(grid, cell_types, sweep, ledger, x, y, z, cell_type, sides, T, here, sum, true);
}
