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
// Latency is hidden by many warps with several rows each. A third row, or loading a plane in advance, takes registers and so
// costs more warps than it gains. Blocks are small and march a few planes only. Expected: the speed of a copy.

#include "vector.cuh"

// Threads per multiprocessor. Without this bound the compiler uses more registers, and fewer threads fit.
#ifndef RESIDENT
#define RESIDENT 768
#endif
#define LAUNCH_BOUNDS __launch_bounds__(BLOCK_X * BLOCK_Y, RESIDENT / (BLOCK_X * BLOCK_Y))

__device__ __forceinline__ void
advance_block(const Real* T, Real* T_new, const Grid& grid, const Coefficients& c,
              const Sweep* sweep, const Ledger& ledger, const Block block)
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
    const Real* centre = T + cell_index(grid, x_load, first, 0);
    const ptrdiff_t to_south = (ptrdiff_t)(neighbour_y(grid, first - 1) - first) * grid.nx;
    const ptrdiff_t to_north = (ptrdiff_t)(neighbour_y(grid, last + 1) - first) * grid.nx;
    const int to_west = neighbour_x(grid, x_load - 1) - x_load;
    const int to_east = neighbour_x(grid, x_load + VECTOR) - x_load;
    const bool first_lane = lane == 0 || x == 0, last_lane = lane == WARP - 1 || x + VECTOR >= grid.nx;

    // 2. The planes before the march.
    Cells below[ROWS], current[ROWS], above[ROWS];
    const Real* here = centre + z_begin * plane;
    Real* out = T_new + cell_index(grid, x, y, z_begin);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int row = min(r, last - first) * grid.nx;
        below[r] = load(centre + neighbour_z(grid, z_begin - 1) * plane + row);
        current[r] = load(here + row);
    }

    for (int z = z_begin; z < z_end; ++z) {
        // 3. Load the neighbours in y of the first and last row (from L1) and the plane above.
        const Cells south = load(here + to_south), north = load(here + to_north);
        const Real* source = z + 1 < grid.nz ? here + plane : centre + neighbour_z(grid, z + 1) * plane;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) above[r] = load(source + min(r, last - first) * grid.nx);

#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            // 4. Neighbours in x come from the adjacent lanes; the outermost lanes load theirs.
            Real west = __shfl_up_sync(ALL_LANES, current[r].at[VECTOR - 1], 1);
            Real east = __shfl_down_sync(ALL_LANES, current[r].at[0], 1);
            const Real* row = here + min(r, last - first) * grid.nx;
            if (first_lane) west = row[to_west];
            if (last_lane) east = row[to_east];

            // 5. Update the vector.
            const bool updates = inside && y + r < grid.ny;
            const bool at_face = updates && (x == 0 || x + VECTOR == grid.nx || y + r == 0 || y + r == grid.ny - 1 ||
                                             z == 0 || z == grid.nz - 1);
            const Cells row_south = r == 0 ? south : current[r == 0 ? 0 : r - 1];
            const Cells row_north = r == ROWS - 1 || y + r == grid.ny - 1 ? north : current[r == ROWS - 1 ? r : r + 1];
            const Cells updated = update(grid, c, sweep, ledger, x, y + r, z, at_face, current[r], west, east,
                                         row_south, row_north, below[r], above[r]);
            if (updates) store(out + r * grid.nx, updated);
        }

        // 6. One plane up.
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            below[r] = current[r];
            current[r] = above[r];
        }
        here += plane;
        out += plane;
    }
}

#include "entry.cuh"
