// L2 tiled: a block copies its values and a halo of RADIUS on both sides to shared memory; then each thread adds up from there.
//
//        tile     | halo |  THREADS values of the block  | halo |
//                   ^ the first RADIUS threads load both halos
//
// The barrier between loading and adding is needed: without it a thread may read a value that another thread has not loaded yet.
// Traffic as L1; each value is read from memory once by its block, halos twice. Expected: as L1. A cache already did what the
// tile does, and the copy to shared memory and the barrier cost more time.

typedef REAL Real;

extern "C" __global__ void __launch_bounds__(THREADS)
moving_sum(const Real* __restrict__ values, Real* __restrict__ sums, const unsigned long long count)
{
    __shared__ Real tile[THREADS + 2 * RADIUS];
    const long long first = (long long)blockIdx.x * THREADS, last = count - 1;
    const int thread = threadIdx.x;

    // 1. The tile: each thread its own value, the first threads also the halos.
    const long long i = first + thread;
    tile[RADIUS + thread] = values[i < last ? i : last];
    if (thread < RADIUS) {
        const long long before = i - RADIUS, behind = i + THREADS;
        tile[thread] = values[before < 0 ? 0 : before];
        tile[RADIUS + THREADS + thread] = values[behind < last ? behind : last];
    }
    __syncthreads();

    // 2. The sum.
    if (i > last) return;
    Real sum = 0;
#pragma unroll
    for (int offset = -RADIUS; offset <= RADIUS; ++offset) sum += tile[RADIUS + thread + offset];
    sums[i] = sum;
}
