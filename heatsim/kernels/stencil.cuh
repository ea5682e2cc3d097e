// One time step of one cell. Each kernel moves data in a different way; all of them call update() for the physics.
//
// The scheme is explicit finite volumes. The field holds cell values T as deviations from a reference temperature:
//
//     T_new = c0 T + c1 T(x-) + c2 T(x+) + c3 T(y-) + c4 T(y+) + c5 T(z-) + c6 T(z+) + sum over faces (f - g T)
//
// No halo is stored. A neighbour outside the grid is replaced by the cell itself, so its term cancels against c0. The face
// between them adds f - g T: the heat through the boundary condition, in kelvin of this cell.
//
//        outside  |  cell 0  |  cell 1  |
//                 |    T     |   T(x+)  |        T(x-) = T,  plus  f - g T  on the cells of the face
//                face
//
// All kernels give the same bits: the sum has one order, each fma is explicit, and contraction is off (--fmad=false).
//
// Macros set on the compiler's command line:
//     REAL             float or double
//     SCHEME           how T_new is summed: SEVEN_TERM or INCREMENTS
//     BLOCK_X/Y/Z      threads of a block along each axis
//     VECTOR           consecutive cells in x that a thread owns, for kernels that load vectors
//     FACES            1 if faces need more than f - g T, or there are sources: composite/composite.cuh
//     CONTACTS         1 if links have weights: those of contacts between materials, and those that layers change
//     MATERIALS        1 for several materials; 2 if materials vary with temperature; needs FACES and increments
//     LAWS             1 if film coefficients or emissivities depend on the temperature of the surface; needs FACES
//     MIXED            1 if several conditions share face cells; needs FACES
//     DEFERRED_PLANES  the most planes that a block marches: composite/deferred_cells.cuh
//     MEMBERS          1 if a launch steps an ensemble, several runs on equal grids: ensemble/members.cuh, with FACES 10_bricked.cu
//     STAGES           1 if steps have different lengths: each has its own coefficients or, with FACES, a factor of its increments
//     STAGE_TABLE      07: the number of stages in its table in constant memory; 0 if it has none
//     CELL_HEAT        1 if sources heat single cells: composite/cell_heat.cu; needs FACES
//     LIT              1 if beams fall on surfaces towards void; needs FACES
//     RATE             1 if the increments are added to another field than T, or to 0; needs FACES, STAGES and increments
//     GRADED           1 if cells have different widths: graded.cuh; needs increments

#define SEVEN_TERM 0  // the sum above; needs coefficients whose sum is exactly 1 in this precision
#define INCREMENTS 1  // T + sum of c (T_neighbour - T): exact for any coefficients

typedef REAL Real;

// How steps of different lengths differ.
#define OWN_COEFFICIENTS (STAGES && !FACES)
#define OWN_FACTORS (STAGES && FACES)

struct Grid {
    int nx, ny, nz;
    int periodic;          // bit 0: x, bit 1: y, bit 2: z
    int first_y, first_z;  // first cell of this launch: the hardware allows 65,535 blocks along y and z
    int planes;            // planes that a block marches through, in kernels that march along z; 07: segments of a block
    int first_stage;       // 07: place in `stage_table` of the sweep's first stage
    int steps;             // 09, 10: steps of this launch
    int brick_x, brick_y, brick_z;  // cells that a block writes; 10 reads them
    const struct Segment* segments;  // 07: the segments of all blocks; temporal_composite/correction.cu: its table; 09, 10:
                                     // the number of steps that each block has done in all launches
};

#if FACES
#include "composite/materials.cuh"
#endif

struct Coefficients {
    Real c0, c1, c2, c3, c4, c5, c6;
#if FACES
    CellTypes cell_types;
#elif GRADED
    const Real* planes;  // factors of the planes along x, y, z: graded.cuh
#endif
};

#if !FACES
#if OWN_COEFFICIENTS
// The coefficients of one step: c0, c1 = c2, c3 = c4, c5 = c6.
struct __align__(16) Stage {
    Real c0, x, y, z;
};
#endif

// Data that change from step to step: f and g of the faces x_min, x_max, y_min, y_max, z_min, z_max; the coefficients if steps
// have different lengths.
struct StepData {
    Real f[6], g[6];
#if OWN_COEFFICIENTS
    Stage stage;
#endif
};

// Sums of f - g T over all steps, one for each cell of a face; null if not recorded.
struct Ledger {
    double* face[6];
};
#endif

// The coefficients of a step: those of all steps or a copy of those in its struct StepData.
#if OWN_COEFFICIENTS
__device__ __forceinline__ Coefficients of_stage(const Stage& stage)
{
    return {stage.c0, stage.x, stage.x, stage.y, stage.y, stage.z, stage.z};
}
__device__ __forceinline__ Coefficients of_step(const Coefficients& all, const StepData* sweep)
{
    Coefficients own = of_stage(sweep->stage);
#if GRADED
    own.planes = all.planes;
#endif
    return own;
}
#else
__device__ __forceinline__ const Coefficients& of_step(const Coefficients& all, const StepData*) { return all; }
#endif

#include "graded.cuh"

// The place of a block among those that cover one grid.
struct Block {
    unsigned int x, y, z;
};

// 64-bit indices: a grid may have more than 2^31 cells.
__device__ __forceinline__ size_t cell_index(const Grid& grid, int x, int y, int z)
{
    return ((size_t)z * grid.ny + y) * grid.nx + x;
}

// Whether the cell touches a face of the box. One comparison per axis: x - 1 wraps to a large number at x = 0.
__device__ __forceinline__ bool touches_face(const Grid& grid, int x, int y, int z)
{
    return (unsigned)(x - 1) >= (unsigned)(grid.nx - 2) || (unsigned)(y - 1) >= (unsigned)(grid.ny - 2) ||
           (unsigned)(z - 1) >= (unsigned)(grid.nz - 2);
}

// The cell at position i of an axis of n cells: i inside the grid; outside it the end cell, or the cell at the other end if
// the axis is periodic.
__device__ __forceinline__ int neighbour(int i, int n, bool periodic)
{
    if (i < 0) return periodic ? n - 1 : 0;
    if (i >= n) return periodic ? 0 : n - 1;
    return i;
}

__device__ __forceinline__ int neighbour_x(const Grid& grid, int x) { return neighbour(x, grid.nx, grid.periodic & 1); }
__device__ __forceinline__ int neighbour_y(const Grid& grid, int y) { return neighbour(y, grid.ny, grid.periodic & 2); }
__device__ __forceinline__ int neighbour_z(const Grid& grid, int z) { return neighbour(z, grid.nz, grid.periodic & 4); }

__device__ __forceinline__ float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return fma(a, b, c); }

#if !FACES
// Heat through one face into its cell i during this step, in kelvin of the cell. The thread that owns the cell adds it to
// the ledger. No other thread adds to that sum; the atomic is used because the thread need not wait for its result.
__device__ __forceinline__ Real face_heat(const StepData* sweep, const Ledger& ledger, int face, size_t i, Real T,
                                          bool owned = true)
{
    const Real heat = multiply_add(-sweep->g[face], T, sweep->f[face]);
    if (owned && ledger.face[face]) atomicAdd(ledger.face[face] + i, (double)heat);
    return heat;
}

// sum, plus the heat through every face that the cell touches.
__device__ __forceinline__ Real add_faces(const Grid& grid, const StepData* sweep, const Ledger& ledger,
                                          int x, int y, int z, Real T, Real sum)
{
    const size_t nx = grid.nx, ny = grid.ny;
    if (x == 0)           sum += face_heat(sweep, ledger, 0, z * ny + y, T);
    if (x == grid.nx - 1) sum += face_heat(sweep, ledger, 1, z * ny + y, T);
    if (y == 0)           sum += face_heat(sweep, ledger, 2, z * nx + x, T);
    if (y == grid.ny - 1) sum += face_heat(sweep, ledger, 3, z * nx + x, T);
    if (z == 0)           sum += face_heat(sweep, ledger, 4, y * nx + x, T);
    if (z == grid.nz - 1) sum += face_heat(sweep, ledger, 5, y * nx + x, T);
    return sum;
}
#endif

// The sum over the cell and its neighbours, without faces: the new value (SEVEN_TERM) or the increment. It has three parts,
// because a kernel that marches along z knows the neighbour below first and the neighbour above last.
__device__ __forceinline__ Real begin_sum(const Coefficients& c, Real below)
{
#if SCHEME == SEVEN_TERM
    return c.c5 * below;
#else
    return below;  // sum_before_above() adds its difference from the cell
#endif
}

__device__ __forceinline__ Real sum_before_above(const Coefficients& c, Real T, Real west, Real east, Real south, Real north,
                                                 Real begun)
{
#if SCHEME == SEVEN_TERM
    Real sum = multiply_add(c.c0, T, begun);
    sum = multiply_add(c.c1, west, sum);
    sum = multiply_add(c.c2, east, sum);
    sum = multiply_add(c.c3, south, sum);
    return multiply_add(c.c4, north, sum);
#else
    Real sum = c.c1 * (west - T);
    sum = multiply_add(c.c2, east - T, sum);
    sum = multiply_add(c.c3, south - T, sum);
    sum = multiply_add(c.c4, north - T, sum);
    return multiply_add(c.c5, begun - T, sum);
#endif
}

__device__ __forceinline__ Real add_above(const Coefficients& c, Real T, Real above, Real sum)
{
#if SCHEME == SEVEN_TERM
    return multiply_add(c.c6, above, sum);
#else
    return multiply_add(c.c6, above - T, sum);
#endif
}

__device__ __forceinline__ Real neighbour_sum(const Coefficients& c, Real T, Real west, Real east, Real south, Real north,
                                              Real below, Real above)
{
    return add_above(c, T, above, sum_before_above(c, T, west, east, south, north, begin_sum(c, below)));
}

// The new value from the sum over neighbours and faces.
__device__ __forceinline__ Real finish(const StepData* sweep, Real T, Real sum)
{
#if SCHEME == SEVEN_TERM
    return sum;
#elif OWN_FACTORS
    return multiply_add(sweep->factor, sum, T);
#else
    return T + sum;
#endif
}

#if FACES
#include "composite/composite.cuh"
#else
// The new value of cell (x, y, z) from its value and those of its six neighbours. If `at_face` is false, the cell touches
// no face.
__device__ __forceinline__ Real update(const Grid& grid, const Coefficients& c, const StepData* sweep, const Ledger& ledger,
                                       int x, int y, int z, bool at_face,
                                       Real T, Real west, Real east, Real south, Real north, Real below, Real above)
{
    Real sum = neighbour_sum(c, T, west, east, south, north, below, above);
    if (at_face) sum = add_faces(grid, sweep, ledger, x, y, z, T, sum);  // most warps skip this line
    return finish(sweep, T, sum);
}
#endif
