// 08 boxed: the tile of 02, STEPS steps deep. A block loads a box of cells with a halo of STEPS cells into shared memory and
// does STEPS steps there without other blocks. Each step makes one more layer of the halo invalid; after the last step
// exactly the box is valid.
//
//        |<------------ SIZE_X ------------>|
//        h h h h h h h h h h h h h h h h h h h      step 1 updates all but the outermost layer,
//        h 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 h      step 2 all but the two outermost, ...
//        h 1 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 1 h
//        h 1 2 +-----------------------+ 2 1 h
//        h 1 2 | cells that it writes  | 2 1 h      (along x every step updates whole vectors)
//        h 1 2 +-----------------------+ 2 1 h
//
// This kernel is for small grids: all blocks run at once and all data fit in L2. Then a step costs one launch, one or two
// microseconds, plus the latency of the first cell. 08 pays both once for STEPS steps. 07 is too slow to start: its planes
// wait for each other. The price is the halo: with boxes of 16 x 16 x 8 cells and 4 steps, each cell is loaded 4.5 times
// (from L2) and updated 2.5 times. Expected: limited by shared memory, 4.5 values per updated cell.
//
// It works on every grid. On a periodic axis the halo may wrap around several times.

#include "vector.cuh"

#define THREADS BLOCK_X
#define HALO_X ((STEPS + VECTOR - 1) / VECTOR * VECTOR)
#define SIZE_X (BOX_X + 2 * HALO_X)
#define SIZE_Y (BOX_Y + 2 * STEPS)
#define SIZE_Z (BOX_Z + 2 * STEPS)
#define ROW (SIZE_X / VECTOR)  // in vectors, like PLANE
#define PLANE (ROW * SIZE_Y)
// Each thread marches along z with one vector. If a plane has fewer vectors than the block has threads, several threads share
// a column.
#define MARCHES (THREADS > PLANE ? THREADS / PLANE : 1)

// Position i of an axis of n cells, wrapped into the grid if the axis is periodic.
__device__ __forceinline__ int in_grid(int i, int n, bool periodic)
{
    if (!periodic) return i;
    i %= n;
    return i < 0 ? i + n : i;
}

__device__ __forceinline__ bool inside(int i, int n) { return (unsigned)i < (unsigned)n; }

__device__ __forceinline__ void
advance_block(const Real* T, Real* T_new, const Grid& grid, const Coefficients& c,
              const StepData* sweep, const Ledger& ledger, const Block block)
{
    extern __shared__ Cells boxes[];  // the field before a step, and after it
    const bool periodic_x = grid.periodic & 1, periodic_y = grid.periodic & 2, periodic_z = grid.periodic & 4;
    const int first_x = (int)block.x * BOX_X - HALO_X;
    const int first_y = grid.first_y + (int)block.y * BOX_Y - STEPS;
    const int first_z = grid.first_z + (int)block.z * BOX_Z - STEPS;

    // 1. Load all cells of the box that lie in the grid.
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
        const Coefficients& own = of_step(c, sweep + s);
        const Cells* const before = boxes + s % 2 * (PLANE * SIZE_Z);
        Cells* const after = boxes + (s + 1) % 2 * (PLANE * SIZE_Z);

        // 2. The planes that are still valid after this step and lie in the grid; each march updates its share of them.
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

            // 3. The block owns a cell if it lies in the box without halo, and in the grid.
            const bool owned = lane * VECTOR >= HALO_X && lane * VECTOR < HALO_X + BOX_X && row >= STEPS &&
                               row < STEPS + BOX_Y && first_x + lane * VECTOR < grid.nx && first_y + row < grid.ny;
            const bool at_side = x == 0 || x + VECTOR == grid.nx || y == 0 || y == grid.ny - 1;
            const bool first_column = x == 0 && !periodic_x, last_column = x + VECTOR == grid.nx && !periodic_x;
            // Offsets of the adjacent rows; at an end of the grid a row is its own neighbour.
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

                // The owner adds the heat through faces to the ledger.
                const bool enters = owned && i >= STEPS && i < STEPS + BOX_Z && first_z + i < grid.nz;
                const bool at_face = at_side || z == 0 || z == grid.nz - 1;
                Ledger entered;
#pragma unroll
                for (int face = 0; face < 6; ++face) entered.face[face] = enters ? ledger.face[face] : nullptr;
                const Cells updated = update(grid, own, sweep + s, entered, x, y, z, at_face, current, west, east,
                                             here[to_south], here[to_north], below, above);

                // 5. Write to the other box, after the last step to global memory.
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
