// 06 streamed: no shared memory and no barrier. A thread owns VECTOR consecutive cells in x, 16 bytes if the row length
// allows, in each of ROWS rows in y, and marches along z with its columns in registers.
//
//        north      L1
//        row 1      registers: below, current, above; x neighbours by shuffle from the adjacent lanes
//        row 0      registers: below, current, above
//        south      L1
//
// A warp covers 32 VECTOR cells of a row, so every load is a sequence of whole cache lines. The rows of a thread are each
// other's neighbours in registers. Only the vectors before the first row and after the last come from L1, where the warps of
// those rows have just loaded them. Two rows need four loads per plane instead of six, two of them from memory. Traffic: each
// cell is read once and written once, 8 B per cell in float32, 16 B in float64, for 13 operations.
//
// Many warps with several rows each hide latency. All loads of a plane start before the first value is used, so a warp waits once
// per plane. Registers limit the number of warps. So each plane computes its addresses again; a third row, or loading a plane in
// advance, loses more by having fewer warps than it gains. Blocks are small and march only a few planes. Expected: the speed of a copy.

#include "vector.cuh"

// Threads per multiprocessor. Without this bound the compiler uses more registers, and fewer threads fit. On Hopper 72 registers are
// enough. Ensembles and kernels with coefficients for each step need more in float64, ensembles with such coefficients also in
// float32; newer GPUs need more. On graded grids coefficients take registers, in float64 shared memory.
#ifndef RESIDENT
#if GRADED
#define RESIDENT (__CUDA_ARCH__ == 900 ? 896 - 128 * (sizeof(Real) == 4 ? STAGES : 1) : 640)
#elif __CUDA_ARCH__ == 900
#define RESIDENT (896 - 128 * (sizeof(Real) == 4 ? MEMBERS * STAGES : MEMBERS + STAGES))
#elif __CUDA_ARCH__ < 900
#define RESIDENT 768
#else
#define RESIDENT 640
#endif
#endif
#define LAUNCH_BOUNDS __launch_bounds__(BLOCK_X * BLOCK_Y, RESIDENT / (BLOCK_X * BLOCK_Y))

__device__ __forceinline__ void
advance_block(const Real* T, Real* T_new, const Grid& grid, const Coefficients& c,
              const StepData* sweep, const Ledger& ledger, const Block block)
{
    const int lane = threadIdx.x;
    const int x = (block.x * WARP + lane) * VECTOR;
    const int y = grid.first_y + (block.y * BLOCK_Y + threadIdx.y) * ROWS;
    const int z_begin = grid.first_z + block.z * grid.planes, z_end = min(z_begin + grid.planes, grid.nz);
    const size_t plane = (size_t)grid.nx * grid.ny;

    // 1. Lanes beyond the end of a row hold a copy of the last vector for the shuffles and store nothing. Rows beyond the last
    // row of the grid do the same with a copy of that row.
    const bool inside = x < grid.nx;
    const int x_load = min(x, grid.nx - VECTOR);
    const int first = min(y, grid.ny - 1), last = min(y + ROWS - 1, grid.ny - 1);
    const int south_row = neighbour_y(grid, first - 1) - first, north_row = neighbour_y(grid, last + 1) - first;
    const bool outermost = lane == 0 || lane == WARP - 1 || !inside;
    const int to_outer = (lane == 0 ? neighbour_x(grid, x_load - 1) : neighbour_x(grid, x_load + VECTOR)) - x_load;
    const ptrdiff_t to_top = (ptrdiff_t)(neighbour_z(grid, grid.nz) - (grid.nz - 1)) * (ptrdiff_t)plane;

    // 2. The planes before the march.
    Cells below[ROWS], current[ROWS], above[ROWS];
#if GRADED
    // In float64 the links of two rows do not fit into registers.
    constexpr bool in_shared = sizeof(Real) == 8;
    __shared__ LinksAcross kept[in_shared ? ROWS : 1][BLOCK_X * BLOCK_Y];
    const int thread = threadIdx.y * BLOCK_X + lane;
    LinksAcross across[ROWS];
#endif
    size_t here = cell_index(grid, x_load, first, z_begin);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int row = min(r, last - first) * grid.nx;
        below[r] = load(T + cell_index(grid, x_load, first, neighbour_z(grid, z_begin - 1)) + row);
        current[r] = load(T + here + row);
#if GRADED
        across[r] = across_at(grid, c.planes, c, x_load, first + min(r, last - first));
        if (in_shared) kept[r][thread] = across[r];
#endif
    }

    for (int z = z_begin; z < z_end; ++z) {
        // 3. Load everything that the plane needs, before the first value is used: the plane above; the neighbours in y of the
        // first and last row (from L1); the neighbours in x that no lane of the warp owns. Lanes beyond the end of a row hold
        // the neighbour of its last vector.
        const Real* source = T + here + (z + 1 < grid.nz ? (ptrdiff_t)plane : to_top);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) above[r] = load(source + min(r, last - first) * grid.nx);
        const Cells south = load(T + here + (ptrdiff_t)south_row * grid.nx);
        const Cells north = load(T + here + (ptrdiff_t)north_row * grid.nx);
        Real outer[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            if (outermost) outer[r] = T[here + min(r, last - first) * grid.nx + to_outer];

#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            // 4. Neighbours in x come from the adjacent lanes.
            Real west = __shfl_up_sync(ALL_LANES, current[r].at[VECTOR - 1], 1);
            Real east = __shfl_down_sync(ALL_LANES, inside ? current[r].at[0] : outer[r], 1);
            if (lane == 0) west = outer[r];
            if (lane == WARP - 1) east = outer[r];

            // 5. Update the vector.
            const bool updates = inside && y + r < grid.ny;
            const bool at_face = updates && (x == 0 || x + VECTOR == grid.nx || y + r == 0 || y + r == grid.ny - 1 ||
                                             z == 0 || z == grid.nz - 1);
            const Cells row_south = r == 0 ? south : current[r == 0 ? 0 : r - 1];
            const Cells row_north = r == ROWS - 1 || y + r == grid.ny - 1 ? north : current[r == ROWS - 1 ? r : r + 1];
#if GRADED
            const LinksAcross its = in_shared ? kept[r][in_register(thread)] : across[r];
            const VectorLinks links = links_at(c, its, factors_along(grid, c.planes, z));
#else
            const Coefficients& links = c;
#endif
            const Cells updated = update(grid, links, sweep, ledger, x, y + r, z, at_face, current[r], west, east,
                                         row_south, row_north, below[r], above[r]);
            if (updates) store(T_new + here + r * grid.nx, updated);
        }

        // 6. One plane up.
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            below[r] = current[r];
            current[r] = above[r];
        }
        here += plane;
    }
}

#include "entry.cuh"
