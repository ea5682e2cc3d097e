// L3 vectors: a thread owns a vector of 16 bytes: 4 values in float32, 2 in float64. It loads this vector and those on both sides
// that it needs, and adds up from registers.
//
//        thread t     | vector t - 1 | vector t | vector t + 1 |        float32; in float64 two vectors on either side
//                         from L1        own        from L1
//
// In float32, 3 loads give 4 sums, where the naive kernel needs 7 for one. Traffic as L1. Expected: the copy.

typedef REAL Real;

#define VECTOR (16 / (int)sizeof(Real))
#define BESIDE ((RADIUS + VECTOR - 1) / VECTOR)  // vectors on either side

struct __align__(16) Cells {
    Real at[VECTOR];
};

// The vector that starts at `place`, a multiple of VECTOR; the first or last value is repeated beyond the ends.
__device__ __forceinline__ Cells load(const Real* values, long long place, long long count)
{
    if (place >= 0 && place + VECTOR <= count) return *reinterpret_cast<const Cells*>(values + place);
    Cells cells;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
        const long long at = place + i;
        cells.at[i] = values[at < 0 ? 0 : at < count ? at : count - 1];
    }
    return cells;
}

extern "C" __global__ void __launch_bounds__(THREADS)
moving_sum(const Real* __restrict__ values, Real* __restrict__ sums, const unsigned long long count)
{
    const long long first = ((long long)blockIdx.x * THREADS + threadIdx.x) * VECTOR, end = count;
    if (first >= end) return;
    Real window[(2 * BESIDE + 1) * VECTOR];
#pragma unroll
    for (int part = 0; part <= 2 * BESIDE; ++part) {
        const Cells cells = load(values, first + (part - BESIDE) * VECTOR, end);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) window[part * VECTOR + i] = cells.at[i];
    }
    Cells result;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
        Real sum = 0;
#pragma unroll
        for (int offset = -RADIUS; offset <= RADIUS; ++offset) sum += window[BESIDE * VECTOR + i + offset];
        result.at[i] = sum;
    }
    if (first + VECTOR <= end) {
        *reinterpret_cast<Cells*>(sums + first) = result;
        return;
    }
#pragma unroll
    for (int i = 0; i < VECTOR; ++i)
        if (first + i < end) sums[first + i] = result.at[i];
}
