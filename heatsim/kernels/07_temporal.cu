// 07 temporal: STEPS time steps in one sweep. A block moves planes along z through a pipeline of stages; stage s holds the
// field after s steps and advances it by one step. Memory is read once and written once for STEPS steps.
//
// In the iteration in which plane p arrives (after 0 steps),
//
//        stage 0    advances plane p - 1 from 0 to 1 steps; the plane above it has just arrived
//        stage 1    advances plane p - 2 from 1 to 2 steps; the plane above it has just left stage 0
//        ...
//        stage S-1  advances plane p - S from S-1 to S steps and writes it to memory
//
// A stage keeps two planes in registers: the centre, whose x and y neighbours it needs, and sums begun with the plane below, of
// which a thread needs only its own cells. Stage 0 reads its centre from the shared memory it was copied to. The plane above
// comes from the previous stage. The centre was computed one iteration ago, and its edges were published then, so one barrier
// per iteration serves all stages. A warp arrives at the barrier when it has read and published everything, before the end of
// its last stage, and waits after it.
//
// A thread owns a patch of VECTOR cells in x and ROWS in y. `lanes` patches, at most 32, lie in one row, so x neighbours come by
// shuffle. Of the y neighbours, only those of a patch's first and last row come from shared memory.
//
//        |<--------------- lanes * VECTOR cells ------------>|
//        h h h h h h h h h h h h h h h h h h h h h h h h h h h   halo: each step makes one more layer of it invalid
//        h  +---------------------------------------------+  h
//        h  |  cells that the block writes                |  h   first row of a patch: published for the patch south
//        h  |                                             |  h   last row of a patch: published for the patch north
//        h  +---------------------------------------------+  h
//        h h h h h h h h h h h h h h h h h h h h h h h h h h h   no halo where the tile ends with the box
//
// tiling.py divides the work into segments: a tile and a range of planes. There is one block per multiprocessor, and each does
// several segments, so that all finish together. Adjacent blocks climb together, so that each finds in L2 the halo that the
// other has read.
//
// Traffic: 2 sizeof(Real) / STEPS bytes per cell and step, plus the halo. With 4 steps and tiles of 128 x 32 cells, 1.42 times
// the cells are computed, with 13 operations per cell and step. Expected: float32 limited by memory, float64 by arithmetic.
//
// Grids: at least STEPS + 1 planes, and whole patches along x and y if an axis is shorter than a tile. Other grids are
// stepped one step at a time.
//
// Composite bodies (FACES): every patch is stepped as if it were of its first cell's type and at no face
// (temporal_composite/pipeline.cuh). The cells that this makes wrong within STEPS steps are stepped again by
// temporal_composite/correction.cu, which also records the heat through faces.
//
// Registers and code size decide the speed. Every live value besides the planes costs warps, and a loop larger than the
// instruction cache stalls them. So an iteration is compiled once for each type of tile, and planes change roles by register
// moves, which cost less than the unrolled loop that would avoid them.

#include "vector.cuh"
#if MEMBERS
#include "ensemble/members.cuh"
#endif

#define WARPS BLOCK_Y
#define THREADS (WARP * WARPS)
// Whether a stage starts before the previous one has ended. For composite bodies this pays only in float64.
#define EARLY (!(FACES && VECTOR == 4))
#define AHEAD 2          // planes being copied from memory
#define ROOMS (AHEAD + 2)  // buffers for those, the plane that arrives, and the centre of stage 0
#define LANES_LEAST 8
#if MEMBERS
#define PIPELINE_LEDGER shared.ledger  // there are no registers for it
#else
#define PIPELINE_LEDGER ledger
#endif
// The coefficients of stage s. Those of several sweeps are in constant memory, from which an instruction takes them without a
// vector register. The members of an ensemble have different ones: they are in shared memory, and are loaded at their use.
#if STAGE_TABLE
__constant__ Stage stage_table[STAGE_TABLE];
#define OF_STAGE(s) of_stage(stage_table[grid.first_stage + s])
#elif OWN_COEFFICIENTS
#define OF_STAGE(s) of_stage(shared.stages[s])
#else
#define OF_STAGE(s) c
#endif
#define BORDER(lanes) (2 * (THREADS / (lanes) * ROWS + (lanes) * VECTOR))  // cells along the four sides of a tile
#define LONGEST_BORDER BORDER(LANES_LEAST)
static_assert(LONGEST_BORDER >= BORDER(WARP), "the widest tile has a longer border");
static_assert(LONGEST_BORDER <= 256 * VECTOR && 2 * (THREADS / LANES_LEAST) <= 256, "a place in the border has a byte");

// A tile and its range of planes, from tiling.py. The block writes the cells from `begin` to `end` - 1 along each axis.
struct Segment {
    int x, y, lanes;  // first cell of the tile, which may be in the halo and outside the box; width in patches
    int x_begin, x_end, y_begin, y_end, z_begin, z_end;
    int sides;        // bits 0 to 3: the tile touches x_min, x_max, y_min, y_max; higher bits: its member of the ensemble
};

struct Patch {
    Cells row[ROWS];
};

// The cells of a patch beside a face in x.
struct __align__(ROWS % 4 ? sizeof(Real) : 16) Column {
    Real at[ROWS];
};

struct FaceTerm {
    Real f, g;
};

// Shared memory of a block. Heat is kept here until the barrier; then consecutive threads add it to the ledger. The heat of
// stage s is in [..][s]. The border of a tile lists the cells at x_min, at x_max, at y_min and at y_max, in this order.
struct Shared {
    Cells edges[2][STEPS - 1][2][THREADS];  // first and last rows of the centres of stages 1, 2, ...; of two iterations
    Cells fetched[ROOMS][ROWS][THREADS];    // whole planes for stage 0
    Real side_heat[2][STEPS][LONGEST_BORDER];
    Cells end_heat[ROWS][THREADS];
    int side_sums[LONGEST_BORDER];          // 4 * position in a row of the face + face; -1 if the cell is not recorded
    FaceTerm terms[STEPS][6];
#if OWN_COEFFICIENTS && !STAGE_TABLE
    Stage stages[STEPS];
#endif
#if OWN_FACTORS
    Real factor[STEPS];
#endif
    unsigned long long barrier;
    Segment segment;
#if MEMBERS
    Ledger ledger;
#endif
};

// A thread's patch: where it is, and what is done with it.
struct Place {
    unsigned int start;  // index of its first cell in a plane, wrapped or clamped into the box
    int south, north;    // offsets of the adjacent patches, in bytes, in an array with one vector per thread
    unsigned int flags;  // FIRST_COLUMN ...; bits 4 to 7: rows to write; byte 1: index in the border of the patch's column at
                         // a face in x, in columns; byte 2: of its row at a face in y, in vectors
};

enum Flags { FIRST_COLUMN = 1, LAST_COLUMN = 2, FIRST_ROW = 4, LAST_ROW = 8, WRITTEN = 16, RECORDED = 1 << 24 };

// What an iteration handles: faces in x and y, with the bits of a segment's `sides`; Z: the ends of the box in z or, where z is
// periodic, the return of the source to plane 0.
enum Boundaries { NONE = 0, X_MIN = 1, X_MAX = 2, Y_MIN = 4, Y_MAX = 8, Z = 16, X = X_MIN | X_MAX, Y = Y_MIN | Y_MAX };

// Index of the thread's patch in the tile. In ensembles values derived from it are recomputed in every iteration: the
// coefficients need the registers.
__device__ __forceinline__ int own_slot()
{
    const int slot = threadIdx.y * WARP + threadIdx.x;
    return MEMBERS ? in_register(slot) : slot;
}

// A split barrier: a thread arrives early and waits late. Its phases alternate between even and odd. Before sm_90 both are one
// __syncthreads() at wait().
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ __forceinline__ void start_barrier(Shared& shared)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"((unsigned int)__cvta_generic_to_shared(&shared.barrier)),
                 "n"(THREADS)
                 : "memory");
}

__device__ __forceinline__ void arrive(Shared& shared)
{
    asm volatile("{.reg .b64 state; mbarrier.arrive.shared.b64 state, [%0];}" ::"r"(
                     (unsigned int)__cvta_generic_to_shared(&shared.barrier))
                 : "memory");
}

__device__ __forceinline__ void wait(Shared& shared, int phase)
{
    asm volatile("{\n.reg .pred done;\n"
                 "AGAIN: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
                 "@!done bra AGAIN;\n}" ::"r"((unsigned int)__cvta_generic_to_shared(&shared.barrier)),
                 "r"(phase & 1)
                 : "memory");
}
#else
__device__ __forceinline__ void start_barrier(Shared&) {}
__device__ __forceinline__ void arrive(Shared&) {}
__device__ __forceinline__ void wait(Shared&, int) { __syncthreads(); }
#endif

// Position i of a periodic axis of n cells, wrapped into the box.
__device__ __forceinline__ int into(int i, int n)
{
    i %= n;
    return i < 0 ? i + n : i;
}

__device__ __forceinline__ Place find_place(const Grid& grid, const Ledger& ledger, const Segment& segment)
{
    const int slot = threadIdx.y * WARP + threadIdx.x, lanes = segment.lanes;
    const int column = slot % lanes * VECTOR, row = slot / lanes * ROWS;
    const bool periodic_x = grid.periodic & 1, periodic_y = grid.periodic & 2;
    const int x = segment.x + column, y = segment.y + row;
    // A patch that begins inside the box but does not end there lies outside the halo.
    const int x_box = min(periodic_x ? into(x, grid.nx) : x, grid.nx - VECTOR);
    const int y_box = min(periodic_y ? into(y, grid.ny) : y, grid.ny - ROWS);
    Place place;
    place.start = (unsigned)y_box * grid.nx + x_box;
    place.south = max(slot - lanes, 0) * sizeof(Cells);
    place.north = min(slot + lanes, THREADS - 1) * sizeof(Cells);
    const bool last_column = !periodic_x && x + VECTOR == grid.nx, last_row = !periodic_y && y + ROWS == grid.ny;
    const int width = lanes * VECTOR, height = THREADS / lanes * ROWS;
    const int beside_x = row + (last_column ? height : 0), beside_y = 2 * height + column + (last_row ? width : 0);
    place.flags = (unsigned)(beside_x / ROWS) << 8 | (unsigned)(beside_y / VECTOR) << 16;
    if (!periodic_x && x == 0) place.flags |= FIRST_COLUMN;
    if (last_column) place.flags |= LAST_COLUMN;
    if (!periodic_y && y == 0) place.flags |= FIRST_ROW;
    if (last_row) place.flags |= LAST_ROW;
    // Two tiles may both write a patch on the border between them; the bits are the same.
    if (x + VECTOR > segment.x_begin && x < segment.x_end)
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            if (y + r >= segment.y_begin && y + r < segment.y_end) place.flags |= WRITTEN << r;
#if !FACES
    for (int face = 0; face < 6; ++face)
        if (ledger.face[face]) place.flags |= RECORDED;
#endif
    return place;
}

#include "temporal_composite/pipeline.cuh"

struct __align__(sizeof(Real) * ACCESS) Run {
    Real at[ACCESS];
};

// The addresses of a thread's patch in the field that is read and in the one that is written. For the next plane, the size of a
// plane is added to them.
struct Cursor {
    const char* source;  // the patch's first cell in the plane that is copied next
    char* target;        // the same in the plane that is written next
    int first_written;   // the first iteration that writes a plane
};

__device__ __forceinline__ size_t plane_bytes(const Grid& grid) { return (size_t)((unsigned)grid.nx * grid.ny) * sizeof(Real); }

// Bytes from the patch's first cell to cell i of its row r.
__device__ __forceinline__ size_t offset_in_patch(const Grid& grid, int r, int i)
{
    return (size_t)r * (unsigned)(grid.nx * sizeof(Real)) + i * sizeof(Real);
}

// `p`: the plane that is copied first; where z is periodic, it may be negative.
__device__ __forceinline__ Cursor start_cursor(const Real* T, Real* T_new, const Grid& grid, const Place& place,
                                               const Segment& segment, int p)
{
    const int first = grid.periodic & 4 ? into(p, grid.nz) : p;
    return {reinterpret_cast<const char*>(T + place.start) + first * plane_bytes(grid),
            reinterpret_cast<char*>(T_new + place.start) + segment.z_begin * plane_bytes(grid), segment.z_begin + STEPS};
}

// Starts the copy of this thread's patch of plane z, and moves the source to the next plane. After the last plane of the box it
// stays there. Where z is periodic, it returns to plane 0, but only in iterations that handle Z.
template <int boundaries>
__device__ __forceinline__ void fetch_patch(Cells (&target)[ROWS][THREADS], Cursor& cursor, const Grid& grid, int z)
{
    const int slot = own_slot();
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int i = 0; i < VECTOR; i += ACCESS)
            copy_async_lasting<ACCESS * sizeof(Real)>(target[r][slot].at + i, cursor.source + offset_in_patch(grid, r, i));
    commit_copies();
    const bool wraps = boundaries & Z && grid.periodic & 4;
    if (wraps && (z + 1) % grid.nz == 0) cursor.source -= (grid.nz - 1) * plane_bytes(grid);
    else if (wraps || z + 1 < grid.nz) cursor.source += plane_bytes(grid);
}

// Writes this thread's patch, and moves the target to the next plane.
__device__ __forceinline__ void store_patch(Cursor& cursor, const Grid& grid, const Place& place, const Patch& patch)
{
    const unsigned int flags = in_register(place.flags);  // else each bit is kept in a register through all iterations
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        if (flags & WRITTEN << r)
#pragma unroll
            for (int i = 0; i < VECTOR; i += ACCESS)
                *reinterpret_cast<Run*>(cursor.target + offset_in_patch(grid, r, i)) =
                    *reinterpret_cast<const Run*>(patch.row[r].at + i);
    cursor.target += plane_bytes(grid);
}

// The vector that begins `bytes` after the first.
__device__ __forceinline__ Cells at_bytes(const Cells* cells, int bytes)
{
    return *reinterpret_cast<const Cells*>(reinterpret_cast<const char*>(cells) + bytes);
}

// A stage's sums without the term of the plane above.
template <int boundaries>
__device__ __forceinline__ Patch sum_before_above(const Coefficients& c, const Place& place, const Cells* first_rows,
                                                  const Cells* last_rows, const Patch& T, const Patch& begun)
{
    Cells south_edge = at_bytes(last_rows, place.south), north_edge = at_bytes(first_rows, place.north);
    // At the end of the box a cell is its own neighbour.
    if (boundaries & Y_MIN && place.flags & FIRST_ROW) south_edge = T.row[0];
    if (boundaries & Y_MAX && place.flags & LAST_ROW) north_edge = T.row[ROWS - 1];
    Patch sum;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const Cells here = T.row[r];
        const Cells south = r == 0 ? south_edge : T.row[r == 0 ? 0 : r - 1];
        const Cells north = r == ROWS - 1 ? north_edge : T.row[r == ROWS - 1 ? r : r + 1];
        Real beside_west = __shfl_up_sync(ALL_LANES, here.at[VECTOR - 1], 1);
        Real beside_east = __shfl_down_sync(ALL_LANES, here.at[0], 1);
        if (boundaries & X_MIN && place.flags & FIRST_COLUMN) beside_west = here.at[0];
        if (boundaries & X_MAX && place.flags & LAST_COLUMN) beside_east = here.at[VECTOR - 1];
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            const Real west = i == 0 ? beside_west : here.at[i - 1];
            const Real east = i == VECTOR - 1 ? beside_east : here.at[i + 1];
            sum.row[r].at[i] = sum_before_above(c, here.at[i], west, east, south.at[i], north.at[i], begun.row[r].at[i]);
        }
    }
    return sum;
}

#if !FACES
#include "faces_pipeline.cuh"
#endif

// The sums of a plane, begun with the term of the plane below.
__device__ __forceinline__ Patch begin_sums(const Coefficients& c, const Patch& below)
{
    Patch begun;
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) begun.row[r].at[i] = begin_sum(c, below.row[r].at[i]);
    return begun;
}

// The sums of stage s for its centre, plane p - 1 - s, without the term of the plane above. Then begins the sums of that plane.
template <int boundaries>
__device__ __forceinline__ Patch begin_stage(const Grid& grid, const Coefficients& c, const Shared& shared, const Place& place,
                                             int p, int s, const Patch& centre, Patch& begun)
{
    const int room = p - 1 & (ROOMS - 1), half = p & 1;
    const Cells* const first_rows = s == 0 ? shared.fetched[room][0] : shared.edges[half][s == 0 ? 0 : s - 1][0];
    const Cells* const last_rows = s == 0 ? shared.fetched[room][ROWS - 1] : shared.edges[half][s == 0 ? 0 : s - 1][1];
    if (boundaries & Z && !(grid.periodic & 4) && p - 1 - s == 0) begun = begin_sums(c, centre);  // no plane below the first
    const Patch sum = sum_before_above<boundaries>(c, place, first_rows, last_rows, centre, begun);
    begun = begin_sums(c, centre);
    return sum;
}

// One iteration: plane p arrives, each stage advances one plane, plane p - STEPS is written to memory.
template <int boundaries>
__device__ __forceinline__ void advance_pipeline(Cursor& cursor, const Grid& grid, const Coefficients& all,
                                                 const Ledger& ledger, Shared& shared, const Place& place, int p,
                                                 Patch (&centre)[STEPS], Patch (&begun)[STEPS], const StepData* sweep,
                                                 PatchType& own)
{
    const bool ends_in_z = boundaries & Z && !(grid.periodic & 4);
    const int slot = threadIdx.y * WARP + threadIdx.x, half = p & 1, room = p & (ROOMS - 1);

    // 1. Start the copy of plane p + AHEAD; wait for plane p, whose copy started AHEAD iterations ago.
    fetch_patch<boundaries>(shared.fetched[room + AHEAD & (ROOMS - 1)], cursor, grid, p + AHEAD);
    wait_for_copies<AHEAD>();
#if FACES
    const unsigned int arriving = own.byte;
    own.byte = arriving_byte(all.cell_types, grid, place, p + 1);
    const Coefficients c = coefficients_of(all, own);
#elif !OWN_COEFFICIENTS
    const Coefficients& c = all;
#endif
    Patch above;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) above.row[r] = shared.fetched[room][r][slot];

    // Stage 0 reads its centre from shared memory.
#pragma unroll
    for (int r = 0; r < ROWS; ++r) centre[0].row[r] = shared.fetched[p - 1 & (ROOMS - 1)][r][slot];

#if EARLY
    Patch next_sum = begin_stage<boundaries>(grid, OF_STAGE(0), shared, place, p, 0, centre[0], begun[0]);
#endif
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
        const int z = p - 1 - s;  // of the centre plane

        // 2. Publish the edges of the plane that has arrived at this stage: the centre of the next iteration.
        if (s > 0) {
            shared.edges[1 - half][s - 1][0][slot] = above.row[0];
            shared.edges[1 - half][s - 1][1][slot] = above.row[ROWS - 1];
        }

        // 3. Start the next stage, so that its loads overlap the end of this one. After the last start, all shared data of
        // this iteration have been read: arrive at the barrier.
        const Patch& T_here = centre[s];
#if !EARLY
        Patch sum = begin_stage<boundaries>(grid, OF_STAGE(s), shared, place, p, s, T_here, begun[s]);
        if (s + 1 == STEPS && boundaries == NONE) arrive(shared);
#else
        Patch sum = next_sum;
        if (s + 1 < STEPS)
            next_sum = begin_stage<boundaries>(grid, OF_STAGE(s + 1), shared, place, p, s + 1, centre[s + 1], begun[s + 1]);
        else if (boundaries == NONE) arrive(shared);
#endif

        // 4. The stage's new values.
        const bool top = ends_in_z && z == grid.nz - 1;  // no plane above the last
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) {
                const Real T_above = top ? T_here.row[r].at[i] : above.row[r].at[i];
                sum.row[r].at[i] = add_above(OF_STAGE(s), T_here.row[r].at[i], T_above, sum.row[r].at[i]);
            }
#if FACES
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) sum.row[r].at[i] = source_of(own, s) + sum.row[r].at[i];
#else
        add_sides<boundaries>(shared, place.flags, half, s, T_here, sum);
        if (ends_in_z && (z == 0 || z == grid.nz - 1)) add_end(shared, shared.terms[s][z == 0 ? 4 : 5], T_here, sum);
#endif
#if SCHEME != SEVEN_TERM
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
            for (int i = 0; i < VECTOR; ++i)
#if OWN_FACTORS
                sum.row[r].at[i] = multiply_add(shared.factor[s], sum.row[r].at[i], T_here.row[r].at[i]);
#else
                sum.row[r].at[i] = T_here.row[r].at[i] + sum.row[r].at[i];
#endif
#endif

        // 5. The planes change roles.
        if (s > 0) centre[s] = above;
        above = sum;
    }

    if (p >= cursor.first_written) store_patch(cursor, grid, place, above);
#if FACES
    change_type(own, all, sweep, arriving);
#endif
    if (boundaries != NONE) arrive(shared);  // only now: other threads record this thread's heat
    wait(shared, p);  // edges are read in the next iteration and overwritten in the one after it
#if !FACES
    if (place.flags & RECORDED) {
        enter_sides<boundaries>(shared, grid, ledger, half, p);
        if (ends_in_z) enter_end(shared, grid, ledger, p);
    }
#endif
}

// Copies the data of each step that the block needs.
__device__ __forceinline__ void copy_sweep(Shared& shared, const StepData* sweep, int slot)
{
#if !FACES
    if (slot < STEPS * 6) shared.terms[slot / 6][slot % 6] = {sweep[slot / 6].f[slot % 6], sweep[slot / 6].g[slot % 6]};
#endif
#if OWN_COEFFICIENTS && !STAGE_TABLE
    if (slot < STEPS) shared.stages[slot] = sweep[slot].stage;
#endif
#if OWN_FACTORS
    if (slot < STEPS) shared.factor[slot] = sweep[slot].factor;
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
#if MEMBERS
advance(const Member* __restrict__ members, const unsigned int* __restrict__ done, const unsigned int number,
        const EnsembleGrid grid)
#else
advance(const Real* __restrict__ T, Real* __restrict__ T_new, const Grid grid, const Coefficients c,
        const StepData* __restrict__ sweep, const Ledger ledger)
#endif
{
    extern __shared__ char memory[];
    Shared& shared = *reinterpret_cast<Shared*>(memory);
    const int slot = threadIdx.y * WARP + threadIdx.x;
#if !MEMBERS
    copy_sweep(shared, sweep, slot);
#endif
    if (slot == 0) start_barrier(shared);
    int phase = 0;

#pragma unroll 1
    for (int i = 0; i < grid.planes; ++i) {
        __syncthreads();  // all threads are done with the previous segment
        const Segment& next = grid.segments[blockIdx.x * grid.planes + i];
        if (slot < (int)(sizeof(Segment) / sizeof(int)))
            reinterpret_cast<int*>(&shared.segment)[slot] = reinterpret_cast<const int*>(&next)[slot];
#if MEMBERS
        const Member& member = members[next.sides >> 4];
        const unsigned int sweep_number = *done + number;
        const bool has_work = sweep_number < member.count;
        const StepData* __restrict__ sweep = sweeps_of(member, sweep_number);
        if (has_work) copy_sweep(shared, sweep, slot);
        if (slot == 0) shared.ledger = member.ledger;
#endif
        __syncthreads();
        const int z_begin = shared.segment.z_begin, z_end = shared.segment.z_end, sides = shared.segment.sides;
        if (z_begin >= z_end) break;
#if MEMBERS
        if (!has_work) continue;
        const Real* __restrict__ T = field_before(member, sweep_number);
        Real* __restrict__ T_new = field_after(member, sweep_number);
        const Coefficients c = member.c;
        const Ledger& ledger = member.ledger;
#endif
        const Place place = find_place(grid, ledger, shared.segment);
#if !FACES
        find_side_sums(shared, ledger);
#endif

        // The pipeline starts with arbitrary contents, STEPS planes below the first plane that it writes. When it writes that
        // plane, these contents have no effect any more. If the box begins less than STEPS planes below, the pipeline starts at
        // plane 0, which has no plane below.
        const bool periodic_z = grid.periodic & 4;
        int p = periodic_z ? z_begin - STEPS : max(z_begin - STEPS, 0);
        if (p - phase & 1) {  // the phase of the barrier is even if p is even
            arrive(shared);
            wait(shared, phase);
        }
        Cursor cursor = start_cursor(T, T_new, grid, place, shared.segment, p);
        Patch centre[STEPS] = {}, begun[STEPS] = {};
        PatchType own = {};
#if FACES
        own.byte = arriving_byte(c.cell_types, grid, place, p);
#endif
#pragma unroll 1
        for (int ahead = 0; ahead < AHEAD; ++ahead)
            fetch_patch<Z>(shared.fetched[p + ahead & (ROOMS - 1)], cursor, grid, p + ahead);

        // Most iterations need no boundary, or those of one axis. An iteration handles all boundaries if the centre of some
        // stage is the first or last plane of the box or, where z is periodic, if the source may return to plane 0.
        const int inner_begin = periodic_z ? -AHEAD : STEPS + 1;
        const int inner_end = min(z_end + STEPS, periodic_z ? grid.nz - AHEAD - 1 : grid.nz);
        const bool edge = (sides & X && sides & Y) || (sides & Y) == Y;
        while (p < shared.segment.z_end + STEPS) {  // from there, because no register is free
            if (p < inner_begin || p >= inner_end) {
                advance_pipeline<X | Y | Z>(cursor, grid, c, PIPELINE_LEDGER, shared, place, p, centre, begun, sweep, own);
                ++p;
            } else if (edge) {
#pragma unroll 1
                for (; p < inner_end; ++p)
                    advance_pipeline<X | Y>(cursor, grid, c, PIPELINE_LEDGER, shared, place, p, centre, begun, sweep, own);
            } else if ((sides & X) == X_MIN) {
#pragma unroll 1
                for (; p < inner_end; ++p)
                    advance_pipeline<X_MIN>(cursor, grid, c, PIPELINE_LEDGER, shared, place, p, centre, begun, sweep, own);
            } else if ((sides & X) == X_MAX) {
#pragma unroll 1
                for (; p < inner_end; ++p)
                    advance_pipeline<X_MAX>(cursor, grid, c, PIPELINE_LEDGER, shared, place, p, centre, begun, sweep, own);
            } else if (sides & X) {
#pragma unroll 1
                for (; p < inner_end; ++p)
                    advance_pipeline<X>(cursor, grid, c, PIPELINE_LEDGER, shared, place, p, centre, begun, sweep, own);
            } else if (sides & Y_MIN) {
#pragma unroll 1
                for (; p < inner_end; ++p)
                    advance_pipeline<Y_MIN>(cursor, grid, c, PIPELINE_LEDGER, shared, place, p, centre, begun, sweep, own);
            } else if (sides & Y_MAX) {
#pragma unroll 1
                for (; p < inner_end; ++p)
                    advance_pipeline<Y_MAX>(cursor, grid, c, PIPELINE_LEDGER, shared, place, p, centre, begun, sweep, own);
            } else {
#pragma unroll 1
                for (; p < inner_end; ++p)
                    advance_pipeline<NONE>(cursor, grid, c, PIPELINE_LEDGER, shared, place, p, centre, begun, sweep, own);
            }
        }
        phase = p;
        wait_for_copies<0>();  // unused planes: the next segment needs their buffers
    }
}
