// 05 register-tiled: like 04, but only the current plane, whose x and y neighbours are read, stays in shared memory. Of the
// planes below and above a thread needs only its own cell, so these are in two registers.
//
//        above      register
//        current    register, and shared memory for the neighbours
//        below      register
//
// It takes a third of 04's shared memory and 5 shared accesses per cell instead of 8, but a second barrier per plane: the
// single plane must not be overwritten while neighbours still read it. Expected: faster than 04 if shared memory limits,
// slower if barriers limit.

#include "stencil.cuh"

__device__ __forceinline__ void
advance_block(const Real* T, Real* T_new, const Grid& grid, const Coefficients& c,
              const StepData* sweep, const Ledger& ledger, const Block block)
{
    __shared__ Real plane[BLOCK_Y][BLOCK_X];
    const int i = threadIdx.x, j = threadIdx.y;
    const int x = block.x * (BLOCK_X - 2) + i - 1;
    const int y = grid.first_y + block.y * (BLOCK_Y - 2) + j - 1;
    const int z_begin = grid.first_z + block.z * grid.planes, z_end = min(z_begin + grid.planes, grid.nz);
    const bool updates = i > 0 && i < BLOCK_X - 1 && j > 0 && j < BLOCK_Y - 1 && x < grid.nx && y < grid.ny;

    const Real* column = T + cell_index(grid, neighbour_x(grid, x), neighbour_y(grid, y), 0);
    const size_t plane_cells = (size_t)grid.nx * grid.ny;
    size_t cell = cell_index(grid, x, y, z_begin);

    // 1. The two planes before the march.
    Real below = column[neighbour_z(grid, z_begin - 1) * plane_cells];
    Real current = column[z_begin * plane_cells];

    for (int z = z_begin; z < z_end; ++z) {
        // 2. Write the current plane to shared memory, load the plane above.
        plane[j][i] = current;
        const Real above = column[neighbour_z(grid, z + 1) * plane_cells];
        __syncthreads();  // neighbours' values are needed below

        // 3. Update the current plane.
        if (updates)
            T_new[cell] = update(
                grid, c, sweep, ledger, x, y, z, touches_face(grid, x, y, z),
                current, plane[j][i - 1], plane[j][i + 1], plane[j - 1][i], plane[j + 1][i], below, above);
        cell += plane_cells;
        __syncthreads();  // all have read the plane: the next one may overwrite it

        // 4. One plane up.
        below = current;
        current = above;
    }
}

#define LAUNCH_BOUNDS __launch_bounds__(BLOCK_X * BLOCK_Y)
#include "entry.cuh"
