// 02 tiled: the block is the input tile. Every thread loads one cell into shared memory; then only the inner threads update
// their cell from the tile.
//
//        BLOCK_X = 8:   h o o o o o o h      h: loads only   o: loads and updates
//
// Each value is loaded once per tile, but tiles overlap by two cells along each axis. The loads per cell are
// BLOCK_X BLOCK_Y BLOCK_Z / ((BLOCK_X-2)(BLOCK_Y-2)(BLOCK_Z-2)): 2.4 for 8x8x8, and the same fraction of the threads idles after
// the barrier. The rows of a tile begin one cell before an aligned address. Expected: slower than 01 if the caches already
// give the reuse that the tile is for.

#include "stencil.cuh"

__device__ __forceinline__ void
advance_block(const Real* T, Real* T_new, const Grid& grid, const Coefficients& c,
              const StepData* sweep, const Ledger& ledger, const Block block)
{
    __shared__ Real tile[BLOCK_Z][BLOCK_Y][BLOCK_X];
    const int i = threadIdx.x, j = threadIdx.y, k = threadIdx.z;
    const int x = block.x * (BLOCK_X - 2) + i - 1;
    const int y = grid.first_y + block.y * (BLOCK_Y - 2) + j - 1;
    const int z = grid.first_z + block.z * (BLOCK_Z - 2) + k - 1;

    // 1. Load the tile, halo included.
    tile[k][j][i] = T[cell_index(grid, neighbour_x(grid, x), neighbour_y(grid, y), neighbour_z(grid, z))];
    __syncthreads();  // neighbours' values are needed below

    // 2. Inner threads update their cell.
    const bool inner = i > 0 && i < BLOCK_X - 1 && j > 0 && j < BLOCK_Y - 1 && k > 0 && k < BLOCK_Z - 1;
    if (inner && x < grid.nx && y < grid.ny && z < grid.nz)
        T_new[cell_index(grid, x, y, z)] = update(
            grid, c, sweep, ledger, x, y, z, touches_face(grid, x, y, z),
            tile[k][j][i],
            tile[k][j][i - 1], tile[k][j][i + 1],
            tile[k][j - 1][i], tile[k][j + 1][i],
            tile[k - 1][j][i], tile[k + 1][j][i]);
}

#define LAUNCH_BOUNDS __launch_bounds__(BLOCK_X * BLOCK_Y * BLOCK_Z)
#include "entry.cuh"
