// 06 for materials that change with temperature: its march along z, with potentials in place of temperatures.
//
//        above      contents, just loaded, and their potentials
//        current    contents and potentials in registers; potentials of x and y neighbours from contents, looked up anew
//        below      potentials in registers
//
// A cell's potential is looked up once for its own column and twice for the columns beside it: loads of 8 or 16 bytes from a
// table that L1 holds, of few lines where neighbouring cells have similar temperatures. From memory a cell comes once and
// goes once, as in 06; expected: the speed at which L1 gathers.

// Threads on a multiprocessor: what is left to the end is not to cost the march its warps.
#if __CUDA_ARCH__ < 1000
#define RESIDENT (sizeof(Real) == 4 ? 768 : 640)
#else
#define RESIDENT 512
#endif
#undef BOUNDS
#define BOUNDS(threads) __launch_bounds__(threads, RESIDENT / (threads))

__device__ __forceinline__ Cells potentials(const Laws& laws, const Law& law, const Cells& contents)
{
    Cells found;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) found.at[i] = potential(laws, law, contents.at[i]);
    return found;
}

extern "C" __global__ void BOUNDS(TILE_X * TILE_Y)
advance(const Real* __restrict__ T, Real* __restrict__ T_new, const Grid grid, const Coefficients c,
        const Sweep* __restrict__ sweep, const Ledger ledger)
{
    const int lane = threadIdx.x;
    const int x = (blockIdx.x * WARP + lane) * VECTOR;
    const int y = grid.first_y + blockIdx.y * TILE_Y + threadIdx.y;
    const int z_begin = grid.first_z + blockIdx.z * grid.planes, z_end = min(z_begin + grid.planes, grid.nz);
    const size_t plane = (size_t)grid.nx * grid.ny;
    const Laws& laws = c.medium.laws;

    // 1. Rows end where they end: lanes beyond take part in shuffles with a copy of the last vector, and store nothing.
    const bool updates = x < grid.nx && y < grid.ny;
    const int x_load = min(x, grid.nx - VECTOR), y_load = min(y, grid.ny - 1);
    const Real* centre = T + cell_index(grid, x_load, y_load, 0);
    const ptrdiff_t to_south = (ptrdiff_t)(neighbour_y(grid, y_load - 1) - y_load) * grid.nx;
    const ptrdiff_t to_north = (ptrdiff_t)(neighbour_y(grid, y_load + 1) - y_load) * grid.nx;
    const int to_west = neighbour_x(grid, x_load - 1) - x_load;
    const int to_east = neighbour_x(grid, x_load + VECTOR) - x_load;
    const bool first_lane = lane == 0 || x == 0, last_lane = lane == WARP - 1 || x + VECTOR >= grid.nx;
    const bool at_side = updates && (x == 0 || x + VECTOR == grid.nx || y == 0 || y == grid.ny - 1);

    // 2. The plane before the march, and what the column is known of: the kind whose law its potentials are from.
    const Real* here = centre + z_begin * plane;
    Real* out = T_new + cell_index(grid, x, y, z_begin);
    Cells current = load(here), below, driving;
    int kind = INTERIOR;
    Law law = {};
    unsigned int left = 0;  // a bit for each plane in which the vector is not plain

    for (int z = z_begin; z < z_end; ++z) {
        // 3. The plane above, and the kind. Where it changes, what is carried along is looked up anew; potentials of cells of
        //    other kinds are wrong, and belong to no plain vector.
        const Cells above = load(z + 1 < grid.nz ? here + plane : centre + neighbour_z(grid, z + 1) * plane);
        const Kinds kinds = load_kinds(c.medium, cell_index(grid, x_load, y_load, z));
        const int own = kinds & 0xFFu & ~INTERIOR;
        if (own != kind) {
            kind = own;
            law = laws.of_kind[kind];
            below = potentials(laws, law, load(z > 0 ? here - plane : centre + neighbour_z(grid, -1) * plane));
            driving = potentials(laws, law, current);
        }

        // 4. Neighbours in y from L1, in x from the lanes beside, which may be of another kind: contents, not potentials.
        const Cells south = potentials(laws, law, load(here + to_south)), north = potentials(laws, law, load(here + to_north));
        Real west = __shfl_up_sync(ALL_LANES, current.at[VECTOR - 1], 1);
        Real east = __shfl_down_sync(ALL_LANES, current.at[0], 1);
        if (first_lane) west = here[to_west];
        if (last_lane) east = here[to_east];
        west = potential(laws, law, west);
        east = potential(laws, law, east);
        const Cells driving_above = potentials(laws, law, above);

        // 5. Update the vector.
        const Coefficients inner = inner_coefficients(c, kind);
        const Real heat = source_heat(c.medium, sweep, kind);
        Cells updated;
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            const Real sum = heat + neighbour_sum(inner, driving.at[i], i == 0 ? west : driving.at[i - 1],
                                                  i == VECTOR - 1 ? east : driving.at[i + 1], south.at[i], north.at[i],
                                                  below.at[i], driving_above.at[i]);
            updated.at[i] = finish(sweep, x + i, y, z, current.at[i], sum);
        }
        const bool plain = all_interior(kinds) && !at_side && z > 0 && z < grid.nz - 1;
        if (updates && plain) store(out, updated);
        if (updates && !plain) left |= 1u << (z - z_begin);

        // 6. One plane up.
        below = driving;
        driving = driving_above;
        current = above;
        here += plane;
        out += plane;
    }

    // 7. What the march has left.
    update_left(T, T_new, grid, c, sweep, ledger, x, y, z_begin, left);
}
