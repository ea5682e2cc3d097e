// Mistakes that a launch must report.
extern "C" __global__ void two_barriers(int* out)
{
    if (threadIdx.x < 16)
        __syncthreads();
    else
        __syncthreads();
    out[threadIdx.x] = 1;
}

extern "C" __global__ void barrier_against_shuffle(int* out)
{
    if (threadIdx.x < 16) __syncthreads();
    out[threadIdx.x] = __shfl_sync(0xFFFFFFFFu, 1, 0);
    if (threadIdx.x >= 16) __syncthreads();
}

// No mistake: threads that have exited are not waited for.
extern "C" __global__ void early_exit(int* out)
{
    if (threadIdx.x >= 16) return;
    __syncthreads();
    out[threadIdx.x] = 1;
}

extern "C" __global__ void beyond_the_row(int* out, int column)
{
    __shared__ int tile[4][8];
    tile[0][threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = tile[0][column];
}

extern "C" __global__ void misaligned(float* out, int offset)
{
    *reinterpret_cast<float4*>(out + offset) = make_float4(1.0f, 2.0f, 3.0f, 4.0f);
}

extern "C" __global__ void overflow(int* out, int value)
{
    out[0] = value * value;
}

extern "C" __global__ void outside(float* out, int i)
{
    out[i] = 1.0f;
}
