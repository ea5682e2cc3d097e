// coarsen: the operator of merged cells; see operator.py for the formulas. Included by multigrid.cu.
//
// A thread makes one coarse cell: for each axis the tubes that lead from the pair before to its own pair, then the ground.
// The fine links are read from memory once and serve several threads through the caches; nothing is kept in between.

// A cell by its coordinates.
struct Cell {
    unsigned int x, y, z;
};

template <int AXIS>
__device__ __forceinline__ unsigned int along(const Cell& cell)
{
    return AXIS == 0 ? cell.x : AXIS == 1 ? cell.y : cell.z;
}

template <int AXIS>
__device__ __forceinline__ Cell moved(Cell cell, const unsigned int to)
{
    if (AXIS == 0) cell.x = to;
    if (AXIS == 1) cell.y = to;
    if (AXIS == 2) cell.z = to;
    return cell;
}

__device__ __forceinline__ unsigned int number_of(const Level& level, const Cell& cell)
{
    return (cell.z * level.ny + cell.y) * level.nx + cell.x;
}

template <int AXIS>
__device__ __forceinline__ Link link_of(const Level& level, const Cell& cell)
{
    return (AXIS == 0 ? level.x : AXIS == 1 ? level.y : level.z)[number_of(level, cell)];
}

// Resistances from the place that a pair stands for to its first and to its second cell.
struct Parts {
    Link first, second;
};

template <int AXIS>
__device__ __forceinline__ Parts parts_of(const Level& level, const Cell& first)
{
    const Cell second = moved<AXIS>(first, along<AXIS>(first) + 1);
    const Link inside = link_of<AXIS>(level, second), zero = 0;
    // Two cells that nothing joins, of which one is void for instance, meet other pairs by their own links alone.
    if (!(inside > zero)) return {zero, zero};
    const Link of_first = max(diagonal_of(level, place_of(level, first.x, first.y, first.z)) - inside, zero);
    const Link of_second = max(diagonal_of(level, place_of(level, second.x, second.y, second.z)) - inside, zero);
    const Link total = of_first + of_second, most = Link(0.5) / inside;
    if (!(total > zero)) return {zero, zero};
    return {min(of_second / (total * inside), most), min(of_first / (total * inside), most)};
}

// The link from the pair before to the pair of a cell, through one tube; of an axis that is not coarsened the cell's own.
template <int AXIS>
__device__ __forceinline__ Link tube(const Level& level, const Cell& first, const unsigned int factor)
{
    const Link between = link_of<AXIS>(level, first);
    if (factor == 1 || !(between > 0)) return between > 0 ? between : Link(0);
    const unsigned int n = AXIS == 0 ? level.nx : AXIS == 1 ? level.ny : level.nz, here = along<AXIS>(first);
    if (n <= 2) return 0;
    const unsigned int before = here > 0 ? here - 2 : (n - 1) / 2 * 2;
    Link resistance = Link(1) / between;
    if (here + 1 < n) resistance += parts_of<AXIS>(level, first).first;
    if (before + 1 < n) resistance += parts_of<AXIS>(level, moved<AXIS>(first, before)).second;
    return Link(1) / resistance;
}

// Of a cell that ends its body along an axis: what lies between it and the place of its pair.
template <int AXIS>
__device__ __forceinline__ void add_end(const Level& level, const Cell& cell, const unsigned int factor, Link& resistance,
                                        unsigned int& ends)
{
    const unsigned int n = AXIS == 0 ? level.nx : AXIS == 1 ? level.ny : level.nz, here = along<AXIS>(cell);
    const bool is_first = !(link_of<AXIS>(level, cell) > 0);
    const bool is_last = !(link_of<AXIS>(level, moved<AXIS>(cell, here + 1 < n ? here + 1 : 0)) > 0);
    ends += is_first || is_last;
    if (factor == 1) return;
    if (here % 2 == 0 && is_first && here + 1 < n) resistance += parts_of<AXIS>(level, cell).first;
    if (here % 2 == 1 && is_last) resistance += parts_of<AXIS>(level, moved<AXIS>(cell, here - 1)).second;
}

__device__ __forceinline__ Link coarse_ground(const Level& level, const Cell& cell, const unsigned int fx,
                                              const unsigned int fy, const unsigned int fz)
{
    const Link ground = level.ground[number_of(level, cell)];
    if (!(ground > 0)) return 0;
    Link resistance = 0;
    unsigned int ends = 0;
    add_end<0>(level, cell, fx, resistance, ends);
    add_end<1>(level, cell, fy, resistance, ends);
    add_end<2>(level, cell, fz, resistance, ends);
    const Link shared = ends > 1 ? ends * ends : 1;
    return ground / (resistance / shared * ground + Link(1));
}

extern "C" __global__ void __launch_bounds__(THREADS)
coarsen(LEVEL_PARAMETERS, Link* __restrict__ coarse_x, Link* __restrict__ coarse_y, Link* __restrict__ coarse_z,
        Link* __restrict__ ground_below, const unsigned int fx, const unsigned int fy, const unsigned int fz)
{
    const Level level = LEVEL;
    const unsigned int coarse_nx = (nx + fx - 1) / fx, coarse_ny = (ny + fy - 1) / fy, coarse_nz = (nz + fz - 1) / fz;
    const unsigned int i = thread_number();
    if (i >= coarse_nx * coarse_ny * coarse_nz) return;
    const unsigned int row = i / coarse_nx, first_z = row / coarse_ny * fz;
    const unsigned int first_y = row % coarse_ny * fy, first_x = (i - row * coarse_nx) * fx;
    Link x_link = 0, y_link = 0, z_link = 0;
    for (unsigned int z = first_z; z < min(first_z + fz, nz); ++z)
        for (unsigned int y = first_y; y < min(first_y + fy, ny); ++y)
            for (unsigned int x = first_x; x < min(first_x + fx, nx); ++x) {
                const Cell cell = {x, y, z};
                if (x == first_x) x_link += tube<0>(level, cell, fx);
                if (y == first_y) y_link += tube<1>(level, cell, fy);
                if (z == first_z) z_link += tube<2>(level, cell, fz);
            }
    coarse_x[i] = x_link;
    coarse_y[i] = y_link;
    coarse_z[i] = z_link;
    Link sum = 0;
    for (unsigned int z = first_z; z < min(first_z + fz, nz); ++z)
        for (unsigned int y = first_y; y < min(first_y + fy, ny); ++y)
            for (unsigned int x = first_x; x < min(first_x + fx, nx); ++x)
                sum += coarse_ground(level, {x, y, z}, fx, fy, fz);
    ground_below[i] = sum;
}
