// The boxes of temporal_composite/correction.cu: their layout in the table that correction.py writes, and their copy to shared
// memory.
//
//     table      [ work | boxes | infos | entries ]       a box stores where its infos and entries begin
//
//     box        x  . . h h h h # # # # # # # # h h h h . .        # box, h halo; both are stored: `all`
//                       |       |                                  before = 4; `start` is the grid position of the first h
//                       0       before
//
// A step is divided into marches: a thread takes a column of vectors, or a part of one, along z.

#include "vector.cuh"

#define THREADS BLOCK_X
#define LISTED 16  // stencils of a box: of plain cells, and of pairs of adjacent types with directions

// One axis of a box: grid position where its halo begins; cells of the halo before the box, of the box, and of both with the
// halo after it.
struct Extent {
    int start, before, size, all;
};

// The vectors of a box that a step updates, divided into marches.
struct __align__(16) Reach {
    int first_lane, first_row, first_plane, planes;
    int lanes, columns, marches, length;  // vectors in x; vectors of a plane; number of marches; planes of a march
    float by_lanes, by_columns;           // reciprocals, for quotient()
};

struct __align__(16) Box {
    Extent x, y, z;
    int plane;                  // vectors from one plane to the next: odd, so that cells above each other use different banks
    int entries, infos;         // where its entries begin in the table, in 4-byte words; its infos, in portions
    int others, pairs[STEPS];   // number of other cells; number of pairs, listed before them, that each step updates
    float by_row, by_plane;     // reciprocals of the vectors in a row and in a plane
    unsigned int stencils[LISTED];  // bits 0 to 7: own type; 8 to 15: neighbour's type; 16 to 21: directions of that neighbour
    Reach reach[STEPS + 1];     // of each step; of the whole box with halo
};

// The start of the table. A launch uses its counters, so launches with the same table must not overlap.
struct __align__(16) Work {
    int boxes, vectors;  // number of boxes; vectors that a buffer holds, a multiple of a portion's infos
    int taken, left;     // boxes taken after the first one of each block; blocks that have finished
};

__device__ __forceinline__ Work* work_of(const Grid& grid)
{
    return reinterpret_cast<Work*>(const_cast<Segment*>(grid.segments));
}

// The number of the next free box; beyond the last if none is left.
__device__ __forceinline__ int take_box(Work* work) { return gridDim.x + atomicAdd(&work->taken, 1); }

// The last block resets the counters for the next launch.
__device__ __forceinline__ void leave(Work* work)
{
    if (threadIdx.x == 0 && atomicAdd(&work->left, 1) == (int)gridDim.x - 1) work->taken = work->left = 0;
}

// 16 bytes, the unit of asynchronous copies.
struct __align__(16) Portion {
    unsigned int words[4];
};

// The grid position of position i of an extent, on an axis of n cells. A halo wraps around a periodic axis at most once: no such
// axis is shorter than the halo.
__device__ __forceinline__ int in_grid(const Extent& axis, int n, int i)
{
    const int place = axis.start + i;
    return (unsigned)place < (unsigned)n ? place : place < 0 ? place + n : place - n;
}

// i / n for i < 2^16, with inverse = 1 / n. The half prevents a whole quotient from being rounded down.
__device__ __forceinline__ int quotient(int i, float inverse) { return (int)(((float)i + 0.5f) * inverse); }

// A march of a reach: lane, row, planes begin ... end - 1.
struct March {
    int lane, row, begin, end;
};

__device__ __forceinline__ March march_of(const Reach& reach, int number)
{
    const int part = quotient(number, reach.by_columns), column = number - part * reach.columns;
    const int line = quotient(column, reach.by_lanes), begin = part * reach.length;
    return {reach.first_lane + column - line * reach.lanes, reach.first_row + line, reach.first_plane + begin,
            reach.first_plane + min(begin + reach.length, reach.planes)};
}

// cell_index() for planes of less than 2^32 cells.
__device__ __forceinline__ size_t cell_of(const Grid& grid, int x, int y, int z)
{
    return (size_t)(unsigned)z * ((unsigned)grid.nx * grid.ny) + ((unsigned)y * grid.nx + x);
}

// A cell's position in the grid.
struct Spot {
    int x, y, z;
};

// Starts the copy of a box's description to shared memory.
__device__ __forceinline__ void fetch_box(const Box* from, Box* to)
{
    if (threadIdx.x < sizeof(Box) / sizeof(Portion))
        copy_async<16>(reinterpret_cast<Portion*>(to) + threadIdx.x, reinterpret_cast<const Portion*>(from) + threadIdx.x);
}

// Starts the copy of the values of a box with its halo, and of the infos of its vectors, to shared memory.
__device__ __forceinline__ void fetch(const Real* T, const Grid& grid, const Box& box, Cells* values, Portion* infos)
{
    const Reach& all = box.reach[STEPS];
    const int plane = box.plane;
    const size_t grid_plane = (unsigned)grid.nx * grid.ny;
#pragma unroll 1
    for (int number = threadIdx.x; number < all.marches; number += THREADS) {
        const March march = march_of(all, number);
        int z = in_grid(box.z, grid.nz, march.begin);
        size_t cell = cell_of(grid, in_grid(box.x, grid.nx, march.lane * VECTOR), in_grid(box.y, grid.ny, march.row), z);
        const int column = march.row * all.lanes + march.lane;
#pragma unroll 2
        for (int at = march.begin * plane + column; at < march.end * plane; at += plane) {
            copy_async<sizeof(Cells)>(values + at, T + cell);
            cell += grid_plane;
            if (++z == grid.nz) {
                z = 0;
                cell -= grid.nz * grid_plane;
            }
        }
    }
    const Portion* const from = reinterpret_cast<const Portion*>(grid.segments) + box.infos;
    const int portions = (plane * box.z.all + (int)sizeof(Portion) - 1) / (int)sizeof(Portion);
#pragma unroll 1
    for (int i = threadIdx.x; i < portions; i += THREADS) copy_async<16>(infos + i, from + i);
}
