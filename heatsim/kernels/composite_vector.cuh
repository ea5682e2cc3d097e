// composite.cuh for kernels that load vectors of cells; included by vector.cuh.
//
// Most vectors are plain: of one kind, and at no face. Their thread updates them as it meets them. The others are left for
// later, a bit a plane, so that the code for all that may happen in a cell costs the loop over plain ones no register.

// The bytes of a vector's cells, the first one lowest.
typedef unsigned int Kinds;

#if MATERIALS
#if VECTOR == 4
#define ALL_INTERIOR 0x80808080u
typedef unsigned int Bytes;
#elif VECTOR == 2
#define ALL_INTERIOR 0x8080u
typedef unsigned short Bytes;
#else
#define ALL_INTERIOR INTERIOR
typedef unsigned char Bytes;
#endif
__device__ __forceinline__ Kinds load_kinds(const Medium& medium, size_t cell)
{
    return *reinterpret_cast<const Bytes*>(medium.cells + cell);
}
#else
#define ALL_INTERIOR INTERIOR
__device__ __forceinline__ Kinds load_kinds(const Medium& medium, size_t cell) { return INTERIOR; }
#endif

// Whether all cells of a vector are interior: then they are of one kind, since each has its neighbour's.
__device__ __forceinline__ bool all_interior(Kinds kinds) { return (kinds & ALL_INTERIOR) == ALL_INTERIOR; }

// The new values of a plain vector; `west` and `east` are the values beside it.
__device__ __forceinline__ Cells update_plain(const Coefficients& c, const Sweep* sweep, int x, int y, int z, Kinds kinds,
                                              const Cells& T, Real west, Real east, const Cells& south, const Cells& north,
                                              const Cells& below, const Cells& above)
{
    const int kind = kinds & 0xFFu & ~INTERIOR;
    const Coefficients own = inner_coefficients(c, kind);
    const Real heat = source_heat(c.medium, sweep, kind);
    Cells sum;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
        sum.at[i] = heat + neighbour_sum(own, T.at[i], i == 0 ? west : T.at[i - 1], i == VECTOR - 1 ? east : T.at[i + 1],
                                         south.at[i], north.at[i], below.at[i], above.at[i]);
        sum.at[i] = finish(sweep, x + i, y, z, T.at[i], sum.at[i]);
    }
    return sum;
}

// Updates what a warp has left: `left` has a bit for each plane from z_begin on in which the vector at (x, y) of this lane
// waits. Whole lanes one after another, all planes at a time, or a cell of all lanes at a time, whatever takes fewer rounds:
// a face in x leaves many planes of one lane, one in z a plane of all lanes.
__device__ __forceinline__ void update_left(const Real* T, Real* T_new, const Grid& grid, const Coefficients& c,
                                            const Sweep* sweep, const Ledger& ledger, int x, int y, int z_begin,
                                            unsigned int left)
{
    unsigned int lanes = __ballot_sync(ALL_LANES, left != 0);
    if (lanes == 0) return;
    unsigned int planes = left;
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) planes |= __shfl_xor_sync(ALL_LANES, planes, distance);
    const bool by_lanes = __popc(lanes) < VECTOR * __popc(planes) && grid.planes <= WARP / VECTOR;
    const int lane = threadIdx.x;
    const int own_x = x;
    int i = 0;
#pragma unroll 1
    while (by_lanes ? lanes != 0 : planes != 0) {
        unsigned int waiting = left;
        int plane;
        if (by_lanes) {
            const int other = __ffs(lanes) - 1;
            lanes &= lanes - 1;
            waiting = __shfl_sync(ALL_LANES, left, other);
            x = __shfl_sync(ALL_LANES, own_x, other) + lane % VECTOR;
            plane = lane / VECTOR;
        } else {
            plane = __ffs(planes) - 1;
            x = own_x + i;
            if (++i == VECTOR) {
                i = 0;
                planes &= planes - 1;
            }
        }
        if (waiting >> plane & 1) {
            const int z = z_begin + plane;
            T_new[cell_index(grid, x, y, z)] = update_from_memory(T, grid, c, sweep, ledger, x, y, z);
        }
    }
}
