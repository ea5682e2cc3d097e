// R1 interleaved: a block adds up THREADS values in shared memory, as a tree whose steps grow: first neighbours, then
// neighbours but one, and so on. Launched again on the blocks' sums until one is left.
//
//        tid   0   1   2   3   4   5   6   7
//              x + x   x + x   x + x   x + x      s = 1
//              x   +   x       x   +   x          s = 2
//              x       +       x                  s = 4
//
// Bytes: sizeof(Real) a value read, and one sum a block. Expected: far from the read bandwidth. The threads at work are
// every 2s-th: in each step all warps are alive for ever fewer lanes, and the remainder `%` is slow arithmetic.

typedef REAL Real;

extern "C" __global__ void __launch_bounds__(THREADS)
reduce(const Real* __restrict__ values, Real* __restrict__ sums, const unsigned long long count)
{
    __shared__ Real local[THREADS];
    const unsigned int tid = threadIdx.x;
    const unsigned long long i = (unsigned long long)blockIdx.x * THREADS + tid;

    // 1. A value a thread; beyond the end nothing is added.
    local[tid] = i < count ? values[i] : (Real)0;
    __syncthreads();

    // 2. The tree.
    for (unsigned int s = 1; s < THREADS; s *= 2) {
        if (tid % (2 * s) == 0) local[tid] += local[tid + s];
        __syncthreads();
    }

    // 3. A sum a block.
    if (tid == 0) sums[blockIdx.x] = local[0];
}
