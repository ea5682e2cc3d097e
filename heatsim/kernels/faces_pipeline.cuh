// Faces in 07 with linear conditions f - g T: the heat is added to the cell's sum and recorded in the ledger. Included after
// struct Shared and struct Place.
//
// The thread that steps a cell writes its heat to shared memory. After the barrier of the iteration, consecutive threads add
// heat to consecutive entries of the ledger: all threads for the border of a tile; at an end in z, each thread its own.

// Adds the heat through faces in x and y, also to halo cells, whose values need it. There are no branches, because the compiler
// does not move loads across them.
template <int boundaries>
__device__ __forceinline__ void add_sides(Shared& shared, unsigned int flags, int half, int s, const Patch& T, Patch& sum)
{
    const bool recorded = flags & RECORDED;
    Real* const heats = shared.side_heat[half][s];
    if ((boundaries & X) == X) {
        const bool first = flags & FIRST_COLUMN, last = flags & LAST_COLUMN;
        const FaceTerm term = shared.terms[s][last ? 1 : 0];
        Column heat;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            heat.at[r] = multiply_add(-term.g, last ? T.row[r].at[VECTOR - 1] : T.row[r].at[0], term.f);
            if (first) sum.row[r].at[0] += heat.at[r];
            if (last) sum.row[r].at[VECTOR - 1] += heat.at[r];
        }
        if ((first || last) && recorded) reinterpret_cast<Column*>(heats)[flags >> 8 & 255] = heat;
    }
#pragma unroll
    for (int side = 0; side < 2; ++side) {
        if ((boundaries & X) != (side ? X_MAX : X_MIN)) continue;
        const bool here = flags & (side ? LAST_COLUMN : FIRST_COLUMN);
        const FaceTerm term = shared.terms[s][side];
        const int i = side ? VECTOR - 1 : 0;
        Column heat;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            heat.at[r] = multiply_add(-term.g, T.row[r].at[i], term.f);
            if (here) sum.row[r].at[i] += heat.at[r];
        }
        if (here && recorded) reinterpret_cast<Column*>(heats)[flags >> 8 & 255] = heat;
    }
#pragma unroll
    for (int side = 0; side < 2; ++side) {
        if (!(boundaries & (side ? Y_MAX : Y_MIN))) continue;
        const bool here = flags & (side ? LAST_ROW : FIRST_ROW);
        const FaceTerm term = shared.terms[s][2 + side];
        const int r = side ? ROWS - 1 : 0;
        Cells heat;
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            heat.at[i] = multiply_add(-term.g, T.row[r].at[i], term.f);
            if (here) sum.row[r].at[i] += heat.at[i];
        }
        if (here && recorded) reinterpret_cast<Cells*>(heats)[flags >> 16 & 255] = heat;
    }
}

// The same for a face in z: all cells of its plane, which is the centre of only one stage in an iteration.
__device__ __forceinline__ void add_end(Shared& shared, const FaceTerm term, const Patch& T, Patch& sum)
{
    const int slot = threadIdx.y * WARP + threadIdx.x;
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            const Real heat = multiply_add(-term.g, T.row[r].at[i], term.f);
            sum.row[r].at[i] += heat;
            shared.end_heat[r][slot].at[i] = heat;
        }
}

// Whether a face is in x, and the face's sums in the ledger; `boundaries` limits which faces are possible.
template <int boundaries>
__device__ __forceinline__ bool lies_in_x(int face)
{
    return boundaries & X && (!(boundaries & Y) || face < 2);
}

template <int boundaries>
__device__ __forceinline__ double* sums_of(const Ledger& ledger, int face)
{
    if (lies_in_x<boundaries>(face)) return face & 1 ? ledger.face[1] : ledger.face[0];
    if ((boundaries & Y) == Y) return face & 1 ? ledger.face[3] : ledger.face[2];
    return boundaries & Y_MIN ? ledger.face[2] : ledger.face[3];
}

// Finds the cells of the tile's border whose heat this block records.
__device__ __forceinline__ void find_side_sums(Shared& shared, const Ledger& ledger)
{
    const Segment& segment = shared.segment;
    const int width = segment.lanes * VECTOR, height = THREADS / segment.lanes * ROWS;
#pragma unroll 1
    for (int e = threadIdx.y * WARP + threadIdx.x; e < LONGEST_BORDER; e += THREADS) {
        const bool beside_x = e < 2 * height;
        const int length = beside_x ? height : width, first = beside_x ? e : e - 2 * height, second = first >= length;
        const int face = (beside_x ? 0 : 2) + second, at = (beside_x ? segment.y : segment.x) + first - second * length;
        const bool written = beside_x ? at >= segment.y_begin && at < segment.y_end : at >= segment.x_begin && at < segment.x_end;
        const bool kept = written && first < 2 * length && segment.sides & 1 << face && sums_of<X | Y>(ledger, face);
        shared.side_sums[e] = kept ? 4 * at + face : -1;
    }
}

// Adds the heat that add_sides() stored in the iteration of plane p to the ledger, one thread per cell of the border.
template <int boundaries>
__device__ __forceinline__ void enter_sides(const Shared& shared, const Grid& grid, const Ledger& ledger, int half, int p)
{
    if (!(boundaries & (X | Y))) return;
    const int slot = threadIdx.y * WARP + threadIdx.x, z_begin = shared.segment.z_begin, z_end = shared.segment.z_end;
#pragma unroll 1
    for (int e = slot; e < LONGEST_BORDER; e += THREADS) {
        const int kept = shared.side_sums[e];
        if (kept < 0) continue;
        const int row_length = lies_in_x<boundaries>(kept & 3) ? grid.ny : grid.nx;
        double* const sums = sums_of<boundaries>(ledger, kept & 3) + (kept >> 2);
#pragma unroll
        for (int s = 0; s < STEPS; ++s) {
            const int z = p - 1 - s;
            if (z >= z_begin && z < z_end)
                atomicAdd(sums + (size_t)z * row_length, (double)shared.side_heat[half][s][e]);
        }
    }
}

// Adds the heat that add_end() stored, if any, to the ledger: each thread for its own cells.
__device__ __forceinline__ void enter_end(const Shared& shared, const Grid& grid, const Ledger& ledger, int p)
{
    const Segment& segment = shared.segment;
    const bool first = p >= 1 && p <= STEPS && segment.z_begin == 0;
    const bool last = p >= grid.nz && p < grid.nz + STEPS && segment.z_end == grid.nz;
    double* const sums = first ? ledger.face[4] : ledger.face[5];
    if (!(first || last) || !sums) return;
    const int slot = threadIdx.y * WARP + threadIdx.x;
    const int x = segment.x + slot % segment.lanes * VECTOR, y = segment.y + slot / segment.lanes * ROWS;
#pragma unroll 1
    for (int r = 0; r < ROWS; ++r) {
        if (y + r < segment.y_begin || y + r >= segment.y_end) continue;
        const Cells heat = shared.end_heat[r][slot];
        double* const row = sums + ((size_t)(y + r) * grid.nx + x);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i)
            if (x + i >= segment.x_begin && x + i < segment.x_end) atomicAdd(row + i, (double)heat.at[i]);
    }
}
