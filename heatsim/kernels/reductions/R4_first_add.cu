// R4 first add during load: a thread loads two values and adds them on the way. Half as many blocks, and no thread that
// only loads.
//
// Bytes: sizeof(Real) a value read, and half as many sums as R3. Expected: up to twice as fast as R3, because two loads of
// a thread are under way at a time and the tree serves twice as many values.

typedef REAL Real;

extern "C" __global__ void __launch_bounds__(THREADS)
reduce(const Real* __restrict__ values, Real* __restrict__ sums, const unsigned long long count)
{
    __shared__ Real local[THREADS];
    const unsigned int tid = threadIdx.x;
    const unsigned long long i = (unsigned long long)blockIdx.x * (2 * THREADS) + tid;

    // 1. Two values a thread, THREADS apart, so that each load of a warp is a run of memory.
    const Real first = i < count ? values[i] : (Real)0;
    const Real second = i + THREADS < count ? values[i + THREADS] : (Real)0;
    local[tid] = first + second;
    __syncthreads();

    // 2. The tree.
    for (unsigned int s = THREADS / 2; s > 0; s /= 2) {
        if (tid < s) local[tid] += local[tid + s];
        __syncthreads();
    }

    // 3. A sum a block.
    if (tid == 0) sums[blockIdx.x] = local[0];
}
