// R5 unrolled last warp: when one warp is left, it continues in registers with shuffles: no barrier of the block, no shared
// memory, no comparison.
//
// Traffic: as R4. Expected: faster than R4, which waits six times for warps without work.
//
// The classic listing stays in shared memory here and omits the barrier:
//
//        if (tid < 32) {
//            local[tid] += local[tid + 32];
//            local[tid] += local[tid + 16];  // may read a value that another lane has not written yet, or has overwritten
//            ...
//
// It assumed that the lanes of a warp run in lock step. Since Volta each lane has its own program counter, and the compiler
// may reorder their accesses: lane 16 need not have done its first line when lane 0 does its second. Correct code needs a
// __syncwarp() between every read and write, or shuffles, which wait for the lanes in their mask.

typedef REAL Real;

#define WARP 32
#define ALL_LANES 0xFFFFFFFFu

extern "C" __global__ void __launch_bounds__(THREADS)
reduce(const Real* __restrict__ values, Real* __restrict__ sums, const unsigned long long count)
{
    __shared__ Real local[THREADS];
    const unsigned int tid = threadIdx.x;
    const unsigned long long i = (unsigned long long)blockIdx.x * (2 * THREADS) + tid;

    // 1. Two values per thread.
    const Real first = i < count ? values[i] : (Real)0;
    const Real second = i + THREADS < count ? values[i + THREADS] : (Real)0;
    local[tid] = first + second;
    __syncthreads();

    // 2. The tree, until two values per lane of the first warp are left.
    for (unsigned int s = THREADS / 2; s > WARP; s /= 2) {
        if (tid < s) local[tid] += local[tid + s];
        __syncthreads();
    }

    // 3. The first warp alone.
    if (tid >= WARP) return;
    Real sum = local[tid] + local[tid + WARP];
    sum += __shfl_down_sync(ALL_LANES, sum, 16);
    sum += __shfl_down_sync(ALL_LANES, sum, 8);
    sum += __shfl_down_sync(ALL_LANES, sum, 4);
    sum += __shfl_down_sync(ALL_LANES, sum, 2);
    sum += __shfl_down_sync(ALL_LANES, sum, 1);

    // 4. One sum per block.
    if (tid == 0) sums[blockIdx.x] = sum;
}
