// The ceiling of all reductions: every value is read, 16 bytes a load and four loads under way a thread, and one word a
// block is kept, so that the compiler cannot leave the reading out. Two operations of the cheapest kind a load of 4 bytes.

#define LOADS 4

extern "C" __global__ void __launch_bounds__(THREADS)
read(const uint4* __restrict__ values, unsigned int* __restrict__ kept, const unsigned long long count)
{
    // 1. A block reads a run of LOADS * THREADS vectors at a time, in strides of the grid.
    unsigned int word = 0;
    const unsigned long long stride = (unsigned long long)gridDim.x * (LOADS * THREADS);
    for (unsigned long long i = (unsigned long long)blockIdx.x * (LOADS * THREADS) + threadIdx.x; i < count; i += stride) {
        uint4 loaded[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; ++k)
            loaded[k] = i + k * THREADS < count ? values[i + k * THREADS] : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int k = 0; k < LOADS; ++k) word ^= loaded[k].x ^ loaded[k].y ^ loaded[k].z ^ loaded[k].w;
    }

    // 2. Kept if it is a number that hardly ever comes up, and in any case as far as the compiler can know.
    if (word == 0x9E3779B9u) kept[blockIdx.x] = word;
}
