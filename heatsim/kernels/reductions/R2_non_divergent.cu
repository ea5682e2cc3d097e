// R2 non-divergent: the same tree, its additions done by the first threads of the block, so that whole warps have work or
// none.
//
//        tid   0   1   2   3   4   5   6   7
//              x + x   x + x   x + x   x + x      s = 1: by threads 0, 1, 2, 3
//              x   +   x       x   +   x          s = 2: by threads 0, 1
//              x       +       x                  s = 4: by thread 0
//
// Bytes: as R1. Expected: faster than R1. What is left to complain of: neighbouring threads are 2s words apart in shared
// memory, so that with s = 16 all lanes of a warp ask the same bank.

typedef REAL Real;

extern "C" __global__ void __launch_bounds__(THREADS)
reduce(const Real* __restrict__ values, Real* __restrict__ sums, const unsigned long long count)
{
    __shared__ Real local[THREADS];
    const unsigned int tid = threadIdx.x;
    const unsigned long long i = (unsigned long long)blockIdx.x * THREADS + tid;

    // 1. A value a thread.
    local[tid] = i < count ? values[i] : (Real)0;
    __syncthreads();

    // 2. The tree: the place that is added to goes with the thread's number, not the thread with the place.
    for (unsigned int s = 1; s < THREADS; s *= 2) {
        const unsigned int place = 2 * s * tid;
        if (place < THREADS) local[place] += local[place + s];
        __syncthreads();
    }

    // 3. A sum a block.
    if (tid == 0) sums[blockIdx.x] = local[0];
}
