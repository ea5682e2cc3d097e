// step_error: one pass over both ends of a step, for its error, the extremes of its result and values that are not finite.
//
// From the fields T0 and T1 at both ends of a step, and their rates F0 and F1, the error in a cell is a combination
//
//        e = w0 T0 + w1 F0 + w2 T1 + w3 F1
//
// Found are the largest |mean of e| over blocks of 2 x 2 x 2 cells and the largest |e| of a cell. Rounding differs from cell to
// cell, so the mean of a block has less of it than a cell; errors that alternate from cell to cell show in the cells alone.
// Blocks begin at even positions; the last ones of an axis may be thinner. Cells of void are left out. The pass also finds the
// extremes of T1 and counts the values that are not finite.
//
// One thread takes one block after the other, so a warp reads 64 consecutive cells of a row. Everything is computed in float64,
// in the order of the cells of a block. Maxima do not depend on the order of blocks: the same fields give the same bits on every
// device. Traffic: 4 sizeof(Real) per cell, plus its byte if there is void. Expected: the read bandwidth.
//
// `combine` makes a linear combination of the four fields, such as the cubic in time between both ends of the step. It reads
// four values and writes one.
//
// Macros: REAL, THREADS, PAIRS: whether rows begin at multiples of two values, so that two are loaded together.

typedef REAL Real;

struct Found {
    double mean, cell, lowest, highest;
    unsigned long long not_finite;
};

__device__ __forceinline__ Found nothing()
{
    const double infinity = __int_as_float(0x7F800000);
    return {0.0, 0.0, infinity, -infinity, 0};
}

__device__ __forceinline__ Found joined(const Found& a, const Found& b)
{
    return {max(a.mean, b.mean), max(a.cell, b.cell), min(a.lowest, b.lowest), max(a.highest, b.highest),
            a.not_finite + b.not_finite};
}

// Combines what all threads found; thread 0 returns it.
__device__ __forceinline__ Found joined_in_block(const Found& mine)
{
    __shared__ Found of_thread[THREADS];
    of_thread[threadIdx.x] = mine;
    for (unsigned int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) of_thread[threadIdx.x] = joined(of_thread[threadIdx.x], of_thread[threadIdx.x + half]);
    }
    return of_thread[threadIdx.x];
}

struct __align__(2 * sizeof(Real)) Pair {
    Real at[2];
};

// Two cells of a row, or one and any number if the second does not exist.
__device__ __forceinline__ Pair load(const Real* values, bool both)
{
#if PAIRS
    return *reinterpret_cast<const Pair*>(values);
#else
    return {values[0], both ? values[1] : values[0]};
#endif
}

// `cells` are the bytes of the cells, used if `void_type` is not negative.
// Four blocks a multiprocessor leave enough registers; left alone, the compiler takes fewer and spills one.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
look(const Real* __restrict__ T0, const Real* __restrict__ F0, const Real* __restrict__ T1, const Real* __restrict__ F1,
     const double w0, const double w1, const double w2, const double w3, const unsigned char* __restrict__ cells,
     const int void_type, const int nx, const int ny, const int nz,
     Found* __restrict__ partial)
{
    const unsigned int blocks_x = (nx + 1) / 2, blocks_y = (ny + 1) / 2, blocks_z = (nz + 1) / 2;
    const unsigned long long count = (unsigned long long)blocks_x * blocks_y * blocks_z;
    Found mine = nothing();
    for (unsigned long long n = (unsigned long long)blockIdx.x * THREADS + threadIdx.x; n < count;
         n += (unsigned long long)gridDim.x * THREADS) {
        const unsigned long long line = n / blocks_x;
        const int x = 2 * (int)(n - line * blocks_x), z = 2 * (int)(line / blocks_y);
        const int y = 2 * (int)(line - (unsigned long long)(z / 2) * blocks_y);
        double sum = 0.0;
        int summed = 0;
#pragma unroll
        for (int corner = 0; corner < 4; ++corner) {
            const int at_y = y + (corner & 1), at_z = z + (corner >> 1);
            if (at_y >= ny || at_z >= nz) continue;
            const size_t cell = ((size_t)at_z * ny + at_y) * nx + x;
            const bool both = x + 1 < nx;
            const Pair before = load(T0 + cell, both), after = load(T1 + cell, both);
            const Pair first = load(F0 + cell, both), last = load(F1 + cell, both);
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                if (i > 0 && !both) continue;
                if (void_type >= 0 && (cells[cell + i] & 0x7F) == void_type) continue;
                const double T = after.at[i];
                const double e = w0 * (double)before.at[i] + w1 * (double)first.at[i] + w2 * T + w3 * (double)last.at[i];
                sum += e;
                ++summed;
                mine.cell = max(mine.cell, fabs(e));
                mine.lowest = min(mine.lowest, T);  // of a number and NaN the number
                mine.highest = max(mine.highest, T);
                mine.not_finite += !(T - T == 0.0 && e - e == 0.0);
            }
        }
        if (summed) mine.mean = max(mine.mean, fabs(sum / summed));
    }
    const Found all = joined_in_block(mine);
    if (threadIdx.x == 0) partial[blockIdx.x] = all;
}

// Combines what the blocks found, in one block.
extern "C" __global__ void __launch_bounds__(THREADS)
fold(const Found* __restrict__ partial, const unsigned int count, Found* __restrict__ result)
{
    Found mine = nothing();
    for (unsigned int i = threadIdx.x; i < count; i += THREADS) mine = joined(mine, partial[i]);
    const Found all = joined_in_block(mine);
    if (threadIdx.x == 0) *result = all;
}

// out = w0 T0 + w1 F0 + w2 T1 + w3 F1, rounded once. `out` may be one of the four fields.
extern "C" __global__ void __launch_bounds__(THREADS)
combine(const Real* T0, const Real* F0, const Real* T1, const Real* F1, const double w0, const double w1, const double w2,
        const double w3, const unsigned long long count, Real* out)
{
    for (unsigned long long i = (unsigned long long)blockIdx.x * THREADS + threadIdx.x; i < count;
         i += (unsigned long long)gridDim.x * THREADS)
        out[i] = (Real)(w0 * (double)T0[i] + w1 * (double)F0[i] + w2 * (double)T1[i] + w3 * (double)F1[i]);
}
