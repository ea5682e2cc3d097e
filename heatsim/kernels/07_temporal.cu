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
// Registers decide everything. The two planes change roles in every iteration, so the loop is unrolled by two and no value
// is ever moved; for that the sum of a stage up to the plane above is made before the stage before it delivers that plane.

#include "vector.cuh"

#define WARPS TILE_Y
#define HALO_LANES ((STEPS + VECTOR - 1) / VECTOR)
#define HALO_ROWS ((STEPS + ROWS - 1) / ROWS * ROWS)

struct Patch {
    Cells row[ROWS];
};

// What the warps publish of one plane: the first row of each patch, then the last.
struct Edges {
    Cells of[2 * WARPS * WARP];
};

// Where a thread's patch is and what borders it.
struct Place {
    int x, y;                     // of its first cell; in the halo also outside of the box
    unsigned int row[ROWS];       // start of its rows in a plane, taken into the box
    unsigned int column[VECTOR];  // its cells in a row, taken into the box
    bool west_wall;               // its first cell is the first of the box
    int east_wall, north_wall;    // its cell in x, its row that are the last of the box, if any
    int south, north;             // where the rows beside it are published
    bool at_side;                 // it touches a face in x or y
    unsigned int owned;           // bit r: the block writes row r
};

// Position i of an axis of n cells taken into the box: round and round where it is periodic, else to the nearer end.
__device__ __forceinline__ int into(int i, int n, bool periodic)
{
    if (!periodic) return max(0, min(i, n - 1));
    i %= n;
    return i < 0 ? i + n : i;
}

__device__ __forceinline__ Place find_place(const Grid& grid)
{
    const int lane = threadIdx.x, warp = threadIdx.y, slot = warp * WARP + lane, last = WARPS * WARP;
    const bool periodic_x = grid.periodic & 1, periodic_y = grid.periodic & 2;
    Place place;
    place.x = ((int)blockIdx.x * (WARP - 2 * HALO_LANES) + lane - HALO_LANES) * VECTOR;
    place.y = grid.first_y + (int)blockIdx.y * (WARPS * ROWS - 2 * HALO_ROWS) + warp * ROWS - HALO_ROWS;

    place.west_wall = !periodic_x && place.x == 0;
    place.east_wall = periodic_x ? -1 : grid.nx - 1 - place.x;
    place.north_wall = periodic_y ? -1 : grid.ny - 1 - place.y;
    // The row beside the end of the box is the row itself, which the warp has published too.
    place.south = !periodic_y && place.y == 0 ? slot : last + max(warp - 1, 0) * WARP + lane;
    place.north = place.north_wall == ROWS - 1 ? last + slot : min(warp + 1, WARPS - 1) * WARP + lane;

    const bool in_y = place.y + ROWS > 0 && place.y < grid.ny;
    place.at_side = place.west_wall || (unsigned)place.east_wall < VECTOR ||
                    (in_y && !periodic_y && (place.y == 0 || place.north_wall < ROWS));

    const bool owned = lane >= HALO_LANES && lane < WARP - HALO_LANES && place.x < grid.nx;
    const bool owned_rows = warp * ROWS >= HALO_ROWS && warp * ROWS < WARPS * ROWS - HALO_ROWS;
    place.owned = 0;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (owned && owned_rows && place.y + r < grid.ny) place.owned |= 1u << r;
        place.row[r] = (unsigned)into(place.y + r, grid.ny, periodic_y) * grid.nx;
    }
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
#if COLUMNS_FIT  // whole vectors stay whole
        place.column[i] = (periodic_x ? into(place.x, grid.nx, true) : max(0, min(place.x, grid.nx - VECTOR))) + i;
#else
        place.column[i] = into(place.x + i, grid.nx, periodic_x);
#endif
    }
    return place;
}

__device__ __forceinline__ Patch load_patch(const Real* plane, const Place& place)
{
    Patch patch;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#if COLUMNS_FIT
        patch.row[r] = load(plane + (place.row[r] + place.column[0]));
#else
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) patch.row[r].at[i] = plane[place.row[r] + place.column[i]];
#endif
    }
    return patch;
}

__device__ __forceinline__ void store_patch(Real* plane, const Grid& grid, const Place& place, const Patch& patch)
{
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (!(place.owned >> r & 1)) continue;
#if COLUMNS_FIT
        store(plane + (place.row[r] + place.column[0]), patch.row[r]);
#else
#pragma unroll
        for (int i = 0; i < VECTOR; ++i)
            if (place.x + i < grid.nx) plane[place.row[r] + place.column[i]] = patch.row[r].at[i];
#endif
    }
}

// A stage's sums up to the plane above.
__device__ __forceinline__ Patch sum_before_above(const Coefficients& c, const Place& place, const Edges& edges,
                                                  const Patch& T, const Patch& below)
{
    const Cells south_edge = edges.of[place.south], north_edge = edges.of[place.north];
    Patch sum;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const Cells& here = T.row[r];
        const Cells& south = r == 0 ? south_edge : T.row[r - 1];
        const Cells& north = r == ROWS - 1 ? north_edge : T.row[r + 1];
        Real beside_west = __shfl_up_sync(ALL_LANES, here.at[VECTOR - 1], 1);
        const Real beside_east = __shfl_down_sync(ALL_LANES, here.at[0], 1);
        if (place.west_wall) beside_west = here.at[0];
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            const Real west = i == 0 ? beside_west : here.at[i - 1];
            Real east = i == VECTOR - 1 ? beside_east : here.at[i + 1];
            // Where rows and columns fill whole patches, only a patch's last can be the last of the box.
            if ((!COLUMNS_FIT || i == VECTOR - 1) && i == place.east_wall) east = here.at[i];
            Real to_north = north.at[i];
            if (!ROWS_FIT && r < ROWS - 1 && r == place.north_wall) to_north = here.at[i];
            sum.row[r].at[i] = sum_before_above(c, here.at[i], west, east, south.at[i], to_north, below.row[r].at[i]);
        }
    }
    return sum;
}

// The heat through the faces that a patch of plane z touches. Halo cells need it for their values, their owner enters it.
__device__ __forceinline__ void add_faces(const Grid& grid, const Place& place, const Sweep* sweep, const Ledger& ledger,
                                          int z, bool owned_plane, const Patch& T, Patch& sum)
{
    const size_t nx = grid.nx, ny = grid.ny;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int y = place.y + r;
        const bool owned_row = owned_plane && (place.owned >> r & 1);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            const int x = place.x + i;
            const bool owned = owned_row && x < grid.nx;
            const Real here = T.row[r].at[i];
            Real& total = sum.row[r].at[i];
            if (i == 0 && place.west_wall) total += face_heat(sweep, ledger, 0, z * ny + y, here, owned);
            if ((!COLUMNS_FIT || i == VECTOR - 1) && i == place.east_wall)
                total += face_heat(sweep, ledger, 1, z * ny + y, here, owned);
            if (y == 0)             total += face_heat(sweep, ledger, 2, z * nx + x, here, owned);
            if (y == grid.ny - 1)   total += face_heat(sweep, ledger, 3, z * nx + x, here, owned);
            if (z == 0)             total += face_heat(sweep, ledger, 4, y * nx + x, here, owned);
            if (z == grid.nz - 1)   total += face_heat(sweep, ledger, 5, y * nx + x, here, owned);
        }
    }
}

// One iteration: plane p arrives, each stage makes one plane older, plane p - STEPS comes out. On return the planes have
// changed roles: what was below holds the new centre.
__device__ __forceinline__ Patch advance_pipeline(const Grid& grid, const Coefficients& c, const Sweep* sweep,
                                                  const Ledger& ledger, const Place& place, int p, int z_begin, int z_end,
                                                  const Edges* published, Edges* publish,
                                                  Patch (&centre)[STEPS], Patch (&below)[STEPS], const Patch& arriving)
{
    const bool periodic_z = grid.periodic & 4;
    const int slot = threadIdx.y * WARP + threadIdx.x;

    if (p - 1 == 0 && !periodic_z) below[0] = centre[0];
    Patch sum = sum_before_above(c, place, published[0], centre[0], below[0]);
    Patch above = arriving;
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
        const int z = p - 1 - s;  // of the centre plane

        // 1. Publish what has arrived at this stage; it will be the centre of the next iteration.
        publish[s].of[slot] = above.row[0];
        publish[s].of[WARPS * WARP + slot] = above.row[ROWS - 1];

        // 2. The next stage's sum needs the plane below, whose registers take what this stage makes.
        Patch next_sum;
        if (s + 1 < STEPS) {
            if (z - 1 == 0 && !periodic_z) below[s + 1] = centre[s + 1];  // no plane below the first
            next_sum = sum_before_above(c, place, published[s + 1], centre[s + 1], below[s + 1]);
        }

        // 3. Finish this stage.
        below[s] = above;
        if (z == grid.nz - 1 && !periodic_z) above = centre[s];  // no plane above the last
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
            for (int i = 0; i < VECTOR; ++i)
                sum.row[r].at[i] = add_above(c, centre[s].row[r].at[i], above.row[r].at[i], sum.row[r].at[i]);
        if (place.at_side || (!periodic_z && (z == 0 || z == grid.nz - 1)))  // most warps skip this
            add_faces(grid, place, sweep + s, ledger, z, z >= z_begin && z < z_end, centre[s], sum);
#if SCHEME != SEVEN_TERM
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
            for (int i = 0; i < VECTOR; ++i)
                sum.row[r].at[i] = finish(sweep + s, place.column[i], place.row[r] / grid.nx, into(z, grid.nz, periodic_z),
                                          centre[s].row[r].at[i], sum.row[r].at[i]);
#endif
        above = sum;
        if (s + 1 < STEPS) sum = next_sum;
    }
    __syncthreads();  // what was published is read in the next iteration, and overwritten in the one after it
    return above;
}

extern "C" __global__ void __launch_bounds__(WARP * WARPS, 1)
advance(const Real* __restrict__ T, Real* __restrict__ T_new, const Grid grid, const Coefficients c,
        const Sweep* __restrict__ sweep, const Ledger ledger)
{
    extern __shared__ Edges edges[];
    const Place place = find_place(grid);
    const bool periodic_z = grid.periodic & 4;
    const int z_begin = grid.first_z + blockIdx.z * grid.planes, z_end = min(z_begin + grid.planes, grid.nz);
    const size_t plane = (size_t)grid.nx * grid.ny;
    Edges* const even = edges;
    Edges* const odd = edges + STEPS;

    // The pipeline starts with whatever is in it: STEPS planes before the first one written, all that has not come from
    // memory is gone.
    Patch a[STEPS] = {}, b[STEPS] = {};
    Patch arriving = load_patch(T + into(z_begin - STEPS, grid.nz, periodic_z) * plane, place);
    for (int p = z_begin - STEPS; p < z_end + STEPS; p += 2) {
        const Patch next = load_patch(T + into(p + 1, grid.nz, periodic_z) * plane, place);
        Patch done = advance_pipeline(grid, c, sweep, ledger, place, p, z_begin, z_end, even, odd, a, b, arriving);
        if (p - STEPS >= z_begin && p - STEPS < z_end) store_patch(T_new + (p - STEPS) * plane, grid, place, done);

        arriving = load_patch(T + into(p + 2, grid.nz, periodic_z) * plane, place);
        done = advance_pipeline(grid, c, sweep, ledger, place, p + 1, z_begin, z_end, odd, even, b, a, next);
        if (p + 1 - STEPS >= z_begin && p + 1 - STEPS < z_end)
            store_patch(T_new + (p + 1 - STEPS) * plane, grid, place, done);
    }
}
