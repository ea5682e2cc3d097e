// Deferred cells, for 06 on composite bodies. A thread updates whole vectors as if all their cells were plain. For each cell that
// is not plain it sets a bit. After the march all threads of the block update these cells again, correctly.
//
// So the code for special cells costs the loop over plain cells nothing, and when it runs, all lanes of its warps have work.
//
// Faces across x are an exception: half of all blocks touch one, for a few cells that lack only the heat through the face. These
// cells are not deferred unless they are special for another reason. Their values and sums are kept in shared memory, the first
// or last cell of each row and plane, and after the march one thread per cell adds the heat through the face.

// Tasks of a lane in each plane, one bit each: it stores its vector; it loads the west or east value that no adjacent lane has;
// its vector has no neighbour to the east; it keeps a cell at x_min or at x_max.
#define STORES 1u
#define LOADS_WEST 2u
#define LOADS_EAST 4u
#define ENDS 8u
#define AT_X_MIN 16u
#define AT_X_MAX 32u

// One bit each for x_min and x_max: set if the face lets heat through. With nx = 1 the cell touches both and is deferred.
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

// A cell at a face across x, without the heat through that face.
struct Kept {
    Real T, sum;
    int cell_type;
};

// The kept cells of a block at x_min and at x_max.
struct Sides {
    Kept cells[2][DEFERRED_PLANES][BLOCK_Y];
    unsigned int deferred[2][BLOCK_Y];  // one bit per plane
};
static_assert(DEFERRED_PLANES <= 8, "a cell's planes have a byte");
static_assert(2 * DEFERRED_PLANES * BLOCK_Y <= BLOCK_X * BLOCK_Y, "a thread for each cell that is kept");

// Keeps the cells of a vector at these faces in the nth plane; `sum` is their heat from neighbours and sources.
__device__ __forceinline__ void keep_sides(Sides& sides, unsigned int tasks, int n, const Cells& T, const Cells& sum, int cell_type)
{
    if (tasks & AT_X_MIN) sides.cells[0][n][threadIdx.y] = {T.at[0], sum.at[0], cell_type};
    if (tasks & AT_X_MAX) sides.cells[1][n][threadIdx.y] = {T.at[VECTOR - 1], sum.at[VECTOR - 1], cell_type};
}

// Records which of the kept cells are deferred.
__device__ __forceinline__ void keep_deferred(Sides& sides, unsigned int tasks, unsigned int deferred)
{
    if (tasks & AT_X_MIN) sides.deferred[0][threadIdx.y] = deferred;
    if (tasks & AT_X_MAX) sides.deferred[1][threadIdx.y] = deferred >> 8 * (VECTOR - 1);
}

// Adds the heat through the faces to the kept cells that are not deferred.
__device__ __forceinline__ void update_sides(Real* T_new, const Grid& grid, const Coefficients& c, const StepData* sweep,
                                             const Ledger& ledger, const Sides& sides, int z_begin, int z_end)
{
    const bool ends = (blockIdx.x + 1) * WARP * VECTOR >= grid.nx;
    const int open = open_sides(grid, c.cell_types.open) & ((blockIdx.x == 0) | ends << 1);
    if (!open) return;
    const int thread = threadIdx.y * BLOCK_X + threadIdx.x, row = thread % BLOCK_Y, n = thread / BLOCK_Y % DEFERRED_PLANES;
    const int face = thread / (BLOCK_Y * DEFERRED_PLANES), y = grid.first_y + blockIdx.y * BLOCK_Y + row, z = z_begin + n;
    if (face > 1 || !(open >> face & 1) || z >= z_end || y >= grid.ny || sides.deferred[face][row] >> n & 1) return;
    const Kept& cell = sides.cells[face][n][row];
    Real conducting, driving;
    const Real T = degrees(c.cell_types, cell.cell_type, cell.T, conducting, driving);
    const size_t i = (size_t)z * grid.ny + y;
    const Real heat = heat_through<2>(grid, c.cell_types, sweep, ledger, face, y, z, i, cell.cell_type, T, true, conducting,
                                      driving);
    const int x = face ? grid.nx - 1 : 0;
    const size_t place = cell_index(grid, x, y, z);
    const Real sum = with_cell_heat(c.cell_types, place, cell.sum + heat);
    T_new[place] = finish(sweep, start_of(sweep, place, cell.T), sum);
}

// `deferred` of the vectors at y in planes z_begin ... z_end - 1, plus all cells at open faces across y or z.
// Bit 8 i + n is cell i in plane z_begin + n.
__device__ __forceinline__ unsigned int with_faces(const Grid& grid, int open, int y, int z_begin, int z_end,
                                                   unsigned int deferred)
{
    const bool at_face = (open & 4 && y == 0) || (open & 8 && y == grid.ny - 1) || (open & 3 && grid.nx == 1);
    unsigned int cells = at_face ? ONES * ((1u << (z_end - z_begin)) - 1u) : deferred;
    if (open & 16 && z_begin == 0) cells |= ONES;
    if (open & 32 && z_end == grid.nz) cells |= ONES << (z_end - 1 - z_begin);
    return cells;
}

// The deferred cells of a block. An entry has 3 bits for the plane, 2 for the cell in its vector, and the thread above them.
struct Deferred {
    unsigned int count;
    unsigned short cells[BLOCK_X * BLOCK_Y * VECTOR * DEFERRED_PLANES];
};
static_assert(BLOCK_X * BLOCK_Y * VECTOR <= 2048 && VECTOR <= 4, "sixteen bits tell a block's cells apart");

// Adds a thread's deferred cells, bits as in with_faces(), to the list of the block.
__device__ __forceinline__ void list_deferred(Deferred& shared, unsigned int deferred)
{
    const int thread = threadIdx.y * BLOCK_X + threadIdx.x;
    if (deferred) {
        unsigned int place = atomicAdd(&shared.count, __popc(deferred));
        while (deferred) {
            shared.cells[place++] = thread << 5 | (__ffs(deferred) - 1);
            deferred &= deferred - 1;
        }
    }
}

// A copy that is opaque to the compiler: it computes nothing from it before a loop, for which it has no registers.
__device__ __forceinline__ Grid opaque(const Grid& grid)
{
    Grid same = grid;
    same.nx = in_register(grid.nx);
    same.ny = in_register(grid.ny);
    same.nz = in_register(grid.nz);
    same.first_y = in_register(grid.first_y);
    same.periodic = in_register(grid.periodic);
    return same;
}

// Updates the listed cells again, by all threads of the block. This overwrites the wrong values.
__device__ __forceinline__ void update_listed(const Real* T, Real* T_new, const Grid& grid, const Coefficients& c,
                                              const StepData* sweep, const Ledger& ledger, const Deferred& shared, int z_begin)
{
    const unsigned int count = shared.count;
#pragma unroll 1
    for (unsigned int first = 0; first < count; first += BLOCK_X * BLOCK_Y) {
        const unsigned int i = first + threadIdx.y * BLOCK_X + threadIdx.x;
        if (i >= count) break;
        const Grid box = opaque(grid);
        const int cell = shared.cells[i], owner = cell >> 5;
        const int x = (blockIdx.x * BLOCK_X + owner % BLOCK_X) * VECTOR + (cell >> 3 & 3);
        const int y = box.first_y + blockIdx.y * BLOCK_Y + owner / BLOCK_X;
        const int z = z_begin + (cell & 7);
        T_new[cell_index(box, x, y, z)] = update_from_memory(T, box, c, sweep, ledger, x, y, z);
    }
}

// Work after the march: the kept cells and the deferred cells.
__device__ __forceinline__ void update_deferred(const Real* T, Real* T_new, const Grid& grid, const Coefficients& c,
                                             const StepData* sweep, const Ledger& ledger, Deferred& shared, Sides& sides,
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
