// R7 more work per thread: as many blocks as the device holds at once; each visits the values in strides of the whole grid.
// The tree, the barriers and the start of a block are paid once for hundreds of values, not for two.
//
//        values   |  block 0  |  block 1  |  ...  |  block 0  |  block 1  |  ...
//                 |<-------- a stride of the grid -------->|
//
// Traffic: sizeof(Real) per value read, almost nothing written. Expected: a large part of the read bandwidth. Still to gain:
// loads of 16 bytes instead of sizeof(Real), and more loads in flight; fused.cu has both.

typedef REAL Real;

#define WARP 32
#define ALL_LANES 0xFFFFFFFFu

extern "C" __global__ void __launch_bounds__(THREADS)
reduce(const Real* __restrict__ values, Real* __restrict__ sums, const unsigned long long count)
{
    __shared__ Real local[THREADS];
    const unsigned int tid = threadIdx.x;

    // 1. Two values per stride.
    Real sum = 0;
    const unsigned long long stride = (unsigned long long)gridDim.x * (2 * THREADS);
    for (unsigned long long i = (unsigned long long)blockIdx.x * (2 * THREADS) + tid; i < count; i += stride) {
        sum += values[i];
        if (i + THREADS < count) sum += values[i + THREADS];
    }
    local[tid] = sum;
    __syncthreads();

    // 2. The tree.
#pragma unroll
    for (unsigned int s = THREADS / 2; s > WARP; s /= 2) {
        if (tid < s) local[tid] += local[tid + s];
        __syncthreads();
    }

    // 3. The first warp alone.
    if (tid >= WARP) return;
    sum = local[tid] + local[tid + WARP];
    sum += __shfl_down_sync(ALL_LANES, sum, 16);
    sum += __shfl_down_sync(ALL_LANES, sum, 8);
    sum += __shfl_down_sync(ALL_LANES, sum, 4);
    sum += __shfl_down_sync(ALL_LANES, sum, 2);
    sum += __shfl_down_sync(ALL_LANES, sum, 1);

    // 4. One sum per block.
    if (tid == 0) sums[blockIdx.x] = sum;
}
