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
__device__ __forceinline__ Parts parts_of(const Level& level, const Cell& first, const float soft)
{
    const Cell second = moved<AXIS>(first, along<AXIS>(first) + 1);
    const Link inside = link_of<AXIS>(level, second), zero = 0;
    // Two cells that nothing joins, of which one is void for instance, meet other pairs by their own links alone.
    if (!(inside > zero)) return {zero, zero};
    const Link of_first = max(diagonal_of(level, place_of(level, first.x, first.y, first.z)) - inside, zero);
    const Link of_second = max(diagonal_of(level, place_of(level, second.x, second.y, second.z)) - inside, zero);
    const Link total = of_first + of_second, most = Link(0.5) / inside;
    if (!(total > zero)) return {zero, zero};
    const Link counts = min(Link(1), soft * inside / total);
    return {counts * min(of_second / (total * inside), most), counts * min(of_first / (total * inside), most)};
}

// The link from the coarse plane before to a coarse plane, through one tube; between single cells their own.
template <int AXIS>
__device__ __forceinline__ Link tube(const Level& level, const Cell& first, const Merged& planes, const unsigned int coarse)
{
    const unsigned int here = planes.first[coarse], end = planes.first[coarse + 1];
    const unsigned int before = planes.first[coarse > 0 ? coarse - 1 : planes.count - 1];
    const unsigned int end_before = planes.first[coarse > 0 ? coarse : planes.count];
    const Link between = link_of<AXIS>(level, first);
    const bool single = end == here + 1 && end_before == before + 1;
    if (single || !(between > 0)) return between > 0 ? between : Link(0);
    if (planes.count == 1) return 0;
    Link resistance = Link(1) / between;
    if (here + 1 < end) resistance += parts_of<AXIS>(level, first, planes.soft).first;
    if (before + 1 < end_before) resistance += parts_of<AXIS>(level, moved<AXIS>(first, before), planes.soft).second;
    return Link(1) / resistance;
}

// Of a cell that ends its body along an axis: what lies between it and the place of its pair.
template <int AXIS>
__device__ __forceinline__ void add_end(const Level& level, const Cell& cell, const Merged& planes, const unsigned int coarse,
                                        Link& resistance, unsigned int& ends)
{
    const unsigned int n = AXIS == 0 ? level.nx : AXIS == 1 ? level.ny : level.nz, here = along<AXIS>(cell);
    const bool is_first = !(link_of<AXIS>(level, cell) > 0);
    const bool is_last = !(link_of<AXIS>(level, moved<AXIS>(cell, here + 1 < n ? here + 1 : 0)) > 0);
    ends += is_first || is_last;
    const unsigned int first = planes.first[coarse], end = planes.first[coarse + 1];
    if (here == first && is_first && here + 1 < end) resistance += parts_of<AXIS>(level, cell, planes.soft).first;
    if (here > first && is_last) resistance += parts_of<AXIS>(level, moved<AXIS>(cell, here - 1), planes.soft).second;
}

extern "C" __global__ void __launch_bounds__(THREADS)
coarsen(LEVEL_PARAMETERS, Link* __restrict__ out_x, Link* __restrict__ out_y, Link* __restrict__ out_z,
        Link* __restrict__ ground_below, MERGED_PARAMETERS)
{
    const Level level = LEVEL;
    const Merged x_planes = MERGED_X, y_planes = MERGED_Y, z_planes = MERGED_Z;
    const unsigned int i = thread_number();
    if (i >= coarse_nx * coarse_ny * coarse_nz) return;
    const unsigned int row = i / coarse_nx, coarse_z = row / coarse_ny;
    const unsigned int coarse_y = row - coarse_z * coarse_ny, coarse_x = i - row * coarse_nx;
    const Cell first = {x_planes.first[coarse_x], y_planes.first[coarse_y], z_planes.first[coarse_z]};
    const Cell end = {x_planes.first[coarse_x + 1], y_planes.first[coarse_y + 1], z_planes.first[coarse_z + 1]};
    Link x_link = 0, y_link = 0, z_link = 0;
    for (unsigned int z = first.z; z < end.z; ++z)
        for (unsigned int y = first.y; y < end.y; ++y)
            for (unsigned int x = first.x; x < end.x; ++x) {
                const Cell cell = {x, y, z};
                if (x == first.x) x_link += tube<0>(level, cell, x_planes, coarse_x);
                if (y == first.y) y_link += tube<1>(level, cell, y_planes, coarse_y);
                if (z == first.z) z_link += tube<2>(level, cell, z_planes, coarse_z);
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
                add_end<0>(level, cell, x_planes, coarse_x, resistance, ends);
                add_end<1>(level, cell, y_planes, coarse_y, resistance, ends);
                add_end<2>(level, cell, z_planes, coarse_z, resistance, ends);
                const Link shared = ends > 1 ? ends * ends : 1;
                sum += ground / (resistance / shared * ground + Link(1));
            }
    ground_below[i] = sum;
}
