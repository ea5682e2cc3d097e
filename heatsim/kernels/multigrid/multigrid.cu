// multigrid: sweeps over a level for steady states; see sweeps.py, where each is described.
//
// The operator has seven points on every level: a link to the cell before along each axis, and the ground. Neighbours beyond
// an end are those of the other end, whose link is 0 where the axis does not wrap. A thread updates a cell, or, where sums are
// wanted, every so many cells; sums are made in float64 in an order that depends on the number of cells alone.
// Bytes of a smoothing step: 4 * sizeof(Link) + 12 a cell; operations: about 35. Expected: the bandwidth of the memory.
//
// Macros: LINK (float or double: links, ground and right-hand side of the finest level), THREADS, BLOCKS (of a sum).

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

// -A*T of a cell.
template <typename Value>
__device__ __forceinline__ Value gain_of(const Level& level, const Value* __restrict__ T, const Place& at)
{
    const Value t = T[at.here];
    Value gain = level.x[at.here] * (T[at.west] - t) + level.x[at.east] * (T[at.east] - t);
    gain += level.y[at.here] * (T[at.south] - t) + level.y[at.north] * (T[at.north] - t);
    gain += level.z[at.here] * (T[at.below] - t) + level.z[at.above] * (T[at.above] - t);
    return gain - level.ground[at.here] * t;
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

extern "C" __global__ void __launch_bounds__(THREADS)
restrict_residual(LEVEL_PARAMETERS, const float* __restrict__ T, const float* __restrict__ b, float* __restrict__ out,
                  const unsigned int fx, const unsigned int fy, const unsigned int fz)
{
    const Level level = LEVEL;
    const unsigned int coarse_nx = (nx + fx - 1) / fx, coarse_ny = (ny + fy - 1) / fy, coarse_nz = (nz + fz - 1) / fz;
    const unsigned int i = thread_number();
    if (i >= coarse_nx * coarse_ny * coarse_nz) return;
    const unsigned int row = i / coarse_nx, first_z = row / coarse_ny * fz;
    const unsigned int first_y = row % coarse_ny * fy, first_x = (i - row * coarse_nx) * fx;
    float sum = 0.0f;
    for (unsigned int z = first_z; z < min(first_z + fz, nz); ++z)
        for (unsigned int y = first_y; y < min(first_y + fy, ny); ++y)
            for (unsigned int x = first_x; x < min(first_x + fx, nx); ++x) {
                const Place at = place_of(level, x, y, z);
                sum += b[at.here] + gain_of(level, T, at);
            }
    out[i] = sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
prolong(float* __restrict__ T, const float* __restrict__ correction, const unsigned int nx, const unsigned int ny,
        const unsigned int nz, const unsigned int fx, const unsigned int fy, const unsigned int fz)
{
    const unsigned int i = thread_number();
    if (i >= nx * ny * nz) return;
    const unsigned int coarse_nx = (nx + fx - 1) / fx, coarse_ny = (ny + fy - 1) / fy;
    const unsigned int row = i / nx, z = row / ny, y = row - z * ny, x = i - row * nx;
    T[i] += correction[(z / fz * coarse_ny + y / fy) * coarse_nx + x / fx];
}

extern "C" __global__ void __launch_bounds__(THREADS)
advance(double* __restrict__ x, const float* __restrict__ p, float* __restrict__ r, const float* __restrict__ Ap,
        const double alpha, const unsigned int count)
{
    const unsigned int i = thread_number();
    if (i >= count) return;
    x[i] += alpha * p[i];
    r[i] = (float)(r[i] - alpha * Ap[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS)
direct(float* __restrict__ p, const float* __restrict__ z, const double beta, const unsigned int count)
{
    const unsigned int i = thread_number();
    if (i < count) p[i] = (float)(z[i] + beta * p[i]);
}

// The sum and the largest of the threads' numbers, left by thread 0 for its block.
__device__ __forceinline__ void leave(double sum, float largest, double* __restrict__ sums, float* __restrict__ most)
{
    __shared__ double sum_of_warp[THREADS / WARP];
    __shared__ float largest_of_warp[THREADS / WARP];
#pragma unroll
    for (unsigned int delta = WARP / 2; delta > 0; delta /= 2) {
        sum += __shfl_down_sync(ALL_LANES, sum, delta);
        largest = max(largest, __shfl_down_sync(ALL_LANES, largest, delta));
    }
    if (threadIdx.x % WARP == 0) {
        sum_of_warp[threadIdx.x / WARP] = sum;
        largest_of_warp[threadIdx.x / WARP] = largest;
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (unsigned int warp = 1; warp < THREADS / WARP; ++warp) {
        sum += sum_of_warp[warp];
        largest = max(largest, largest_of_warp[warp]);
    }
    sums[blockIdx.x] = sum;
    most[blockIdx.x] = largest;
}

extern "C" __global__ void __launch_bounds__(THREADS)
apply(LEVEL_PARAMETERS, const float* __restrict__ T, float* __restrict__ out, double* __restrict__ sums,
      float* __restrict__ most)
{
    const Level level = LEVEL;
    double sum = 0.0;
    for (unsigned int i = thread_number(); i < nx * ny * nz; i += BLOCKS * THREADS) {
        const float lost = (float)-gain_of(level, T, place_of(level, i));
        out[i] = lost;
        sum += (double)T[i] * lost;
    }
    leave(sum, 0.0f, sums, most);
}

extern "C" __global__ void __launch_bounds__(THREADS)
inner(const float* __restrict__ r, const float* __restrict__ z, const unsigned int count, double* __restrict__ sums,
      float* __restrict__ most)
{
    double sum = 0.0;
    float largest = 0.0f;
    for (unsigned int i = thread_number(); i < count; i += BLOCKS * THREADS) {
        sum += (double)r[i] * z[i];
        largest = max(largest, fabsf(z[i]));
    }
    leave(sum, largest, sums, most);
}
