// 06 streamed: no shared memory and no barrier. A thread owns VECTOR neighbouring cells in x, 16 bytes where the rows
// allow it, and marches along z with its column in registers. streamed_rows.cuh is the same for a thread of two rows,
// which is what a body of one material takes; what follows here leaves registers for faces and materials.
//
//        above      registers, just loaded
//        current    registers; x neighbours from the lanes beside by shuffle, y neighbours from L1
//        below      registers
//
// A warp is a row of 32 VECTOR cells, so every load is a run of whole cache lines, and of three 16-byte loads a plane two
// find their line in L1, where the warps of the rows beside have just brought it. From memory each cell comes once, and
// goes once: 8 B a cell in float32, 16 B in float64, for 13 operations. Blocks are small and march a few planes only:
// what hides the latency of memory is the number of warps, so registers are what to save; loading a plane ahead of its
// use was slower for the four more it takes. Expected: the speed of a copy.

#include "vector.cuh"

#if !FACES
#include "streamed_rows.cuh"
#elif MATERIALS == 2
#include "varying_streamed.cuh"
#else
#include "noted.cuh"

// Threads on a multiprocessor: what the noted cells take is not to cost the march its warps.
#if __CUDA_ARCH__ == 750
#define RESIDENT (sizeof(Real) == 4 ? 1024 : 896)
#elif __CUDA_ARCH__ < 1000
#define RESIDENT (sizeof(Real) == 4 ? (SCHEME == STOCHASTIC ? 1024 : 1152) : __CUDA_ARCH__ == 900 ? 1024 : 896)
#else
#define RESIDENT (sizeof(Real) == 4 ? 1152 : 640)
#endif
#undef BOUNDS
#define BOUNDS(threads) __launch_bounds__(threads, RESIDENT / (threads))

// Updates the vectors of a column as if all were plain, and returns what is not plain in them.
__device__ __forceinline__ unsigned int march(const Real* __restrict__ T, Real* __restrict__ T_new, const Grid& grid,
                                              const Coefficients& c, const Sweep* __restrict__ sweep, int z_begin, int z_end)
{
    const int lane = threadIdx.x;
    const int x = (blockIdx.x * WARP + lane) * VECTOR;
    const int y = grid.first_y + blockIdx.y * TILE_Y + threadIdx.y;
    const ptrdiff_t plane = (ptrdiff_t)grid.nx * grid.ny;

    // 1. Rows end where they end: lanes beyond take part in shuffles with a copy of the last vector, and store nothing.
    const bool updates = x < grid.nx && y < grid.ny;
    const int x_load = min(x, grid.nx - VECTOR), y_load = min(y, grid.ny - 1);
    const Real* here = T + cell_index(grid, x_load, y_load, z_begin);
    const int to_west = step_down(x_load, grid.nx, grid.periodic & 1);
    const int to_east = VECTOR - 1 + step_up(x_load + VECTOR - 1, grid.nx, grid.periodic & 1);
    const ptrdiff_t to_south = (ptrdiff_t)step_down(y_load, grid.ny, grid.periodic & 2) * grid.nx;
    const ptrdiff_t to_north = (ptrdiff_t)step_up(y_load, grid.ny, grid.periodic & 2) * grid.nx;
    const bool first_lane = lane == 0 || x == 0, last_lane = lane == WARP - 1 || x + VECTOR >= grid.nx;

    // 2. The planes before the march.
    const ptrdiff_t over_the_end = step_up(grid.nz - 1, grid.nz, grid.periodic & 4) * plane;
    Cells below = load(here - (z_begin > 0 ? plane : over_the_end));
    Cells current = load(here);

    unsigned int noted = at_sides(grid, c.medium.open, x);
    Own own = own_of(c, sweep, 0);
    for (int z = z_begin; z < z_end; ++z) {
        // 3. The plane above.
        const Cells above = load(here + (z + 1 < grid.nz ? plane : over_the_end));

        // 4. Neighbours in y from L1, in x from the lanes beside; the outer lanes have none and load.
        const Cells south = load(here + to_south), north = load(here + to_north);
        Real west = __shfl_up_sync(ALL_LANES, current.at[VECTOR - 1], 1);
        Real east = __shfl_down_sync(ALL_LANES, current.at[0], 1);
        if (first_lane) west = here[to_west];
        if (last_lane) east = here[to_east];

        // 5. Update the vector, and note what is not plain in it.
        const Kinds kinds = load_kinds(c.medium, here - T);
        if (first_kind(kinds) != own.kind) own = own_of(c, sweep, first_kind(kinds));
        noted |= not_plain(kinds) >> (7 - (z - z_begin));
        const Cells updated = update_plain(c, sweep, x, y, z, own, current, west, east, south, north, below, above);
        if (updates) store_marched(T_new + (here - T), updated, noted);

        // 6. One plane up.
        below = current;
        current = above;
        here += plane;
    }

    return updates ? with_faces(grid, c.medium.open, y, z_begin, z_end, noted) : 0u;
}

extern "C" __global__ void BOUNDS(TILE_X * TILE_Y)
advance(const Real* __restrict__ T, Real* __restrict__ T_new, const Grid grid, const Coefficients c,
        const Sweep* __restrict__ sweep, const Ledger ledger)
{
    __shared__ Noted noted_cells;
    // The blocks at z_max, whose noted cells take longest, come first: last, nothing would be left to do beside them.
    const int z_begin = grid.first_z + (blockIdx.z ? blockIdx.z - 1 : gridDim.z - 1) * grid.planes;
    const int z_end = min(z_begin + grid.planes, grid.nz);
    const Anew anew = (int)blockIdx.y < marching_rows(grid)
                          ? list_noted(noted_cells, march(T, T_new, grid, c, sweep, z_begin, z_end))
                          : list_side(grid, c.medium.open, z_begin, z_end);
    update_anew(T, T_new, grid, c, sweep, ledger, noted_cells, z_begin, anew);
}
#endif
