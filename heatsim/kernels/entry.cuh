// The kernel `advance`: every block updates its part of the grid. The file that includes this one defines advance_block()
// and LAUNCH_BOUNDS.

#if MEMBERS
#include "ensemble/entry.cuh"
#else
extern "C" __global__ void LAUNCH_BOUNDS
advance(const Real* __restrict__ T, Real* __restrict__ T_new, const Grid grid, const Coefficients c,
        const StepData* __restrict__ sweep, const Ledger ledger)
{
    const Coefficients& own = of_step(c, sweep);
    advance_block(T, T_new, grid, own, sweep, ledger, {blockIdx.x, blockIdx.y, blockIdx.z});
}
#endif
