// 06 for composite bodies: the same march along z, with one row of vectors per thread, which leaves registers for faces and
// materials.
//
//        above      registers, just loaded
//        current    registers; x neighbours by shuffle from the adjacent lanes, y neighbours from L1
//        below      registers
//
// Every vector is updated as if all its cells were plain: interior, of one type, and at no face. The other cells are deferred
// and updated again after the march (deferred_cells.cuh). Traffic and expected speed: as 06, plus one byte per cell and the
// deferred cells.

#include "vector.cuh"
#include "composite/deferred_cells.cuh"

// Whether shared memory keeps coefficients of graded grids, so that more warps fit; with one material registers have room for them.
#define IN_SHARED (GRADED && MATERIALS)

// Threads per multiprocessor: the code for deferred cells must not reduce the number of warps.
#if GRADED
#define MORE (IN_SHARED && __CUDA_ARCH__ == 900 ? 128 : 0)
#define RESIDENT (sizeof(Real) == 4 ? (__CUDA_ARCH__ < 1000 ? 1024 : 896) + MORE : MIXED || __CUDA_ARCH__ != 900 ? 768 : 896 + MORE)
#elif MIXED && __CUDA_ARCH__ < 1000
#define RESIDENT (sizeof(Real) == 4 ? (__CUDA_ARCH__ == 750 ? 1024 : 1152) : 768)
#elif __CUDA_ARCH__ == 750
#define RESIDENT (sizeof(Real) == 4 ? 1024 : 896)
#elif __CUDA_ARCH__ < 1000
#define RESIDENT (sizeof(Real) == 4 ? 1280 : __CUDA_ARCH__ == 900 ? 1024 : 896)
#else
#define RESIDENT (sizeof(Real) == 4 ? 1152 : 640)
#endif
#define LAUNCH_BOUNDS __launch_bounds__(BLOCK_X * BLOCK_Y, RESIDENT / (BLOCK_X * BLOCK_Y))

#if IN_SHARED
#define THREAD 8  // the first bit of the thread's number in its tasks

// The links of each thread's column across z; for each warp the factors along z in the planes of the march.
struct KeptLinks {
    LinksAcross across[BLOCK_X * BLOCK_Y];
    FactorsAlong along[BLOCK_Y][DEFERRED_PLANES];
};
#endif

extern "C" __global__ void LAUNCH_BOUNDS
advance(const Real* __restrict__ T, Real* __restrict__ T_new, const Grid grid, const Coefficients c,
        const StepData* __restrict__ sweep, const Ledger ledger)
{
    __shared__ Deferred deferred_cells;
    __shared__ Sides sides;
#if IN_SHARED
    __shared__ KeptLinks kept;
#endif
    const int lane = threadIdx.x;
    const int x = (blockIdx.x * WARP + lane) * VECTOR;
    const int y = grid.first_y + blockIdx.y * BLOCK_Y + threadIdx.y;
    // The blocks at z_max start first: their deferred cells take longest, and other blocks can run beside them.
    const int z_begin = grid.first_z + (blockIdx.z ? blockIdx.z - 1 : gridDim.z - 1) * grid.planes;
    const int z_end = min(z_begin + grid.planes, grid.nz);
    const ptrdiff_t plane = (ptrdiff_t)grid.nx * grid.ny;

    // 1. Lanes beyond the end of a row hold a copy of the first vector for the shuffles (on a periodic axis it is the last
    //    vector's neighbour) and store nothing.
    const int x_load = x < grid.nx ? x : 0, y_load = min(y, grid.ny - 1);
    size_t cell = cell_index(grid, x_load, y_load, z_begin);
    const int to_west = step_down(x_load, grid.nx, grid.periodic & 1);
    const int to_east = VECTOR - 1 + step_up(x_load + VECTOR - 1, grid.nx, grid.periodic & 1);
    const int to_outer = in_register(lane == 0 ? to_west : to_east);
    const ptrdiff_t to_south = (ptrdiff_t)step_down(y_load, grid.ny, grid.periodic & 2) * grid.nx;
    const ptrdiff_t to_north = (ptrdiff_t)step_up(y_load, grid.ny, grid.periodic & 2) * grid.nx;
    unsigned int tasks = tasks_of(grid, c.cell_types.open, x, y);
#if IN_SHARED
    tasks |= (threadIdx.y * WARP + lane) << THREAD;
#endif
    tasks = in_register(tasks);

    // 2. The planes before the march.
    const ptrdiff_t over_the_end = step_up(grid.nz - 1, grid.nz, grid.periodic & 4) * plane;
    Cells below = load(T + cell - (z_begin > 0 ? plane : over_the_end));
    Cells current = load(T + cell);

    unsigned int deferred = 0;
#if IN_SHARED
    VectorBytes next_bytes = load_bytes(c.cell_types, cell);
    Own own = {};
    own.cell_type = -1;
    if (lane < z_end - z_begin) kept.along[threadIdx.y][lane] = factors_along(grid, planes_of(c), z_begin + lane);
    __syncwarp();
#else
    Own own = own_of(grid, c, sweep, 0, x_load, y_load);
#endif
#pragma unroll 1
    for (int z = z_begin; z < z_end; ++z) {
        // 3. Load the plane above.
        const Real* const here = T + cell;
        const size_t next = cell + (z + 1 < grid.nz ? plane : over_the_end);
        const Cells above = load(T + next);
#if IN_SHARED
        const VectorBytes bytes = next_bytes;
        next_bytes = load_bytes(c.cell_types, next);
#else
        const FactorsAlong along = factors_along(grid, planes_of(c), z);
#endif

        // 4. Neighbours in y come from L1, in x from the adjacent lanes; the outermost lanes load theirs.
        const Cells south = load(here + to_south), north = load(here + to_north);
        Real west = __shfl_up_sync(ALL_LANES, current.at[VECTOR - 1], 1);
        Real east = __shfl_down_sync(ALL_LANES, current.at[0], 1);
        Real outer = Real(0);
        if (tasks & (LOADS_WEST | LOADS_EAST)) outer = here[to_outer];
        if (tasks & LOADS_WEST) west = outer;
        if (tasks & LOADS_EAST) east = outer;
        if (tasks & ENDS) east = current.at[VECTOR - 1];

        // 5. Update the vector as if all its cells were plain; defer the others.
#if IN_SHARED
        if (first_type(bytes) != own.cell_type) {
            // Addresses are computed here, where they are rarely needed.
            const Grid box = opaque(grid);
            const int thread = in_register(tasks) >> THREAD, own_y = box.first_y + blockIdx.y * BLOCK_Y + thread / WARP;
            const int own_x = (blockIdx.x * WARP + thread % WARP) * VECTOR;
            own = own_of(box, c, sweep, first_type(bytes), own_x < box.nx ? own_x : 0, min(own_y, box.ny - 1));
            kept.across[thread] = own.across;
        }
        const unsigned int thread = in_register(tasks) >> THREAD;
        own.across = kept.across[thread];
        const FactorsAlong along = kept.along[thread / WARP][z - z_begin];
#else
        const VectorBytes bytes = load_bytes(c.cell_types, cell);
        if (first_type(bytes) != own.cell_type) own = own_of(grid, c, sweep, first_type(bytes), x_load, y_load);
#endif
        deferred |= not_plain(bytes) >> (7 - (z - z_begin));
        const Cells sum = sum_plain(c, own, along, current, west, east, south, north, below, above);
        if (tasks & (AT_X_MIN | AT_X_MAX)) keep_sides(sides, tasks, z - z_begin, current, sum, own.cell_type);
        if (tasks & STORES)
            store_once(T_new + cell, finish(sweep, start_of(sweep, cell, current), with_cell_heat(c.cell_types, cell, sum)));

        // 6. One plane up.
        below = current;
        current = above;
        cell = next;
    }

    // 7. Update the deferred cells.
    deferred = tasks & STORES ? with_faces(grid, c.cell_types.open, y, z_begin, z_end, deferred) : 0u;
    update_deferred(T, T_new, grid, c, sweep, ledger, deferred_cells, sides, tasks, deferred, z_begin, z_end);
}
