// sums: sums and extremes over all cells, in two launches. Each of BLOCKS blocks leaves what it has found; one block unites that.
// Included by multigrid.cu.

// What a thread, a warp, a block, and then all of them have found.
struct Found {
    double sum, largest, lowest;
};

__device__ __forceinline__ void unite(Found& found, const Found& other)
{
    found.sum += other.sum;
    found.largest = max(found.largest, other.largest);
    found.lowest = min(found.lowest, other.lowest);
}

// Unites what the threads of a block have found; complete in thread 0.
__device__ __forceinline__ Found of_block(Found found)
{
    __shared__ Found of_warp[THREADS / WARP];
#pragma unroll
    for (unsigned int delta = WARP / 2; delta > 0; delta /= 2)
        unite(found, {__shfl_down_sync(ALL_LANES, found.sum, delta), __shfl_down_sync(ALL_LANES, found.largest, delta),
                      __shfl_down_sync(ALL_LANES, found.lowest, delta)});
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = found;
    __syncthreads();
    if (threadIdx.x == 0)
        for (unsigned int warp = 1; warp < THREADS / WARP; ++warp) unite(found, of_warp[warp]);
    return found;
}

__device__ __forceinline__ void leave(Found found, double* __restrict__ parts)
{
    found = of_block(found);
    if (threadIdx.x > 0) return;
    parts[blockIdx.x] = found.sum;
    parts[BLOCKS + blockIdx.x] = found.largest;
    parts[2 * BLOCKS + blockIdx.x] = found.lowest;
}

#define NOTHING {0.0, -1.7976931348623157e308, 1.7976931348623157e308}

// One block unites the parts of BLOCKS blocks.
__device__ __forceinline__ Found total(const double* __restrict__ parts)
{
    Found found = NOTHING;
    for (unsigned int block = threadIdx.x; block < BLOCKS; block += THREADS)
        unite(found, {parts[block], parts[BLOCKS + block], parts[2 * BLOCKS + block]});
    return of_block(found);
}
