// Materials, conditions and sources as kernels receive them; composite/composite.cuh uses them.

#define INTERIOR 0x80u  // bit of a cell's byte; the other bits are its type

struct Condition;  // composite/surface_balance.cuh

// One of the spots of all beams during a step, and the rectangle of its face that it reaches: u and v are the face's axes in the
// order x, y, z. After the last spot of a step stands one with the face NO_SPOT.
struct BeamSpot {
    const Real* weight_u;  // flux = weight_u . weight_v, W/m2
    const Real* weight_v;
    int face, beam, first_u, first_v, count_u, count_v;
};

#define NO_SPOT (-2)

// Data that change from step to step; several steps may share an array.
struct StepData {
    const Condition* conditions;  // of the faces in the order x_min ... z_max, of the patches, of surfaces towards void
    const Real* heat;             // heat of the sources in a cell of each type, K per step
    const BeamSpot* spots;        // null if there are no beams
    Real factor;                  // length of the step / that for which the tables are made; used only with OWN_FACTORS
#if RATE
    const Real* base;             // the field to which the increments are added; null for 0
#endif
#if CELL_HEAT
    const Real* amounts;          // what sources give to single cells, and the length of the step: composite/cell_heat.cu
#endif
};

// Coefficients of a type's interior cells.
struct __align__(16) Inner {
    Real x, y, z, unused;
};

// A cell at a face, for one type and axis.
struct __align__(16) HalfCell {
    Real conductance;  // K = 2k/d, W/(m2 K); 0 for void
    Real share;        // dt K / (C d): heat into the cell for each kelvin between surface and cell
    Real gain;         // dt / (C d), K m2/W
    Real towards_void; // the number of the condition on its surfaces towards void
};

#if MATERIALS == 2
struct EnthalpyTable;
struct Potential;
struct State;

// How materials change with temperature: composite/varying.cuh.
struct EnthalpyTables {
    const EnthalpyTable* of_type;
    const Potential* potentials;
    const State* states;
    const Real* resistances;  // of contacts, [a][b], m2 K/W
    int held;                 // where the potentials at the ambients are, [condition][type], in Reals after the first condition
};
#endif

#if MIXED
// One condition's part of a cell face that several conditions share.
struct Part {
    int number;     // of its condition
    Real fraction;  // of the cell's face
};

// Cells at faces of the box and towards void whose surface several conditions share.
struct MixedCells {
    const long long* places;    // face * 2^40 + index of the cell on the face, or (6 + side) * 2^40 + index of the cell; ascending
    const unsigned int* first;  // the first part of each cell, then the number of parts
    const Part* parts;
    int cells;
};

#define MIXED_CELL 255  // stands for a mixed cell instead of a condition's number
#define TOWARDS_VOID 6  // the first of the sides of cells towards void, among the faces of mixed cells
#endif

#if CELL_HEAT
// A density that depends on temperature: its first entry and its number of steps (both integers); steps per kelvin; the
// temperature of the first node.
struct __align__(16) HeatTable {
    Real first, steps, per_kelvin, low;
};

// The cells that sources heat individually: composite/cell_heat.cu.
#define GAPS (1 << 20)

struct HeatedCells {
    Real* heat;              // of every cell of the grid in this step, K; -0 in others
    const long long* cells;
    const long long* first;  // the first entry of each, then the number of entries
    const int* numbers;      // of entries: the amount; or the number of amounts plus that of a beam; or GAPS plus the row of a law
    const Real* weights;
    const int* spots;        // two an entry: the cell of a beam's face, or the side and the link of a gap
    const int* table_of;     // of amounts; -1 for none
    const HeatTable* tables;
    const Real* entries;     // of all tables: value at the lower end of a step, and rise across it
    const Real* across;      // three a link across a gap: resistances of its lower and upper half cell, ratio of its areas
    int count, amounts;
};
#endif

struct CellTypes {
    const unsigned char* cells;       // the bytes
    const Inner* inner;               // of each type
    const Real* links;                // c_ab, [axis][a][b]
    const HalfCell* halves;           // [type][axis]
    const unsigned char* patches[6];  // the number of each face cell's condition; null for a face without patches
    const unsigned int* weighted;     // one bit per cell: set if it has weights
    const unsigned int* before;       // number of weighted cells before each word of bits
    const Real* weights;              // six per weighted cell, x-, x+ ... z+; rank_of() in composite.cuh defines them
    Real reference;                   // the absolute temperature of a deviation of 0
    int count, first_heated;          // number of types; types >= first_heated have sources
    int beams;
    int void_type;                    // -1 if there is none
    int exposed;                      // whether surfaces towards void let heat through
    int open;                         // one bit for each face of the box: set if it lets heat through
    int numbers;                      // length of StepData::conditions, including tables and held potentials
#if MATERIALS == 2
    EnthalpyTables enthalpies;
#endif
#if MIXED
    MixedCells mixed;
#endif
#if CELL_HEAT
    HeatedCells heated;
#endif
#if LIT
    const unsigned char* lit;         // of each weighted cell: a bit for each side that beams fall on
#endif
#if GRADED
    const Real* planes;               // factors of the planes along x, y, z: graded.cuh
#endif
};

// The sums of boundary faces (physics/operator/heat_sums.py). Pointers are null if nothing is recorded.
struct Ledger {
    double* face[6];   // heat through the cells of each face of the box, without beams; 0 for mixed cells
    double* parts;     // heat through each part of the mixed cells
    double* exposed;   // heat through the sides of each weighted cell towards void; 0 for mixed cells
    double* cells;     // heat of sources in each cell that they heat individually
    long long beams;   // from each of these sums but the last ones to that of beams on the same surface; 0 without beams
};
