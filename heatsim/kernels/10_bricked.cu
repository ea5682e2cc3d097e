// 10 bricked: as 09, with a brick of cells for each block. Both buffers of the brick lie in shared memory.
//
//        +---------+---------+
//        |         :         |       A block steps the cells of its brick and reads only shared memory. Cells at the sides of
//        |  block  :  block  |       the brick also go to the field in L2; from there the neighbours copy them to their halos.
//        |         :         |
//        +---------+---------+       step n:   compute | count | wait for the six neighbours | copy the halo
//
// A step loads only the halo from L2, and stores only the sides: a brick of 32 x 24 x 16 cells has 12,288 cells and a halo of
// 3,328. The launch loads and stores whole bricks once.
//
// Threads march along z with vectors of cells. In composite bodies, cells at open faces and cells that vectors cannot update take
// longer. A launch lists them once; in each step all threads of the block share the listed cells.
//
// With MEMBERS a launch steps the composite bodies of an ensemble: blocks 0 ... layers - 1 along z have the bricks of the first
// member, the next `layers` blocks those of the second, and so on. Members do not wait for each other, and may have different
// numbers of steps.

#include "vector.cuh"
#include "resident.cuh"

#define LAUNCH_BOUNDS __launch_bounds__(BLOCK_X, 1)  // the most threads; the shape of the block follows from the brick
#define GAP (VECTOR > 2 ? VECTOR : 2)  // places between rows: the last is the west halo, the first the east halo of the row before

#if MEMBERS
#include "ensemble/members.cuh"
#endif

// The blocks of one grid: z() is the place of this block along z, nz() the number of blocks along z, first() the number of the first
// block. Along x and y they are the blocks of the launch. Without MEMBERS these are built-in variables, which takes fewer registers.
struct Blocks {
#if MEMBERS
    int layer, layers, before;

    __device__ __forceinline__ int z() const { return layer; }
    __device__ __forceinline__ int nz() const { return layers; }
    __device__ __forceinline__ int first() const { return before; }
#else
    __device__ __forceinline__ int z() const { return blockIdx.z; }
    __device__ __forceinline__ int nz() const { return gridDim.z; }
    __device__ __forceinline__ int first() const { return 0; }
#endif

    __device__ __forceinline__ int number(int x, int y, int z) const { return first() + (z * gridDim.y + y) * gridDim.x + x; }
};

// The brick of a block, and how its cells lie in shared memory.
struct Brick {
    int x, y, z;     // its first cell in the grid
    int nx, ny, nz;  // its cells; the last brick along an axis may have fewer than the others
    int row, plane;  // places from a row or plane to the next
    int first;       // place of its first cell
    int places;      // of a buffer

    __device__ __forceinline__ int place(int x, int y, int z) const { return first + z * plane + y * row + x; }
};

__device__ __forceinline__ Brick brick_of(const Grid& grid, const Blocks& blocks)
{
    Brick brick;
    brick.x = blockIdx.x * grid.brick_x;
    brick.y = blockIdx.y * grid.brick_y;
    brick.z = blocks.z() * grid.brick_z;
    brick.nx = min(grid.brick_x, grid.nx - brick.x);
    brick.ny = min(grid.brick_y, grid.ny - brick.y);
    brick.nz = min(grid.brick_z, grid.nz - brick.z);
    brick.row = grid.brick_x + GAP;
    brick.plane = brick.row * (grid.brick_y + 2);
    brick.first = brick.plane + brick.row + GAP;
    brick.places = brick.plane * (grid.brick_z + 2) + GAP;
    return brick;
}

// An entry of the halo: the value of a cell of the field or, at a face of the box, of the own cell beside it.
struct Entry {
    int from;  // cell of the field, or ~place of an own cell. An int is enough: a grid that fits the chip has few cells.
    int to;    // place
};

// Vectors below, above, south and north of a brick come first, then single cells west and east of it.
__device__ __forceinline__ int halo_vectors(int nx, int ny, int nz) { return 2 * (nx / VECTOR) * (ny + nz); }
__device__ __forceinline__ int halo_entries(int nx, int ny, int nz) { return halo_vectors(nx, ny, nz) + 2 * ny * nz; }

// Entry i of the halo.
__device__ __forceinline__ Entry entry_of(const Grid& grid, const Brick& brick, int i)
{
    const int vectors = brick.nx / VECTOR, layers = 2 * vectors * brick.ny, sides = halo_vectors(brick.nx, brick.ny, brick.nz);
    int x = 0, y = 0, z = 0, to, beside;
    if (i < layers) {
        const bool up = i >= layers / 2;
        x = i % vectors * VECTOR;
        y = i / vectors % brick.ny;
        z = up ? brick.nz - 1 : 0;
        to = up ? brick.plane : -brick.plane;
        beside = neighbour_z(grid, brick.z + z + (up ? 1 : -1));
    } else if (i < sides) {
        const bool up = i - layers >= (sides - layers) / 2;
        x = (i - layers) % vectors * VECTOR;
        z = (i - layers) / vectors % brick.nz;
        y = up ? brick.ny - 1 : 0;
        to = up ? brick.row : -brick.row;
        beside = neighbour_y(grid, brick.y + y + (up ? 1 : -1));
    } else {
        const bool up = i - sides >= brick.ny * brick.nz;
        y = (i - sides) % brick.ny;
        z = (i - sides) / brick.ny % brick.nz;
        x = up ? brick.nx - 1 : 0;
        to = up ? 1 : -1;
        beside = neighbour_x(grid, brick.x + x + to);
    }
    const int place = brick.place(x, y, z);
    const int at[3] = {i < sides ? brick.x + x : beside, i < layers || i >= sides ? brick.y + y : beside, i < layers ? beside : brick.z + z};
    const bool outside = at[0] == brick.x + x && at[1] == brick.y + y && at[2] == brick.z + z;
    return {outside ? ~place : (int)cell_index(grid, at[0], at[1], at[2]), place + to};
}

// Copies the halo of an array over the cells of the field.
template <class Number>
__device__ __forceinline__ void copy_halo(const Brick& brick, const Entry* entries, const Number* field, Number* values, int thread,
                                          int threads)
{
    struct __align__(sizeof(Number) * VECTOR) Vector {
        Number at[VECTOR];
    };
    const int vectors = halo_vectors(brick.nx, brick.ny, brick.nz), count = halo_entries(brick.nx, brick.ny, brick.nz);
#pragma unroll 2
    for (int i = thread; i < count; i += threads) {
        const Entry entry = entries[i];
        const Number* const from = entry.from < 0 ? values + ~entry.from : field + entry.from;
        if (i < vectors) *reinterpret_cast<Vector*>(values + entry.to) = *reinterpret_cast<const Vector*>(from);
        else values[entry.to] = *from;
    }
}

// The block beside a block in direction 0 ... 5: x-, x+ ... z+. At a face of the box it is the block itself.
__device__ __forceinline__ int neighbour_block(const Grid& grid, const Blocks& blocks, int direction)
{
    const int axis = direction >> 1, step = direction & 1 ? 1 : -1;
    const bool wraps = grid.periodic >> axis & 1;
    const int x = axis == 0 ? neighbour(blockIdx.x + step, gridDim.x, wraps) : blockIdx.x;
    const int y = axis == 1 ? neighbour(blockIdx.y + step, gridDim.y, wraps) : blockIdx.y;
    const int z = axis == 2 ? neighbour(blocks.z() + step, blocks.nz(), wraps) : blocks.z();
    return blocks.number(x, y, z);
}

// Takes an array from the start of free shared memory.
template <class Item>
__device__ __forceinline__ Item* take(unsigned char*& room, int count)
{
    Item* const array = reinterpret_cast<Item*>(room);
    room += ((count * (int)sizeof(Item)) + 15) / 16 * 16;
    return array;
}

// Fills an array in shared memory.
template <class Item>
__device__ __forceinline__ Item* copied(Item* to, const Item* from, int count, int thread, int threads)
{
    for (int i = thread; i < count; i += threads) to[i] = from[i];
    return to;
}

// The vectors that a thread steps: a column of a brick, planes z_begin ... z_end - 1.
struct Column {
    int x, y, z_begin, z_end;
    bool at_side;  // of the brick, in all planes
    bool at_face;  // of the box, in all planes
};

__device__ __forceinline__ Column column_of(const Grid& grid, const Brick& brick)
{
    const int x = threadIdx.x * VECTOR, y = threadIdx.y, depth = (grid.brick_z + blockDim.z - 1) / blockDim.z;
    const bool inside = x < brick.nx && y < brick.ny;
    Column column;
    column.x = x;
    column.y = y;
    column.z_begin = threadIdx.z * depth;
    column.z_end = inside ? min(column.z_begin + depth, brick.nz) : 0;
    column.at_side = x == 0 || x + VECTOR == brick.nx || y == 0 || y == brick.ny - 1;
    column.at_face = brick.x + x == 0 || brick.x + x + VECTOR == grid.nx || brick.y + y == 0 || brick.y + y == grid.ny - 1;
    return column;
}

#if FACES
#include "composite/bricked_cells.cuh"
#endif

// Updates the cells of a column; in composite bodies only those that are not listed. Stores them in shared memory, and in the field
// those at the sides of the brick, or all of them if `all`. `field`: the first one in the field.
__device__ __forceinline__ void step_column(const Grid& grid, const Coefficients& c, const StepData* sweep, const Ledger& ledger,
                                            const Brick& brick, const unsigned char* bytes, const Column& column, const Real* now,
                                            Real* next, Real* field, bool all)
{
    if (column.z_begin >= column.z_end) return;
    const int plane = grid.nx * grid.ny;
    int place = brick.place(column.x, column.y, column.z_begin);
    Cells below = load(now + place - brick.plane), current = load(now + place);
    all |= column.at_side;
    const int x = brick.x + column.x, y = brick.y + column.y;
#if FACES
    Own own = own_of(grid, c, sweep, 0, x, y);
#else
    const Coefficients& of_this = of_step(c, sweep);
#if GRADED
    const LinksAcross across = across_at(grid, c.planes, of_this, x, y);
#endif
#endif
#pragma unroll 1
    for (int in_brick = column.z_begin; in_brick < column.z_end; ++in_brick, place += brick.plane, field += plane) {
        const Real* const here = now + place;
        const Cells above = load(here + brick.plane), south = load(here - brick.row), north = load(here + brick.row);
        const Real west = here[-1], east = here[VECTOR];
        const bool to_field = all || in_brick == 0 || in_brick == brick.nz - 1;
        const int z = brick.z + in_brick;
#if FACES
        const VectorBytes its_bytes = bytes_at(bytes, place);
        if ((its_bytes & TYPE) != own.cell_type) own = own_of(grid, c, sweep, its_bytes & TYPE, x, y);
        Cells sum;
#if MATERIALS
        if (is_linked(its_bytes))
            sum = sum_linked(grid, c, brick, bytes, place, own, x, y, z, current, west, east, south, north, below, above);
        else
#endif
            sum = sum_plain(c, own, factors_along(grid, planes_of(c), z), current, west, east, south, north, below, above);
        const Cells updated = finish(sweep, current, sum);
        store_others(next + place, updated, its_bytes);
        if (to_field) store_others(field, updated, its_bytes);
#else
        const bool at_face = column.at_face || z == 0 || z == grid.nz - 1;
#if GRADED
        const VectorLinks links = links_at(of_this, across, factors_along(grid, c.planes, z));
#else
        const Coefficients& links = of_this;
#endif
        const Cells updated = update(grid, links, sweep, ledger, x, y, z, at_face, current, west, east, south, north, below, above);
        store(next + place, updated);
        if (to_field) store(field, updated);
#endif
        below = current;
        current = above;
    }
}

// Does `count` steps of the block's brick. `kept` is a copy of `c` whose pointers are set to the tables in shared memory. With MEMBERS
// it is in shared memory too: the first thread of the block copied it there.
__device__ __forceinline__ void do_steps(Real* T, Real* T_new, const Grid& grid, const Blocks& blocks, const int count,
                                         const Coefficients& c, Coefficients& kept, const StepData* sweep, const Ledger& ledger)
{
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ StepData sweeps[2];
    const Brick brick = brick_of(grid, blocks);
    const int threads = blockDim.x * blockDim.y * blockDim.z;
    const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const int block = blocks.number(blockIdx.x, blockIdx.y, blocks.z());
    const unsigned int done = *count_of(grid, block);

    // 1. Place the arrays in shared memory.
    unsigned char* room = shared;
    const int places = (brick.places + VECTOR - 1) / VECTOR * VECTOR;
    Real* now = take<Real>(room, places);
    Real* next = take<Real>(room, places);
    Entry* const entries = take<Entry>(room, halo_entries(grid.brick_x, grid.brick_y, grid.brick_z));
    Steps steps;
    steps.sweeps = sweeps;
#if FACES
    const int types = c.cell_types.count;
    steps.conditions = c.cell_types.numbers;
    steps.types = types;
    steps.numbers = take<Real>(room, 2 * (steps.conditions + types));
    const bool keeps = !MEMBERS || thread == 0;
    const HalfCell* const halves = copied(take<HalfCell>(room, 3 * types), c.cell_types.halves, 3 * types, thread, threads);
    if (keeps) kept.cell_types.halves = halves;
#if MATERIALS
    const Inner* const inner = copied(take<Inner>(room, types), c.cell_types.inner, types, thread, threads);
    const Real* const links = copied(take<Real>(room, 3 * types * types), c.cell_types.links, 3 * types * types, thread, threads);
    if (keeps) kept.cell_types.inner = inner, kept.cell_types.links = links;
#endif
    unsigned char* const bytes = take<unsigned char>(room, places);
    unsigned short* const list = reinterpret_cast<unsigned short*>(room);
    __shared__ unsigned int listed_cells;
    if (thread == 0) listed_cells = 0;
#else
    const unsigned char* const bytes = nullptr;
#endif

    // 2. Load the brick, its halo and the data of the first step.
    const Column column = column_of(grid, brick);
    const int plane = grid.nx * grid.ny;
    const int first = (int)cell_index(grid, brick.x + column.x, brick.y + column.y, brick.z + column.z_begin);
    copy_step(steps, 0, sweep, thread, threads);
    for (int i = thread; i < halo_entries(brick.nx, brick.ny, brick.nz); i += threads) entries[i] = entry_of(grid, brick, i);
    int cell = first;
    for (int z = column.z_begin; z < column.z_end; ++z, cell += plane) {
        const int place = brick.place(column.x, column.y, z);
        store(now + place, load(T + cell));
#if FACES
        *reinterpret_cast<Bytes*>(bytes + place) = (Bytes)load_bytes(c.cell_types, cell);
#endif
    }
    __syncthreads();
    copy_halo(brick, entries, T, now, thread, threads);
#if FACES && MATERIALS
    copy_halo(brick, entries, c.cell_types.cells, bytes, thread, threads);
#endif
    __syncthreads();

#if FACES
    const Listed listed = list_cells(grid, c.cell_types, brick, column, first, bytes, list, &listed_cells);
#endif

    for (int step = 0; step < count; ++step) {
        // 3. Do a step.
        const bool last = step + 1 == count;
        const StepData* const at = &sweeps[step & 1];
        step_column(grid, kept, at, ledger, brick, bytes, column, now, next, T_new + first, last);
#if FACES
        update_listed(grid, kept, at, ledger, brick, listed, now, next, T_new, last, thread, threads);
#endif
        Real* const old = T;
        T = T_new;
        T_new = old;
        Real* const before = now;
        now = next;
        next = before;
        __syncthreads();

        // 4. Count it. The first warp waits for the neighbours (more warps would slow each other down); the others copy the data
        //    of the next step.
        if (thread == 0) store_release(count_of(grid, block), done + step + 1);
        if (last) break;
        if (thread < 6) wait_for(count_of(grid, neighbour_block(grid, blocks, thread)), done + step + 1);
        if (thread >= WARP) copy_step(steps, 1 - (step & 1), sweep + step + 1, thread - WARP, threads - WARP);
        __syncthreads();
        copy_halo(brick, entries, T, now, thread, threads);
        __syncthreads();
    }
}

#if MEMBERS
extern "C" __global__ void LAUNCH_BOUNDS advance(const Member* __restrict__ members, const EnsembleGrid grid)
{
    __shared__ Coefficients kept;
    __shared__ Ledger ledger;
    const int place = blockIdx.z / grid.layers, layer = blockIdx.z % grid.layers;
    const Member& member = members[grid.first_member + place];
    if (member.count == 0) return;
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
        kept = member.c;
        ledger = member.ledger;
    }
    const Blocks blocks = {layer, grid.layers, place * grid.layers * (int)(gridDim.x * gridDim.y)};
    do_steps(member.field[0], member.field[1], grid, blocks, member.count, member.c, kept, member.sweeps, ledger);
}
#else
extern "C" __global__ void LAUNCH_BOUNDS
advance(Real* T, Real* T_new, const Grid grid, const Coefficients c, const StepData* sweep, const Ledger ledger)
{
    Coefficients kept = c;
    do_steps(T, T_new, grid, Blocks(), grid.steps, c, kept, sweep, ledger);
}
#endif
