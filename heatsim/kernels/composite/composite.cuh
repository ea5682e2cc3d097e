// One cell's step in a composite body: links between materials, and faces that need more than f - g T. Included by stencil.cuh
// after composite/materials.cuh.
//
// Each cell has one byte: its type (a material together with the sources in it) and the bit INTERIOR, set if all its neighbours
// have the same type. Interior cells, nearly all, need three coefficients of their type. The others read the bytes of their
// neighbours; each pair of types has its own coefficient:
//
//        type a | type b          T_a += c_ab (T_b - T_a),   c_ab = dt / (C_a d) . 1 / (d/2k_a + R_contact + d/2k_b)
//           ●---+---●
//         d/2k_a R d/2k_b
//
// A face has a condition. Half a cell of conduction lies between surface and cell centre. The surface temperature T_s balances
// the heat from outside with the heat that flows on to the cell:
//
//        outside | surface        film (T_amb - T_s) + flux + emission (T_sur^4 - T_s^4)  =  K (T_s - T),   K = 2k/d
//                ○---●  T         held: T_s = T_amb
//               T_s
//
// Towards void, surface and flux belong to the smooth surface. A voxel face of area A stands for a part w A of it. So K takes
// 2k/(d w) for the half cell, and the heat of this face is that of its own half cell, 2k/d A (T_s - T).
//
// The unknown is T_s - T, so that float32 loses no digits, neither in good nor in bad conductors.

__device__ __forceinline__ float larger(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ double larger(double a, double b) { return fmax(a, b); }
__device__ __forceinline__ float smaller(float a, float b) { return fminf(a, b); }
__device__ __forceinline__ double smaller(double a, double b) { return fmin(a, b); }

#include "composite/surface_balance.cuh"

// T_s - T for the condition `at`, which may be a law: then its numbers say where its tables are.
__device__ __forceinline__ Real rise_at(const Condition& at, Real conductance, Real reference, Real T, Real beam)
{
#if LAWS
    if (at.free > Real(1)) {
        const Real* const numbers = reinterpret_cast<const Real*>(&at);
        Real slope;
        return law_rise(numbers + (int)at.emission, numbers + (int)at.flux, (int)at.film - 1, T - at.ambient, conductance, beam, slope);
    }
#endif
    return surface_rise(at, conductance, reference, T, beam);
}

// pointers[face], for one of the first FIRST_FACES faces. Indexing a kernel parameter would copy the array to local memory.
template <int FIRST_FACES, class Pointer>
__device__ __forceinline__ Pointer of_face(Pointer const (&pointers)[6], int face)
{
    Pointer one = pointers[0];
#pragma unroll
    for (int n = 1; n < FIRST_FACES; ++n)
        if (face == n) one = pointers[n];
    return one;
}

// flux, plus that of a spot at cell (u, v) of its face, W/m2.
__device__ __forceinline__ Real with_spot(const BeamSpot& spot, int u, int v, Real flux)
{
    const int i = u - spot.first_u, j = v - spot.first_v;
    const bool inside = (unsigned)i < (unsigned)spot.count_u && (unsigned)j < (unsigned)spot.count_v;
    return inside ? multiply_add(spot.weight_u[i], spot.weight_v[j], flux) : flux;
}

// Flux of all beams into cell (u, v) of a face, W/m2.
__device__ __forceinline__ Real beam_flux(const CellTypes& cell_types, const StepData* sweep, int face, int u, int v)
{
    Real flux = Real(0);
    if (!cell_types.beams) return flux;
#pragma unroll 1
    for (const BeamSpot* spot = sweep->spots; spot->face != NO_SPOT; ++spot)
        if (spot->face == face) flux = with_spot(*spot, u, v, flux);
    return flux;
}

// A bit for each face of the box that the cell touches.
__device__ __forceinline__ unsigned int touched_faces(const Grid& grid, int x, int y, int z)
{
    unsigned int faces = 0;
    if (!(grid.periodic & 1)) faces = (x == 0) | (x == grid.nx - 1) << 1;
    if (!(grid.periodic & 2)) faces |= (y == 0) << 2 | (y == grid.ny - 1) << 3;
    if (!(grid.periodic & 4)) faces |= (z == 0) << 4 | (z == grid.nz - 1) << 5;
    return faces;
}

// An entry of the ledger: the heat of a step from that in a step of the length for which the tables are made.
__device__ __forceinline__ double entry_of(const StepData* sweep, double heat)
{
#if SCHEME == INCREMENTS && OWN_FACTORS
    return (double)sweep->factor * heat;
#else
    return heat;
#endif
}

// Adds the heat through a boundary face to its sum, and the light of beams, which `heat` contains, to another one.
__device__ __forceinline__ void enter(const StepData* sweep, const Ledger& ledger, double* sum, Real heat, Real from_beam)
{
    atomicAdd(sum, entry_of(sweep, (double)heat - (double)from_beam));
    if (ledger.beams && from_beam != Real(0)) atomicAdd(sum + ledger.beams, entry_of(sweep, (double)from_beam));
}

// The value to which a cell's increment is added: T or, with RATE, that of another field.
__device__ __forceinline__ Real start_of(const StepData* sweep, size_t cell, Real T)
{
#if RATE
    return sweep->base ? sweep->base[cell] : Real(0);
#else
    return T;
#endif
}

// Heat into a cell, share * difference, in kelvin of the cell. The difference is in K.
struct Drop {
    Real share, difference;
};

// Heat from a surface with condition `number` into its cell. `conducting` = k(T)/k(T_ref) of the cell, `driving` its potential,
// `weight` = area of the voxel surface / area of the smooth surface.
__device__ __forceinline__ Drop drop_to_surface(const CellTypes& cell_types, const StepData* sweep, int number, int cell_type,
                                                const HalfCell& half, Real T, Real beam, Real conducting, Real driving,
                                                Real weight = Real(1))
{
    const Condition& condition = sweep->conditions[number];
    Real rise;
#if MATERIALS == 2
    // A held surface has a known potential, so the integral of the conductivity over the half cell is exact.
    if (condition.free == Real(0)) {
        const Real* const held = reinterpret_cast<const Real*>(sweep->conditions) + cell_types.enthalpies.held;
        rise = held[number * cell_types.count + cell_type] - driving;
        conducting = Real(1);  // no return from here: that would take more registers
    } else
#endif
        rise = rise_at(condition, half.conductance * conducting * weight, cell_types.reference, T, beam);
    return {half.share * conducting, rise};  // loaded after the solution, so the share takes no register during it
}

#if MIXED
// Index among the mixed cells of cell i of a face, or of cell i of the grid with side face - TOWARDS_VOID: binary search.
__device__ __forceinline__ int mixed_cell(const MixedCells& mixed, int face, size_t i)
{
    const long long place = ((long long)face << 40) + (long long)i;
    int low = 0, high = mixed.cells - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (mixed.places[middle] < place) low = middle + 1;
        else high = middle;
    }
    return low;
}
#endif

// Heat through a face of the box into its cell (u, v), which has index i. The thread that owns the cell adds it to the ledger.
// `face` < FIRST_FACES; `conducting` and `driving` as above.
template <int FIRST_FACES>
__device__ __forceinline__ Real heat_through(const Grid& grid, const CellTypes& cell_types, const StepData* sweep, const Ledger& ledger,
                                             int face, int u, int v, size_t i, int cell_type, Real T, bool owned, Real conducting,
                                             Real driving)
{
    const int n = face < 2 ? grid.nx : face < 4 ? grid.ny : grid.nz;
    const unsigned char* const patches = of_face<FIRST_FACES>(cell_types.patches, face);
    const Real beam = beam_flux(cell_types, sweep, face, u, v);
    // On uniform grids a reference: each member is loaded at its use.
    const HalfCell& half = half_cell(grid, cell_types, cell_type, face, face & 1 ? n - 1 : 0);
    if (half.conductance == Real(0)) return -Real(0);
#if MIXED
    double* const sums = of_face<FIRST_FACES>(ledger.face, face);
    const Real from_beam = half.gain * beam;
    int number = patches ? patches[i] : face;
    const bool mixed = number == MIXED_CELL;
    unsigned int part = 0, last = 0;
    if (mixed) {
        const int cell = mixed_cell(cell_types.mixed, face, i);
        part = cell_types.mixed.first[cell];
        last = cell_types.mixed.first[cell + 1] - 1;
    }
    Real heat = -Real(0), fraction = Real(1);
#pragma unroll 1
    for (;; ++part) {
        if (mixed) {
            number = cell_types.mixed.parts[part].number;
            fraction = cell_types.mixed.parts[part].fraction;
        }
        const Drop drop = drop_to_surface(cell_types, sweep, number, cell_type, half, T, beam, conducting, driving);
        const Real passing = fraction * drop.share * drop.difference;
        if (sums && owned) enter(sweep, ledger, mixed ? ledger.parts + part : sums + i, passing, fraction * from_beam);
        heat += passing;
        if (part == last) break;
    }
#else
    const int number = patches ? patches[i] : face;
    const Drop drop = drop_to_surface(cell_types, sweep, number, cell_type, half, T, beam, conducting, driving);
    const Real heat = drop.share * drop.difference;
    double* const sums = of_face<FIRST_FACES>(ledger.face, face);
    if (sums && owned) enter(sweep, ledger, sums + i, heat, half.gain * beam);
#endif
    return heat;
}

// sum, plus the heat through every face of the box that the cell touches.
__device__ __forceinline__ Real add_general_faces(const Grid& grid, const CellTypes& cell_types, const StepData* sweep,
                                                  const Ledger& ledger, int x, int y, int z, int cell_type, Real T, Real sum,
                                                  bool owned = true, Real conducting = Real(1), Real driving = Real(0))
{
#pragma unroll 1
    for (unsigned int faces = touched_faces(grid, x, y, z) & cell_types.open; faces; faces &= faces - 1) {
        const int face = __ffs(faces) - 1, axis = face >> 1;
        const int u = axis == 0 ? y : x, v = axis == 2 ? y : z;
        const size_t i = (size_t)v * (axis == 0 ? grid.ny : grid.nx) + u;
        sum += heat_through<6>(grid, cell_types, sweep, ledger, face, u, v, i, cell_type, T, owned, conducting, driving);
    }
    return sum;
}

// Heat of the sources in a cell of a type, in K per step. Without sources -0: adding it changes no bit of any number.
__device__ __forceinline__ Real source_heat(const CellTypes& cell_types, const StepData* sweep, int cell_type)
{
    return cell_type >= cell_types.first_heated ? sweep->heat[cell_type] : -Real(0);
}

// sum, plus the heat that sources give to this cell alone.
__device__ __forceinline__ Real with_cell_heat(const CellTypes& cell_types, size_t cell, Real sum)
{
#if CELL_HEAT
    return sum + cell_types.heated.heat[cell];
#else
    return sum;
#endif
}

// Index of a cell's six weights among those of all weighted cells. A weight is area of the voxel surface / area of the smooth
// surface. Towards void it multiplies the half cell's conductance, and is 0 if no smooth surface belongs to the face. At a
// contact it multiplies the resistance; with constant conductivities it is stored as the factor of the link's coefficient,
// as for links that layers change.
__device__ __forceinline__ size_t rank_of(const CellTypes& cell_types, size_t cell)
{
    const size_t word = cell / 32;
    return cell_types.before[word] + __popc(cell_types.weighted[word] & ((1u << cell % 32) - 1u));
}

// The six weights of a cell; null if it has none.
__device__ __forceinline__ const Real* weights_of(const CellTypes& cell_types, size_t cell)
{
#if CONTACTS
    if (cell_types.weighted[cell / 32] >> cell % 32 & 1u) return cell_types.weights + 6 * rank_of(cell_types, cell);
#endif
    return nullptr;
}

// Multiplies the coefficients of a cell's links by their weights. Those towards void are 0.
__device__ __forceinline__ void weigh(Coefficients& own, const Real* weights)
{
    if (!weights) return;
    own.c1 *= weights[0];
    own.c2 *= weights[1];
    own.c3 *= weights[2];
    own.c4 *= weights[3];
    own.c5 *= weights[4];
    own.c6 *= weights[5];
}

// total, plus the heat through a cell's surfaces towards void: bit n of `sides` is set if the neighbour in direction n is void.
__device__ __forceinline__ Real add_exposed(const Grid& grid, const CellTypes& cell_types, const StepData* sweep, const Ledger& ledger,
                                            int x, int y, int z, int cell_type, unsigned int sides, Real T, Real total,
                                            bool owned = true, Real conducting = Real(1), Real driving = Real(0))
{
    const size_t cell = cell_index(grid, x, y, z), rank = rank_of(cell_types, cell);
    Real heat = Real(0), light = Real(0);
#pragma unroll 1
    for (; sides; sides &= sides - 1) {
        const int side = __ffs(sides) - 1;
        const Real weight = cell_types.weights[6 * rank + side];
        if (weight == Real(0)) continue;
        const HalfCell& half = half_cell(grid, cell_types, cell_type, side, side < 2 ? x : side < 4 ? y : z);
#if LIT
        const int axis = side >> 1;
        const Real flux = cell_types.lit[rank] >> side & 1 ? beam_flux(cell_types, sweep, side, axis ? x : y, axis == 2 ? y : z) : Real(0);
        const Real beam = weight * flux, brought = half.gain * flux;
#else
        const Real beam = Real(0), brought = Real(0);
#endif
        light += brought;
        int number = (int)half.towards_void;
#if MIXED
        unsigned int part = 0, last = 0;
        const bool mixed = number == MIXED_CELL;
        if (mixed) {
            const int at = mixed_cell(cell_types.mixed, TOWARDS_VOID + side, cell);
            part = cell_types.mixed.first[at];
            last = cell_types.mixed.first[at + 1] - 1;
        }
#pragma unroll 1
        for (;; ++part) {
            Real fraction = Real(1);
            if (mixed) {
                number = cell_types.mixed.parts[part].number;
                fraction = cell_types.mixed.parts[part].fraction;
            }
            const Drop drop = drop_to_surface(cell_types, sweep, number, cell_type, half, T, beam, conducting, driving, weight);
            const Real share = fraction * drop.share;
            heat = multiply_add(share, drop.difference, heat);
            if (mixed && ledger.exposed && owned)
                enter(sweep, ledger, ledger.parts + part, share * drop.difference, fraction * brought);
            if (part == last) break;
        }
#else
        const Drop drop = drop_to_surface(cell_types, sweep, number, cell_type, half, T, beam, conducting, driving, weight);
        heat = multiply_add(drop.share, drop.difference, heat);
#endif
    }
#if MIXED
    if ((int)cell_types.halves[3 * cell_type].towards_void == MIXED_CELL) return total + heat;
#endif
    if (ledger.exposed && owned) enter(sweep, ledger, ledger.exposed + rank, heat, light);
    return total + heat;
}

// The coefficients of a type's interior cells; with one material there is only one type.
__device__ __forceinline__ Coefficients inner_coefficients(const Coefficients& c, int cell_type)
{
#if MATERIALS
    const Inner own = c.cell_types.inner[cell_type];
    return {Real(0), own.x, own.x, own.y, own.y, own.z, own.z, {}};
#else
    return c;
#endif
}

// Offsets from position i of an axis of n cells to its neighbours, as neighbour().
__device__ __forceinline__ int step_down(int i, int n, bool periodic) { return i > 0 ? -1 : periodic ? n - 1 : 0; }
__device__ __forceinline__ int step_up(int i, int n, bool periodic) { return i < n - 1 ? 1 : periodic ? 1 - n : 0; }

// The byte of a cell. A body of one type stores no bytes.
__device__ __forceinline__ unsigned int byte_of(const CellTypes& cell_types, size_t cell)
{
#if MATERIALS == 2
    return cell_types.cells ? cell_types.cells[cell] : INTERIOR;
#elif MATERIALS
    return cell_types.cells[cell];
#else
    return INTERIOR;
#endif
}

#if MATERIALS == 2
#include "composite/varying.cuh"
#else
// The temperature of a cell (as a deviation) from its value in the field; also conducting = k(T)/k(T_ref) and driving, its
// potential. Here all are trivial.
__device__ __forceinline__ Real degrees(const CellTypes&, int, Real T, Real& conducting, Real& driving)
{
    conducting = Real(1);
    driving = T;
    return T;
}

// How a cell of a body with constant materials is linked to its neighbours.
struct Links {
    Coefficients own;    // c1 ... c6
    unsigned int sides;  // bit n is set if the neighbour in direction n is void and the surface lets heat through
};

// The links of cell (x, y, z), which has index `cell`. `beside`: the types of its neighbours, in the order x-, x+ ... z+.
__device__ __forceinline__ Links links_of(const Grid& grid, const Coefficients& c, int x, int y, int z, size_t cell, int cell_type,
                                          const int (&beside)[6], bool interior)
{
    Links found = {inner_coefficients(c, cell_type), 0};
#if GRADED
    found.own = graded(grid, planes_of(c), found.own, x, y, z);
#endif
#if MATERIALS
    if (!interior) {
        const CellTypes& cell_types = c.cell_types;
        const Real* const links = cell_types.links + cell_type * cell_types.count;
        const int axis = cell_types.count * cell_types.count;
        found.own = {Real(0), links[beside[0]], links[beside[1]], links[axis + beside[2]], links[axis + beside[3]],
                     links[2 * axis + beside[4]], links[2 * axis + beside[5]], {}};
#if GRADED
        found.own = graded(grid, planes_of(c), found.own, x, y, z);
#endif
        weigh(found.own, weights_of(cell_types, cell));
#pragma unroll
        for (int n = 0; n < 6; ++n) found.sides |= (unsigned)(beside[n] == cell_types.void_type) << n;
        if (!cell_types.exposed || cell_type == cell_types.void_type) found.sides = 0;
    }
#endif
    return found;
}

// The new value of a cell from its links and its neighbours' values.
__device__ __forceinline__ Real update_linked(const Grid& grid, const Coefficients& c, const StepData* sweep, const Ledger& ledger,
                                              int x, int y, int z, size_t cell, int cell_type, const Links& links,
                                              Real T, const Real (&values)[6], bool owned = true)
{
    const CellTypes& cell_types = c.cell_types;
    Real sum = source_heat(cell_types, sweep, cell_type) +
               neighbour_sum(links.own, T, values[0], values[1], values[2], values[3], values[4], values[5]);
    if (links.sides) sum = add_exposed(grid, cell_types, sweep, ledger, x, y, z, cell_type, links.sides, T, sum, owned);
    if (touches_face(grid, x, y, z)) sum = add_general_faces(grid, cell_types, sweep, ledger, x, y, z, cell_type, T, sum, owned);
    return finish(sweep, start_of(sweep, cell, T), with_cell_heat(cell_types, cell, sum));
}

// The same from the neighbours' types and values, in the order x-, x+ ... z+.
__device__ __forceinline__ Real update_among(const Grid& grid, const Coefficients& c, const StepData* sweep, const Ledger& ledger,
                                             int x, int y, int z, int cell_type, const int (&beside)[6], Real T,
                                             const Real (&values)[6], bool owned = true, bool interior = false)
{
    const size_t cell = cell_index(grid, x, y, z);
    const Links links = links_of(grid, c, x, y, z, cell, cell_type, beside, interior);
    return update_linked(grid, c, sweep, ledger, x, y, z, cell, cell_type, links, T, values, owned);
}

// The same; the values are loaded from the field. All loads start together, because their latency is what takes time.
__device__ __forceinline__ Real update_from_memory(const Real* field, const Grid& grid, const Coefficients& c,
                                                   const StepData* sweep, const Ledger& ledger, int x, int y, int z)
{
    const size_t cell = cell_index(grid, x, y, z);
    const ptrdiff_t row = grid.nx, plane = row * grid.ny;
    const ptrdiff_t to[6] = {step_down(x, grid.nx, grid.periodic & 1),         step_up(x, grid.nx, grid.periodic & 1),
                             step_down(y, grid.ny, grid.periodic & 2) * row,   step_up(y, grid.ny, grid.periodic & 2) * row,
                             step_down(z, grid.nz, grid.periodic & 4) * plane, step_up(z, grid.nz, grid.periodic & 4) * plane};
    const Real* const here = field + cell;
    const Real T = *here;
    const unsigned int byte = byte_of(c.cell_types, cell);
    const int cell_type = byte & ~INTERIOR;
    Real values[6];
    int beside[6];
#pragma unroll
    for (int n = 0; n < 6; ++n) {
        values[n] = here[to[n]];
        beside[n] = cell_type;
    }
    if (!(byte & INTERIOR)) {
#pragma unroll
        for (int n = 0; n < 6; ++n) beside[n] = byte_of(c.cell_types, cell + to[n]) & ~INTERIOR;
    }
    return update_among(grid, c, sweep, ledger, x, y, z, cell_type, beside, T, values, true, byte & INTERIOR);
}
#endif
