// 08 boxed: the tile of 02, STEPS steps deep. A block takes a box of cells and a halo STEPS thick into shared memory and
// does STEPS steps there on its own; of each step one more layer of the halo is wrong, and after the last the box is right.
//
//        |<------------ SIZE_X ------------>|
//        h h h h h h h h h h h h h h h h h h h      step 1 makes all of this but the outermost layer,
//        h 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 h      step 2 all but the two outermost, ...
//        h 1 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 1 h
//        h 1 2 +-----------------------+ 2 1 h
//        h 1 2 | cells that it writes  | 2 1 h      (along x whole vectors are made in every step)
//        h 1 2 +-----------------------+ 2 1 h
//
// It is for grids that are small: where all blocks run at once and all data lie in L2, a step takes what a launch takes, one
// or two microseconds, and the time to fetch the first cell. Both are paid once for STEPS steps, for which 07, whose planes
// queue up behind each other, is too slow to start. The price is the halo: with boxes of 16 x 16 x 8 cells and 4 steps each
// cell is loaded 4.5 times, from L2, and made 2.5 times. Expected: limited by shared memory, 4.5 values a cell that is made.
//
// Any grid, and as many turns round a periodic axis as the halo reaches.

#include "vector.cuh"

#define THREADS TILE_X
#define HALO_X ((STEPS + VECTOR - 1) / VECTOR * VECTOR)
#define SIZE_X (BOX_X + 2 * HALO_X)
#define SIZE_Y (BOX_Y + 2 * STEPS)
#define SIZE_Z (BOX_Z + 2 * STEPS)
#define ROW (SIZE_X / VECTOR)  // vectors of a row, and of a plane
#define PLANE (ROW * SIZE_Y)
// Threads march along z, a vector each; where a plane has fewer vectors than the block has threads, several share a column.
#define MARCHES (THREADS > PLANE ? THREADS / PLANE : 1)

// Where position i of an axis of n cells is in the grid: round and round where the axis is periodic, else where it is.
__device__ __forceinline__ int in_grid(int i, int n, bool periodic)
{
    if (!periodic) return i;
    i %= n;
    return i < 0 ? i + n : i;
}

__device__ __forceinline__ bool inside(int i, int n) { return (unsigned)i < (unsigned)n; }

__device__ __forceinline__ void
advance_block(const Real* T, Real* T_new, const Grid& grid, const Coefficients& c,
              const Sweep* sweep, const Ledger& ledger, const Block block)
{
    extern __shared__ Cells boxes[];  // the field before a step, and after it
    const bool periodic_x = grid.periodic & 1, periodic_y = grid.periodic & 2, periodic_z = grid.periodic & 4;
    const int first_x = (int)block.x * BOX_X - HALO_X;
    const int first_y = grid.first_y + (int)block.y * BOX_Y - STEPS;
    const int first_z = grid.first_z + (int)block.z * BOX_Z - STEPS;

    // 1. All cells of the box that there are.
#pragma unroll 4
    for (int i = threadIdx.x; i < PLANE * SIZE_Z; i += THREADS) {
        const int x = in_grid(first_x + i % ROW * VECTOR, grid.nx, periodic_x);
        const int y = in_grid(first_y + i / ROW % SIZE_Y, grid.ny, periodic_y);
        const int z = in_grid(first_z + i / PLANE, grid.nz, periodic_z);
        if (inside(x, grid.nx) && inside(y, grid.ny) && inside(z, grid.nz))
            copy_async<sizeof(Cells)>(boxes + i, T + cell_index(grid, x, y, z));
    }
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();

#pragma unroll 1
    for (int s = 0; s < STEPS; ++s) {
        const Cells* const before = boxes + s % 2 * (PLANE * SIZE_Z);
        Cells* const after = boxes + (s + 1) % 2 * (PLANE * SIZE_Z);

        // 2. Planes that are still right after this step, and are in the grid; each march takes its share of them.
        int low = s + 1, high = SIZE_Z - 1 - s;
        if (!periodic_z) {
            low = max(low, -first_z);
            high = min(high, grid.nz - first_z);
        }

#pragma unroll 1
        for (int march = threadIdx.x; march < PLANE * MARCHES; march += THREADS) {
            const int column = march % PLANE, part = march / PLANE;
            const int begin = low + (high - low) * part / MARCHES, end = low + (high - low) * (part + 1) / MARCHES;
            const int lane = column % ROW, row = column / ROW;
            const int x = in_grid(first_x + lane * VECTOR, grid.nx, periodic_x);
            const int y = in_grid(first_y + row, grid.ny, periodic_y);
            if (row <= s || row >= SIZE_Y - 1 - s || !inside(x, grid.nx) || !inside(y, grid.ny)) continue;

            // 3. What belongs to the block is not the halo, nor beyond the end of the grid.
            const bool owned = lane * VECTOR >= HALO_X && lane * VECTOR < HALO_X + BOX_X && row >= STEPS &&
                               row < STEPS + BOX_Y && first_x + lane * VECTOR < grid.nx && first_y + row < grid.ny;
            const bool at_side = x == 0 || x + VECTOR == grid.nx || y == 0 || y == grid.ny - 1;
            const bool first_column = x == 0 && !periodic_x, last_column = x + VECTOR == grid.nx && !periodic_x;
            // Steps to the rows beside; at an end of the grid the row itself is its neighbour.
            const int to_south = y == 0 && !periodic_y ? 0 : -ROW, to_north = y == grid.ny - 1 && !periodic_y ? 0 : ROW;
            const int to_west = lane > 0 ? -1 : 0, to_east = lane < ROW - 1 ? 1 : 0;

            // 4. March along z with the column in registers.
            const Cells* here = before + begin * PLANE + column;
            Cells below = begin < end ? here[-PLANE] : Cells{}, current = begin < end ? here[0] : Cells{};
#pragma unroll 1
            for (int i = begin; i < end; ++i, here += PLANE) {
                const int z = in_grid(first_z + i, grid.nz, periodic_z);
                Cells above = here[PLANE];
                if (!periodic_z && z == 0) below = current;
                if (!periodic_z && z == grid.nz - 1) above = current;
                const Real west = first_column ? current.at[0] : here[to_west].at[VECTOR - 1];
                const Real east = last_column ? current.at[VECTOR - 1] : here[to_east].at[0];

                // Heat through faces is entered by the owner.
                const bool enters = owned && i >= STEPS && i < STEPS + BOX_Z && first_z + i < grid.nz;
                const bool at_face = at_side || z == 0 || z == grid.nz - 1;
                Ledger entered;
#pragma unroll
                for (int face = 0; face < 6; ++face) entered.face[face] = enters ? ledger.face[face] : nullptr;
                const Cells updated = update(grid, c, sweep + s, entered, x, y, z, at_face, current, west, east,
                                             here[to_south], here[to_north], below, above);

                // 5. The last step goes to memory.
                if (s < STEPS - 1) after[i * PLANE + column] = updated;
                else if (enters) store(T_new + cell_index(grid, x, y, z), updated);
                below = current;
                current = above;
            }
        }
        __syncthreads();
    }
}

#define LAUNCH_BOUNDS __launch_bounds__(THREADS, 1)
#include "entry.cuh"
