// Cells of a composite body that are not plain, for 06: noted, a bit a cell, while their thread marches past and updates them
// wrongly with their vector; made anew by the whole block when it has no planes left.
//
// So the code for all that may happen in a cell costs the loop over plain ones nothing, and all lanes of its warps are busy.
//
// The faces across x would be in the way of half of all blocks, each with a few cells. So these sides, where they let heat
// through, are left alone by the march, which stores nothing there, and have blocks of their own beyond its rows in y:
//
//        blockIdx.y   0 ... rows - 1    rows ...
//                     march             the cells (0, y, z) and (nx - 1, y, z) of the same planes, 32 rows of one side a block

// Planes that a block marches: what is noted is to be in a cache still. Where cells are looked up in tables, more planes save
// look-ups at their ends. No more than six, for a byte of what is noted has two bits for the sides.
#define PLANES_NOTED (MATERIALS == 2 ? 6 : 4)

// Of what is noted, that the first or the last cell of the vector is at a side that lets heat through.
#define AT_FIRST_SIDE 0x40u
#define AT_SECOND_SIDE 0x80u
#define AT_SIDES (AT_FIRST_SIDE | AT_SECOND_SIDE)

__device__ __forceinline__ unsigned int at_sides(const Grid& grid, int open, int x)
{
    return (x == 0 && open & 1 ? AT_FIRST_SIDE : 0) | (x + VECTOR == grid.nx && open & 2 ? AT_SECOND_SIDE : 0);
}

// Stores a vector, without its cells at sides. One if with an else: of `if (a && !b)` beside `if (a && b)` ptxas of CUDA 13.0
// made a wrong predicate.
__device__ __forceinline__ void store_marched(Real* T_new, const Cells& cells, unsigned int noted)
{
    if (noted & AT_SIDES) {
#pragma unroll
        for (int i = 0; i < VECTOR; ++i)
            if (!(i == 0 && noted & AT_FIRST_SIDE) && !(i == VECTOR - 1 && noted & AT_SECOND_SIDE)) T_new[i] = cells.at[i];
    } else {
        store(T_new, cells);
    }
}

// Of the vectors at y in planes z_begin ... z_end - 1 what is noted and what touches a face across y or z that lets heat
// through, without cells at sides: bit 8 i + n is cell i in plane z_begin + n.
__device__ __forceinline__ unsigned int with_faces(const Grid& grid, int open, int y, int z_begin, int z_end,
                                                   unsigned int noted)
{
    unsigned int cells = noted & ~AT_SIDES;
    if ((open & 4 && y == 0) || (open & 8 && y == grid.ny - 1)) cells = ONES * ((1u << (z_end - z_begin)) - 1u);
    if (open & 16 && z_begin == 0) cells |= ONES;
    if (open & 32 && z_end == grid.nz) cells |= ONES << (z_end - 1 - z_begin);
    if (noted & AT_FIRST_SIDE) cells &= ~0xFFu;
    if (noted & AT_SECOND_SIDE) cells &= ~(0xFFu << 8 * (VECTOR - 1));
    return cells;
}

// Blocks of this launch in y that march; a negative number where those of sides have begun in an earlier one.
__device__ __forceinline__ int marching_rows(const Grid& grid)
{
    return (unsigned)(grid.ny + TILE_Y - 1) / TILE_Y - (unsigned)grid.first_y / TILE_Y;
}

// Cells that a block has noted: thread, then cell of the vector and plane, a bit of its eight each.
struct Noted {
    unsigned int count;
    unsigned short cells[TILE_X * TILE_Y * VECTOR * PLANES_NOTED];
};
static_assert(TILE_X * TILE_Y * VECTOR <= 2048 && VECTOR <= 4, "sixteen bits tell a block's cells apart");

// Cells that a block makes anew: those that it has noted, or those of a part of a side.
struct Anew {
    int count;
    int x, y;  // of the first one; x is -1 where they are noted
};

// Lists the noted cells, bits as above; all vectors are stored when it returns.
__device__ __forceinline__ Anew list_noted(Noted& shared, unsigned int noted)
{
    const int thread = threadIdx.y * TILE_X + threadIdx.x;
    if (thread == 0) shared.count = 0;
    __syncthreads();  // before anything is noted
    if (noted) {
        unsigned int place = atomicAdd(&shared.count, __popc(noted));
        while (noted) {
            shared.cells[place++] = thread << 5 | (__ffs(noted) - 1);
            noted &= noted - 1;
        }
    }
    __syncthreads();  // all cells are noted and all vectors stored
    return {(int)shared.count, -1, 0};
}

// The part of a side that a block beyond those that march has, in planes z_begin ... z_end - 1.
__device__ __forceinline__ Anew list_side(const Grid& grid, int open, int z_begin, int z_end)
{
    const int parts = (grid.ny + WARP - 1) / WARP;
    const int part = ((int)blockIdx.y - marching_rows(grid)) * (int)gridDim.x + (int)blockIdx.x;
    const bool second = part >= parts;  // one cell at both sides belongs to the first
    const bool lets_through = second ? part < 2 * parts && grid.nx > 1 && open & 2 : open & (grid.nx > 1 ? 1 : 3);
    return {lets_through ? WARP * (z_end - z_begin) : 0, second ? grid.nx - 1 : 0, (second ? part - parts : part) * WARP};
}

// Makes cells anew, by all threads of the block; what has been stored wrongly is overwritten.
__device__ __forceinline__ void update_anew(const Real* T, Real* T_new, const Grid& grid, const Coefficients& c,
                                            const Sweep* sweep, const Ledger& ledger, const Noted& shared, int z_begin,
                                            const Anew& anew)
{
#pragma unroll 1
    for (int i = threadIdx.y * TILE_X + threadIdx.x; i < anew.count; i += TILE_X * TILE_Y) {
        int x = anew.x, y = anew.y + i % WARP, z = z_begin + i / WARP;
        if (x < 0) {
            const int cell = shared.cells[i], owner = cell >> 5;
            x = (blockIdx.x * TILE_X + owner % TILE_X) * VECTOR + (cell >> 3 & 3);
            y = grid.first_y + blockIdx.y * TILE_Y + owner / TILE_X;
            z = z_begin + (cell & 7);
        } else if (y >= grid.ny) continue;
        T_new[cell_index(grid, x, y, z)] = update_from_memory(T, grid, c, sweep, ledger, x, y, z);
    }
}
