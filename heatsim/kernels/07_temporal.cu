// 07 temporal: STEPS time steps in one sweep. A block streams planes along z through a pipeline of stages; stage s holds
// the field after s steps and makes it one step older. Memory is read once and written once for STEPS steps.
//
// When plane p arrives (after 0 steps), in the same iteration
//
//        stage 0    turns plane p - 1 from 0 to 1 steps; the plane above it is the one that has just arrived
//        stage 1    turns plane p - 2 from 1 to 2 steps; the plane above it has just left stage 0
//        ...
//        stage S-1  turns plane p - S from S-1 to S steps, which go to memory
//
// A stage holds two planes in registers: the centre, whose x and y neighbours it needs, and the one below, of which a
// thread needs its own cells only. The plane above comes from the stage before. The centre plane was made an iteration
// ago and its edges published then, so one barrier an iteration serves all stages.
//
// A thread owns a patch of VECTOR cells in x and ROWS in y. A warp is 32 patches beside each other, so x neighbours come by
// shuffle; of y neighbours only those of a warp's first and last row come from shared memory.
//
//        |<---------------- 32 VECTOR cells ---------------->|
//        h h h h h h h h h h h h h h h h h h h h h h h h h h h   halo: after each step one more layer of it is wrong
//        h  +---------------------------------------------+  h
//        h  |  cells that the block writes                |  h   first row of a warp: published for the warp south
//        h  |                                             |  h   last row of a warp: published for the warp north
//        h  +---------------------------------------------+  h
//        h h h h h h h h h h h h h h h h h h h h h h h h h h h
//
// Bytes a cell and step: 2 sizeof(Real) / STEPS, and the halo: with 4 steps and tiles of 128 x 32 cells 1.42 times the
// cells are computed. 13 operations a cell and step. Expected: limited by instruction issue rather than by memory.
//
// Grids: rows of whole vectors and columns of whole patches, nx a multiple of VECTOR and ny of ROWS.
//
// Registers decide everything. The two planes change roles in every iteration, so the loop is unrolled by two and no value
// is ever moved; for that the sum of a stage up to the plane above is made before the stage before it delivers that plane.

#include "vector.cuh"

#define WARPS TILE_Y
#define AHEAD 4  // planes on their way from memory at a time
#define HALO_LANES ((STEPS + VECTOR - 1) / VECTOR)
#define HALO_ROWS ((STEPS + ROWS - 1) / ROWS * ROWS)

struct Patch {
    Cells row[ROWS];
};

// What the warps publish of one plane: the first row of each patch, then the last.
struct Edges {
    Cells of[2 * WARPS * WARP];
};

// The first cell of a thread's patch; in the halo also outside of the box.
__device__ __forceinline__ int patch_x()
{
    return ((int)blockIdx.x * (WARP - 2 * HALO_LANES) + (int)threadIdx.x - HALO_LANES) * VECTOR;
}

__device__ __forceinline__ int patch_y(const Grid& grid)
{
    return grid.first_y + (int)blockIdx.y * (WARPS * ROWS - 2 * HALO_ROWS) + (int)threadIdx.y * ROWS - HALO_ROWS;
}

// The first plane that the block writes.
__device__ __forceinline__ int first_plane(const Grid& grid) { return grid.first_z + (int)blockIdx.z * grid.planes; }

// What a thread has to know of its patch in every iteration. Patches fill the box: it ends where one of them does.
struct Place {
    unsigned int start;             // of its first row in a plane, taken into the box
    bool first_column, last_column; // whether its first column is the first of the box, its last the last
    bool owned;                     // whether the block writes it
    int south, north;               // where the rows beside it are published
};

// Position i of an axis of n cells taken into the box, `width` cells at a time: round and round where it is periodic, else
// to the nearer end.
__device__ __forceinline__ int into(int i, int n, bool periodic, int width)
{
    if (!periodic) return max(0, min(i, n - width));
    i %= n;
    return i < 0 ? i + n : i;
}

__device__ __forceinline__ Place find_place(const Grid& grid)
{
    const int lane = threadIdx.x, warp = threadIdx.y, slot = warp * WARP + lane, last = WARPS * WARP;
    const bool periodic_x = grid.periodic & 1, periodic_y = grid.periodic & 2;
    const int x = patch_x(), y = patch_y(grid);
    Place place;
    place.start = (unsigned)into(y, grid.ny, periodic_y, ROWS) * grid.nx + into(x, grid.nx, periodic_x, VECTOR);
    place.first_column = !periodic_x && x == 0;
    place.last_column = !periodic_x && x + VECTOR == grid.nx;
    place.owned = lane >= HALO_LANES && lane < WARP - HALO_LANES && x < grid.nx && warp * ROWS >= HALO_ROWS &&
                  warp * ROWS < WARPS * ROWS - HALO_ROWS && y < grid.ny;
    // Beside the end of the box is the row itself, which the warp has published too.
    place.south = !periodic_y && y == 0 ? slot : last + max(warp - 1, 0) * WARP + lane;
    place.north = !periodic_y && y + ROWS == grid.ny ? last + slot : min(warp + 1, WARPS - 1) * WARP + lane;
    return place;
}

// Sets off the copy of a patch to `target`, where it is this thread's alone: row r lies at r * WARPS * WARP.
__device__ __forceinline__ void fetch_patch(Cells* target, const Real* plane, const Grid& grid, const Place& place)
{
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const Real* row = plane + (place.start + r * grid.nx);
        Cells* const cells = target + r * WARPS * WARP;
        copy_async<sizeof(Cells)>(cells, row);
    }
    commit_copies();
}

__device__ __forceinline__ void store_patch(Real* plane, const Grid& grid, const Place& place, const Patch& patch)
{
#pragma unroll
    for (int r = 0; r < ROWS; ++r) store(plane + (place.start + r * grid.nx), patch.row[r]);
}

// A stage's sums up to the plane above.
__device__ __forceinline__ Patch sum_before_above(const Coefficients& c, const Place& place, const Edges& edges,
                                                  const Patch& T, const Patch& below)
{
    const Cells south_edge = edges.of[place.south], north_edge = edges.of[place.north];
    Patch sum;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const Cells here = T.row[r];
        const Cells south = r == 0 ? south_edge : T.row[r == 0 ? 0 : r - 1];
        const Cells north = r == ROWS - 1 ? north_edge : T.row[r == ROWS - 1 ? r : r + 1];
        Real beside_west = __shfl_up_sync(ALL_LANES, here.at[VECTOR - 1], 1);
        Real beside_east = __shfl_down_sync(ALL_LANES, here.at[0], 1);
        if (place.first_column) beside_west = here.at[0];  // beside the end of the box is the cell itself
        if (place.last_column) beside_east = here.at[VECTOR - 1];
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            const Real west = i == 0 ? beside_west : here.at[i - 1];
            const Real east = i == VECTOR - 1 ? beside_east : here.at[i + 1];
            sum.row[r].at[i] = sum_before_above(c, here.at[i], west, east, south.at[i], north.at[i], below.row[r].at[i]);
        }
    }
    return sum;
}

// The heat through a face in x or y into cells of a patch: column i of it, or row r. Halo cells need it for their values,
// their owner enters it.
__device__ __forceinline__ void add_face_x(const Grid& grid, const Sweep* sweep, double* sums, int face, int z, bool owned,
                                           int i, const Patch& T, Patch& sum)
{
    const int y = patch_y(grid);
    const Real f = sweep->f[face], g = sweep->g[face];
    Real heat[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        heat[r] = multiply_add(-g, T.row[r].at[i], f);
        sum.row[r].at[i] += heat[r];
    }
    if (sums && owned)
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            atomicAdd(sums + ((size_t)z * grid.ny + y + r), (double)heat[r]);
}

__device__ __forceinline__ void add_face_y(const Grid& grid, const Sweep* sweep, double* sums, int face, int z, bool owned,
                                           int r, const Patch& T, Patch& sum)
{
    const int x = patch_x();
    const Real f = sweep->f[face], g = sweep->g[face];
    Real heat[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
        heat[i] = multiply_add(-g, T.row[r].at[i], f);
        sum.row[r].at[i] += heat[i];
    }
    if (sums && owned)
#pragma unroll
        for (int i = 0; i < VECTOR; ++i)
            atomicAdd(sums + ((size_t)z * grid.nx + x + i), (double)heat[i]);
}

__device__ __forceinline__ void add_faces_xy(const Grid& grid, const Place& place, const Sweep* sweep, const Ledger& ledger,
                                             int z, bool owned_plane, const Patch& T, Patch& sum)
{
    const bool owned = owned_plane && place.owned;
    if (place.first_column) add_face_x(grid, sweep, ledger.face[0], 0, z, owned, 0, T, sum);
    if (place.last_column) add_face_x(grid, sweep, ledger.face[1], 1, z, owned, VECTOR - 1, T, sum);
    if (grid.periodic & 2) return;
    const int y = patch_y(grid);
    if (y == 0) add_face_y(grid, sweep, ledger.face[2], 2, z, owned, 0, T, sum);
    if (y + ROWS == grid.ny) add_face_y(grid, sweep, ledger.face[3], 3, z, owned, ROWS - 1, T, sum);
}

// The same for the faces in z, which few planes touch: loops over copies in shared memory, because registers cannot be
// indexed and the code should stay small. `scratch` has room for two patches of each thread.
__device__ __forceinline__ void add_faces_z(const Grid& grid, const Place& place, const Sweep* sweep, const Ledger& ledger,
                                            int z, bool owned_plane, Cells* scratch, const Patch& T, Patch& sum)
{
    if (grid.periodic & 4 || (z != 0 && z != grid.nz - 1)) return;
    const int x = patch_x(), y = patch_y(grid), threads = WARPS * WARP;
    Cells* const mine = scratch + threadIdx.y * WARP + threadIdx.x;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        mine[r * threads] = T.row[r];
        mine[(ROWS + r) * threads] = sum.row[r];
    }
#pragma unroll 1
    for (int face = z == 0 ? 4 : 5; face <= (z == grid.nz - 1 ? 5 : 4); ++face) {
        const Real f = sweep->f[face], g = sweep->g[face];
        double* const sums = face == 4 ? ledger.face[4] : ledger.face[5];
        const bool entered = sums && owned_plane && place.owned;
#pragma unroll 1
        for (int r = 0; r < ROWS; ++r)
#pragma unroll 1
            for (int i = 0; i < VECTOR; ++i) {
                const Real heat = multiply_add(-g, mine[r * threads].at[i], f);
                mine[(ROWS + r) * threads].at[i] += heat;
                if (entered) atomicAdd(sums + ((size_t)(y + r) * grid.nx + x + i), (double)heat);
            }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) sum.row[r] = mine[(ROWS + r) * threads];
}

// What an iteration has to look after besides the cells themselves. The code for faces would take so much of the
// instruction cache that most blocks, which touch none, wait for instructions: they run a loop without it.
enum Boundaries { NONE, SIDES, ALL };  // SIDES: faces in x and y; ALL: also those in z, and the ends of the box in z

// One iteration: plane p arrives, each stage makes one plane older, plane p - STEPS comes out. On return the planes have
// changed roles: what was below holds the new centre.
template <Boundaries boundaries>
__device__ __forceinline__ Patch advance_pipeline(const Grid& grid, const Coefficients& c, const Sweep* sweep,
                                                  const Ledger& ledger, const Place& place, int p, int z_begin, int z_end,
                                                  const Edges* published, Edges* publish, Cells* scratch,
                                                  Patch (&centre)[STEPS], Patch (&below)[STEPS], Cells* room,
                                                  const Real* next_plane)
{
    const bool ends_in_z = boundaries == ALL && !(grid.periodic & 4);
    const int slot = threadIdx.y * WARP + threadIdx.x;

    if (ends_in_z && p - 1 == 0) below[0] = centre[0];
    Patch sum = sum_before_above(c, place, published[0], centre[0], below[0]);

    // The plane that arrives has been under way for AHEAD iterations; its room is free for one as far ahead.
    wait_for_copies<AHEAD - 1>();
    Patch above;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) above.row[r] = room[r * WARPS * WARP];
    fetch_patch(room, next_plane, grid, place);
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
        const int z = p - 1 - s;  // of the centre plane

        // 1. Publish what has arrived at this stage; it will be the centre of the next iteration.
        publish[s].of[slot] = above.row[0];
        publish[s].of[WARPS * WARP + slot] = above.row[ROWS - 1];

        // 2. The next stage's sum needs the plane below, whose registers take what this stage makes.
        Patch next_sum;
        if (s + 1 < STEPS) {
            if (ends_in_z && z - 1 == 0) below[s + 1] = centre[s + 1];  // no plane below the first
            next_sum = sum_before_above(c, place, published[s + 1], centre[s + 1], below[s + 1]);
        }

        // 3. Finish this stage.
        below[s] = above;
        if (ends_in_z && z == grid.nz - 1) above = centre[s];  // no plane above the last
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
            for (int i = 0; i < VECTOR; ++i)
                sum.row[r].at[i] = add_above(c, centre[s].row[r].at[i], above.row[r].at[i], sum.row[r].at[i]);
        const bool owned_plane = z >= z_begin && z < z_end;
        if (boundaries != NONE) add_faces_xy(grid, place, sweep + s, ledger, z, owned_plane, centre[s], sum);
        if (boundaries == ALL) add_faces_z(grid, place, sweep + s, ledger, z, owned_plane, scratch, centre[s], sum);
#if SCHEME != SEVEN_TERM
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
            for (int i = 0; i < VECTOR; ++i)
                sum.row[r].at[i] = finish(sweep + s, place.start % grid.nx + i, place.start / grid.nx + r,
                                          into(z, grid.nz, grid.periodic & 4, 1), centre[s].row[r].at[i], sum.row[r].at[i]);
#endif
        above = sum;
        if (s + 1 < STEPS) sum = next_sum;
    }
    __syncthreads();  // what was published is read in the next iteration, and overwritten in the one after it
    return above;
}

// Two iterations, after which the planes have their roles again.
template <Boundaries boundaries>
__device__ __forceinline__ void advance_twice(const Real* T, Real* T_new, const Grid& grid, const Coefficients& c,
                                              const Sweep* sweep, const Ledger& ledger, const Place& place, int p,
                                              Edges* edges, Patch (&a)[STEPS], Patch (&b)[STEPS])
{
    const int z_begin = first_plane(grid), z_end = min(z_begin + grid.planes, grid.nz);
    const bool periodic_z = grid.periodic & 4;
    const size_t plane = (size_t)grid.nx * grid.ny;
    Cells* const scratch = reinterpret_cast<Cells*>(edges + 2 * STEPS);
    Cells* const fetched = scratch + 2 * ROWS * WARPS * WARP + threadIdx.y * WARP + threadIdx.x;
#pragma unroll
    for (int half = 0; half < 2; ++half, ++p) {
        Cells* const room = fetched + (unsigned)p % AHEAD * (ROWS * WARPS * WARP);
        const Real* const next_plane = T + into(p + AHEAD, grid.nz, periodic_z, 1) * plane;
        Edges* const published = edges + half * STEPS;
        Edges* const publish = edges + (1 - half) * STEPS;
        const Patch done = half == 0
            ? advance_pipeline<boundaries>(grid, c, sweep, ledger, place, p, z_begin, z_end, published, publish, scratch, a, b, room, next_plane)
            : advance_pipeline<boundaries>(grid, c, sweep, ledger, place, p, z_begin, z_end, published, publish, scratch, b, a, room, next_plane);
        const int z = p - STEPS;
        if (place.owned && z >= z_begin && z < z_end) store_patch(T_new + z * plane, grid, place, done);
    }
}

extern "C" __global__ void __launch_bounds__(WARP * WARPS, 1)
advance(const Real* __restrict__ T, Real* __restrict__ T_new, const Grid grid, const Coefficients c,
        const Sweep* __restrict__ sweep, const Ledger ledger)
{
    extern __shared__ Edges edges[];
    const Place place = find_place(grid);
    const int z_begin = first_plane(grid), last = min(z_begin + grid.planes, grid.nz) + STEPS;

    // Most tiles and iterations look after the cells alone. Tiles beside a face in x or y look after it; iterations in
    // which some stage's centre is the first or last plane of the box look after everything.
    const int tile_x = patch_x() - (int)threadIdx.x * VECTOR, tile_y = patch_y(grid) - (int)threadIdx.y * ROWS;
    const bool sides = (!(grid.periodic & 1) && (tile_x <= 0 || tile_x + WARP * VECTOR >= grid.nx)) ||
                       (!(grid.periodic & 2) && (tile_y <= 0 || tile_y + WARPS * ROWS >= grid.ny));
    const bool periodic_z = grid.periodic & 4;
    const int inner_begin = periodic_z ? z_begin - STEPS : STEPS + 1, inner_end = periodic_z ? last : min(last, grid.nz - 1);

    // The pipeline starts with whatever is in it: STEPS planes before the first one written, all that has not come from
    // memory is gone.
    Patch a[STEPS] = {}, b[STEPS] = {};
    int p = z_begin - STEPS;
    Cells* const fetched = reinterpret_cast<Cells*>(edges + 2 * STEPS) + 2 * ROWS * WARPS * WARP + threadIdx.y * WARP + threadIdx.x;
#pragma unroll
    for (int i = 0; i < AHEAD; ++i)
        fetch_patch(fetched + (unsigned)(p + i) % AHEAD * (ROWS * WARPS * WARP),
                    T + into(p + i, grid.nz, periodic_z, 1) * ((size_t)grid.nx * grid.ny), grid, place);

    while (p < last) {
        if (p < inner_begin || p >= inner_end) {
            advance_twice<ALL>(T, T_new, grid, c, sweep, ledger, place, p, edges, a, b);
            p += 2;
        } else if (sides) {
#pragma unroll 1
            for (; p < inner_end; p += 2)
                advance_twice<SIDES>(T, T_new, grid, c, sweep, ledger, place, p, edges, a, b);
        } else {
#pragma unroll 1
            for (; p < inner_end; p += 2)
                advance_twice<NONE>(T, T_new, grid, c, sweep, ledger, place, p, edges, a, b);
        }
    }
}
