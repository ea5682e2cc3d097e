// Cells of a composite body that are not plain, for 06: deferred, a bit a cell, while their thread marches past and updates them
// wrongly with their vector; made anew by the whole block when it has no planes left.
//
// So the code for all that may happen in a cell costs the loop over plain ones nothing, and all lanes of its warps are busy.
//
// The faces across x would be in the way of half of all blocks, for a few cells of which all is known but what comes through the
// face. So these are not deferred, unless more is wrong with them, but kept in shared memory with what they have from their
// neighbours, a row's first or last one of each plane; when the block has marched, a thread each adds the rest.

// What a lane does in each plane: it stores its vector, it loads what no lane beside it has, its vector has no neighbour to the
// east, it keeps a cell at x_min, or at x_max.
#define STORES 1u
#define LOADS_WEST 2u
#define LOADS_EAST 4u
#define ENDS 8u
#define AT_X_MIN 16u
#define AT_X_MAX 32u

// Whether x_min and x_max let heat through, a bit each. One cell at both is deferred.
__device__ __forceinline__ int open_sides(const Grid& grid, int open)
{
    return grid.periodic & 1 || grid.nx == 1 ? 0 : open & 3;
}

__device__ __forceinline__ unsigned int tasks_of(const Grid& grid, int open, int x, int y)
{
    const int sides = open_sides(grid, open);
    return (x < grid.nx && y < grid.ny ? STORES : 0) | (threadIdx.x == 0 ? LOADS_WEST : 0) |
           (threadIdx.x == WARP - 1 ? LOADS_EAST : 0) | (x + VECTOR == grid.nx && !(grid.periodic & 1) ? ENDS : 0) |
           (x == 0 && sides & 1 ? AT_X_MIN : 0) | (x + VECTOR == grid.nx && sides & 2 ? AT_X_MAX : 0);
}

// A cell at a face across x, without what comes through that.
struct Kept {
    Real T, sum;
    int kind;
};

// Of the rows of a block, those at x_min and at x_max.
struct Sides {
    Kept cells[2][DEFERRED_PLANES][TILE_Y];
    unsigned int deferred[2][TILE_Y];  // a bit a plane
};
static_assert(DEFERRED_PLANES <= 8, "a cell's planes have a byte");
static_assert(2 * DEFERRED_PLANES * TILE_Y <= TILE_X * TILE_Y, "a thread for each cell that is kept");

// Keeps the cells of a vector at these faces in the nth plane; sum is what it has from its neighbours and sources.
__device__ __forceinline__ void keep_sides(Sides& sides, unsigned int tasks, int n, const Cells& T, const Cells& sum, int kind)
{
    if (tasks & AT_X_MIN) sides.cells[0][n][threadIdx.y] = {T.at[0], sum.at[0], kind};
    if (tasks & AT_X_MAX) sides.cells[1][n][threadIdx.y] = {T.at[VECTOR - 1], sum.at[VECTOR - 1], kind};
}

// Keeps what is deferred of them.
__device__ __forceinline__ void keep_deferred(Sides& sides, unsigned int tasks, unsigned int deferred)
{
    if (tasks & AT_X_MIN) sides.deferred[0][threadIdx.y] = deferred;
    if (tasks & AT_X_MAX) sides.deferred[1][threadIdx.y] = deferred >> 8 * (VECTOR - 1);
}

// Adds what comes through the faces to the cells that were kept, but for those that are deferred.
__device__ __forceinline__ void update_sides(Real* T_new, const Grid& grid, const Coefficients& c, const Sweep* sweep,
                                             const Ledger& ledger, const Sides& sides, int z_begin, int z_end)
{
    const bool ends = (blockIdx.x + 1) * WARP * VECTOR >= grid.nx;
    const int open = open_sides(grid, c.medium.open) & ((blockIdx.x == 0) | ends << 1);
    if (!open) return;
    const int thread = threadIdx.y * TILE_X + threadIdx.x, row = thread % TILE_Y, n = thread / TILE_Y % DEFERRED_PLANES;
    const int face = thread / (TILE_Y * DEFERRED_PLANES), y = grid.first_y + blockIdx.y * TILE_Y + row, z = z_begin + n;
    if (face > 1 || !(open >> face & 1) || z >= z_end || y >= grid.ny || sides.deferred[face][row] >> n & 1) return;
    const Kept& cell = sides.cells[face][n][row];
    Real conducting, driving;
    const Real T = degrees(c.medium, cell.kind, cell.T, conducting, driving);
    const size_t i = (size_t)z * grid.ny + y;
    const Real heat = heat_through<2>(c.medium, sweep, ledger, face, y, z, i, cell.kind, T, true, conducting,
                                      driving);
    const int x = face ? grid.nx - 1 : 0;
    T_new[cell_index(grid, x, y, z)] = finish(sweep, x, y, z, cell.T, cell.sum + heat);
}

// Of the vectors at y in planes z_begin ... z_end - 1 what is deferred and what touches a face across y or z that lets heat
// through: bit 8 i + n is cell i in plane z_begin + n.
__device__ __forceinline__ unsigned int with_faces(const Grid& grid, int open, int y, int z_begin, int z_end,
                                                   unsigned int deferred)
{
    const bool at_face = (open & 4 && y == 0) || (open & 8 && y == grid.ny - 1) || (open & 3 && grid.nx == 1);
    unsigned int cells = at_face ? ONES * ((1u << (z_end - z_begin)) - 1u) : deferred;
    if (open & 16 && z_begin == 0) cells |= ONES;
    if (open & 32 && z_end == grid.nz) cells |= ONES << (z_end - 1 - z_begin);
    return cells;
}

// Cells that a block has deferred: thread, then cell of the vector and plane, a bit of its eight each.
struct Deferred {
    unsigned int count;
    unsigned short cells[TILE_X * TILE_Y * VECTOR * DEFERRED_PLANES];
};
static_assert(TILE_X * TILE_Y * VECTOR <= 2048 && VECTOR <= 4, "sixteen bits tell a block's cells apart");

// Lists deferred cells, bits as above.
__device__ __forceinline__ void list_deferred(Deferred& shared, unsigned int deferred)
{
    const int thread = threadIdx.y * TILE_X + threadIdx.x;
    if (deferred) {
        unsigned int place = atomicAdd(&shared.count, __popc(deferred));
        while (deferred) {
            shared.cells[place++] = thread << 5 | (__ffs(deferred) - 1);
            deferred &= deferred - 1;
        }
    }
}

// A copy of which the compiler knows nothing, so that it works out nothing of it before a loop, which it has no registers to keep.
__device__ __forceinline__ Grid anew(const Grid& grid)
{
    Grid same = grid;
    same.nx = in_register(grid.nx);
    same.ny = in_register(grid.ny);
    same.nz = in_register(grid.nz);
    same.first_y = in_register(grid.first_y);
    same.periodic = in_register(grid.periodic);
    return same;
}

// Makes listed cells anew, by all threads of the block; what has been stored wrongly is overwritten.
__device__ __forceinline__ void update_listed(const Real* T, Real* T_new, const Grid& grid, const Coefficients& c,
                                              const Sweep* sweep, const Ledger& ledger, const Deferred& shared, int z_begin)
{
    const unsigned int count = shared.count;
#pragma unroll 1
    for (unsigned int first = 0; first < count; first += TILE_X * TILE_Y) {
        const unsigned int i = first + threadIdx.y * TILE_X + threadIdx.x;
        if (i >= count) break;
        const Grid box = anew(grid);
        const int cell = shared.cells[i], owner = cell >> 5;
        const int x = (blockIdx.x * TILE_X + owner % TILE_X) * VECTOR + (cell >> 3 & 3);
        const int y = box.first_y + blockIdx.y * TILE_Y + owner / TILE_X;
        const int z = z_begin + (cell & 7);
        T_new[cell_index(box, x, y, z)] = update_from_memory(T, box, c, sweep, ledger, x, y, z);
    }
}

// What is left to do when the block has marched.
__device__ __forceinline__ void update_deferred(const Real* T, Real* T_new, const Grid& grid, const Coefficients& c,
                                             const Sweep* sweep, const Ledger& ledger, Deferred& shared, Sides& sides,
                                             unsigned int tasks, unsigned int deferred, int z_begin, int z_end)
{
    keep_deferred(sides, tasks, deferred);
    if (threadIdx.x == 0 && threadIdx.y == 0) shared.count = 0;
    __syncthreads();  // all vectors are stored, nothing is listed
    update_sides(T_new, grid, c, sweep, ledger, sides, z_begin, z_end);
    list_deferred(shared, deferred);
    __syncthreads();  // all is listed
    update_listed(T, T_new, grid, c, sweep, ledger, shared, z_begin);
}
