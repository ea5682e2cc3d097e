// find: the first cell that has a given value, in many fields, by one launch. The value is known from the statistics.
//
// A block does one chunk of one field and writes the index of the first cell there, or NONE. So an index does not depend on
// the order of the blocks. Traffic: sizeof(Real) per cell.
//
// Macros: REAL, THREADS, CHUNK (cells of a block).

typedef REAL Real;

#define WARP 32
#define ALL_LANES 0xFFFFFFFFu
#define NONE 0xFFFFFFFFFFFFFFFFull

struct Wanted {
    const Real* field;
    const unsigned char* labels;  // null: any cell will do
    unsigned long long count;
    double value;
    unsigned int mask, label;  // the label of the cell, where there are labels
};

extern "C" __global__ void __launch_bounds__(THREADS)
find(const Wanted* __restrict__ fields, const unsigned int chunks, unsigned long long* __restrict__ first)
{
    __shared__ unsigned long long of_warp[THREADS / WARP];
    const Wanted wanted = fields[blockIdx.x / chunks];
    const unsigned long long chunk = (unsigned long long)(blockIdx.x % chunks) * CHUNK;
    const unsigned long long end = chunk + CHUNK < wanted.count ? chunk + CHUNK : wanted.count;

    // 1. The first of each thread.
    unsigned long long mine = NONE;
    for (unsigned long long i = chunk + threadIdx.x; i < end && mine == NONE; i += THREADS)
        if ((double)wanted.field[i] == wanted.value && (!wanted.labels || (wanted.labels[i] & wanted.mask) == wanted.label))
            mine = i;

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
