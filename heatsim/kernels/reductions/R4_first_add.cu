// R4 first add during load: a thread loads two values and adds them. There are half as many blocks, and no thread only
// loads.
//
// Traffic: sizeof(Real) per value read, and half as many sums as R3. Expected: up to twice as fast as R3: a thread has two
// loads in flight, and each tree sums twice as many values.

typedef REAL Real;

extern "C" __global__ void __launch_bounds__(THREADS)
reduce(const Real* __restrict__ values, Real* __restrict__ sums, const unsigned long long count)
{
    __shared__ Real local[THREADS];
    const unsigned int tid = threadIdx.x;
    const unsigned long long i = (unsigned long long)blockIdx.x * (2 * THREADS) + tid;

    // 1. Two values per thread, THREADS apart, so that each load of a warp is contiguous.
    const Real first = i < count ? values[i] : (Real)0;
    const Real second = i + THREADS < count ? values[i + THREADS] : (Real)0;
    local[tid] = first + second;
    __syncthreads();

    // 2. The tree.
    for (unsigned int s = THREADS / 2; s > 0; s /= 2) {
        if (tid < s) local[tid] += local[tid + s];
        __syncthreads();
    }

    // 3. One sum per block.
    if (tid == 0) sums[blockIdx.x] = local[0];
}
