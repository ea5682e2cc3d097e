// 06 for materials that vary with temperature: the same march along z, with potentials in place of temperatures.
//
//        above      contents, just loaded, and their potentials
//        current    contents and potentials in registers; potentials of y neighbours from the adjacent warps through shared
//                   memory, of x neighbours from the adjacent lanes, or from their contents if these lanes use another table
//        below      potentials in registers
//
// A cell's potential is looked up once, plus once for each adjacent column that another block or lane owns: loads of 8 or 16
// bytes from a table in L1. Memory traffic: each cell is read once and written once. Cells that are not plain are deferred, as
// in composite/streamed.cu. Expected: some ten operations and one gather per cell more than 06, two thirds of its speed.

#include "vector.cuh"
#include "composite/deferred_cells.cuh"

// Threads per multiprocessor.
#if GRADED
#define RESIDENT (sizeof(Real) == 4 && __CUDA_ARCH__ == 900 ? 896 : 640)
#elif __CUDA_ARCH__ == 900
#define RESIDENT (sizeof(Real) == 4 ? 1024 : MIXED || CONTACTS ? 640 : 768)
#elif __CUDA_ARCH__ < 1000
#define RESIDENT (sizeof(Real) == 4 ? 896 : 640)
#else
#define RESIDENT 512
#endif
#define LAUNCH_BOUNDS __launch_bounds__(BLOCK_X * BLOCK_Y, RESIDENT / (BLOCK_X * BLOCK_Y))

__device__ __forceinline__ Cells potentials(const EnthalpyTables& tables, const EnthalpyTable& table, const Cells& contents)
{
    Cells found;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) found.at[i] = potential(tables, table, contents.at[i]);
    return found;
}

extern "C" __global__ void LAUNCH_BOUNDS
advance(const Real* __restrict__ T, Real* __restrict__ T_new, const Grid grid, const Coefficients c,
        const StepData* __restrict__ sweep, const Ledger ledger)
{
    __shared__ Cells rows[2][BLOCK_Y][WARP];  // potentials of a plane and of the previous one
    __shared__ Deferred deferred_cells;
    __shared__ Sides sides;
    const int lane = threadIdx.x, row = threadIdx.y;
    const int x = (blockIdx.x * WARP + lane) * VECTOR;
    const int y = grid.first_y + blockIdx.y * BLOCK_Y + row;
    const int z_begin = grid.first_z + blockIdx.z * grid.planes, z_end = min(z_begin + grid.planes, grid.nz);
    const ptrdiff_t plane = (ptrdiff_t)grid.nx * grid.ny;
    const EnthalpyTables& tables = c.cell_types.enthalpies;

    // 1. Lanes beyond the end of a row hold a copy of the first vector (on a periodic axis it is the last vector's neighbour)
    //    and store nothing.
    const int x_load = x < grid.nx ? x : 0, y_load = min(y, grid.ny - 1);
    size_t cell = cell_index(grid, x_load, y_load, z_begin);
    const int to_west = step_down(x_load, grid.nx, grid.periodic & 1);
    const int to_east = VECTOR - 1 + step_up(x_load + VECTOR - 1, grid.nx, grid.periodic & 1);
    const int to_outer = in_register(lane == 0 ? to_west : to_east);
    const unsigned int tasks = in_register(tasks_of(grid, c.cell_types.open, x, y));
    const ptrdiff_t to_south = (ptrdiff_t)step_down(y_load, grid.ny, grid.periodic & 2) * grid.nx;
    const ptrdiff_t to_north = (ptrdiff_t)step_up(y_load, grid.ny, grid.periodic & 2) * grid.nx;
    const ptrdiff_t over_the_end = step_up(grid.nz - 1, grid.nz, grid.periodic & 4) * plane;
    // Whether a warp of this block has the adjacent row. Across the ends of a periodic axis it has not.
    const bool south_beside = row > 0, north_beside = row < BLOCK_Y - 1 && y + 1 < grid.ny;

    // 2. The plane before the march. The column's potentials are from `table`, the table of `cell_type`.
    Cells current = load(T + cell), below, driving;
    int cell_type = INTERIOR;
    EnthalpyTable table = {};
    bool one_table = false;
    unsigned int deferred = 0;

    for (int z = z_begin; z < z_end; ++z) {
        // 3. Load the plane above and the type. If the type changes, look up the column's potentials again. Potentials of
        //    cells of other types are wrong, but only deferred cells use them.
        const Real* const here = T + cell;
        const size_t next = cell + (z + 1 < grid.nz ? plane : over_the_end);
        const Cells above = load(T + next);
        const VectorBytes bytes = load_bytes(c.cell_types, cell);
        const bool changes = first_type(bytes) != cell_type;
        if (changes) {
            cell_type = first_type(bytes);
            table = tables.of_type[cell_type];
            below = potentials(tables, table, load(here - (z > 0 ? plane : over_the_end)));
            driving = potentials(tables, table, current);
        }
        if (__any_sync(ALL_LANES, changes))
            one_table = __all_sync(ALL_LANES, table.base == __shfl_sync(ALL_LANES, table.base, 0));
        const unsigned int strange = not_plain(bytes);
        deferred |= strange >> (7 - (z - z_begin));

        // 4. Neighbours. In y, a vector of interior cells has neighbours of its own type. In x, lanes exchange potentials if
        //    all use one table (the outermost lanes look up one each), otherwise contents.
        rows[z & 1][row][lane] = driving;
        __syncthreads();  // read below; written again two planes on, after the next barrier
        const Cells south = south_beside && !strange ? rows[z & 1][row - 1][lane]
                                                     : potentials(tables, table, load(here + to_south));
        const Cells north = north_beside && !strange ? rows[z & 1][row + 1][lane]
                                                     : potentials(tables, table, load(here + to_north));
        Real west = __shfl_up_sync(ALL_LANES, one_table ? driving.at[VECTOR - 1] : current.at[VECTOR - 1], 1);
        Real east = __shfl_down_sync(ALL_LANES, one_table ? driving.at[0] : current.at[0], 1);
        Real outer = Real(0);
        if (tasks & (LOADS_WEST | LOADS_EAST)) {
            outer = here[to_outer];
            if (one_table) outer = potential(tables, table, outer);
        }
        if (tasks & LOADS_WEST) west = outer;
        if (tasks & LOADS_EAST) east = outer;
        if (!one_table) {
            west = potential(tables, table, west);
            east = potential(tables, table, east);
        }
        if (tasks & ENDS) east = driving.at[VECTOR - 1];
        const Cells driving_above = potentials(tables, table, above);

        // 5. Update the vector.
        const Coefficients mean = inner_coefficients(c, cell_type);
#if GRADED
        const Real* const planes = c.cell_types.planes;
        const VectorLinks links = links_at(mean, across_at(grid, planes, mean, x_load, y_load), factors_along(grid, planes, z));
#else
        const Coefficients& links = mean;
#endif
        const Real heat = source_heat(c.cell_types, sweep, cell_type);
        Cells sum;
#pragma unroll
        for (int i = 0; i < VECTOR; ++i)
            sum.at[i] = heat + neighbour_sum(of_cell(links, i), driving.at[i], i == 0 ? west : driving.at[i - 1],
                                             i == VECTOR - 1 ? east : driving.at[i + 1], south.at[i], north.at[i],
                                             below.at[i], driving_above.at[i]);
        if (tasks & (AT_X_MIN | AT_X_MAX)) keep_sides(sides, tasks, z - z_begin, current, sum, cell_type);
        if (tasks & STORES)
            store_once(T_new + cell, finish(sweep, start_of(sweep, cell, current), with_cell_heat(c.cell_types, cell, sum)));

        // 6. One plane up.
        below = driving;
        driving = driving_above;
        current = above;
        cell = next;
    }

    // 7. Update the deferred cells.
    deferred = tasks & STORES ? with_faces(grid, c.cell_types.open, y, z_begin, z_end, deferred) : 0u;
    update_deferred(T, T_new, grid, c, sweep, ledger, deferred_cells, sides, tasks, deferred, z_begin, z_end);
}
