// What kernels are told of materials, conditions and sources; composite/composite.cuh says what is made of it.

#define INTERIOR 0x80u  // bit of a cell's byte; the others are its kind

// What a condition holds during a step; temperatures are deviations.
struct Condition {
    Real film;          // W/(m2 K); 1 where the temperature is held
    Real ambient;       // K
    Real flux;          // W/m2 into the body
    Real emission;      // emissivity times Stefan-Boltzmann's constant, W/(m2 K4)
    Real surroundings;  // K
    Real free;          // 0 where the temperature is held, else 1
};

// Part of a face that a beam reaches during a step: u and v are the face's axes in the order x, y, z.
struct Beam {
    const Real* weight_u;  // flux = weight_u . weight_v, W/m2
    const Real* weight_v;
    int face, first_u, first_v, count_u, count_v;
};

// What changes from step to step; the arrays may be shared by many steps.
struct Sweep {
    const Condition* conditions;  // of the faces in the order x_min ... z_max, of the patches, of surfaces towards void
    const Real* heat;             // K a step that sources give to the cells of each kind
    const Beam* beams;
    unsigned int step;
};

// Coefficients of a kind among its own.
struct __align__(16) Inner {
    Real x, y, z, unused;
};

// A cell at a face, for one kind and axis.
struct __align__(16) HalfCell {
    Real conductance;  // K = 2k/d, W/(m2 K); 0 for void
    Real share;        // dt K / (C d): what a kelvin between surface and cell gives to the cell
    Real gain;         // dt / (C d), K m2/W
    Real unused;
};

#if MATERIALS == 2
struct EnthalpyTable;
struct Potential;
struct State;

// How materials change with temperature: composite/varying.cuh.
struct EnthalpyTables {
    const EnthalpyTable* of_kind;
    const Potential* potentials;
    const State* states;
    const Real* resistances;  // of contacts, [a][b], m2 K/W
    int held;                 // numbers from a step's first condition to the potentials at its ambients, [condition][kind]
};
#endif

#if MIXED
// Part of the face of a cell that several conditions share.
struct Part {
    int number;     // of its condition
    Real fraction;  // of the cell's face
};

// Cells at faces of the box that several conditions share.
struct MixedCells {
    const long long* places;    // the face times 2^40 plus the cell's place on it, ascending
    const unsigned int* first;  // the first part of each, and the number of parts
    const Part* parts;
    int cells;
};

#define MIXED_CELL 255  // in place of a condition's number
#endif

struct Medium {
    const unsigned char* cells;       // the bytes
    const Inner* inner;               // of each kind
    const Real* links;                // c_ab, [axis][a][b]
    const HalfCell* halves;           // [kind][axis]
    const unsigned char* patches[6];  // the number of each face cell's condition; null where all have their face's own
    const unsigned int* weighted;     // a bit a cell: whether it has weights
    const unsigned int* before;       // such cells before each word of bits
    const Real* weights;              // six a cell, in the order x-, x+ ... z+: composite.cuh says of what
    Real reference;                   // the absolute temperature of a deviation of 0
    int kinds, first_heated;          // kinds from first_heated on have sources
    int beams;
    int void_kind, void_condition;    // -1 where there are none
    int open;                         // a bit for each face of the box that lets heat through
#if MATERIALS == 2
    EnthalpyTables enthalpies;
#endif
#if MIXED
    MixedCells mixed;
#endif
};

struct Ledger {
    double* face[6];  // sums of the heat through each face, a beam's left out; null where nobody asked
    double* beam[6];  // sums of what beams gave to the cells of each face
    double* exposed;  // sums of the heat through surfaces towards void, for each cell that has weights
    double* parts;    // sums of the heat through each part of mixed cells, which is among the face's, a beam's left out
};
