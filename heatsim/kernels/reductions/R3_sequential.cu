// R3 sequential addressing: the upper half is added to the lower half. Adjacent threads access adjacent words of shared
// memory, so no two lanes of a warp use the same bank.
//
//        tid   0   1   2   3   4   5   6   7
//              x   x   x   x + x   x   x   x      s = 4: 0 += 4, 1 += 5, 2 += 6, 3 += 7
//              x   x + x   x                      s = 2
//              x + x                              s = 1
//
// Traffic: as R1. Expected: faster than R2. Half of the threads load a value and never add.

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

    // 2. The tree, with falling distances.
    for (unsigned int s = THREADS / 2; s > 0; s /= 2) {
        if (tid < s) local[tid] += local[tid + s];
        __syncthreads();
    }

    // 3. One sum per block.
    if (tid == 0) sums[blockIdx.x] = local[0];
}
