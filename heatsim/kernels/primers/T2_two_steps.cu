// T2 two steps: both steps of T1 in one launch. A block loads its values and a halo of two on both sides; each step costs one
// value on either side, because it needs neighbours that only other blocks compute.
//
//        before    h h o o o o o o h h        loaded
//        between     h o o o o o o h          after the first step, in shared memory
//        after         o o o o o o            written
//
// Traffic of two steps: one value read and one written, and the halos. 07 of the ladder does four steps in three dimensions like
// this. Expected: more than T1; barriers and shared memory keep it from the copy.

typedef REAL Real;

__device__ __forceinline__ Real step(Real T, Real west, Real east) { return T + (Real)0.25 * (west + east - (Real)2 * T); }

extern "C" __global__ void __launch_bounds__(THREADS)
conduct(const Real* __restrict__ T, Real* __restrict__ T_new, const unsigned long long count)
{
    __shared__ Real before[THREADS], between[THREADS];
    const int thread = threadIdx.x;
    const long long i = (long long)blockIdx.x * (THREADS - 2 * HALO) + thread - HALO, last = count - 1;
    before[thread] = T[i < 0 ? 0 : i > last ? last : i];
    const int west = i > 0 ? thread - 1 : thread, east = i < last ? thread + 1 : thread;
    __syncthreads();  // neighbours' values are needed below

    if (thread > 0 && thread < THREADS - 1) between[thread] = step(before[thread], before[west], before[east]);
    __syncthreads();  // and their values after the first step

    if (thread >= HALO && thread < THREADS - HALO && i <= last)
        T_new[i] = step(between[thread], between[west], between[east]);
}
