// composite/composite.cuh for 07, which steps every patch as if it were of one kind and at no face; included after its struct Place.
//
// All stages take the coefficients of the kind that the patch's first cell has in stage 0's centre plane. Stage s has its
// centre s planes below that one, so a cell gets other coefficients than its own only where a cell that is not INTERIOR
// lies in its patch, or up to s planes above: no farther than where what happens there has come by then anyway. mending.py
// says which cells that makes wrong.

#if FACES
// What a patch needs of its kind.
struct PatchKind {
    unsigned int byte;  // of the plane that arrives next: it comes from memory an iteration ahead of its use
#if MATERIALS
    Inner inner;
#endif
#if HEATED
    Real heat[STEPS];
#endif
};

// The byte of a patch's first cell in plane z, or the nearest that there is.
__device__ __forceinline__ unsigned int arriving_byte(const Medium& medium, const Grid& grid, const Place& place, int z)
{
#if MATERIALS
    const int z_box = grid.periodic & 4 ? into(z, grid.nz) : min(z, grid.nz - 1);
    return medium.cells[(size_t)z_box * ((unsigned)grid.nx * grid.ny) + place.start];
#else
    return INTERIOR;
#endif
}

__device__ __forceinline__ void change_kind(PatchKind& own, const Coefficients& c, const Sweep* sweep, unsigned int byte)
{
#if MATERIALS
    own.inner = c.medium.inner[byte & ~INTERIOR];
#endif
#if HEATED
#pragma unroll
    for (int s = 0; s < STEPS; ++s) own.heat[s] = source_heat(c.medium, sweep + s, byte & ~INTERIOR);
#endif
}

__device__ __forceinline__ Coefficients coefficients_of(const Coefficients& c, const PatchKind& own)
{
#if MATERIALS
    const Inner& k = own.inner;
    return {Real(0), k.x, k.x, k.y, k.y, k.z, k.z, {}};
#else
    return c;
#endif
}

__device__ __forceinline__ Real source_of(const PatchKind& own, int s)
{
#if HEATED
    return own.heat[s];
#else
    return -Real(0);
#endif
}
#else
struct PatchKind {};
#endif
