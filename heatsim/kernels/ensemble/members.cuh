// Where a kernel that steps an ensemble finds the run that a block belongs to.
//
// Each member has a row of a table. Two numbers say which of its sweeps a launch does, so that a recorded launch can be
// repeated: `number` is the launch's own, `*done` counts the sweeps before the recording.

struct Member {
    Real* field[2];
    const Sweep* sweeps;  // of all its steps; of those of one sweep where they are alike
    Ledger ledger;
    Coefficients c;
    unsigned int count;   // sweeps that it does
    unsigned int stride;  // steps from the sweeps of one to those of the next
};

// Struct Grid of a launch for members: blocks lie along z member after member.
struct EnsembleGrid : Grid {
    int layers, first_member;  // blocks along z of a member; the first member of this launch
};

// An odd sweep goes back from the second buffer to the first.
__device__ __forceinline__ const Real* field_before(const Member& member, unsigned int sweep) { return member.field[sweep & 1]; }
__device__ __forceinline__ Real* field_after(const Member& member, unsigned int sweep) { return member.field[1 - (sweep & 1)]; }

__device__ __forceinline__ const Sweep* sweeps_of(const Member& member, unsigned int sweep)
{
    return member.sweeps + (size_t)sweep * member.stride;
}
