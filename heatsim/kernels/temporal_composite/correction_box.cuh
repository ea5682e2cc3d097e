// The boxes of temporal_composite/correction.cu: how mending.py describes one, and how it comes into shared memory.
//
//     table      [ work | boxes | infos | entries ]       a box says where in it its infos and entries begin
//
//     box        x  . . h h h h # # # # # # # # h h h h . .        # the box, h its halo; both are stored: `all`
//                       |       |                                  before = 4; start is where h begins in the grid
//                       0       before
//
// A step is dealt out in marches: a column of vectors, or a part of one, that a thread takes along z.

#include "vector.cuh"

#define THREADS TILE_X
#define LISTED 16  // kinds, and ways for two of them to meet, that a box lists

// One axis of a box: where its halo begins in the grid, cells of the halo before the box, those of the box, all.
struct Extent {
    int start, before, size, all;
};

// The vectors of a box that a step makes, and how they are dealt out.
struct __align__(16) Reach {
    int first_lane, first_row, first_plane, planes;
    int lanes, columns, marches, length;  // in x; of a plane; of all; planes of a march
    float by_lanes, by_columns;           // what to multiply with to divide by them
};

struct __align__(16) Box {
    Extent x, y, z;
    int plane;                  // vectors from one plane to the next: odd, so that cells above each other lie in different banks
    int entries, infos;         // where in the table its entries begin, in numbers, and its infos, in portions
    int others, pairs[STEPS];   // how many are others, how many pairs before them each step needs
    float by_row, by_plane;     // what to multiply with to divide by a row's vectors and a plane's
    unsigned int ways[LISTED];  // a kind in bits 0 to 7, another in bits 8 to 15, in which directions that is in bits 16 to 21
    Reach reach[STEPS + 1];     // of the steps; of all
};

// What the table begins with. Launches count in it: those of one table come one after the other.
struct __align__(16) Work {
    int boxes, vectors;  // how many there are; how many vectors a buffer has room for, whole portions of infos
    int taken, left;     // boxes that were taken after the first of each block; blocks that are done
};

__device__ __forceinline__ Work* work_of(const Grid& grid)
{
    return reinterpret_cast<Work*>(const_cast<Segment*>(grid.segments));
}

// The number of a box that nobody has taken, or one beyond the last.
__device__ __forceinline__ int take_box(Work* work) { return gridDim.x + atomicAdd(&work->taken, 1); }

// The last block to leave makes all ready for the next launch.
__device__ __forceinline__ void leave(Work* work)
{
    if (threadIdx.x == 0 && atomicAdd(&work->left, 1) == (int)gridDim.x - 1) work->taken = work->left = 0;
}

// What is copied at once.
struct __align__(16) Portion {
    unsigned int words[4];
};

// Where position i of an extent is in an axis of n cells. A halo goes round a periodic axis once at the most: no such axis is
// shorter.
__device__ __forceinline__ int in_grid(const Extent& axis, int n, int i)
{
    const int place = axis.start + i;
    return (unsigned)place < (unsigned)n ? place : place < 0 ? place + n : place - n;
}

// Division of numbers up to 2^16 by the inverse: the half keeps a quotient that is whole from ending below.
__device__ __forceinline__ int quotient(int i, float inverse) { return (int)(((float)i + 0.5f) * inverse); }

// A march of a reach: its lane and row, the planes from begin to end - 1.
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

// As cell_index(), where a plane has less than 2^32 cells.
__device__ __forceinline__ size_t cell_of(const Grid& grid, int x, int y, int z)
{
    return (size_t)(unsigned)z * ((unsigned)grid.nx * grid.ny) + ((unsigned)y * grid.nx + x);
}

// A cell's place in the grid.
struct Spot {
    int x, y, z;
};

// Has what is known of a box brought to shared memory.
__device__ __forceinline__ void fetch_box(const Box* from, Box* to)
{
    if (threadIdx.x < sizeof(Box) / sizeof(Portion))
        copy_async<16>(reinterpret_cast<Portion*>(to) + threadIdx.x, reinterpret_cast<const Portion*>(from) + threadIdx.x);
}

// Has the values of a box and its halo, and the infos of its vectors, brought to shared memory.
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
