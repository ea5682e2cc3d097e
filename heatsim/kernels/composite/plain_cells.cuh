// composite/composite.cuh for kernels that load vectors of cells; included by vector.cuh.
//
// Most cells are plain: interior, of the same type as the first cell of their vector, and at no face. Kernels update whole
// vectors as if all cells were plain, and update the others again afterwards.

// The bytes of a vector's cells; the first cell has the lowest byte.
typedef unsigned int VectorBytes;

// Masks: the lowest bit (ONES) and the highest bit (HIGHEST) of each cell's byte.
#if VECTOR == 4
#define ONES 0x01010101u
typedef unsigned int Bytes;
#elif VECTOR == 2
#define ONES 0x0101u
typedef unsigned short Bytes;
#else
#define ONES 1u
typedef unsigned char Bytes;
#endif
#define HIGHEST (ONES * 0x80u)

__device__ __forceinline__ VectorBytes load_bytes(const CellTypes& cell_types, size_t cell)
{
#if MATERIALS == 2
    if (!cell_types.cells) return HIGHEST;
#endif
#if MATERIALS
    return *reinterpret_cast<const Bytes*>(cell_types.cells + cell);
#else
    return HIGHEST;
#endif
}

__device__ __forceinline__ int first_type(VectorBytes bytes) { return bytes & 0xFFu & ~INTERIOR; }

// The highest bit of each cell's byte: set if the cell is not interior, or not of the first cell's type.
__device__ __forceinline__ unsigned int not_plain(VectorBytes bytes)
{
    const unsigned int differs = bytes ^ (ONES * first_type(bytes) | HIGHEST);
    return ((differs & ~HIGHEST) + ~HIGHEST | differs) & HIGHEST;
}

// Data of the plain cells of a type in a column of vectors.
struct Own {
    int cell_type;
#if MATERIALS
    Inner inner;
#endif
    Real heat;
#if GRADED
    LinksAcross across;
#endif
};

// `x`, `y`: of the first cell of each vector.
__device__ __forceinline__ Own own_of(const Grid& grid, const Coefficients& c, const StepData* sweep, int cell_type, int x, int y)
{
#if MATERIALS
    Own own = {cell_type, c.cell_types.inner[cell_type], source_heat(c.cell_types, sweep, cell_type)};
#else
    Own own = {cell_type, source_heat(c.cell_types, sweep, cell_type)};
#endif
#if GRADED
    own.across = across_at(grid, c.cell_types.planes, inner_coefficients(c, cell_type), x, y);
#endif
    return own;
}

// Heat of a vector of plain cells from neighbours and sources. `along`: the factors of its plane; `west`, `east`: the values next to
// the vector.
__device__ __forceinline__ Cells sum_plain(const Coefficients& c, const Own& own, const FactorsAlong& along, const Cells& T, Real west,
                                           Real east, const Cells& south, const Cells& north, const Cells& below, const Cells& above)
{
#if MATERIALS
    const Inner& k = own.inner;
    const Coefficients mean = {Real(0), k.x, k.x, k.y, k.y, k.z, k.z, {}};
#else
    const Coefficients& mean = c;
#endif
#if GRADED
    const VectorLinks links = links_at(mean, own.across, along);
#else
    const Coefficients& links = mean;
#endif
    Cells sum;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i)
        sum.at[i] = own.heat + neighbour_sum(of_cell(links, i), T.at[i], i == 0 ? west : T.at[i - 1], i == VECTOR - 1 ? east : T.at[i + 1],
                                             south.at[i], north.at[i], below.at[i], above.at[i]);
    return sum;
}

// start_of() for the cells from `cell` on.
__device__ __forceinline__ Cells start_of(const StepData* sweep, size_t cell, const Cells& T)
{
#if RATE
    return sweep->base ? load(sweep->base + cell) : Cells{};
#else
    return T;
#endif
}

// with_cell_heat() for the cells from `cell` on.
__device__ __forceinline__ Cells with_cell_heat(const CellTypes& cell_types, size_t cell, const Cells& sum)
{
#if CELL_HEAT
    const Cells heat = load(cell_types.heated.heat + cell);
    Cells heated;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) heated.at[i] = sum.at[i] + heat.at[i];
    return heated;
#else
    return sum;
#endif
}

// finish() for the cells of a vector.
__device__ __forceinline__ Cells finish(const StepData* sweep, const Cells& T, const Cells& sum)
{
    Cells updated;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) updated.at[i] = finish(sweep, T.at[i], sum.at[i]);
    return updated;
}
