// 09 resident: one launch does many steps. Every thread keeps its cells, and blocks wait for their neighbours.
//
//        step n     compute | count | wait for the blocks that own neighbours |
//        step n+1                                                             compute | count | ...
//
// A step of a small grid takes a few microseconds, mostly for the launch and for loads that depend on each other. Here a
// block owns the same consecutive cells for all steps of the launch. Everything a cell needs except temperatures is loaded once
// and stays in registers. While the block waits, it copies the conditions of the next step to shared memory. Temperatures of
// neighbours come from L2. Expected time of a step: two exchanges between multiprocessors through L2, about 2 us.
//
// resident.cuh explains how blocks wait.

#include "vector.cuh"
#include "resident.cuh"

#define THREADS BLOCK_X
#define OWNED (THREADS * VECTOR)  // cells of a block
#define LAUNCH_BOUNDS __launch_bounds__(THREADS, 1)

// The blocks that own neighbours of a block's cells: first ... last. Numbers outside 0 ... blocks - 1 wrap around.
struct Neighbours {
    int first, last;
};

__device__ __forceinline__ Neighbours neighbours_of(const Grid& grid, int begin, int cells, int blocks)
{
    const int plane = grid.nx * grid.ny, low = begin - plane, high = begin + OWNED - 1 + plane;
    if (!(grid.periodic & 4)) return {max(low, 0) / OWNED, min(high, cells - 1) / OWNED};
    if (high - low >= cells) return {0, blocks - 1};
    return {low < 0 ? (low + cells) / OWNED - blocks : low / OWNED, high < cells ? high / OWNED : (high - cells) / OWNED + blocks};
}

// Waits until these blocks have done `steps` steps. One warp calls it.
__device__ __forceinline__ void wait_for(const Grid& grid, const Neighbours& neighbours, unsigned int steps, int blocks)
{
    for (int n = neighbours.first + (int)threadIdx.x; n <= neighbours.last; n += WARP) {
        const int block = n < 0 ? n + blocks : n < blocks ? n : n - blocks;
        wait_for(count_of(grid, block), steps);
    }
}

// The constant data of a thread's vector of cells.
struct Kept {
    int x, y, z;
    int west, east, south, north, below, above;  // offsets of the neighbours from the first cell
#if FACES
    int type;
#if MATERIALS == 2
    int beside[6];
#else
    Links links;
#endif
#else
    bool at_face;
    double* ledger_sums;  // of the z face that the cells touch; null if nothing is recorded there
    double end_sums[VECTOR];
#endif
};

__device__ __forceinline__ Kept kept_of(const Grid& grid, const Coefficients& c, const Ledger& ledger, int cell)
{
    const int row = grid.nx, plane = row * grid.ny;
    Kept own;
    own.x = cell % row;
    own.y = cell / row % grid.ny;
    own.z = cell / plane;
    own.west = neighbour_x(grid, own.x - 1) - own.x;
    own.east = neighbour_x(grid, own.x + VECTOR) - own.x;
    own.south = (neighbour_y(grid, own.y - 1) - own.y) * row;
    own.north = (neighbour_y(grid, own.y + 1) - own.y) * row;
    own.below = (neighbour_z(grid, own.z - 1) - own.z) * plane;
    own.above = (neighbour_z(grid, own.z + 1) - own.z) * plane;
#if FACES
    const unsigned int byte = byte_of(c.cell_types, cell);
    own.type = byte & ~INTERIOR;
    const int to[6] = {own.west, own.east, own.south, own.north, own.below, own.above};
    int beside[6];
#pragma unroll
    for (int n = 0; n < 6; ++n) beside[n] = byte & INTERIOR ? own.type : byte_of(c.cell_types, cell + to[n]) & ~INTERIOR;
#if MATERIALS == 2
#pragma unroll
    for (int n = 0; n < 6; ++n) own.beside[n] = beside[n];
#else
    own.links = links_of(grid, c, own.x, own.y, own.z, cell, own.type, beside, byte & INTERIOR);
#endif
#else
    own.at_face = own.x == 0 || own.x + VECTOR == row || own.y == 0 || own.y == grid.ny - 1 || own.z == 0 || own.z == grid.nz - 1;
    const int end = end_face(grid, own.z);
    double* const sums = end < 0 ? nullptr : end == 4 ? ledger.face[4] : ledger.face[5];
    own.ledger_sums = sums ? sums + cell % plane : nullptr;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) own.end_sums[i] = own.ledger_sums ? own.ledger_sums[i] : 0.0;
#endif
    return own;
}

// The new values of a vector of cells. `T`: their values, `field`: address of the first of them in the field.
__device__ __forceinline__ Cells step_of(const Grid& grid, const Coefficients& c, const StepData* sweep, const Ledger& ledger,
                                         int cell, Kept& own, const Cells& T, const Real* field)
{
    const Real west = field[own.west], east = field[own.east];
    const Cells south = load(field + own.south), north = load(field + own.north);
    const Cells below = load(field + own.below), above = load(field + own.above);
#if FACES
    const Real values[6] = {west, east, south.at[0], north.at[0], below.at[0], above.at[0]};
#if MATERIALS == 2
    return {update_among(grid, c, sweep, ledger, own.x, own.y, own.z, own.type, own.beside, T.at[0], values)};
#else
    return {update_linked(grid, c, sweep, ledger, own.x, own.y, own.z, cell, own.type, own.links, T.at[0], values)};
#endif
#else
    const Coefficients& of_this = of_step(c, sweep);
#if GRADED
    const VectorLinks links = links_at(of_this, across_at(grid, c.planes, of_this, own.x, own.y), factors_along(grid, c.planes, own.z));
#else
    const Coefficients& links = of_this;
#endif
    return update(grid, links, sweep, ledger, own.x, own.y, own.z, own.at_face, T, west, east, south, north, below, above,
                  own.end_sums);
#endif
}

extern "C" __global__ void LAUNCH_BOUNDS
advance(Real* T, Real* T_new, const Grid grid, const Coefficients c, const StepData* sweep, const Ledger ledger)
{
    __shared__ StepData sweeps[2];
    const int thread = threadIdx.x, blocks = gridDim.x, cells = grid.nx * grid.ny * grid.nz;
    const int begin = blockIdx.x * OWNED, cell = begin + thread * VECTOR;
    const bool inside = cell < cells;
    const Neighbours neighbours = neighbours_of(grid, begin, cells, blocks);
    unsigned int* const count = count_of(grid, blockIdx.x);
    const unsigned int done = *count;

    // 1. Load the constant data.
    Steps steps;
    steps.sweeps = sweeps;
    Coefficients kept = c;
#if FACES
    steps.conditions = c.cell_types.numbers;
    steps.types = c.cell_types.count;
    extern __shared__ __align__(16) unsigned char shared[];
    HalfCell* const halves = reinterpret_cast<HalfCell*>(shared);
    for (int i = thread; i < 3 * steps.types; i += THREADS) halves[i] = c.cell_types.halves[i];
    kept.cell_types.halves = halves;
    steps.numbers = reinterpret_cast<Real*>(halves + 3 * steps.types);
#endif
    copy_step(steps, 0, sweep, thread, THREADS);
    Kept own = kept_of(grid, c, ledger, inside ? cell : 0);
    Cells value = load(T + (inside ? cell : 0));
    __syncthreads();

    for (int step = 0; step < grid.steps; ++step) {
        // 2. Do a step.
        const int now = step & 1;
        if (inside) {
            value = step_of(grid, kept, &sweeps[now], ledger, cell, own, value, T + cell);
            store(T_new + cell, value);
        }
        Real* const next = T;
        T = T_new;
        T_new = next;
        __syncthreads();

        // 3. Count it. The first warp waits for the neighbours; the others copy the data of the next step.
        if (thread == 0) store_release(count, done + step + 1);
        if (step + 1 == grid.steps) break;
        if (thread < WARP) wait_for(grid, neighbours, done + step + 1, blocks);
        else copy_step(steps, 1 - now, sweep + step + 1, thread - WARP, THREADS - WARP);
        __syncthreads();
    }

#if !FACES
    // 4. Store the sums of z_min or z_max. The blocks there have thousands of them, and a multiprocessor adds one a cycle to a ledger.
    if (inside && own.ledger_sums) {
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) own.ledger_sums[i] = own.end_sums[i];
    }
#endif
}
