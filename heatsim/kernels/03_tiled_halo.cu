// 03 tiled with halo: the block is the output tile, so no thread idles during the update. All threads load the larger input
// tile in memory order: whole warps load the halo, not the few threads at an edge.
//
// Loads per cell: (BLOCK_X+2)(BLOCK_Y+2)(BLOCK_Z+2) / (BLOCK_X BLOCK_Y BLOCK_Z). This includes the corners: no cell needs them, but
// skipping them would cost more than loading them. Expected: faster than 02; slower than 01 for the same reason.

#include "stencil.cuh"

#define THREADS (BLOCK_X * BLOCK_Y * BLOCK_Z)
#define INPUT_X (BLOCK_X + 2)
#define INPUT_Y (BLOCK_Y + 2)
#define INPUT_Z (BLOCK_Z + 2)

__device__ __forceinline__ void
advance_block(const Real* T, Real* T_new, const Grid& grid, const Coefficients& c,
              const StepData* sweep, const Ledger& ledger, const Block block)
{
    __shared__ Real tile[INPUT_Z][INPUT_Y][INPUT_X];
    const int thread = (threadIdx.z * BLOCK_Y + threadIdx.y) * BLOCK_X + threadIdx.x;
    const int i = threadIdx.x + 1, j = threadIdx.y + 1, k = threadIdx.z + 1;
    const int x0 = block.x * BLOCK_X;
    const int y0 = grid.first_y + block.y * BLOCK_Y;
    const int z0 = grid.first_z + block.z * BLOCK_Z;

    // 1. Load the input tile: consecutive threads, consecutive cells.
    for (int n = thread; n < INPUT_X * INPUT_Y * INPUT_Z; n += THREADS) {
        const int ni = n % INPUT_X, nj = n / INPUT_X % INPUT_Y, nk = n / (INPUT_X * INPUT_Y);
        tile[nk][nj][ni] = T[cell_index(grid, neighbour_x(grid, x0 + ni - 1), neighbour_y(grid, y0 + nj - 1),
                                        neighbour_z(grid, z0 + nk - 1))];
    }
    __syncthreads();  // values loaded by other threads are needed below

    // 2. Every thread updates its cell.
    const int x = x0 + threadIdx.x, y = y0 + threadIdx.y, z = z0 + threadIdx.z;
    if (x < grid.nx && y < grid.ny && z < grid.nz)
        T_new[cell_index(grid, x, y, z)] = update(
            grid, c, sweep, ledger, x, y, z, touches_face(grid, x, y, z),
            tile[k][j][i],
            tile[k][j][i - 1], tile[k][j][i + 1],
            tile[k][j - 1][i], tile[k][j + 1][i],
            tile[k - 1][j][i], tile[k + 1][j][i]);
}

#define LAUNCH_BOUNDS __launch_bounds__(THREADS)
#include "entry.cuh"
