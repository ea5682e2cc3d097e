// The ceiling of all reductions: reads every value, 16 bytes per load and four loads in flight per thread. It keeps one word
// per block, so that the compiler cannot remove the loads. Two of the cheapest operations per 4 bytes loaded.

#define LOADS 4

extern "C" __global__ void __launch_bounds__(THREADS)
read(const uint4* __restrict__ values, unsigned int* __restrict__ kept, const unsigned long long count)
{
    // 1. A block reads LOADS * THREADS consecutive vectors at a time, in strides of the grid.
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

    // 2. Write the word only if it has one rare value; the compiler cannot know that it hardly ever has.
    if (word == 0x9E3779B9u) kept[blockIdx.x] = word;
}
