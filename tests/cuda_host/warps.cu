// Each shuffle once, a row of results for each thread.
extern "C" __global__ void shuffle(const double* in, double* out, int width)
{
    const unsigned int lane = threadIdx.x % 32;
    const double value = in[threadIdx.x];
    double* row = out + 4 * threadIdx.x;
    row[0] = __shfl_sync(0xFFFFFFFFu, value, 3, width);
    row[1] = __shfl_up_sync(0xFFFFFFFFu, value, 2, width);
    row[2] = __shfl_down_sync(0xFFFFFFFFu, value, 2, width);
    row[3] = __shfl_xor_sync(0xFFFFFFFFu, value, 5, width);
    // Lanes that ran ahead must not have changed what the others read.
    if (lane % 2) row[3] += __shfl_xor_sync(0xAAAAAAAAu, 0.0, 2);
}

extern "C" __global__ void vote(const int* in, unsigned int* out)
{
    const bool yes = in[threadIdx.x];
    out[3 * threadIdx.x] = __ballot_sync(0xFFFFFFFFu, yes);
    out[3 * threadIdx.x + 1] = __any_sync(0xFFFFFFFFu, yes);
    out[3 * threadIdx.x + 2] = __all_sync(0xFFFFFFFFu, yes);
}

// A sum over the block: by shuffles in each warp, then over warps in shared memory.
__device__ float warp_sum(float value)
{
    #pragma unroll
    for (int delta = 16; delta > 0; delta /= 2) value += __shfl_down_sync(0xFFFFFFFFu, value, delta);
    return value;
}

extern "C" __global__ void sum(const float* in, float* out)
{
    __shared__ float partial[32];
    const float value = warp_sum(in[blockIdx.x * blockDim.x + threadIdx.x]);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    const float total = warp_sum(threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}

extern "C" __global__ void leave_own_lane_out(float* out)
{
    out[threadIdx.x] = __shfl_sync(0x0000FFFFu, 1.0f, 0);
}
