// VECTOR consecutive cells in x, owned by one thread and moved by one instruction: 16 bytes if the row length allows.

#include "stencil.cuh"

#define WARP 32
#define ALL_LANES 0xFFFFFFFFu

struct __align__(sizeof(Real) * VECTOR) Cells {
    Real at[VECTOR];
};

__device__ __forceinline__ Cells load(const Real* T) { return *reinterpret_cast<const Cells*>(T); }
__device__ __forceinline__ void store(Real* T, const Cells& cells) { *reinterpret_cast<Cells*>(T) = cells; }

// The same with streaming stores: these lines leave the caches first.
__device__ __forceinline__ void store_once(Real* T, const Cells& cells)
{
#if defined(__CUDA_ARCH__)
    if (sizeof(Cells) == sizeof(int4)) {
        __stcs(reinterpret_cast<int4*>(T), *reinterpret_cast<const int4*>(&cells));
        return;
    }
#endif
    store(T, cells);
}

// The number, opaque to the compiler: it is not recomputed at each use, and what follows from it is not computed earlier.
template <class Number>
__device__ __forceinline__ Number in_register(Number number)
{
    asm volatile("" : "+r"(number));
    return number;
}

// Copies BYTES (4, 8 or 16) from global to shared memory asynchronously and without registers (sm_80 and later). Each
// commit_copies() ends a group of copies. After wait_for_copies<n>() all groups of the thread have arrived, except its last n.
template <int BYTES>
__device__ __forceinline__ void copy_async(void* shared, const void* global)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned int address = (unsigned int)__cvta_generic_to_shared(shared);
    if (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(global), "n"(BYTES) : "memory");
#else
    for (int i = 0; i < BYTES / 4; ++i) static_cast<float*>(shared)[i] = static_cast<const float*>(global)[i];
#endif
}

// The same for data that other blocks will read soon: evict_last keeps them longest in L2.
template <int BYTES>
__device__ __forceinline__ void copy_async_lasting(void* shared, const void* global)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned int address = (unsigned int)__cvta_generic_to_shared(shared);
    unsigned long long last;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(last));
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(address), "l"(global), "l"(last)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global.L2::cache_hint [%0], [%1], %2, %3;" ::"r"(address), "l"(global), "n"(BYTES),
                     "l"(last)
                     : "memory");
#else
    copy_async<BYTES>(shared, global);
#endif
}

__device__ __forceinline__ void commit_copies()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int STILL_UNDER_WAY>
__device__ __forceinline__ void wait_for_copies()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(STILL_UNDER_WAY) : "memory");
#endif
}

#if GRADED
// The coefficients of links along x and y, the same for a whole column of vectors along z.
struct LinksAcross {
    Cells west, east;
    Real south, north;
};

// The coefficients of the links of a vector.
struct VectorLinks {
    LinksAcross across;
    Real below, above;
};

__device__ __forceinline__ Cells along_x(const Real* factors, Real mean)
{
    Cells found = load(factors);
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) found.at[i] = mean * found.at[i];
    return found;
}

// Both from the coefficients of a cell of the mean widths. `x`: of the first cell.
__device__ __forceinline__ LinksAcross across_at(const Grid& grid, const Real* planes, const Coefficients& mean, int x, int y)
{
    return {along_x(factors_of(grid, planes, 0, OF_LINK) + x, mean.c1), along_x(factors_of(grid, planes, 0, OF_LINK + 1) + x, mean.c2),
            mean.c3 * factor_at(grid, planes, 1, OF_LINK, y), mean.c4 * factor_at(grid, planes, 1, OF_LINK + 1, y)};
}

// The factors of the links along z. 06 for several materials loads them before it waits for the types of a plane.
struct FactorsAlong {
    Real below, above;
};

__device__ __forceinline__ FactorsAlong factors_along(const Grid& grid, const Real* planes, int z)
{
    return {factor_at(grid, planes, 2, OF_LINK, z), factor_at(grid, planes, 2, OF_LINK + 1, z)};
}

__device__ __forceinline__ VectorLinks links_at(const Coefficients& mean, const LinksAcross& across, const FactorsAlong& along)
{
    return {across, mean.c5 * along.below, mean.c6 * along.above};
}

// Those of cell i of a vector. On uniform grids all cells have the same.
__device__ __forceinline__ Coefficients of_cell(const VectorLinks& links, int i)
{
    const LinksAcross& across = links.across;
    return {Real(0), across.west.at[i], across.east.at[i], across.south, across.north, links.below, links.above, {}};
}
#else
struct FactorsAlong {};

__device__ __forceinline__ FactorsAlong factors_along(const Grid&, const Real*, int) { return {}; }
__device__ __forceinline__ const Coefficients& of_cell(const Coefficients& links, int) { return links; }
#endif

#if FACES
#include "composite/plain_cells.cuh"
#else
// The face z_min or z_max that a cell touches, 4 or 5: z_max if it touches both; -1 for other cells.
__device__ __forceinline__ int end_face(const Grid& grid, int z)
{
    return z == grid.nz - 1 ? 5 : z == 0 ? 4 : -1;
}

// The heat through the z faces that a cell touches; that through end_face() is added to `end_sum` instead of the ledger.
__device__ __forceinline__ void add_ends(const Grid& grid, const StepData* sweep, const Ledger& ledger,
                                         int z, size_t i, Real T, Real& sum, double& end_sum)
{
#pragma unroll
    for (int face = 4; face < 6; ++face) {
        if (z != (face == 4 ? 0 : grid.nz - 1)) continue;
        const bool kept = face == end_face(grid, z);
        const Real heat = face_heat(sweep, ledger, face, i, T, !kept);
        if (kept) end_sum += (double)heat;
        sum += heat;
    }
}

// add_faces() for the cells (x, y, z) ... (x + VECTOR - 1, y, z): only the first can touch x_min, only the last x_max.
// `end_sums`: null, or the sums of the cells' face end_face(), which the thread keeps instead of the ledger.
__device__ __forceinline__ void add_faces(const Grid& grid, const StepData* sweep, const Ledger& ledger,
                                          int x, int y, int z, const Cells& T, Cells& sum, double* end_sums)
{
    const size_t nx = grid.nx, ny = grid.ny;
    if (x == 0) sum.at[0] += face_heat(sweep, ledger, 0, z * ny + y, T.at[0]);
    if (x + VECTOR == grid.nx) sum.at[VECTOR - 1] += face_heat(sweep, ledger, 1, z * ny + y, T.at[VECTOR - 1]);
    if ((unsigned)(y - 1) < (unsigned)(grid.ny - 2) && (unsigned)(z - 1) < (unsigned)(grid.nz - 2)) return;  // most warps
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
        if (y == 0)           sum.at[i] += face_heat(sweep, ledger, 2, z * nx + x + i, T.at[i]);
        if (y == grid.ny - 1) sum.at[i] += face_heat(sweep, ledger, 3, z * nx + x + i, T.at[i]);
        if (end_sums) {
            add_ends(grid, sweep, ledger, z, y * nx + x + i, T.at[i], sum.at[i], end_sums[i]);
            continue;
        }
        if (z == 0)           sum.at[i] += face_heat(sweep, ledger, 4, y * nx + x + i, T.at[i]);
        if (z == grid.nz - 1) sum.at[i] += face_heat(sweep, ledger, 5, y * nx + x + i, T.at[i]);
    }
}

// update() for a vector of cells; `links`: for of_cell(). `west` and `east` are the values next to it.
template <class VectorOfLinks>
__device__ __forceinline__ Cells update(const Grid& grid, const VectorOfLinks& links, const StepData* sweep, const Ledger& ledger,
                                        int x, int y, int z, bool at_face, const Cells& T, Real west, Real east,
                                        const Cells& south, const Cells& north, const Cells& below, const Cells& above,
                                        double* end_sums = nullptr)
{
    Cells sum;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i)
        sum.at[i] = neighbour_sum(of_cell(links, i), T.at[i], i == 0 ? west : T.at[i - 1], i == VECTOR - 1 ? east : T.at[i + 1],
                                  south.at[i], north.at[i], below.at[i], above.at[i]);
    if (at_face) add_faces(grid, sweep, ledger, x, y, z, T, sum, end_sums);  // most warps skip this
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) sum.at[i] = finish(sweep, T.at[i], sum.at[i]);
    return sum;
}
#endif
