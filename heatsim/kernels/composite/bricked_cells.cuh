// The cells of a brick of a composite body; included by 10_bricked.cu.
//
// Shared memory holds a byte for each place: the cell's type, INTERIOR, and LISTED. tables_fit() in fitting.py admits bodies with
// few types.
//
// Vectors are updated in two ways:
//     plain     the cells and all their neighbours have the same type
//     linked    the cells have one type, and each vector beside them has one type, maybe another; no cell has weights
// In all other vectors the cells with a neighbour of another type are listed. Cells at open faces are listed too.

#define LISTED 0x40u
#define TYPE 0x3Fu

// The listed cells of a block: x, y and z in the brick, packed in as few bits as the brick needs.
struct Listed {
    const unsigned short* cells;
    int count;
    int x_bits, y_bits;
    const unsigned char* bytes;  // of all places
};

__device__ __forceinline__ VectorBytes bytes_at(const unsigned char* bytes, int place)
{
    return *reinterpret_cast<const Bytes*>(bytes + place);
}

__device__ __forceinline__ bool have_one_type(VectorBytes bytes) { return (bytes & ONES * TYPE) == ONES * (bytes & TYPE); }

// Whether one of the vector's cells has weights.
__device__ __forceinline__ bool has_weights(const CellTypes& cell_types, size_t cell)
{
#if !CONTACTS
    if (!cell_types.exposed) return false;
#endif
    unsigned int bits = 0;
    for (int i = 0; i < VECTOR; ++i) bits |= cell_types.weighted[(cell + i) / 32] >> (cell + i) % 32;
    return bits & 1u;
}

// The cells of a vector to list because of their types: the bit INTERIOR of each one's byte.
__device__ __forceinline__ unsigned int not_linked(const CellTypes& cell_types, const Brick& brick, const unsigned char* bytes,
                                                   int place, size_t cell)
{
    const VectorBytes own = bytes_at(bytes, place) & ~(ONES * LISTED);
    const unsigned int others = not_plain(own);
    const bool linked = others && have_one_type(own) && have_one_type(bytes_at(bytes, place - brick.row)) &&
                        have_one_type(bytes_at(bytes, place + brick.row)) && have_one_type(bytes_at(bytes, place - brick.plane)) &&
                        have_one_type(bytes_at(bytes, place + brick.plane)) && !has_weights(cell_types, cell);
    return linked ? 0 : others;
}

// Whether a vector is linked: some cell is neither interior nor listed.
__device__ __forceinline__ bool is_linked(VectorBytes bytes) { return ~bytes & (~bytes & ONES * LISTED) << 1; }

// Heat of a linked vector, whose first cell is (x, y, z), from neighbours and sources.
__device__ __forceinline__ Cells sum_linked(const Grid& grid, const Coefficients& c, const Brick& brick, const unsigned char* bytes,
                                            int place, const Own& own, int x, int y, int z, const Cells& T, Real west, Real east,
                                            const Cells& south, const Cells& north, const Cells& below, const Cells& above)
{
    const CellTypes& cell_types = c.cell_types;
    const int count = cell_types.count;
    const Real* const along_x = cell_types.links + own.cell_type * count;
    const Real* const along_y = along_x + count * count;
    const Real* const along_z = along_y + count * count;
    const Coefficients all = {Real(0), along_x[bytes[place - 1] & TYPE], along_x[bytes[place + VECTOR] & TYPE],
                              along_y[bytes[place - brick.row] & TYPE], along_y[bytes[place + brick.row] & TYPE],
                              along_z[bytes[place - brick.plane] & TYPE], along_z[bytes[place + brick.plane] & TYPE], {}};
    const Real within = along_x[own.cell_type];
    Cells sum;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
        const Coefficients mean = {Real(0), i == 0 ? all.c1 : within, i == VECTOR - 1 ? all.c2 : within, all.c3, all.c4, all.c5,
                                   all.c6, {}};
        sum.at[i] = own.heat + neighbour_sum(graded(grid, planes_of(c), mean, x + i, y, z), T.at[i], i == 0 ? west : T.at[i - 1],
                                             i == VECTOR - 1 ? east : T.at[i + 1], south.at[i], north.at[i], below.at[i], above.at[i]);
    }
    return sum;
}

// The new value of a listed cell.
__device__ __forceinline__ Real update_one(const Grid& grid, const Coefficients& c, const StepData* sweep, const Ledger& ledger,
                                           const Brick& brick, const Listed& listed, const Real* now, int place, int x, int y, int z)
{
    const int to[6] = {-1, 1, -brick.row, brick.row, -brick.plane, brick.plane};
    Real values[6];
    int beside[6];
#pragma unroll
    for (int n = 0; n < 6; ++n) {
        values[n] = now[place + to[n]];
        beside[n] = listed.bytes[place + to[n]] & TYPE;
    }
    const unsigned int byte = listed.bytes[place];
    return update_among(grid, c, sweep, ledger, x, y, z, byte & TYPE, beside, now[place], values, true, byte & INTERIOR);
}

// Updates the listed cells in shared memory, and in the field those at the sides of the brick, or all of them if `all`.
__device__ __forceinline__ void update_listed(const Grid& grid, const Coefficients& c, const StepData* sweep, const Ledger& ledger,
                                              const Brick& brick, const Listed& listed, const Real* now, Real* next, Real* field,
                                              bool all, int thread, int threads)
{
#pragma unroll 1
    for (int i = thread; i < listed.count; i += threads) {
        const unsigned int packed = listed.cells[i];
        const int x = packed & ((1u << listed.x_bits) - 1u), y = packed >> listed.x_bits & ((1u << listed.y_bits) - 1u);
        const int z = packed >> (listed.x_bits + listed.y_bits), place = brick.place(x, y, z);
        const Real value = update_one(grid, c, sweep, ledger, brick, listed, now, place, brick.x + x, brick.y + y, brick.z + z);
        next[place] = value;
        if (all || x == 0 || x == brick.nx - 1 || y == 0 || y == brick.ny - 1 || z == 0 || z == brick.nz - 1)
            field[cell_index(grid, brick.x + x, brick.y + y, brick.z + z)] = value;
    }
}

// Stores the cells of a vector that are not listed.
__device__ __forceinline__ void store_others(Real* to, const Cells& cells, VectorBytes bytes)
{
    if (!(bytes & ONES * LISTED)) {
        store(to, cells);
        return;
    }
#pragma unroll
    for (int i = 0; i < VECTOR; ++i)
        if (!(bytes >> 8 * i & LISTED)) to[i] = cells.at[i];
}

// Bits that hold the numbers 0 ... count - 1.
__device__ __forceinline__ int bits_of(int count) { return 32 - __clz(count - 1); }

// Lists the cells of the block that are not updated as vectors; all its threads call this. `first`: the first cell of the column, in
// the grid. `list` has room for all cells of the block; `count` is 0 before.
__device__ __forceinline__ Listed list_cells(const Grid& grid, const CellTypes& cell_types, const Brick& brick, const Column& column,
                                             int first, unsigned char* bytes, unsigned short* list, unsigned int* count)
{
    const int x_bits = bits_of(grid.brick_x), y_bits = bits_of(grid.brick_y), plane = grid.nx * grid.ny;
    int cell = first;
    for (int z = column.z_begin; z < column.z_end; ++z, cell += plane) {
        const int place = brick.place(column.x, column.y, z);
        unsigned int cells = 0;
#if MATERIALS
        cells = not_linked(cell_types, brick, bytes, place, cell);
#endif
        for (int i = 0; i < VECTOR; ++i) {
            const unsigned int faces = touched_faces(grid, brick.x + column.x + i, brick.y + column.y, brick.z + z);
            if (!(cells >> 8 * i & INTERIOR) && !(faces & cell_types.open)) continue;
            bytes[place + i] |= LISTED;
            list[atomicAdd(count, 1u)] = column.x + i | (column.y | z << y_bits) << x_bits;
        }
    }
    __syncthreads();
    return {list, (int)*count, x_bits, y_bits, bytes};
}
