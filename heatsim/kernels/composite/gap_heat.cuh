// Heat across gaps: physics/conditions/gap_laws.py explains the balance and the rows of the laws, and does the same operations.
// Included by composite/cell_heat.cu.

// What a law gives where the middle of both surfaces has the deviation `middle`, and their temperatures differ by `apart`.
struct GapPoint {
    Real conductance, slope, absolute;
};

__device__ __forceinline__ GapPoint gap_point(const Real* law, Real reference, Real middle, Real apart)
{
    const int count = (int)law[0];
    const Real* const nodes = law + (int)law[3];
    const Real* const values = law + (int)law[2];
    Real at = middle > nodes[0] ? middle : nodes[0];  // also for NaN
    at = at < nodes[count - 1] ? at : nodes[count - 1];
    int segment = 0, end = count - 1;
    while (end - segment > 1) {
        const int tried = (segment + end) / 2;
        if (nodes[tried] <= at) segment = tried;
        else end = tried;
    }
    const Real slope = (values[segment + 1] - values[segment]) / (nodes[segment + 1] - nodes[segment]);
    const Real value = values[segment] + slope * (at - nodes[segment]);
    const Real absolute = larger(middle + reference, Real(0));
    const Real radiating = law[4] * absolute * (Real(4) * absolute * absolute + apart * apart);
    return {value + radiating, at == middle ? slope : Real(0), absolute};
}

__device__ __forceinline__ Real gap_tolerance(float) { return Real(1e-6f); }
__device__ __forceinline__ Real gap_tolerance(double) { return Real(1e-13); }

#define GAP_STEPS 60

// The heat flux in W/m2 of the voxel face from the lower cell to the upper one; `low` and `high`: resistances of the half cells.
__device__ __forceinline__ Real gap_flux(const Real* law, Real reference, Real below, Real above, Real low, Real high, Real ratio)
{
    const Real difference = below - above, whole = low + high;
    const Real start = (below + above) * Real(0.5), bend = (high - low) / whole * Real(0.5) * difference;
    const Real factor = ratio * whole, emission = law[4];
    Real f = Real(0), first = Real(0), last = Real(1);
#pragma unroll 1
    for (int i = 0; i < GAP_STEPS; ++i) {
        const Real apart = difference * (Real(1) - f);
        const GapPoint at = gap_point(law, reference, start + bend * f, apart);
        const Real b = factor * at.conductance, g = b * (Real(1) - f) - f;
        Real rise = (at.slope + emission * (Real(12) * at.absolute * at.absolute + apart * apart)) * bend;
        rise = rise - emission * at.absolute * Real(2) * apart * difference;
        const Real falls = b + Real(1) - factor * rise * (Real(1) - f);
        if (g >= Real(0)) first = f;
        else last = f;
        Real found = f + g / falls;
        if (!(found >= first && found <= last)) found = (first + last) * Real(0.5);
        const Real change = fabs(found - f);
        f = found;
        if (change <= gap_tolerance(f) * found) break;
    }
    return f * difference / whole;
}

// The neighbour of a cell in direction `side`; beyond an end of an axis the cell at its other end.
__device__ __forceinline__ size_t beside(const Grid& grid, size_t cell, int side)
{
    const int axis = side >> 1, n = axis == 0 ? grid.nx : axis == 1 ? grid.ny : grid.nz;
    const long long stride = axis == 0 ? 1 : axis == 1 ? grid.nx : (long long)grid.nx * grid.ny;
    const int place = (int)((long long)cell / stride % n);
    return cell + stride * (side & 1 ? (place == n - 1 ? 1 - n : 1) : (place == 0 ? n - 1 : -1));
}

// The heat flux into a cell through entry `entry`, which is a gap's.
__device__ __forceinline__ Real gap_heat(const Grid& grid, const CellTypes& cell_types, const StepData* sweep, const Real* T,
                                         size_t cell, long long entry, Real own, Real conducting)
{
    const HeatedCells& heated = cell_types.heated;
    const int side = heated.spots[2 * entry];
    const Real* const across = heated.across + 3 * (size_t)heated.spots[2 * entry + 1];
    const Real* const law = &sweep->conditions[heated.numbers[entry] - GAPS].film;
    const size_t other = beside(grid, cell, side);
    Real conducting_there, driving;
    const Real there = degrees(cell_types, byte_of(cell_types, other) & ~INTERIOR, T[other], conducting_there, driving);
    const bool is_lower = side & 1;
    const Real low = across[0] / (is_lower ? conducting : conducting_there);
    const Real high = across[1] / (is_lower ? conducting_there : conducting);
    const Real flux = gap_flux(law, cell_types.reference, is_lower ? own : there, is_lower ? there : own, low, high, across[2]);
    return is_lower ? -flux : flux;
}
