// Materials that change with temperature. Included by composite.cuh.
//
// The field holds contents: the heat of a cell in kelvins of a constant heat capacity (heatsim/physics/enthalpy.py). Tables
// with equal steps of content give, linear in between,
//
//        content ──► potential                    within a material: heat = c (potential_b - potential_a), c constant
//        content ──► temperature, conductivity    at faces and between materials: as in composite.cuh, each half cell with
//                                                 the conductivity that its own cell has
//
// Steps are powers of two, so finding the place in a table rounds nothing, and a table of one step of 1 K is the identity:
// what a material that does not change has.

// Where in the tables a kind's law stands, in steps of its content.
struct __align__(16) Law {
    Real per_kelvin;   // steps in a kelvin
    Real first, last;  // of the steps; beyond them the tables go on straight
    int base;          // of step 0, in entries; kinds of one material have the same
};

// Potential: at the lower end of a step, and across it.
struct __align__(2 * sizeof(Real)) Potential {
    Real value, rise;
};

// Temperature as a deviation, and conductivity over that at the reference temperature, likewise.
struct __align__(16) State {
    Real temperature, warming;
    Real conductivity, change;
};

__device__ __forceinline__ float whole(float a) { return floorf(a); }
__device__ __forceinline__ double whole(double a) { return floor(a); }

// The step of the table that holds for a content, and how far into it the content lies, in steps.
__device__ __forceinline__ int step_of(const Law& law, Real content, Real& into)
{
    const Real steps = content * law.per_kelvin;
    const Real step = smaller(larger(whole(steps), law.first), law.last);
    into = steps - step;
    return law.base + (int)step;
}

__device__ __forceinline__ Real potential(const Laws& laws, const Law& law, Real content)
{
    Real into;
    const Potential entry = laws.potentials[step_of(law, content, into)];
    return multiply_add(entry.rise, into, entry.value);
}

__device__ __forceinline__ Real temperature(const Laws& laws, const Law& law, Real content, Real& conducting)
{
    Real into;
    const State entry = laws.states[step_of(law, content, into)];
    conducting = multiply_add(entry.change, into, entry.conductivity);
    return multiply_add(entry.warming, into, entry.temperature);
}

// What drives heat from a neighbour, in K, and what a kelvin of it gives to the cell.
struct Drop {
    Real share, difference;
};

__device__ __forceinline__ Drop drop_between(const Medium& medium, int axis, int kind, Real content, int other, Real beside)
{
    const Laws& laws = medium.laws;
    const Law own = laws.of_kind[kind], its = laws.of_kind[other];
    if (own.base == its.base)
        return {medium.links[(axis * medium.kinds + kind) * medium.kinds + other],
                potential(laws, its, beside) - potential(laws, own, content)};
    const HalfCell half = medium.halves[3 * kind + axis], further = medium.halves[3 * other + axis];
    if (half.conductance == Real(0) || further.conductance == Real(0)) return {Real(0), Real(0)};
    Real conducting, conducting_there;
    const Real T = temperature(laws, own, content, conducting), T_there = temperature(laws, its, beside, conducting_there);
    const Real resistance = Real(1) / (half.conductance * conducting) + Real(1) / (further.conductance * conducting_there);
    return {half.gain / (resistance + laws.resistances[kind * medium.kinds + other]), T_there - T};
}

// As update(), for any cell.
__device__ __forceinline__ Real update_general(const Grid& grid, const Coefficients& c, const Sweep* sweep,
                                               const Ledger& ledger, int x, int y, int z, bool at_face,
                                               Real T, Real west, Real east, Real south, Real north, Real below, Real above)
{
    const Medium& medium = c.medium;
    const unsigned int byte = byte_of(medium, cell_index(grid, x, y, z));
    const int kind = byte & ~INTERIOR;
    const Law law = medium.laws.of_kind[kind];
    unsigned int sides = 0;
    Real sum = Real(0);
    if (byte & INTERIOR) {
        sum = neighbour_sum(inner_coefficients(c, kind), potential(medium.laws, law, T),
                            potential(medium.laws, law, west), potential(medium.laws, law, east),
                            potential(medium.laws, law, south), potential(medium.laws, law, north),
                            potential(medium.laws, law, below), potential(medium.laws, law, above));
    } else {
#pragma unroll 1
        for (int n = 0; n < 6; ++n) {  // one after another: fewest registers
            const int axis = n >> 1, step = (n & 1) * 2 - 1;
            const int other = kind_at(grid, medium, x + (axis == 0 ? step : 0), y + (axis == 1 ? step : 0),
                                      z + (axis == 2 ? step : 0));
            const Real beside = n == 0 ? west : n == 1 ? east : n == 2 ? south : n == 3 ? north : n == 4 ? below : above;
            const Drop drop = drop_between(medium, axis, kind, T, other, beside);
            sum = multiply_add(drop.share, drop.difference, sum);
            sides |= (unsigned)(other == medium.void_kind) << n;
        }
        if (medium.void_condition < 0 || kind == medium.void_kind) sides = 0;
    }
    sum = source_heat(medium, sweep, kind) + sum;
    if (sides || at_face) {
        Real conducting;
        const Real degrees = temperature(medium.laws, law, T, conducting);
        if (sides) sum = add_exposed(grid, medium, sweep, ledger, x, y, z, kind, sides, degrees, sum, conducting);
        if (at_face) sum = add_general_faces(grid, medium, sweep, ledger, x, y, z, kind, degrees, sum, conducting);
    }
    return finish(sweep, x, y, z, T, sum);
}
