// The kernel `advance` for an ensemble. It calls the same advance_block() as the kernel for one run.

#include "ensemble/members.cuh"

extern "C" __global__ void LAUNCH_BOUNDS
advance(const Member* __restrict__ members, const unsigned int* __restrict__ done, const unsigned int number,
        const EnsembleGrid grid)
{
    const Member& member = members[grid.first_member + blockIdx.z / grid.layers];
    const unsigned int sweep = *done + number;
    if (sweep >= member.count) return;
#if OWN_COEFFICIENTS
    const Coefficients c = of_stage(sweeps_of(member, sweep)->stage);
#else
    const Coefficients c = member.c;
#endif
    advance_block(field_before(member, sweep), field_after(member, sweep), grid, c, sweeps_of(member, sweep), member.ledger,
                  {blockIdx.x, blockIdx.y, blockIdx.z % grid.layers});
}
