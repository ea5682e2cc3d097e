// T1 one step: heat conduction along a line, one step a launch. Two steps are two launches: the first writes to a second array,
// from which the second reads. Beyond the ends, the first or last value is repeated: no heat leaves the line.
//
// Traffic of two steps: two values read and two written. Expected: at most half of the copy.

typedef REAL Real;

extern "C" __global__ void __launch_bounds__(THREADS)
conduct(const Real* __restrict__ T, Real* __restrict__ T_new, const unsigned long long count)
{
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x, last = count - 1;
    if (i > last) return;
    const Real west = T[i > 0 ? i - 1 : 0], east = T[i < last ? i + 1 : last];
    T_new[i] = T[i] + (Real)0.25 * (west + east - (Real)2 * T[i]);
}
