// For kernels that do many steps in a launch: blocks that wait for each other, and the data that change from step to step.
// Included after vector.cuh.
//
// Each block counts its steps. A block starts a step when all blocks that own its neighbours have counted the previous step.
// By then they have also read the values that this step overwrites, so two buffers are enough. No barrier spans the whole grid.
// All blocks must run at the same time: there is at most one for each multiprocessor, and the launch is cooperative.

#define COUNT_STRIDE 32  // each count has a separate line of L2

// The count of a block.
__device__ __forceinline__ unsigned int* count_of(const Grid& grid, int block)
{
    return reinterpret_cast<unsigned int*>(const_cast<struct Segment*>(grid.segments)) + COUNT_STRIDE * block;
}

// A block writes values, then stores its count with a release. Blocks that load this count with an acquire see the values.
__device__ __forceinline__ unsigned int load_acquire(const unsigned int* number)
{
#if defined(__CUDA_ARCH__)
    unsigned int value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(number) : "memory");
    return value;
#else
    return cuda_host::load_acquire(number);
#endif
}

__device__ __forceinline__ void store_release(unsigned int* number, unsigned int value)
{
#if defined(__CUDA_ARCH__)
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(number), "r"(value) : "memory");
#else
    cuda_host::store_release(number, value);
#endif
}

// Waits until a block has done `steps` steps.
__device__ __forceinline__ void wait_for(const unsigned int* count, unsigned int steps)
{
    while ((int)(load_acquire(count) - steps) < 0) {}  // counts may overflow
}

// The data that change from step to step, in shared memory, for this step and the next.
struct Steps {
    StepData* sweeps;  // two
#if FACES
    Real* numbers;  // for each of the two: conditions, then heat of the types
    int conditions, types;
#endif
};

// Copies the data of a step. `count` threads call it; this is number `thread`.
__device__ __forceinline__ void copy_step(const Steps& to, int place, const StepData* from, int thread, int count)
{
#if FACES
    const Real* const conditions = reinterpret_cast<const Real*>(from->conditions);
    Real* const copied = to.numbers + place * (to.conditions + to.types);
    for (int i = thread; i < to.conditions; i += count) copied[i] = conditions[i];
    for (int i = thread; i < to.types; i += count) copied[to.conditions + i] = from->heat[i];
#endif
    if (thread == 0) {
        StepData& sweep = to.sweeps[place];
        sweep = *from;
#if FACES
        sweep.conditions = reinterpret_cast<const Condition*>(copied);
        sweep.heat = copied + to.conditions;
#endif
    }
}
