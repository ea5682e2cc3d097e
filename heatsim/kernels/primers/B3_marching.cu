// B3 marching: a thread owns a vector of 16 bytes of a row, 4 pixels in float32 and 2 in float64, and walks ROWS rows down. It
// keeps the sums of three rows in registers, so each pixel is loaded once and each sum of a row is calculated once. Pixels
// beside its own come by shuffle.
//
//        lane          0        1        2
//        row y - 1   [....]   [....]   [....]    sum kept
//        row y       [....]   [....]   [....]    sum kept; written now
//        row y + 1   [....]   [....]   [....]    just loaded:  west lane -> own -> east lane
//
// Traffic: each pixel is read once, and 2 rows of ROWS again. Expected: the copy. The ladder's 06 does the same along z.

typedef REAL Real;

#define WARP 32
#define ALL_LANES 0xFFFFFFFFu
#define VECTOR (16 / (int)sizeof(Real))

struct __align__(16) Cells {
    Real at[VECTOR];
};

// VECTOR pixels from x on; the last one of the row is repeated beyond its end.
__device__ __forceinline__ Cells load(const Real* row, int x, int width)
{
#if WHOLE_VECTORS
    if (x < width) return *reinterpret_cast<const Cells*>(row + x);
#endif
    Cells cells;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) cells.at[i] = row[min(x + i, width - 1)];
    return cells;
}

// The sums of three adjacent pixels of row y.
__device__ __forceinline__ Cells sums_of_row(const Real* image, int x, int y, int width, int height)
{
    const Real* const row = image + (size_t)min(max(y, 0), height - 1) * width;
    const Cells here = load(row, x, width);
    Real west = __shfl_up_sync(ALL_LANES, here.at[VECTOR - 1], 1), east = __shfl_down_sync(ALL_LANES, here.at[0], 1);
    if (threadIdx.x == 0) west = row[max(min(x, width) - 1, 0)];
    if (threadIdx.x == WARP - 1) east = row[min(x + VECTOR, width - 1)];
    Cells sums;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i)
        sums.at[i] = (i == 0 ? west : here.at[i - 1]) + here.at[i] + (i == VECTOR - 1 ? east : here.at[i + 1]);
    return sums;
}

extern "C" __global__ void __launch_bounds__(BLOCK_X * BLOCK_Y)
smooth(const Real* __restrict__ image, Real* __restrict__ smoothed, const int width, const int height)
{
    static_assert(BLOCK_X == WARP, "a warp is a row of threads");
    const int x = (blockIdx.x * WARP + threadIdx.x) * VECTOR;
    const int first = (blockIdx.y * BLOCK_Y + threadIdx.y) * ROWS, end = min(first + ROWS, height);
    if (first >= height) return;  // whole warps
    Cells above = sums_of_row(image, x, first - 1, width, height), here = sums_of_row(image, x, first, width, height);
    for (int y = first; y < end; ++y) {
        const Cells below = sums_of_row(image, x, y + 1, width, height);
        Cells mean;
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) mean.at[i] = (above.at[i] + here.at[i] + below.at[i]) / 9;
        Real* const target = smoothed + (size_t)y * width + x;
#if WHOLE_VECTORS
        if (x < width) *reinterpret_cast<Cells*>(target) = mean;
#else
#pragma unroll
        for (int i = 0; i < VECTOR; ++i)
            if (x + i < width) target[i] = mean.at[i];
#endif
        above = here;
        here = below;
    }
}
