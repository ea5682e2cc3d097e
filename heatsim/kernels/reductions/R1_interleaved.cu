// R1 interleaved: a block sums THREADS values in shared memory, as a tree with growing distances: first adjacent values,
// then values 2 apart, and so on. Launched again on the sums of the blocks until one is left.
//
//        tid   0   1   2   3   4   5   6   7
//              x + x   x + x   x + x   x + x      s = 1
//              x   +   x       x   +   x          s = 2
//              x       +       x                  s = 4
//
// Traffic: sizeof(Real) per value read, and one sum per block. Expected: far below the read bandwidth. Every 2s-th thread
// works, so in each step all warps stay active for fewer and fewer lanes; and the remainder `%` is slow arithmetic.

typedef REAL Real;

extern "C" __global__ void __launch_bounds__(THREADS)
reduce(const Real* __restrict__ values, Real* __restrict__ sums, const unsigned long long count)
{
    __shared__ Real local[THREADS];
    const unsigned int tid = threadIdx.x;
    const unsigned long long i = (unsigned long long)blockIdx.x * THREADS + tid;

    // 1. One value per thread; 0 beyond the end.
    local[tid] = i < count ? values[i] : (Real)0;
    __syncthreads();

    // 2. The tree.
    for (unsigned int s = 1; s < THREADS; s *= 2) {
        if (tid % (2 * s) == 0) local[tid] += local[tid + s];
        __syncthreads();
    }

    // 3. One sum per block.
    if (tid == 0) sums[blockIdx.x] = local[0];
}
