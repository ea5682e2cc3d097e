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
__device__ __forceinline__ Parts parts_of(const Level& level, const Cell& first, const Merged& planes)
{
    const Cell second = moved<AXIS>(first, along<AXIS>(first) + 1);
    const Link inside = link_of<AXIS>(level, second), zero = 0;
    // Two cells that nothing joins, of which one is void for instance, meet other pairs by their own links alone.
    if (!(inside > zero)) return {zero, zero};
    const Link of_first = max(diagonal_of(level, place_of(level, first.x, first.y, first.z)) - inside, zero);
    const Link of_second = max(diagonal_of(level, place_of(level, second.x, second.y, second.z)) - inside, zero);
    const Link total = of_first + of_second, most = Link(0.5) / inside;
    if (!(total > zero)) return {zero, zero};
    const Link counts = planes.counts(inside, total);
    return {counts * min(of_second / (total * inside), most), counts * min(of_first / (total * inside), most)};
}

// The link from the coarse plane before to one that begins at `first` and ends before `end`, through one tube; between single
// cells their own.
template <int AXIS>
__device__ __forceinline__ Link tube(const Level& level, const Cell& first, const Cell& end, const Merged& planes)
{
    const unsigned int here = along<AXIS>(first), end_before = here > 0 ? here : planes.planes;
    const unsigned int before = planes.first(planes.coarse(end_before - 1));
    const bool pair = here + 1 < along<AXIS>(end), pair_before = before + 1 < end_before;
    const Link between = link_of<AXIS>(level, first);
    if (!(pair || pair_before) || !(between > 0)) return between > 0 ? between : Link(0);
    if (planes.count == 1) return 0;
    Link resistance = Link(1) / between;
    if (pair) resistance += parts_of<AXIS>(level, first, planes).first;
    if (pair_before) resistance += parts_of<AXIS>(level, moved<AXIS>(first, before), planes).second;
    return Link(1) / resistance;
}

// Of a cell that ends its body along an axis: what lies between it and the place of its pair, as in tube().
template <int AXIS>
__device__ __forceinline__ void add_end(const Level& level, const Cell& cell, const Cell& first, const Cell& end,
                                        const Merged& planes, Link& resistance, unsigned int& ends)
{
    const unsigned int here = along<AXIS>(cell), begin = along<AXIS>(first);
    const bool is_first = !(link_of<AXIS>(level, cell) > 0);
    const bool is_last = !(link_of<AXIS>(level, moved<AXIS>(cell, here + 1 < planes.planes ? here + 1 : 0)) > 0);
    ends += is_first || is_last;
    if (is_first && here == begin && here + 1 < along<AXIS>(end)) resistance += parts_of<AXIS>(level, cell, planes).first;
    if (is_last && here > begin) resistance += parts_of<AXIS>(level, moved<AXIS>(cell, begin), planes).second;
}

// Threads wait for loads: the more blocks fit, the better.
extern "C" __global__ void __launch_bounds__(THREADS, sizeof(Link) == 4 ? 3 : 2)
coarsen(LEVEL_PARAMETERS, Link* __restrict__ out_x, Link* __restrict__ out_y, Link* __restrict__ out_z,
        Link* __restrict__ ground_below, MERGED_PARAMETERS)
{
    const Level level = LEVEL;
    const Merged x_planes = MERGED_X, y_planes = MERGED_Y, z_planes = MERGED_Z;
    const unsigned int i = thread_number();
    if (i >= coarse_nx * coarse_ny * coarse_nz) return;
    const unsigned int row = i / coarse_nx, coarse_z = row / coarse_ny;
    const unsigned int coarse_y = row - coarse_z * coarse_ny, coarse_x = i - row * coarse_nx;
    const Cell first = {x_planes.first(coarse_x), y_planes.first(coarse_y), z_planes.first(coarse_z)};
    const Cell end = {x_planes.end(coarse_x), y_planes.end(coarse_y), z_planes.end(coarse_z)};
    Link x_link = 0, y_link = 0, z_link = 0;
    for (unsigned int z = first.z; z < end.z; ++z)
        for (unsigned int y = first.y; y < end.y; ++y)
            for (unsigned int x = first.x; x < end.x; ++x) {
                const Cell cell = {x, y, z};
                if (x == first.x) x_link += tube<0>(level, cell, end, x_planes);
                if (y == first.y) y_link += tube<1>(level, cell, end, y_planes);
                if (z == first.z) z_link += tube<2>(level, cell, end, z_planes);
            }
    out_x[i] = x_link;
    out_y[i] = y_link;
    out_z[i] = z_link;
    Link sum = 0;
    for (unsigned int z = first.z; z < end.z; ++z)
        for (unsigned int y = first.y; y < end.y; ++y)
            for (unsigned int x = first.x; x < end.x; ++x) {
                const Cell cell = {x, y, z};
                const Link ground = level.ground[number_of(level, cell)];
                if (!(ground > 0)) continue;
                Link resistance = 0;
                unsigned int ends = 0;
                add_end<0>(level, cell, first, end, x_planes, resistance, ends);
                add_end<1>(level, cell, first, end, y_planes, resistance, ends);
                add_end<2>(level, cell, first, end, z_planes, resistance, ends);
                const Link shared = ends > 1 ? ends * ends : 1;
                sum += ground / (resistance / shared * ground + Link(1));
            }
    ground_below[i] = sum;
}
