// The march of 06 by threads of ROWS rows: a thread's rows find each other in registers, only the vectors beyond the
// first and the last come from L1. Two rows make four loads a plane instead of six, two of them under way from memory.
//
//        north      L1
//        row 1      registers: below, current, above; x neighbours from the lanes beside
//        row 0      registers: below, current, above
//        south      L1
//
// What is under way at a time hides the latency of memory, and that is rows times warps: a third row, or a plane more
// ahead, costs the registers of so many warps that less is.

// On a multiprocessor. Left alone the compiler takes more registers, and fewer threads find room.
#define RESIDENT_THREADS (MEMBERS && sizeof(Real) == 8 ? 640 : 768)

extern "C" __global__ void __launch_bounds__(TILE_X * TILE_Y, RESIDENT_THREADS / (TILE_X * TILE_Y))
advance(RUN)
{
    FIND_RUN(BLOCK_MEMBER, return);
    const int lane = threadIdx.x;
    const int x = (blockIdx.x * WARP + lane) * VECTOR;
    const int y = grid.first_y + (blockIdx.y * TILE_Y + threadIdx.y) * ROWS;
    const int z_begin = grid.first_z + LAYER * grid.planes, z_end = min(z_begin + grid.planes, grid.nz);
    const size_t plane = (size_t)grid.nx * grid.ny;

    // 1. Rows end where they end: lanes beyond take part in shuffles with a copy of the last vector, and store nothing.
    // So do rows beyond the last one of the grid, with a copy of that.
    const bool inside = x < grid.nx;
    const int x_load = min(x, grid.nx - VECTOR);
    const int first = min(y, grid.ny - 1), last = min(y + ROWS - 1, grid.ny - 1);
    const Real* centre = T + cell_index(grid, x_load, first, 0);
    const ptrdiff_t to_south = (ptrdiff_t)(neighbour_y(grid, first - 1) - first) * grid.nx;
    const ptrdiff_t to_north = (ptrdiff_t)(neighbour_y(grid, last + 1) - first) * grid.nx;
    const int to_west = neighbour_x(grid, x_load - 1) - x_load;
    const int to_east = neighbour_x(grid, x_load + VECTOR) - x_load;
    const bool first_lane = lane == 0 || x == 0, last_lane = lane == WARP - 1 || x + VECTOR >= grid.nx;

    // 2. The planes before the march.
    Cells below[ROWS], current[ROWS], above[ROWS];
    const Real* here = centre + z_begin * plane;
    Real* out = T_new + cell_index(grid, x, y, z_begin);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int row = min(r, last - first) * grid.nx;
        below[r] = load(centre + neighbour_z(grid, z_begin - 1) * plane + row);
        current[r] = load(here + row);
    }

    for (int z = z_begin; z < z_end; ++z) {
        // 3. Neighbours in y of the first and last row from L1, and the plane above.
        const Cells south = load(here + to_south), north = load(here + to_north);
        const Real* source = z + 1 < grid.nz ? here + plane : centre + neighbour_z(grid, z + 1) * plane;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) above[r] = load(source + min(r, last - first) * grid.nx);

#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            // 4. Neighbours in x from the lanes beside; the outer lanes have none and load.
            Real west = __shfl_up_sync(ALL_LANES, current[r].at[VECTOR - 1], 1);
            Real east = __shfl_down_sync(ALL_LANES, current[r].at[0], 1);
            const Real* row = here + min(r, last - first) * grid.nx;
            if (first_lane) west = row[to_west];
            if (last_lane) east = row[to_east];

            // 5. Update the vector.
            const bool updates = inside && y + r < grid.ny;
            const bool at_face = updates && (x == 0 || x + VECTOR == grid.nx || y + r == 0 || y + r == grid.ny - 1 ||
                                             z == 0 || z == grid.nz - 1);
            const Cells row_south = r == 0 ? south : current[r == 0 ? 0 : r - 1];
            const Cells row_north = r == ROWS - 1 || y + r == grid.ny - 1 ? north : current[r == ROWS - 1 ? r : r + 1];
            const Cells updated = update(grid, c, sweep, ledger, x, y + r, z, at_face, current[r], west, east,
                                         row_south, row_north, below[r], above[r]);
            if (updates) store(out + r * grid.nx, updated);
        }

        // 6. One plane up.
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            below[r] = current[r];
            current[r] = above[r];
        }
        here += plane;
        out += plane;
    }
}
