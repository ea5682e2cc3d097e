// multigrid: sweeps over a level for steady states; see sweeps.py, where each is described.
//
// The operator has seven points on every level: a link to the cell before along each axis, and the ground. Neighbours beyond
// an end are those of the other end, whose link is 0 where the axis does not wrap. A thread updates a cell, or, where sums are
// wanted, several cells; sums are formed in float64 in an order that depends on the grid alone.
// Bytes of a smoothing step: 4 * sizeof(Link) + 12 a cell; operations: about 35. Expected: the bandwidth of the memory.
//
// The quotients of conjugate gradients stay on the device, among the scalars, so a whole step is queued without waiting.
//
// Macros: LINK (float or double: links, ground and right-hand side of the finest level), THREADS, PAIRS (planes of cells merge in
// any pairs, not whole axes).

typedef LINK Link;

#define WARP 32
#define ALL_LANES 0xFFFFFFFFu

struct Level {
    const Link* x;
    const Link* y;
    const Link* z;
    const Link* ground;
    unsigned int nx, ny, nz;
};

// The scalars, in the order of sweeps.py.
enum Scalar { RZ, RZ_BEFORE, ENERGY, LARGEST, LOWEST, LINKS };

// A cell and its neighbours, by their numbers.
struct Place {
    unsigned int here, west, east, south, north, below, above;
};

__device__ __forceinline__ Place place_of(const Level& level, unsigned int x, unsigned int y, unsigned int z)
{
    const unsigned int nx = level.nx, ny = level.ny, nz = level.nz, plane = nx * ny;
    const unsigned int row = (z * ny + y) * nx, here = row + x;
    return {here,
            x > 0 ? here - 1 : row + nx - 1,
            x + 1 < nx ? here + 1 : row,
            y > 0 ? here - nx : here + plane - nx,
            y + 1 < ny ? here + nx : here + nx - plane,
            z > 0 ? here - plane : here + (nz - 1) * plane,
            z + 1 < nz ? here + plane : here - (nz - 1) * plane};
}

__device__ __forceinline__ Place place_of(const Level& level, unsigned int i)
{
    const unsigned int row = i / level.nx, z = row / level.ny;
    return place_of(level, i - row * level.nx, row - z * level.ny, z);
}

// The temperatures of a cell and of its neighbours.
template <typename Value>
struct Around {
    Value here, west, east, south, north, below, above;
};

template <typename Value>
__device__ __forceinline__ Around<Value> around(const Value* __restrict__ T, const Place& at)
{
    return {T[at.here], T[at.west], T[at.east], T[at.south], T[at.north], T[at.below], T[at.above]};
}

// -A*T of a cell.
template <typename Value>
__device__ __forceinline__ Value gain_of(const Level& level, const Around<Value>& T, const Place& at)
{
    Value gain = level.x[at.here] * (T.west - T.here) + level.x[at.east] * (T.east - T.here);
    gain += level.y[at.here] * (T.south - T.here) + level.y[at.north] * (T.north - T.here);
    gain += level.z[at.here] * (T.below - T.here) + level.z[at.above] * (T.above - T.here);
    return gain - level.ground[at.here] * T.here;
}

template <typename Value>
__device__ __forceinline__ Value gain_of(const Level& level, const Value* __restrict__ T, const Place& at)
{
    return gain_of(level, around(T, at), at);
}

__device__ __forceinline__ Link diagonal_of(const Level& level, const Place& at)
{
    return level.x[at.here] + level.x[at.east] + level.y[at.here] + level.y[at.north] + level.z[at.here] +
           level.z[at.above] + level.ground[at.here];
}

__device__ __forceinline__ unsigned int thread_number()
{
    return blockIdx.x * THREADS + threadIdx.x;
}

#define LEVEL_PARAMETERS                                                                                               \
    const Link *__restrict__ link_x, const Link *__restrict__ link_y, const Link *__restrict__ link_z,                 \
        const Link *__restrict__ ground, const unsigned int nx, const unsigned int ny, const unsigned int nz
#define LEVEL {link_x, link_y, link_z, ground, nx, ny, nz}

// How `planes` planes of an axis merge into `count` coarse ones. `table`: the first plane of each coarse plane and the number of
// planes, then the coarse plane of each plane; `soft` as in pairs.py. Without PAIRS whole axes merge: planes are counted, which takes
// less time than loads.
struct Merged {
    const unsigned int* table;
    unsigned int count, planes;
    float soft;
    bool halves;

    __device__ __forceinline__ unsigned int first(const unsigned int coarse) const
    {
#if PAIRS
        return table[coarse];
#else
        return coarse << halves;
#endif
    }

    // The first plane after those of a coarse plane.
    __device__ __forceinline__ unsigned int end(const unsigned int coarse) const
    {
#if PAIRS
        return table[coarse + 1];
#else
        return min((coarse + 1) << halves, planes);
#endif
    }

    __device__ __forceinline__ unsigned int coarse(const unsigned int plane) const
    {
#if PAIRS
        return table[count + 1 + plane];
#else
        return plane >> halves;
#endif
    }

    // The part of a pair's resistance that counts; `across`: the links of both cells to other pairs.
    __device__ __forceinline__ Link counts(const Link inside, const Link across) const
    {
#if PAIRS
        return min(Link(1), soft * inside / across);
#else
        return 1;
#endif
    }
};

#define MERGED_PARAMETERS                                                                                              \
    const unsigned int *__restrict__ planes_x, const unsigned int *__restrict__ planes_y,                              \
        const unsigned int *__restrict__ planes_z, const unsigned int coarse_nx, const unsigned int coarse_ny,         \
        const unsigned int coarse_nz, const float soft
#define MERGED_X {planes_x, coarse_nx, nx, soft, coarse_nx < nx}
#define MERGED_Y {planes_y, coarse_ny, ny, soft, coarse_ny < ny}
#define MERGED_Z {planes_z, coarse_nz, nz, soft, coarse_nz < nz}

extern "C" __global__ void __launch_bounds__(THREADS)
start(LEVEL_PARAMETERS, const float* __restrict__ b, float* __restrict__ out, const float tau)
{
    const Level level = LEVEL;
    const unsigned int i = thread_number();
    if (i >= nx * ny * nz) return;
    const Link diagonal = diagonal_of(level, place_of(level, i));
    out[i] = diagonal > 0 ? (float)(tau * b[i] / diagonal) : 0.0f;
}

extern "C" __global__ void __launch_bounds__(THREADS)
smooth(LEVEL_PARAMETERS, const float* __restrict__ T, const float* __restrict__ b, float* __restrict__ out, const float tau)
{
    const Level level = LEVEL;
    const unsigned int i = thread_number();
    if (i >= nx * ny * nz) return;
    const Place at = place_of(level, i);
    const Link diagonal = diagonal_of(level, at);
    out[i] = diagonal > 0 ? (float)(T[i] + tau * (b[i] + gain_of(level, T, at)) / diagonal) : 0.0f;
}

// In float64, whatever the precision of links and right-hand side.
extern "C" __global__ void __launch_bounds__(THREADS)
residual(LEVEL_PARAMETERS, const double* __restrict__ T, const Link* __restrict__ b, float* __restrict__ out)
{
    const Level level = LEVEL;
    const unsigned int i = thread_number();
    if (i < nx * ny * nz) out[i] = (float)(b[i] + gain_of(level, T, place_of(level, i)));
}

// `width` threads along x for each coarse cell, 1 or 2: one for each of its cells, so that neighbouring threads read neighbouring
// cells.
extern "C" __global__ void __launch_bounds__(THREADS)
restrict_residual(LEVEL_PARAMETERS, const float* __restrict__ T, const float* __restrict__ b, float* __restrict__ out,
                  MERGED_PARAMETERS, const unsigned int width)
{
    const Level level = LEVEL;
    const Merged x_planes = MERGED_X, y_planes = MERGED_Y, z_planes = MERGED_Z;
    const unsigned int coarse = thread_number() >> (width - 1), part = thread_number() & (width - 1);
    const unsigned int row = coarse / coarse_nx, coarse_x = coarse - row * coarse_nx;
    const bool there = row < coarse_ny * coarse_nz;
    float sum = 0.0f;
    const unsigned int x = x_planes.first(coarse_x) + part;
    if (there && x < x_planes.end(coarse_x)) {
        const unsigned int coarse_z = row / coarse_ny, coarse_y = row - coarse_z * coarse_ny;
        for (unsigned int z = z_planes.first(coarse_z); z < z_planes.end(coarse_z); ++z)
            for (unsigned int y = y_planes.first(coarse_y); y < y_planes.end(coarse_y); ++y) {
                const Place at = place_of(level, x, y, z);
                sum += b[at.here] + gain_of(level, T, at);
            }
    }
    // Pairs begin at even threads, so they do not leave a warp.
    const float next = __shfl_down_sync(ALL_LANES, sum, 1);
    if (width == 2) sum += next;
    if (there && part == 0) out[coarse] = sum;
}

// The first step of smoothing after a correction, which is added to T on the way: T itself stays as it is.
extern "C" __global__ void __launch_bounds__(THREADS)
smooth_corrected(LEVEL_PARAMETERS, const float* __restrict__ T, const float* __restrict__ correction,
                 const float* __restrict__ b, float* __restrict__ out, const float tau, MERGED_PARAMETERS)
{
    const Level level = LEVEL;
    const Merged x_planes = MERGED_X, y_planes = MERGED_Y, z_planes = MERGED_Z;
    const unsigned int i = thread_number();
    if (i >= nx * ny * nz) return;
    const unsigned int row = i / nx, z = row / ny, y = row - z * ny, x = i - row * nx;
    const Place at = place_of(level, x, y, z);
    const unsigned int there_x = x_planes.coarse(x), there_y = y_planes.coarse(y), there_z = z_planes.coarse(z);
    const auto coarse = [=](unsigned int x, unsigned int y, unsigned int z) {
        return correction[(z * coarse_ny + y) * coarse_nx + x];
    };
    Around<float> sum = around(T, at);
    sum.here += coarse(there_x, there_y, there_z);
    sum.west += coarse(x_planes.coarse(x > 0 ? x - 1 : nx - 1), there_y, there_z);
    sum.east += coarse(x_planes.coarse(x + 1 < nx ? x + 1 : 0), there_y, there_z);
    sum.south += coarse(there_x, y_planes.coarse(y > 0 ? y - 1 : ny - 1), there_z);
    sum.north += coarse(there_x, y_planes.coarse(y + 1 < ny ? y + 1 : 0), there_z);
    sum.below += coarse(there_x, there_y, z_planes.coarse(z > 0 ? z - 1 : nz - 1));
    sum.above += coarse(there_x, there_y, z_planes.coarse(z + 1 < nz ? z + 1 : 0));
    const Link diagonal = diagonal_of(level, at);
    out[i] = diagonal > 0 ? (float)(sum.here + tau * (b[i] + gain_of(level, sum, at)) / diagonal) : 0.0f;
}

extern "C" __global__ void __launch_bounds__(THREADS)
correct(LEVEL_PARAMETERS, float* __restrict__ T, const float* __restrict__ correction, MERGED_PARAMETERS)
{
    const Level level = LEVEL;
    const Merged x_planes = MERGED_X, y_planes = MERGED_Y, z_planes = MERGED_Z;
    const unsigned int i = thread_number();
    if (i >= nx * ny * nz) return;
    const unsigned int row = i / nx, z = row / ny, y = row - z * ny, x = i - row * nx;
    const unsigned int coarse = (z_planes.coarse(z) * coarse_ny + y_planes.coarse(y)) * coarse_nx + x_planes.coarse(x);
    T[i] = diagonal_of(level, place_of(level, x, y, z)) > 0 ? T[i] + correction[coarse] : 0.0f;
}

#include "multigrid/coarsen.cuh"
#include "multigrid/lines.cuh"

// The coarsest level by its inverse: a warp for each row of the matrix. In float64, because a body that is nearly insulated has
// an inverse whose numbers are nearly equal.
extern "C" __global__ void __launch_bounds__(THREADS)
multiply(const double* __restrict__ matrix, const float* __restrict__ b, float* __restrict__ out, const unsigned int count)
{
    const unsigned int row = thread_number() / WARP, lane = threadIdx.x % WARP;
    double sum = 0.0;
    if (row < count)
        for (unsigned int column = lane; column < count; column += WARP) sum += matrix[row * count + column] * b[column];
#pragma unroll
    for (unsigned int delta = WARP / 2; delta > 0; delta /= 2) sum += __shfl_down_sync(ALL_LANES, sum, delta);
    if (row < count && lane == 0) out[row] = (float)sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
advance(double* __restrict__ x, const float* __restrict__ p, float* __restrict__ r, const float* __restrict__ Ap,
        const double* __restrict__ scalars, const unsigned int count)
{
    const unsigned int i = thread_number();
    if (i >= count) return;
    const double alpha = scalars[RZ] / scalars[ENERGY];
    x[i] += alpha * p[i];
    r[i] = (float)(r[i] - alpha * Ap[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS)
direct(float* __restrict__ p, const float* __restrict__ z, const double* __restrict__ scalars, const unsigned int count)
{
    const unsigned int i = thread_number();
    if (i < count) p[i] = (float)(z[i] + scalars[RZ] / scalars[RZ_BEFORE] * p[i]);
}

#include "multigrid/sums.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
apply(LEVEL_PARAMETERS, const float* __restrict__ T, float* __restrict__ out, GROUP_PARAMETERS, Found* __restrict__ parts)
{
    const Level level = LEVEL;
    Found found = NOTHING;
    FOR_EACH_CELL {
        const float lost = (float)-gain_of(level, T, place_of(level, i));
        out[i] = lost;
        found.sum += (double)T[i] * lost;
    }
    leave(found, parts);
}

extern "C" __global__ void __launch_bounds__(THREADS)
inner(const float* __restrict__ r, const float* __restrict__ z, GROUP_PARAMETERS, Found* __restrict__ parts)
{
    Found found = NOTHING;
    FOR_EACH_CELL {
        found.sum += (double)r[i] * z[i];
        found.largest = max(found.largest, (double)fabsf(z[i]));
    }
    leave(found, parts);
}

// The lowest and the highest of x; cells without any conductance are left out.
extern "C" __global__ void __launch_bounds__(THREADS)
extremes(LEVEL_PARAMETERS, const double* __restrict__ x, GROUP_PARAMETERS, Found* __restrict__ parts)
{
    const Level level = LEVEL;
    Found found = NOTHING;
    FOR_EACH_CELL {
        if (diagonal_of(level, place_of(level, i)) > 0) unite(found, {0.0, x[i], x[i]});
    }
    leave(found, parts);
}

// The links along one axis.
extern "C" __global__ void __launch_bounds__(THREADS)
sum_of_links(const Link* __restrict__ links, GROUP_PARAMETERS, Found* __restrict__ parts)
{
    Found found = NOTHING;
    FOR_EACH_CELL found.sum += links[i];
    leave(found, parts);
}

extern "C" __global__ void __launch_bounds__(THREADS)
total_of_apply(const Found* __restrict__ parts, const unsigned int count, double* __restrict__ scalars)
{
    const Found found = total(parts, count);
    if (threadIdx.x == 0) scalars[ENERGY] = found.sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
total_of_inner(const Found* __restrict__ parts, const unsigned int count, double* __restrict__ scalars)
{
    const Found found = total(parts, count);
    if (threadIdx.x > 0) return;
    scalars[RZ_BEFORE] = scalars[RZ];
    scalars[RZ] = found.sum;
    scalars[LARGEST] = found.largest;
}

extern "C" __global__ void __launch_bounds__(THREADS)
total_of_extremes(const Found* __restrict__ parts, const unsigned int count, double* __restrict__ scalars)
{
    const Found found = total(parts, count);
    if (threadIdx.x > 0) return;
    scalars[LARGEST] = found.largest;
    scalars[LOWEST] = found.lowest;
}

extern "C" __global__ void __launch_bounds__(THREADS)
total_of_links(const Found* __restrict__ parts, const unsigned int count, double* __restrict__ scalars, const unsigned int axis)
{
    const Found found = total(parts, count);
    if (threadIdx.x == 0) scalars[LINKS + axis] = found.sum;
}
