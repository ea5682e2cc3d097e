// Cells of different widths. Included by stencil.cuh after struct Coefficients.
//
// All tables are those of a cell of the mean widths. On graded grids each axis has factors for its planes of cells
// (heatsim/grid.py), towards smaller and towards larger coordinates:
//
//        link          of the links within one material
//        conductance   of half cells
//        gain          area of the side over volume
//
// A link has the coefficient of its table, times the factor of its plane and side, times its weight. With GRADED 0 these functions
// return the numbers of the tables.

#if GRADED
#if SCHEME == SEVEN_TERM
#error "the coefficients of a graded grid do not sum to 1: use increments"
#endif

// The first of two kinds of factors: towards smaller coordinates; the next kind is towards larger ones.
#define OF_LINK 0
#define OF_CONDUCTANCE 2
#define OF_GAIN 4

// One kind of factors of all planes along an axis. `planes`: six kinds for x, then six for y, then six for z.
__device__ __forceinline__ const Real* factors_of(const Grid& grid, const Real* planes, int axis, int kind)
{
    const size_t before = axis == 0 ? 0 : axis == 1 ? grid.nx : (size_t)grid.nx + grid.ny;
    const size_t n = axis == 0 ? grid.nx : axis == 1 ? grid.ny : grid.nz;
    return planes + (6 * before + kind * n);
}

__device__ __forceinline__ Real factor_at(const Grid& grid, const Real* planes, int axis, int kind, int place)
{
    return __ldg(factors_of(grid, planes, axis, kind) + place);
}

// The factors of all axes.
__device__ __forceinline__ const Real* planes_of(const Coefficients& c)
{
#if FACES
    return c.cell_types.planes;
#else
    return c.planes;
#endif
}

// The coefficients of cell (x, y, z) from those of a cell of the mean widths.
__device__ __forceinline__ Coefficients graded(const Grid& grid, const Real* planes, const Coefficients& mean, int x, int y, int z)
{
    return {Real(0),
            mean.c1 * factor_at(grid, planes, 0, OF_LINK, x), mean.c2 * factor_at(grid, planes, 0, OF_LINK + 1, x),
            mean.c3 * factor_at(grid, planes, 1, OF_LINK, y), mean.c4 * factor_at(grid, planes, 1, OF_LINK + 1, y),
            mean.c5 * factor_at(grid, planes, 2, OF_LINK, z), mean.c6 * factor_at(grid, planes, 2, OF_LINK + 1, z), {}};
}

// The factor of a link in direction `side` of a cell at `place` along the axis.
__device__ __forceinline__ Real link_factor(const Grid& grid, const Real* planes, int side, int place)
{
    return factor_at(grid, planes, side >> 1, OF_LINK + (side & 1), place);
}

#if FACES
// The half cell of a type towards `side`, at `place` along its axis.
__device__ __forceinline__ HalfCell half_cell(const Grid& grid, const CellTypes& cell_types, int cell_type, int side, int place)
{
    const HalfCell& mean = cell_types.halves[3 * cell_type + (side >> 1)];
    const Real conductance = factor_at(grid, cell_types.planes, side >> 1, OF_CONDUCTANCE + (side & 1), place);
    const Real gain = factor_at(grid, cell_types.planes, side >> 1, OF_GAIN + (side & 1), place);
    return {mean.conductance * conductance, mean.share * conductance * gain, mean.gain * gain, mean.towards_void};
}
#endif
#else
__device__ __forceinline__ const Real* planes_of(const Coefficients&) { return nullptr; }

__device__ __forceinline__ const Coefficients& graded(const Grid&, const Real*, const Coefficients& mean, int, int, int)
{
    return mean;
}

#if FACES
__device__ __forceinline__ const HalfCell& half_cell(const Grid&, const CellTypes& cell_types, int cell_type, int side, int)
{
    return cell_types.halves[3 * cell_type + (side >> 1)];
}
#endif
#endif
