// Tells a block which run of the ensemble it steps, and where that run's data are.
//
// A table has one row per member. The sweep of a launch is `*done` + `number`: `number` is fixed for each launch, and `*done`
// counts the sweeps before. So a recorded launch can be repeated.

struct Member {
    Real* field[2];
    const StepData* sweeps;  // one for each step; those of one sweep if all sweeps are alike
    Ledger ledger;
    Coefficients c;
    unsigned int count;   // sweeps to do
    unsigned int stride;  // entries of `sweeps` from one sweep to the next; 0 if all are alike
};

// Struct Grid of an ensemble's launch: along z come the blocks of one member, then those of the next.
struct EnsembleGrid : Grid {
    int layers, first_member;  // blocks along z for each member; first member of this launch
};

// Even sweeps write from the first buffer to the second, odd sweeps back.
__device__ __forceinline__ const Real* field_before(const Member& member, unsigned int sweep) { return member.field[sweep & 1]; }
__device__ __forceinline__ Real* field_after(const Member& member, unsigned int sweep) { return member.field[1 - (sweep & 1)]; }

__device__ __forceinline__ const StepData* sweeps_of(const Member& member, unsigned int sweep)
{
    return member.sweeps + (size_t)sweep * member.stride;
}
