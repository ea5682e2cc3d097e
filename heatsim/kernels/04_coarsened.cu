// 04 coarsened (2.5-D): the block is a flat input tile that marches along z with three planes in shared memory. A thread
// updates a column of cells. Only x and y have a halo.
//
//        plane z+1   just loaded; a thread needs only its own cell of it
//        plane z     updated now; its x and y neighbours come from shared memory
//        plane z-1   a thread needs only its own cell of it
//
// Loads per cell: BLOCK_X BLOCK_Y / ((BLOCK_X-2)(BLOCK_Y-2)), 1.14 for 32x32, plus two planes for each column of a block.
// Expected: faster than 02 and 03, which also load a halo along z. Edge threads still idle, and each plane has a barrier.

#include "stencil.cuh"

__device__ __forceinline__ void
advance_block(const Real* T, Real* T_new, const Grid& grid, const Coefficients& c,
              const StepData* sweep, const Ledger& ledger, const Block block)
{
    __shared__ Real plane[3][BLOCK_Y][BLOCK_X];
    const int i = threadIdx.x, j = threadIdx.y;
    const int x = block.x * (BLOCK_X - 2) + i - 1;
    const int y = grid.first_y + block.y * (BLOCK_Y - 2) + j - 1;
    const int z_begin = grid.first_z + block.z * grid.planes, z_end = min(z_begin + grid.planes, grid.nz);
    const bool updates = i > 0 && i < BLOCK_X - 1 && j > 0 && j < BLOCK_Y - 1 && x < grid.nx && y < grid.ny;

    const Real* column = T + cell_index(grid, neighbour_x(grid, x), neighbour_y(grid, y), 0);
    const size_t plane_cells = (size_t)grid.nx * grid.ny;
    size_t cell = cell_index(grid, x, y, z_begin);

    // 1. The two planes before the march.
    int previous = 0, current = 1, next = 2;
    plane[previous][j][i] = column[neighbour_z(grid, z_begin - 1) * plane_cells];
    plane[current][j][i] = column[z_begin * plane_cells];

    for (int z = z_begin; z < z_end; ++z) {
        // 2. Load the plane above.
        plane[next][j][i] = column[neighbour_z(grid, z + 1) * plane_cells];

        // One barrier per plane. It makes `current`, written one iteration ago, visible; and it separates the reads of a
        // plane from the write that replaces it two iterations later.
        __syncthreads();

        // 3. Update the plane in the middle.
        if (updates)
            T_new[cell] = update(
                grid, c, sweep, ledger, x, y, z, touches_face(grid, x, y, z),
                plane[current][j][i],
                plane[current][j][i - 1], plane[current][j][i + 1],
                plane[current][j - 1][i], plane[current][j + 1][i],
                plane[previous][j][i], plane[next][j][i]);
        cell += plane_cells;

        // 4. Rotate the planes.
        const int free = previous;
        previous = current;
        current = next;
        next = free;
    }
}

#define LAUNCH_BOUNDS __launch_bounds__(BLOCK_X * BLOCK_Y)
#include "entry.cuh"
