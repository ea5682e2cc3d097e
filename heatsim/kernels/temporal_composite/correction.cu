// The correction of 07 for composite bodies: steps boxes of cells again, STEPS steps deep, from the field before the sweep.
//
// 07 steps every patch as if it were of one type and at no face. correction.py covers the cells that this makes wrong, along
// interfaces and faces, with boxes. A block takes one box after the other, with a halo of STEPS cells (none at an end of the
// grid), into shared memory and does STEPS steps there without other blocks. Each step makes one more layer of the halo
// invalid; after the last step exactly the box is valid. Boxes are as long and wide as shared memory allows, and as thin as the
// wrong region, so that the halo stays small.
//
//        0 0 0 0 0 0 0 0 0 0      plain vectors: a thread marches along z with its column
//        0 1 1 1 1 1 1 1 1 0
//        0 1 2 a a b b 2 1 0      vectors whose cells all have the same neighbours of another type, as along an interface
//        0 1 2 a a b b 2 1 0      across y or z: the same, with other coefficients
//        0 1 2 2 2 2 2 2 1 0
//        0 1 1 1 1 1 1 1 1 0      other cells: the marches skip them; one thread per cell updates them from a list that is built
//                                 once for all sweeps. "Pairs" meet one other type: three coefficients of their own type and
//                                 three of the pair suffice. Faces, and corners between more types, take the general code.
//
// One byte per vector, its info, tells the coefficients of its cells and which of them are on the list. One thread updates each
// cell, so a step needs one barrier. A thread has the same pairs in all steps and keeps their entries in registers.
//
//        buffer A   [ box 0 | step 1 ... | box 1 arrives ]    the last step writes from B to the grid; meanwhile the
//        buffer B   [       | step 0 ... | last step     ]    next box is copied to A
//
// In float32 two blocks share a multiprocessor: one works while the other waits. In float64 the boxes would be too small.
//
// Expected: limited by latency within each step. Instructions, shared memory and loads would each take less than half of the
// time alone. With boxes of 8 x 20 x 20 cells, 3.9 values are loaded per needed cell, and 2.1 updated per needed cell and step.

#include "temporal_composite/correction_box.cuh"

#define BLOCKS (sizeof(Real) == 4 ? 2 : 1)  // per multiprocessor
#define KEPT (sizeof(Real) == 4 ? 4 : 3)  // pairs per thread; correction.py lists further ones among the others

// An entry. Bits 0 to 15: index of the cell in the box. 16 to 21: directions in which the neighbour is of another type. 22: the
// box owns the cell. 23: its types are not in the box's list. 24 to 27: place of its type in that list. 28 to 31: of the other.
#define PLACE 0xFFFFu
#define OWNED (1u << 22)
#define UNLISTED (1u << 23)

// An info. Low bits: which cells of the vector are on the list of entries. Above them: the place of the vector's stencil.
#define MASK ((1u << VECTOR) - 1u)
#define STENCIL_SHIFT 4

// The same number, opaque to the compiler: values derived from it are recomputed and take no registers.
__device__ __forceinline__ unsigned int afresh(unsigned int number)
{
    asm volatile("" : "+r"(number));
    return number;
}

// The coefficients of a cell whose neighbours are of its own type or, in the directions `differing`, of one other type.
__device__ __forceinline__ Coefficients pair_coefficients(const Coefficients& c, int cell_type, int other, unsigned int differing)
{
    Coefficients own = inner_coefficients(c, cell_type);
#if MATERIALS
    const int axis = c.cell_types.count * c.cell_types.count;
    const Real* const links = c.cell_types.links + cell_type * c.cell_types.count + other;
    const Real across_x = links[0], across_y = links[axis], across_z = links[2 * axis];
    if (differing & 1) own.c1 = across_x;
    if (differing & 2) own.c2 = across_x;
    if (differing & 4) own.c3 = across_y;
    if (differing & 8) own.c4 = across_y;
    if (differing & 16) own.c5 = across_z;
    if (differing & 32) own.c6 = across_z;
#endif
    return own;
}

// Coefficients and heat of cells with one stencil of the box's list.
struct __align__(16) Stencil {
    Real c1, c2, c3, c4, c5, c6, unused[2];
#if HEATED
    Real heat[STEPS];
#endif
};

// Fills the stencils of a box from its list, one thread per entry.
__device__ __forceinline__ void look_up(const Coefficients& c, const StepData* sweep, const Box& box, Stencil* stencils)
{
    const int n = threadIdx.x;
    if (n >= LISTED) return;
    const unsigned int stencil = box.stencils[n], cell_type = stencil & 0xFFu;
    const Coefficients own = pair_coefficients(c, cell_type, stencil >> 8 & 0xFFu, stencil >> 16);
    Stencil& found = stencils[n];
    found.c1 = own.c1;
    found.c2 = own.c2;
    found.c3 = own.c3;
    found.c4 = own.c4;
    found.c5 = own.c5;
    found.c6 = own.c6;
#if HEATED
#pragma unroll
    for (int s = 0; s < STEPS; ++s) found.heat[s] = source_heat(c.cell_types, sweep + s, cell_type);
#endif
}

// The type of the cell at a position, which may lie outside the grid: as neighbour().
__device__ __forceinline__ int type_at(const Grid& grid, const CellTypes& cell_types, int x, int y, int z)
{
    return cell_types.cells[cell_index(grid, neighbour_x(grid, x), neighbour_y(grid, y), neighbour_z(grid, z))] & ~INTERIOR;
}

// The new values of a vector whose cells have the same stencil; `west` and `east` are the values next to it.
__device__ __forceinline__ Cells update_alike(const Coefficients& c, const StepData* sweep, int s,
                                              const Stencil& stencil, const Cells& T, Real west, Real east, const Cells& south,
                                              const Cells& north, const Cells& below, const Cells& above)
{
#if MATERIALS
    const Coefficients own = {Real(0), stencil.c1, stencil.c2, stencil.c3, stencil.c4, stencil.c5, stencil.c6, {}};
#else
    const Coefficients& own = c;
#endif
    Cells sum;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
        sum.at[i] = neighbour_sum(own, T.at[i], i == 0 ? west : T.at[i - 1], i == VECTOR - 1 ? east : T.at[i + 1], south.at[i],
                                  north.at[i], below.at[i], above.at[i]);
#if HEATED
        sum.at[i] = stencil.heat[s] + sum.at[i];
#endif
        sum.at[i] = finish(sweep + s, T.at[i], sum.at[i]);
    }
    return sum;
}

// Stores the cells of a vector that are not on the list of entries.
__device__ __forceinline__ void put(Real* target, unsigned int info, const Cells& cells)
{
    if ((info & MASK) == 0) store(target, cells);
    else {
#pragma unroll
        for (int i = 0; i < VECTOR; ++i)
            if (!(info >> i & 1u)) target[i] = cells.at[i];
    }
}

// Loads the entries of the thread's pairs.
__device__ __forceinline__ void keep(const Grid& grid, const Box& box, unsigned int (&kept)[KEPT])
{
    const unsigned int* const entries = reinterpret_cast<const unsigned int*>(grid.segments) + box.entries;
    const int last = box.pairs[0] - 1;
#pragma unroll
    for (int k = 0; k < KEPT; ++k) kept[k] = last < 0 ? 0 : entries[min((int)threadIdx.x + k * THREADS, last)];
}

static_assert(STEPS >= 4, "the next box needs four steps: number, description, stencils, values");
static_assert(STEPS % 2 == 0, "the last step must leave buffer A free for the next box");

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
advance(const Real* __restrict__ T, Real* __restrict__ T_new, const Grid grid, const Coefficients c,
        const StepData* __restrict__ sweep, const Ledger ledger)
{
    extern __shared__ Cells memory[];
    const CellTypes& cell_types = c.cell_types;
    const size_t grid_plane = (unsigned)grid.nx * grid.ny;
    Work* const work = work_of(grid);
    const Box* const boxes = reinterpret_cast<const Box*>(work + 1);
    const int n_boxes = work->boxes, vectors = work->vectors;
    Portion* const both_infos = reinterpret_cast<Portion*>(memory + 2 * vectors);
    const int portions = vectors / (int)sizeof(Portion);
    Box* const both_boxes = reinterpret_cast<Box*>(both_infos + 2 * portions);
    Stencil* const both_stencils = reinterpret_cast<Stencil*>(both_boxes + 2);
    int* const taken = reinterpret_cast<int*>(both_stencils + 2 * LISTED);

    // 1. The first box.
    unsigned int kept[KEPT];
    fetch_box(boxes + blockIdx.x, both_boxes);
    fetch(T, grid, boxes[blockIdx.x], memory, both_infos);
    commit_copies();
    keep(grid, boxes[blockIdx.x], kept);
    look_up(c, sweep, boxes[blockIdx.x], both_stencils);

#pragma unroll 1
    for (int buffer = 0;; buffer ^= 1) {
        const Box &box = both_boxes[buffer], &next_box = both_boxes[buffer ^ 1];
        const Stencil* const stencils = both_stencils + buffer * LISTED;
        const unsigned char* const infos = reinterpret_cast<const unsigned char*>(both_infos + buffer * portions);
        wait_for_copies<0>();
        __syncthreads();

        const int row = box.x.all / VECTOR, plane = box.plane;
        const int steps[6] = {-1, 1, -row * VECTOR, row * VECTOR, -plane * VECTOR, plane * VECTOR};  // to the neighbours
        const auto spot = [&](int place) {
            const int vector = place / VECTOR, bz = quotient(vector, box.by_plane);
            const int by = quotient(vector - bz * plane, box.by_row);
            const int bx = place - (bz * plane + by * row) * VECTOR;
            return Spot{in_grid(box.x, grid.nx, bx), in_grid(box.y, grid.ny, by), in_grid(box.z, grid.nz, bz)};
        };
        int next = 0;
#pragma unroll 1
        for (int s = 0; s < STEPS; ++s) {
            const Cells* const from = memory + (s & 1 ? vectors : 0);
            Cells* const to = memory + (s & 1 ? 0 : vectors);
            const int pairs = box.pairs[s];

            // 2. Prepare the next box: step 0 takes its number, step 1 copies its description, step 2 looks up its stencils, the
            //    last step copies its values into the free buffer.
            if (s == 0 && threadIdx.x == 0) next = take_box(work);
            if (s > 0 && *taken >= 0) {
                if (s == 1) fetch_box(boxes + *taken, both_boxes + (buffer ^ 1));
                if (s == 2) look_up(c, sweep, next_box, both_stencils + (buffer ^ 1) * LISTED);
                if (s == STEPS - 1) fetch(T, grid, next_box, to, both_infos + (buffer ^ 1) * portions);
            }
            commit_copies();

            // 3. Update whole vectors.
            const Reach& reach = box.reach[s];
#pragma unroll 1
            for (int number = threadIdx.x; number < reach.marches; number += THREADS) {
                const March march = march_of(reach, number);
                const int lane = march.lane, by = march.row;
                const int to_west = lane > 0 ? -1 : 0, to_east = lane < row - 1 ? VECTOR : VECTOR - 1;
                const int to_south = by > 0 ? -row : 0, to_north = by < box.y.all - 1 ? row : 0;
                const int at = march.begin * plane + by * row + lane;
                const Cells* here = from + at;
                const unsigned char* info_at = infos + at;
                // All cells that the box owns lie in the grid.
                Real* target = T_new + cell_of(grid, box.x.start + lane * VECTOR, box.y.start + by, box.z.start + march.begin);
                Cells below = march.begin > 0 ? here[-plane] : here[0], current = here[0];
#pragma unroll 2
                for (int bz = march.begin; bz < march.end; ++bz, here += plane, info_at += plane, target += grid_plane) {
                    const Cells above = here[bz < box.z.all - 1 ? plane : 0];
                    const unsigned int info = *info_at;
                    if ((info & MASK) != MASK) {
                        const Cells updated = update_alike(c, sweep, s, stencils[info >> STENCIL_SHIFT], current,
                                                           here->at[to_west], here->at[to_east], here[to_south],
                                                           here[to_north], below, above);
                        if (s < STEPS - 1) put(const_cast<Cells*>(here)[to - from].at, info, updated);
                        else put(target, info, updated);
                    }
                    below = current;
                    current = above;
                }
            }

            // 4. Update the pairs: cells next to one other type.
            const Real* const before = from[0].at;
            Real* const after = to[0].at;
#pragma unroll
            for (int k = 0; k < KEPT; ++k) {
                if ((int)threadIdx.x + k * THREADS >= pairs) break;
                const unsigned int entry = afresh(kept[k]);
                const int place = entry & PLACE, cell_type = box.stencils[entry >> 24 & 15u] & 0xFFu;
                const Coefficients own = pair_coefficients(c, cell_type, box.stencils[entry >> 28] & 0xFFu, entry >> 16);
                const Real* const at = before + place;
                Real value = neighbour_sum(own, at[0], at[steps[0]], at[steps[1]], at[steps[2]], at[steps[3]], at[steps[4]],
                                           at[steps[5]]);
#if HEATED
                value = source_heat(cell_types, sweep + s, cell_type) + value;
#endif
                value = finish(sweep + s, at[0], value);
                if (s < STEPS - 1) {
                    after[place] = value;
                } else {
                    const Spot here = spot(place);
                    T_new[cell_of(grid, here.x, here.y, here.z)] = value;
                }
            }

            // 5. Update all other cells. The box that owns a cell records its heat.
            const unsigned int* const others = reinterpret_cast<const unsigned int*>(grid.segments) + box.entries + box.pairs[0];
#pragma unroll 1
            for (int i = threadIdx.x; i < box.others; i += THREADS) {
                const unsigned int entry = others[i];
                if (s == STEPS - 1 && !(entry & OWNED)) continue;
                const int place = entry & PLACE;
                const Spot here = spot(place);
                const unsigned int at_end = touched_faces(grid, here.x, here.y, here.z);
                int cell_type = box.stencils[entry >> 24 & 15u] & 0xFFu;
                const int other = box.stencils[entry >> 28] & 0xFFu;
                Real values[6];
                int beside[6];
#pragma unroll
                for (int d = 0; d < 6; ++d) {
                    values[d] = before[at_end >> d & 1u ? place : place + steps[d]];
                    beside[d] = entry >> (16 + d) & 1u ? other : cell_type;
                }
                if (entry & UNLISTED) {
                    cell_type = type_at(grid, cell_types, here.x, here.y, here.z);
#pragma unroll
                    for (int d = 0; d < 6; ++d)
                        beside[d] = type_at(grid, cell_types, here.x + (d == 1) - (d == 0), here.y + (d == 3) - (d == 2),
                                            here.z + (d == 5) - (d == 4));
                }
                const Real value = update_among(grid, c, sweep + s, ledger, here.x, here.y, here.z, cell_type, beside,
                                                before[place], values, entry & OWNED);
                if (s < STEPS - 1) after[place] = value;
                else T_new[cell_of(grid, here.x, here.y, here.z)] = value;
            }
            if (s == 0 && threadIdx.x == 0) *taken = next < n_boxes ? next : -1;
            if (s < STEPS - 1) {
                wait_for_copies<0>();
                __syncthreads();
            }
        }
        if (*taken < 0) break;
        keep(grid, next_box, kept);
    }
    leave(work);
}
