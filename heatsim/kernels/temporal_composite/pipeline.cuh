// Cell types and sources for 07 on composite bodies. 07 steps every patch as if it were of one type and at no face. Included after
// struct Place.
//
// All stages use the coefficients of one type: that of the patch's first cell in stage 0's centre plane. The centre of stage s is
// s planes below. So a cell gets wrong coefficients only if a cell that is not INTERIOR lies in its patch, or up to s planes
// above. In s steps the influence of that cell has come as far anyway. correction.py finds the cells that this makes wrong.

#if FACES
// Data of a patch's cell type.
struct PatchType {
    unsigned int byte;  // of the plane that arrives next: loaded one iteration before its use
#if MATERIALS
    Inner inner;
#endif
#if HEATED
    Real heat[STEPS];
#endif
};

// The byte of a patch's first cell in plane z, or in the nearest plane of the grid.
__device__ __forceinline__ unsigned int arriving_byte(const CellTypes& cell_types, const Grid& grid, const Place& place, int z)
{
#if MATERIALS
    const int z_box = grid.periodic & 4 ? into(z, grid.nz) : min(z, grid.nz - 1);
    return cell_types.cells[(size_t)z_box * ((unsigned)grid.nx * grid.ny) + place.start];
#else
    return INTERIOR;
#endif
}

__device__ __forceinline__ void change_type(PatchType& own, const Coefficients& c, const StepData* sweep, unsigned int byte)
{
#if MATERIALS
    own.inner = c.cell_types.inner[byte & ~INTERIOR];
#endif
#if HEATED
#pragma unroll
    for (int s = 0; s < STEPS; ++s) own.heat[s] = source_heat(c.cell_types, sweep + s, byte & ~INTERIOR);
#endif
}

__device__ __forceinline__ Coefficients coefficients_of(const Coefficients& c, const PatchType& own)
{
#if MATERIALS
    const Inner& k = own.inner;
    return {Real(0), k.x, k.x, k.y, k.y, k.z, k.z, {}};
#else
    return c;
#endif
}

__device__ __forceinline__ Real source_of(const PatchType& own, int s)
{
#if HEATED
    return own.heat[s];
#else
    return -Real(0);
#endif
}
#else
struct PatchType {};
#endif
