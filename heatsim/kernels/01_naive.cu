// 01 naive: one thread per cell, all values from global memory; only the caches reuse them.
//
// A cell needs 7 loads and 1 store. Without caches that is 8 values per cell. If L1 and L2 keep three planes and three rows,
// it is 2, one read and one write: 8 B per cell in float32, 16 B in float64, for 13 operations.
// Blocks are long in x, so that a warp loads whole cache lines, and flat in z, so that neighbouring blocks share their
// planes in L2. Expected: a large part of the copy speed if the caches are large, a fifth of it if not.

#include "stencil.cuh"

__device__ __forceinline__ void
advance_block(const Real* T, Real* T_new, const Grid& grid, const Coefficients& c,
              const StepData* sweep, const Ledger& ledger, const Block block)
{
    const int x = block.x * BLOCK_X + threadIdx.x;
    const int y = grid.first_y + block.y * BLOCK_Y + threadIdx.y;
    const int z = grid.first_z + block.z * BLOCK_Z + threadIdx.z;
    if (x >= grid.nx || y >= grid.ny || z >= grid.nz) return;

    const size_t cell = cell_index(grid, x, y, z);
#if FACES
    T_new[cell] = update_from_memory(T, grid, c, sweep, ledger, x, y, z);
#else
    // Offsets of the neighbours, in cells. At a face the neighbour is the cell itself or, on a periodic axis, the other end.
    const ptrdiff_t row = grid.nx, plane = row * grid.ny;
    ptrdiff_t west = -1, east = 1, south = -row, north = row, below = -plane, above = plane;
    const bool at_face = touches_face(grid, x, y, z);
    if (at_face) {
        west = neighbour_x(grid, x - 1) - x;
        east = neighbour_x(grid, x + 1) - x;
        south = (neighbour_y(grid, y - 1) - y) * row;
        north = (neighbour_y(grid, y + 1) - y) * row;
        below = (neighbour_z(grid, z - 1) - z) * plane;
        above = (neighbour_z(grid, z + 1) - z) * plane;
    }

    T += cell;
    T_new[cell] = update(grid, graded(grid, planes_of(c), c, x, y, z), sweep, ledger, x, y, z, at_face,
                         T[0], T[west], T[east], T[south], T[north], T[below], T[above]);
#endif
}

#define THREADS (BLOCK_X * BLOCK_Y * BLOCK_Z)
#if FACES
#define LAUNCH_BOUNDS __launch_bounds__(THREADS, 1)  // few cells run the code for faces and sources; it may use all registers
#else
#define LAUNCH_BOUNDS __launch_bounds__(THREADS)
#endif
#include "entry.cuh"
