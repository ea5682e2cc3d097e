// The mending of 07: where it was wrong, boxes of cells are stepped anew, STEPS steps deep, from the field before the sweep.
//
// 07 steps every patch as if it were of one kind and at no face. mending.py lays boxes over the cells that this makes wrong,
// along interfaces and faces. A block takes one box and a halo of STEPS cells into shared memory, none where the box ends with
// the grid, and does STEPS steps there on its own; of each step one more layer of the halo is wrong, and after the last the box
// is right. Boxes are as long and wide as shared memory allows and as thin as what they mend, so that the halo stays small.
//
//        0 0 0 0 0 0 0 0 0 0      plain cells: whole vectors, a thread marches along z with its column and the coefficients
//        0 1 1 1 1 1 1 1 1 0      of its kind in registers
//        0 1 2 a a b b 2 1 0
//        0 1 2 a a b b 2 1 0      cells beside another kind, or at a face: made anew after the plain ones, one a thread, from
//        0 1 2 2 2 2 2 2 1 0      a list that is made once for all sweeps. Where two kinds meet, three coefficients of a cell's
//        0 1 1 1 1 1 1 1 1 0      own kind and three of the pair do; faces and corners between more kinds take the long way.
//
// A thread has the same pairs in all steps and keeps their entries in registers. Two blocks share a multiprocessor: one loads
// while the other steps.
//
// Expected: limited by what a box waits for, memory first and then one step after the other; with boxes of 8 x 24 x 24 cells
// 3.6 values are loaded and 1.8 made for each that is needed.

#include "vector.cuh"

#define THREADS TILE_X
#define HALO_X ((STEPS + VECTOR - 1) / VECTOR * VECTOR)
#define KEPT (sizeof(Real) == 4 ? 4 : 3)  // pairs of a thread; mending.py puts what is beyond that among the others

// A box, as mending.py lays it out: its first cell, how many it has, and where in the table its entries are.
struct Segment {
    int x, y, z, size_x, size_y, size_z;
    int entries, others, pairs[STEPS];  // the first; how many are others, how many pairs before them each step needs
};

// One axis of a box: where the halo begins in the grid, its cells before the box, those of the box, all.
struct Extent {
    int start, before, size, all, n;
    bool periodic;
};

__device__ __forceinline__ Extent extent(int start, int size, int n, bool periodic, int halo)
{
    const int before = periodic ? halo : min(halo, start);
    const int behind = periodic ? halo : min(halo, n - start - size);
    return {start - before, before, size, before + size + behind, n, periodic};
}

// Where position i of an extent is in the grid. A halo goes round a periodic axis once at the most: no such axis is shorter.
__device__ __forceinline__ int in_grid(const Extent& axis, int i)
{
    const int place = axis.start + i;
    return (unsigned)place < (unsigned)axis.n ? place : place < 0 ? place + axis.n : place - axis.n;
}

// Whether position i is the grid's first or last, beyond which there is nothing.
__device__ __forceinline__ bool first(const Extent& axis, int i) { return !axis.periodic && axis.start + i == 0; }
__device__ __forceinline__ bool last(const Extent& axis, int i) { return !axis.periodic && axis.start + i == axis.n - 1; }

// What is needed `more` steps before the last: positions from low to high - 1.
__device__ __forceinline__ int low(const Extent& axis, int more) { return max(axis.before - more, 0); }
__device__ __forceinline__ int high(const Extent& axis, int more) { return min(axis.before + axis.size + more, axis.all); }

// Division by a number that stays the same, of numbers up to 2^16: the half keeps a quotient that is whole from ending below.
struct Divisor {
    float inverse;
};

__device__ __forceinline__ Divisor divisor(int by) { return {__fdividef(1.0f, (float)by)}; }

__device__ __forceinline__ int quotient(int i, const Divisor& d) { return (int)(((float)i + 0.5f) * d.inverse); }

// What plain cells of a kind need.
__device__ __forceinline__ Own plain_own(const Coefficients& c, const Sweep* sweep, int kind)
{
    Own own = own_of(c, sweep, kind);
#if !HEATED
    own.heat = -Real(0);
#endif
    return own;
}

// The same number, of which the compiler does not see that it stays the same: what follows from it is to take no registers.
__device__ __forceinline__ unsigned int afresh(unsigned int number)
{
    asm volatile("" : "+r"(number));
    return number;
}

// As cell_index(), where a plane has less than 2^32 cells.
__device__ __forceinline__ size_t cell_of(const Grid& grid, int x, int y, int z)
{
    return (size_t)(unsigned)z * ((unsigned)grid.nx * grid.ny) + ((unsigned)y * grid.nx + x);
}

// A cell's place in the box, and in the grid.
struct Spot {
    int bx, by, bz, x, y, z;
};

// The coefficients of a cell whose neighbours are of its kind or, in the directions `differing`, of one other.
__device__ __forceinline__ Coefficients pair_coefficients(const Coefficients& c, int kind, int other, unsigned int differing)
{
    Coefficients own = inner_coefficients(c, kind);
#if MATERIALS
    const int axis = c.medium.kinds * c.medium.kinds;
    const Real* const links = c.medium.links + kind * c.medium.kinds + other;
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

// An entry: the cell's place in the box in bits 0 to 15, in which directions its neighbour is of another kind in bits 16 to 21,
// whether the box owns it in bit 22, that kind in bits 24 to 31.
#define PLACE 0xFFFFu
#define OWNED (1u << 22)

extern "C" __global__ void __launch_bounds__(THREADS, 2)
advance(const Real* __restrict__ T, Real* __restrict__ T_new, const Grid grid, const Coefficients c,
        const Sweep* __restrict__ sweep, const Ledger ledger)
{
    extern __shared__ Cells memory[];
    const Medium& medium = c.medium;
    const Segment box = grid.segments[blockIdx.x];
    const Extent ex = extent(box.x, box.size_x, grid.nx, grid.periodic & 1, HALO_X);
    const Extent ey = extent(box.y, box.size_y, grid.ny, grid.periodic & 2, STEPS);
    const Extent ez = extent(box.z, box.size_z, grid.nz, grid.periodic & 4, STEPS);
    // Planes are an odd number of vectors apart: cells above each other lie in different banks.
    const int row = ex.all / VECTOR, in_plane = row * ey.all, plane = in_plane | 1, vectors = plane * ez.all;
    const Divisor by_row = divisor(row), by_plane = divisor(plane);
    Bytes* const kinds = reinterpret_cast<Bytes*>(memory + 2 * vectors);
    const unsigned char* const kind_of = reinterpret_cast<const unsigned char*>(kinds);
    const unsigned int* const entries = reinterpret_cast<const unsigned int*>(grid.segments) + box.entries;
    const int steps[6] = {-1, 1, -row * VECTOR, row * VECTOR, -plane * VECTOR, plane * VECTOR};  // to the neighbours, in cells
    const auto spot = [&](int place) {
        const int vector = place / VECTOR, bz = quotient(vector, by_plane), by = quotient(vector - bz * plane, by_row);
        const int bx = place - (bz * plane + by * row) * VECTOR;
        return Spot{bx, by, bz, in_grid(ex, bx), in_grid(ey, by), in_grid(ez, bz)};
    };

    // 1. All cells of the box and its halo, and what the thread will have to do with pairs.
    const Divisor by_in_plane = divisor(in_plane);
    const int parts = max(quotient(THREADS, by_in_plane), 1);
    const Divisor by_parts = divisor(parts);
    const size_t grid_plane = (unsigned)grid.nx * grid.ny;
#pragma unroll 1
    for (int march = threadIdx.x; march < in_plane * parts; march += THREADS) {
        const int part = quotient(march, by_in_plane), column = march - part * in_plane;
        const int by = quotient(column, by_row), lane = column - by * row;
        const int begin = quotient(ez.all * part, by_parts), end = quotient(ez.all * (part + 1), by_parts);
        int z = in_grid(ez, begin);
        size_t cell = cell_of(grid, in_grid(ex, lane * VECTOR), in_grid(ey, by), z);
#pragma unroll 2
        for (int at = begin * plane + column; at < end * plane; at += plane) {
            copy_async<sizeof(Cells)>(memory + at, T + cell);
#if MATERIALS && VECTOR == 4
            copy_async<4>(kinds + at, medium.cells + cell);
#else
            kinds[at] = load_kinds(medium, cell);
#endif
            cell += grid_plane;
            if (++z == grid.nz) {
                z = 0;
                cell -= grid.nz * grid_plane;
            }
        }
    }
    commit_copies();
    unsigned int kept[KEPT];
#pragma unroll
    for (int k = 0; k < KEPT; ++k)
        kept[k] = box.pairs[0] ? entries[min((int)threadIdx.x + k * THREADS, box.pairs[0] - 1)] : 0;
    wait_for_copies<0>();
    __syncthreads();

#pragma unroll 1
    for (int s = 0; s < STEPS; ++s) {
        const Cells* const from = memory + (s & 1 ? vectors : 0);
        Cells* const to = memory + (s & 1 ? 0 : vectors);
        const int more = STEPS - 1 - s;  // steps after this one
        const int pairs = grid.segments[blockIdx.x].pairs[s];

        // 2. Vectors, as if all cells were plain. Where a plane has fewer than the block has threads, several share a column.
        const int first_lane = low(ex, more) / VECTOR, lanes = (high(ex, more) + VECTOR - 1) / VECTOR - first_lane;
        const int first_row = low(ey, more), columns = lanes * (high(ey, more) - first_row);
        const int first_plane = low(ez, more), planes = high(ez, more) - first_plane;
        const Divisor by_lanes = divisor(lanes), by_columns = divisor(columns);
        const int marches = max(quotient(THREADS, by_columns), 1);
        const Divisor by_marches = divisor(marches);
#pragma unroll 1
        for (int march = threadIdx.x; march < columns * marches; march += THREADS) {
            const int part = quotient(march, by_columns), column = march - part * columns;
            const int line = quotient(column, by_lanes), by = first_row + line, lane = first_lane + column - line * lanes;
            const int begin = first_plane + quotient(planes * part, by_marches);
            const int end = first_plane + quotient(planes * (part + 1), by_marches);
            if (begin >= end) continue;
            const int to_west = lane > 0 ? -1 : 0, to_east = lane < row - 1 ? VECTOR : VECTOR - 1;
            const int to_south = by > 0 ? -row : 0, to_north = by < ey.all - 1 ? row : 0;
            const int at = begin * plane + by * row + lane;
            const Cells* here = from + at;
            const Bytes* bytes = kinds + at;
            Cells below = begin > 0 ? here[-plane] : here[0], current = here[0];
            Own own = plain_own(c, sweep + s, first_kind(*bytes));
#pragma unroll 2
            for (int bz = begin; bz < end; ++bz, here += plane, bytes += plane) {
                const Cells above = here[bz < ez.all - 1 ? plane : 0];
                const Real west = here->at[to_west], east = here->at[to_east];
                const int kind = first_kind(*bytes);
                if (kind != own.kind) own = plain_own(c, sweep + s, kind);
                const int x = in_grid(ex, lane * VECTOR), y = in_grid(ey, by), z = in_grid(ez, bz);
                const Cells updated = update_plain(c, sweep + s, x, y, z, own, current, west, east, here[to_south],
                                                   here[to_north], below, above);
                if (s < STEPS - 1) const_cast<Cells*>(here)[to - from] = updated;
                else store(T_new + cell_of(grid, x, y, z), updated);
                below = current;
                current = above;
            }
        }
        __syncthreads();  // what follows overwrites some

        // 3. Cells where two kinds meet.
        const Real* const before = from[0].at;
        Real* const after = to[0].at;
#pragma unroll
        for (int k = 0; k < KEPT; ++k) {
            if ((int)threadIdx.x + k * THREADS >= pairs) break;
            const unsigned int entry = afresh(kept[k]);
            const int place = entry & PLACE, kind = kind_of[place] & ~INTERIOR;
            const Coefficients own = pair_coefficients(c, kind, entry >> 24, entry >> 16);
            const Real* const at = before + place;
            Real value = neighbour_sum(own, at[0], at[steps[0]], at[steps[1]], at[steps[2]], at[steps[3]], at[steps[4]],
                                       at[steps[5]]);
#if HEATED
            value = source_heat(medium, sweep + s, kind) + value;
#endif
            const Spot here = spot(place);
            value = finish(sweep + s, here.x, here.y, here.z, at[0], value);
            if (s < STEPS - 1) after[place] = value;
            else T_new[cell_of(grid, here.x, here.y, here.z)] = value;
        }

        // 4. All others. Heat is entered by the box that owns the cell.
#pragma unroll 1
        for (int i = threadIdx.x; i < box.others; i += THREADS) {
            const unsigned int entry = entries[box.pairs[0] + i];
            if (s == STEPS - 1 && !(entry & OWNED)) continue;
            const int place = entry & PLACE;
            const Spot here = spot(place);
            const bool at_end[6] = {first(ex, here.bx), last(ex, here.bx), first(ey, here.by),
                                    last(ey, here.by),  first(ez, here.bz), last(ez, here.bz)};
            Real values[6];
            int beside[6];
#pragma unroll
            for (int d = 0; d < 6; ++d) {
                const int neighbour = at_end[d] ? place : place + steps[d];
                values[d] = before[neighbour];
                beside[d] = kind_of[neighbour] & ~INTERIOR;
            }
            const Real value = update_among(grid, c, sweep + s, ledger, here.x, here.y, here.z, kind_of[place] & ~INTERIOR,
                                            beside, before[place], values, entry & OWNED);
            if (s < STEPS - 1) after[place] = value;
            else T_new[cell_of(grid, here.x, here.y, here.z)] = value;
        }
        __syncthreads();
    }
}
