// sums: sums and extremes over all cells, in two launches. Included by multigrid.cu.
//
// Sums are formed in groups of planes of the whole grid (heatsim/grid.py). The grid determines the number of blocks per group.
// Each block stores its result; one block combines all results in the order of the blocks. So several GPUs give the same bits
// if each stores the results of its groups and all results are combined.

// The result of a thread, a warp, a block, or all blocks.
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

__device__ __forceinline__ void leave(Found found, Found* __restrict__ parts)
{
    found = of_block(found);
    if (threadIdx.x == 0) parts[blockIdx.x] = found;
}

#define NOTHING {0.0, -1.7976931348623157e308, 1.7976931348623157e308}

// The cells of a group and the blocks that share them.
#define GROUP_PARAMETERS const unsigned int count, const unsigned int of_group, const unsigned int blocks

// Goes through the cells i of this thread, of `count`, of which each `blocks` blocks share `of_group`.
#define FOR_EACH_CELL                                                                                        \
    const unsigned int group_ = blockIdx.x / blocks;                                                         \
    const unsigned int end_ = group_ < (count - 1) / of_group ? (group_ + 1) * of_group : count;             \
    for (unsigned int i = group_ * of_group + blockIdx.x % blocks * THREADS + threadIdx.x; i < end_; i += blocks * THREADS)

// One block unites the parts of all blocks.
__device__ __forceinline__ Found total(const Found* __restrict__ parts, const unsigned int count)
{
    Found found = NOTHING;
    for (unsigned int block = threadIdx.x; block < count; block += THREADS) unite(found, parts[block]);
    return of_block(found);
}
