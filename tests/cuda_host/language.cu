// What the language promises, apart from threads that work together.
struct Box {
    int nx, ny;
    double weight;
};

extern "C" __global__ void indices(int* out, const Box box)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    const int z = blockIdx.z * blockDim.z + threadIdx.z;
    out[(z * box.ny + y) * box.nx + x] = x + 100 * y + 10000 * z + int(box.weight);
}

extern "C" __global__ void round_once(const double* in, double* out)
{
    const float a = float(in[0]), b = float(in[1]), c = float(in[2]);
    out[0] = fmaf(a, b, c);
    out[1] = __fmaf_rn(a, b, c);
    out[2] = fma(a, b, c);
    out[3] = a * b + c;
    out[4] = fma(in[3], in[4], in[5]);
    out[5] = in[3] * in[4] + in[5];
}

extern "C" __global__ void bits(const float* in, unsigned int* out)
{
    out[0] = __float_as_uint(in[0]);
    out[1] = __float_as_uint(__uint_as_float(out[0] + 1u));
    out[2] = __umulhi(0xFFFFFFFFu, 0x80000000u);
    out[3] = min(7u, 5u) + max(1, -3);
}

// Reads shared memory in which this block stored nothing; stores something for the next block to find.
template <int N>
__device__ float found_in_template(int i)
{
    __shared__ float tile[N];
    const float found = tile[i];
    tile[i] = 1.0f;
    return found;
}

__device__ inline float found_in_function(int i)
{
    __shared__ float tile[32];
    const float found = tile[i];
    tile[i] = 1.0f;
    return found;
}

extern "C" __global__ void uninitialised(float* out)
{
    __shared__ float tile[32];
    __shared__ float never_written[32];
    const int i = threadIdx.x;
    float* row = out + blockIdx.x * 128 + i;
    row[0] = tile[i];
    row[32] = never_written[i];
    row[64] = found_in_template<32>(i);
    row[96] = found_in_function(i);
    tile[i] = 1.0f;
}
