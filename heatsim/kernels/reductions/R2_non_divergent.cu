// R2 non-divergent: the same tree, but the first threads of the block do the additions. So a warp works either completely
// or not at all.
//
//        tid   0   1   2   3   4   5   6   7
//              x + x   x + x   x + x   x + x      s = 1: by threads 0, 1, 2, 3
//              x   +   x       x   +   x          s = 2: by threads 0, 1
//              x       +       x                  s = 4: by thread 0
//
// Traffic: as R1. Expected: faster than R1. What remains: adjacent threads access words 2s apart in shared memory, so with
// s = 16 all lanes of a warp use the same bank.

typedef REAL Real;

extern "C" __global__ void __launch_bounds__(THREADS)
reduce(const Real* __restrict__ values, Real* __restrict__ sums, const unsigned long long count)
{
    __shared__ Real local[THREADS];
    const unsigned int tid = threadIdx.x;
    const unsigned long long i = (unsigned long long)blockIdx.x * THREADS + tid;

    // 1. One value per thread.
    local[tid] = i < count ? values[i] : (Real)0;
    __syncthreads();

    // 2. The tree: the thread's number gives the element that it adds to.
    for (unsigned int s = 1; s < THREADS; s *= 2) {
        const unsigned int place = 2 * s * tid;
        if (place < THREADS) local[place] += local[place + s];
        __syncthreads();
    }

    // 3. One sum per block.
    if (tid == 0) sums[blockIdx.x] = local[0];
}
