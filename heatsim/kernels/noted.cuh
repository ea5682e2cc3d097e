// Cells of a composite body that are not plain, for 06: noted, a bit a cell, while their thread marches past and updates them
// wrongly with their vector; made anew by the whole block when it has no planes left.
//
// So the code for all that may happen in a cell costs the loop over plain ones nothing, and all lanes of its warps are busy.

#define PLANES_NOTED 4  // no more than a byte has bits; what is noted is to be in a cache still

// Of the vectors at (x, y) in planes z_begin ... z_end - 1 the cells that touch a face of the box that lets heat through: bit
// 8 i + n is cell i in plane z_begin + n.
__device__ __forceinline__ unsigned int at_faces(const Grid& grid, int open, int x, int y, int z_begin, int z_end)
{
    const unsigned int planes = (1u << (z_end - z_begin)) - 1u;
    unsigned int cells = 0;
    if (open & 1 && x == 0) cells = planes;
    if (open & 2 && x + VECTOR == grid.nx) cells |= planes << 8 * (VECTOR - 1);
    if ((open & 4 && y == 0) || (open & 8 && y == grid.ny - 1)) cells = ONES * planes;
    if (open & 16 && z_begin == 0) cells |= ONES;
    if (open & 32 && z_end == grid.nz) cells |= ONES << (z_end - 1 - z_begin);
    return cells;
}

// Cells that a block has noted: thread, then cell of the vector and plane, a bit of its eight each.
struct Noted {
    unsigned int count;
    unsigned short cells[TILE_X * TILE_Y * VECTOR * PLANES_NOTED];
};
static_assert(TILE_X * TILE_Y * VECTOR <= 2048 && VECTOR <= 4, "sixteen bits tell a block's cells apart");

__device__ __forceinline__ void begin_noting(Noted& shared)
{
    if (threadIdx.x == 0 && threadIdx.y == 0) shared.count = 0;
    __syncthreads();  // before anything is noted
}

// Makes the noted cells anew, by all threads of the block; bits as above. What has been stored wrongly is overwritten after
// the barrier.
__device__ __forceinline__ void update_noted(const Real* T, Real* T_new, const Grid& grid, const Coefficients& c,
                                             const Sweep* sweep, const Ledger& ledger, Noted& shared, int z_begin,
                                             unsigned int noted)
{
    const int thread = threadIdx.y * TILE_X + threadIdx.x;
    if (noted) {
        unsigned int place = atomicAdd(&shared.count, __popc(noted));
        while (noted) {
            shared.cells[place++] = thread << 5 | (__ffs(noted) - 1);
            noted &= noted - 1;
        }
    }
    __syncthreads();  // all cells are noted and all vectors stored
    const int count = shared.count;
#pragma unroll 1
    for (int i = thread; i < count; i += TILE_X * TILE_Y) {
        const int cell = shared.cells[i], owner = cell >> 5;
        const int x = (blockIdx.x * TILE_X + owner % TILE_X) * VECTOR + (cell >> 3 & 3);
        const int y = grid.first_y + blockIdx.y * TILE_Y + owner / TILE_X, z = z_begin + (cell & 7);
        T_new[cell_index(grid, x, y, z)] = update_from_memory(T, grid, c, sweep, ledger, x, y, z);
    }
}
