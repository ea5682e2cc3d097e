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

// The first of some entries whose number is at least `number`, or their end; looked for near the first one.
__device__ __forceinline__ long long entry_from(const int* numbers, long long first, long long end, int number)
{
    long long high = first;
    for (long long stride = 1; high < end && numbers[high] < number; stride *= 2) {
        first = high + 1;
        high += stride;
    }
    high = high < end ? high : end;
    while (first < high) {
        const long long middle = (first + high) / 2;
        if (numbers[middle] < number) first = middle + 1;
        else high = middle;
    }
    return first;
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
    const long long end = heated.first[n + 1];
    long long entry = heated.first[n];
#pragma unroll 1
    for (; entry < end && heated.numbers[entry] < heated.amounts; ++entry) {
        const int number = heated.numbers[entry];
        Real given = heated.weights[entry] * sweep->amounts[number];
        if (heated.table_of[number] >= 0) given *= density_at(heated, heated.table_of[number], warmth);
        heat += given;
    }
    // Numbers ascend among the entries of a cell, and among the spots of a step.
    const BeamSpot* spot = sweep->spots;
#pragma unroll 1
    while (entry < end && heated.numbers[entry] < GAPS && spot->face != NO_SPOT) {
        const int beam = spot->beam;
        entry = entry_from(heated.numbers, entry, end, heated.amounts + beam);
        const bool absorbs = entry < end && heated.numbers[entry] == heated.amounts + beam;
        Real flux = Real(0);
#pragma unroll 1
        for (; spot->face != NO_SPOT && spot->beam == beam; ++spot)
            if (absorbs) flux = with_spot(*spot, heated.spots[2 * entry], heated.spots[2 * entry + 1], flux);
        if (absorbs) heat += heated.weights[entry] * (sweep->amounts[heated.amounts] * flux);
    }
#pragma unroll 1
    for (entry = entry_from(heated.numbers, entry, end, GAPS); entry < end; ++entry)
        crossing += heated.weights[entry] * (sweep->amounts[heated.amounts]
                                             * gap_heat(grid, cell_types, sweep, T, cell, entry, warmth, conducting));
    heated.heat[cell] = heat + crossing;
    if (ledger.cells) ledger.cells[n] += entry_of(sweep, (double)heat);
}
