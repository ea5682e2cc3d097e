// Keeps 64 values alive at once: with few registers a thread has to put some of them into local memory.
extern "C" __global__ void advance(const float* in, float* out)
{
    float values[64];
    #pragma unroll
    for (int i = 0; i < 64; ++i) values[i] = in[64 * threadIdx.x + i];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 64; ++i) out[64 * threadIdx.x + 63 - i] = values[i] * values[(i + 17) % 64];
}
