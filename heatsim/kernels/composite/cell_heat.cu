// Calculates the heat in single cells before a step: of densities that vary in space or with temperature, of light of beams in the
// body, and across gaps. One thread per heated cell. The step adds the result (with_cell_heat() in composite.cuh). A cell has a
// list of entries:
//
//        weight . amount              a density that varies in space
//        weight . amount . table(T)   a density that depends on the temperature of the cell
//        weight . dt . flux(u, v)     light of a beam that entered through cell (u, v) of its face
//        weight . dt . q(T, T')       heat across a gap; no ledger records it, because it leaves the neighbour
//
// Weights contain the factor 1/(rho cp), amounts the factor dt.

#include "stencil.cuh"
#include "composite/gap_heat.cuh"

// The density in W/m3 at a temperature (T - T_ref); constant beyond the ends of the table.
__device__ __forceinline__ Real density_at(const HeatedCells& heated, int number, Real T)
{
    const HeatTable table = heated.tables[number];
    const Real steps = smaller(larger((T - table.low) * table.per_kelvin, Real(0)), table.steps);
    const Real step = smaller(floor(steps), table.steps - Real(1));
    const Real* const entry = heated.entries + 2 * (size_t)(table.first + step);
    return multiply_add(entry[1], steps - step, entry[0]);
}

extern "C" __global__ void __launch_bounds__(BLOCK_X)
advance(const Real* __restrict__ T, Real* __restrict__ T_new, const Grid grid, const Coefficients c,
        const StepData* __restrict__ sweep, const Ledger ledger)
{
    const CellTypes& cell_types = c.cell_types;
    const HeatedCells& heated = cell_types.heated;
    const long long n = (long long)blockIdx.x * BLOCK_X + threadIdx.x;
    if (n >= heated.count) return;
    const size_t cell = heated.cells[n];
    Real conducting, driving;
    const Real warmth = degrees(cell_types, byte_of(cell_types, cell) & ~INTERIOR, T[cell], conducting, driving);
    Real heat = Real(0), crossing = Real(0);
#pragma unroll 1
    for (long long entry = heated.first[n]; entry < heated.first[n + 1]; ++entry) {
        const int number = heated.numbers[entry], beam = number - heated.amounts;
        const Real weight = heated.weights[entry];
        if (number >= GAPS) {
            crossing += weight * (sweep->amounts[heated.amounts] * gap_heat(grid, cell_types, sweep, T, cell, entry, warmth, conducting));
            continue;
        }
        if (beam >= 0) {
            const int* const at = heated.spots + 2 * entry;
            Real flux = Real(0);
#pragma unroll 1
            for (const BeamSpot* spot = sweep->spots; spot->face != NO_SPOT; ++spot)
                if (spot->beam == beam) flux = with_spot(*spot, at[0], at[1], flux);
            heat += weight * (sweep->amounts[heated.amounts] * flux);
            continue;
        }
        Real given = weight * sweep->amounts[number];
        if (heated.table_of[number] >= 0) given *= density_at(heated, heated.table_of[number], warmth);
        heat += given;
    }
    heated.heat[cell] = heat + crossing;
    if (ledger.cells) ledger.cells[n] += entry_of(sweep, (double)heat);
}
