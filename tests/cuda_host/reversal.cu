// Each block reverses its stretch of the array in shared memory; BARRIER is what stands between writing and reading.
extern "C" __global__ void reverse(const float* in, float* out)
{
    __shared__ float tile[256];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = in[i];
    BARRIER;
    out[i] = tile[blockDim.x - 1 - threadIdx.x];
}

// The same in dynamic shared memory, which may be written `beyond` its last item.
extern "C" __global__ void reverse_dynamic(const float* in, float* out, int beyond)
{
    extern __shared__ float tile[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = in[i];
    BARRIER;
    out[i] = tile[blockDim.x - 1 - threadIdx.x];
    if (threadIdx.x == 0 && beyond) tile[blockDim.x - 1 + beyond] = 0.0f;
}
