// find: search many fields, with one launch, for the first cell with a certain value. The value comes from the host, or from the
// statistics that an earlier launch found: then the host need not wait between the launches.
//
// A block does one chunk of one field and writes the index of the first cell there, or NONE. So an index does not depend on
// the order of the blocks. Traffic: sizeof(Real) per cell.
//
// Macros: REAL, THREADS, CHUNK (cells of a block), PARTS (the most parts of a field, a multiple of 32).

typedef REAL Real;

#define WARP 32
#define ALL_LANES 0xFFFFFFFFu
#define NONE 0xFFFFFFFFFFFFFFFFull
#define NO_PART 0xFFFFFFFFu

// As in fused.cu.
struct Statistics {
    double total, magnitude, lowest, highest, change, not_finite, degrees, liquid;
};

struct Wanted {
    const Real* field;
    const unsigned char* labels;  // null: any cell will do
    unsigned long long count;
    double value;
    const Statistics* found;      // if not null: search for the extreme of the chosen parts, instead of `value`
    unsigned int mask, label;     // the label of the cell, where there are labels
    unsigned int sections, parts; // of `found`
    unsigned int chosen[PARTS / 32];  // a bit for each part
    unsigned int highest;         // 1: the highest value, 0: the lowest
    unsigned int of_part;         // 1: take as label the number of the first part with the extreme
};

// The extreme of the chosen parts, and the first part that has it.
struct Extreme {
    double value;
    unsigned int part;
};

__device__ __forceinline__ Extreme better(const Extreme& a, const Extreme& b, bool highest)
{
    if (a.value == b.value) return a.part <= b.part ? a : b;
    return (highest ? b.value > a.value : b.value < a.value) ? b : a;
}

// All threads of the block get the result.
__device__ __forceinline__ Extreme extreme_of(const Wanted& wanted)
{
    __shared__ Extreme of_warp[THREADS / WARP];
    const double infinity = __int_as_float(0x7F800000);
    Extreme mine = {wanted.highest ? -infinity : infinity, NO_PART};
    for (unsigned int i = threadIdx.x; i < wanted.sections * wanted.parts; i += THREADS) {
        const unsigned int part = i % wanted.parts;
        if (!(wanted.chosen[part / 32] >> part % 32 & 1)) continue;
        const Extreme other = {wanted.highest ? wanted.found[i].highest : wanted.found[i].lowest, part};
        mine = better(mine, other, wanted.highest);
    }
#pragma unroll
    for (unsigned int delta = WARP / 2; delta > 0; delta /= 2) {
        const Extreme other = {__shfl_down_sync(ALL_LANES, mine.value, delta), __shfl_down_sync(ALL_LANES, mine.part, delta)};
        mine = better(mine, other, wanted.highest);
    }
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = mine;
    __syncthreads();
    mine = of_warp[0];
    for (int warp = 1; warp < THREADS / WARP; ++warp) mine = better(mine, of_warp[warp], wanted.highest);
    return mine;
}

extern "C" __global__ void __launch_bounds__(THREADS)
find(const Wanted* __restrict__ fields, const unsigned int chunks, unsigned long long* __restrict__ first)
{
    __shared__ unsigned long long of_warp[THREADS / WARP];
    const Wanted& wanted = fields[blockIdx.x / chunks];
    const unsigned long long chunk = (unsigned long long)(blockIdx.x % chunks) * CHUNK;
    const unsigned long long end = chunk + CHUNK < wanted.count ? chunk + CHUNK : wanted.count;

    const Real* __restrict__ field = wanted.field;
    const unsigned char* __restrict__ labels = wanted.labels;
    const unsigned int mask = wanted.mask;
    double value = wanted.value;
    unsigned int label = wanted.label;
    if (wanted.found) {
        const Extreme extreme = extreme_of(wanted);
        value = extreme.value;
        if (wanted.of_part) label = extreme.part;
    }

    // 1. The first of each thread.
    unsigned long long mine = NONE;
    for (unsigned long long i = chunk + threadIdx.x; i < end && mine == NONE; i += THREADS)
        if ((double)field[i] == value && (!labels || (labels[i] & mask) == label)) mine = i;

    // 2. The first of the block.
#pragma unroll
    for (unsigned int delta = WARP / 2; delta > 0; delta /= 2) {
        const unsigned long long other = __shfl_down_sync(ALL_LANES, mine, delta);
        if (other < mine) mine = other;
    }
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = mine;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int warp = 1; warp < THREADS / WARP; ++warp)
        if (of_warp[warp] < mine) mine = of_warp[warp];
    first[blockIdx.x] = mine;
}
