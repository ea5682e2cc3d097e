// L1 naive: one thread per value. Each adds up the 2 * RADIUS + 1 values around its own, straight from global memory. Beyond the
// ends of the line, the first or last value is repeated.
//
//        values   | a b c [d e f g h i j] k l m |        sum of g: d + e + f + g + h + i + j
//
// Every value is read 2 * RADIUS + 1 times. Adjacent threads read adjacent values, so all but the first read come from L1.
// Traffic: one value read and one written. Expected: near the copy; the loads, not the memory, come to limit it.

typedef REAL Real;

extern "C" __global__ void __launch_bounds__(THREADS)
moving_sum(const Real* __restrict__ values, Real* __restrict__ sums, const unsigned long long count)
{
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x, last = count - 1;
    if (i > last) return;
    Real sum = 0;
#pragma unroll
    for (int offset = -RADIUS; offset <= RADIUS; ++offset) {
        const long long place = i + offset;
        sum += values[place < 0 ? 0 : place > last ? last : place];
    }
    sums[i] = sum;
}
