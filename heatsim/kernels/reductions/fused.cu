// fused: all statistics of a field that heatsim needs, in one pass: sum, sum of magnitudes, lowest and highest value, number
// of values that are not finite and, with COMPARED, the largest difference from a second field.
//
// A block sums a chunk of CHUNK values, a constant for every device, and writes one struct Statistics; a second launch
// combines those. So the order of each sum is fixed: the same field gives the same bits on every device.
//
//        chunk    |  round 0                          |  round 1   ...
//                 |  load 0  |  load 1  | ... LOADS   |
//                 |  THREADS vectors of 16 bytes      |
//
// Each of the LOADS has its own accumulators, so that a thread has LOADS * 16 bytes in flight and additions do not wait for
// each other. Values of both precisions are added in float64, so a sum over 10^9 cells is as accurate as its terms.
// Traffic: sizeof(Real) per value, with COMPARED twice that. Operations per value: one conversion, two additions in float64,
// minimum, maximum, test for finiteness. Expected: the read bandwidth if float64 runs at half or a quarter of the speed of
// float32 (data-centre GPUs). At 1/64 of it the additions limit float32 fields, and no shorter sum would be exact.
//
// Macros: REAL, THREADS, FOLDERS (threads of the second launch), ROUNDS, COMPARED, and ALIGNED: whether arrays start at a
// multiple of 16 bytes. If not, values are loaded one by one, in the same order.

typedef REAL Real;

#define WARP 32
#define ALL_LANES 0xFFFFFFFFu
#define LOADS 4
#define VECTOR (16 / (int)sizeof(Real))
#define ROUND (THREADS * VECTOR * LOADS)
#define CHUNK (ROUND * ROUNDS)

struct __align__(16) Vector {
    Real at[VECTOR];
};

struct Statistics {
    double total, magnitude, lowest, highest, change;
    unsigned long long not_finite;
};

// The statistics of no values.
__device__ __forceinline__ Statistics nothing()
{
    const double infinity = __int_as_float(0x7F800000);
    return {0.0, 0.0, infinity, -infinity, 0.0, 0};
}

__device__ __forceinline__ Statistics joined(const Statistics& a, const Statistics& b)
{
    return {a.total + b.total,         a.magnitude + b.magnitude,     min(a.lowest, b.lowest),
            max(a.highest, b.highest), max(a.change, b.change),       a.not_finite + b.not_finite};
}

// The statistics of lane + delta. The last lanes get unused values.
__device__ __forceinline__ Statistics from_lane_above(const Statistics& mine, unsigned int delta)
{
    return {__shfl_down_sync(ALL_LANES, mine.total, delta),   __shfl_down_sync(ALL_LANES, mine.magnitude, delta),
            __shfl_down_sync(ALL_LANES, mine.lowest, delta),  __shfl_down_sync(ALL_LANES, mine.highest, delta),
            __shfl_down_sync(ALL_LANES, mine.change, delta),  __shfl_down_sync(ALL_LANES, mine.not_finite, delta)};
}

// Combines the statistics of all threads; thread 0 has the result.
template <int threads>
__device__ __forceinline__ Statistics joined_in_block(Statistics mine)
{
    __shared__ Statistics of_warp[threads / WARP];
    const unsigned int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
    for (unsigned int delta = WARP / 2; delta > 0; delta /= 2) mine = joined(mine, from_lane_above(mine, delta));
    if (lane == 0) of_warp[warp] = mine;
    __syncthreads();
    if (warp > 0) return mine;
    mine = lane < threads / WARP ? of_warp[lane] : nothing();
#pragma unroll
    for (unsigned int delta = threads / WARP / 2; delta > 0; delta /= 2) mine = joined(mine, from_lane_above(mine, delta));
    return mine;
}

// A thread's accumulators for one load of a round.
struct Sums {
    double total[LOADS], magnitude[LOADS];
    Real lowest, highest, change;
    unsigned int not_finite;
};

__device__ __forceinline__ void add(Sums& sums, int load, Real value, Real before)
{
    const double exact = value;
    sums.total[load] += exact;
    sums.magnitude[load] += fabs(exact);
    sums.lowest = min(sums.lowest, value);  // of a number and NaN the number
    sums.highest = max(sums.highest, value);
    sums.not_finite += !(value - value == 0);
#if COMPARED
    sums.change = max(sums.change, fabs(value - before));
#endif
}

__device__ __forceinline__ Vector load(const Real* values)
{
#if ALIGNED
    return *reinterpret_cast<const Vector*>(values);
#else
    Vector vector;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) vector.at[i] = values[i];
    return vector;
#endif
}

// The statistics of the chunk that begins at index `chunk` of `count` values.
__device__ __forceinline__ void look_at(const Real* __restrict__ values, const Real* __restrict__ before,
                                        const unsigned long long count, const unsigned long long chunk,
                                        Statistics* __restrict__ partial)
{
    // 1. The thread's share of the chunk: whole rounds.
    const Real infinity = __int_as_float(0x7F800000);
    Sums sums = {{}, {}, infinity, -infinity, 0, 0};
    const unsigned long long end = chunk + CHUNK < count ? chunk + CHUNK : count;
    unsigned long long start = chunk;
    for (; start + ROUND <= end; start += ROUND) {
        Vector vector[LOADS], other[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; ++k) {
            const unsigned long long i = start + (k * THREADS + threadIdx.x) * VECTOR;
            vector[k] = load(values + i);
#if COMPARED
            other[k] = load(before + i);
#else
            other[k] = vector[k];
#endif
        }
#pragma unroll
        for (int k = 0; k < LOADS; ++k)
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) add(sums, k, vector[k].at[i], other[k].at[i]);
    }

    // 2. The remainder at the end of the field, value by value.
    for (unsigned long long i = start + threadIdx.x; i < end; i += THREADS) {
#if COMPARED
        add(sums, 0, values[i], before[i]);
#else
        add(sums, 0, values[i], values[i]);
#endif
    }

    // 3. Combine the threads of the block.
    double total = 0.0, magnitude = 0.0;
#pragma unroll
    for (int k = 0; k < LOADS; ++k) {
        total += sums.total[k];
        magnitude += sums.magnitude[k];
    }
    const Statistics mine = {total, magnitude, sums.lowest, sums.highest, sums.change, sums.not_finite};
    const Statistics all = joined_in_block<THREADS>(mine);
    if (threadIdx.x == 0) *partial = all;
}

extern "C" __global__ void __launch_bounds__(THREADS)
look(const Real* __restrict__ values, const Real* __restrict__ before, const unsigned long long count,
     Statistics* __restrict__ partial)
{
    look_at(values, before, count, (unsigned long long)blockIdx.x * CHUNK, partial + blockIdx.x);
}

// The same for many arrays at once: `chunks` blocks for each array, where `chunks` is that of the longest.
struct Values {
    const Real* values;
    unsigned long long count;
};

#if !COMPARED
extern "C" __global__ void __launch_bounds__(THREADS, 1)
look_each(const Values* __restrict__ arrays, const unsigned int chunks, Statistics* __restrict__ partial)
{
    const Values array = arrays[blockIdx.x / chunks];
    const unsigned long long chunk = (unsigned long long)(blockIdx.x % chunks) * CHUNK;
    if (chunk < array.count) look_at(array.values, array.values, array.count, chunk, partial + blockIdx.x);
}
#endif

// Combines the statistics of the chunks, in one block.
__device__ __forceinline__ void fold_all(const Statistics* __restrict__ partial, const unsigned long long count,
                                         Statistics* __restrict__ result)
{
    Statistics mine = nothing();
    for (unsigned long long i = threadIdx.x; i < count; i += FOLDERS) mine = joined(mine, partial[i]);
    const Statistics all = joined_in_block<FOLDERS>(mine);
    if (threadIdx.x == 0) *result = all;
}

extern "C" __global__ void __launch_bounds__(FOLDERS, 1)
fold(const Statistics* __restrict__ partial, const unsigned long long count, Statistics* __restrict__ result)
{
    fold_all(partial, count, result);
}

#if !COMPARED
extern "C" __global__ void __launch_bounds__(FOLDERS, 1)
fold_each(const Values* __restrict__ arrays, const unsigned int chunks, const Statistics* __restrict__ partial,
          Statistics* __restrict__ results)
{
    const unsigned long long count = (arrays[blockIdx.x].count + CHUNK - 1) / CHUNK;
    fold_all(partial + (size_t)blockIdx.x * chunks, count, results + blockIdx.x);
}
#endif
