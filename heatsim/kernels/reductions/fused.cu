// fused: all statistics that heatsim needs of a field, or of the sums of a ledger, in one pass: sum, sum of magnitudes, lowest
// and highest value, number of values that are not finite and, with COMPARED, the largest difference from a second array.
//
// Arrays come in sections, such as groups of planes of a field. A block looks at a chunk of a section, whose length is a constant
// for every device, and writes one struct Statistics for each part; a second launch combines the chunks of each section, if there
// are several. The host adds the sections. So the order of each sum is fixed: the same values give the same bits on every device.
//
// Without labels, each section is one part:
//
//        chunk    |  round 0                          |  round 1   ...
//                 |  load 0  |  load 1  | ... LOADS   |
//                 |  THREADS vectors of 16 bytes      |
//
// Each of the LOADS has its own accumulators, so that a thread has LOADS * 16 bytes in flight and additions do not wait for
// each other. Values of both precisions are added in float64, so a sum over 10^9 cells is as accurate as its terms.
// Traffic: sizeof(Real) per value, with COMPARED twice that. Operations per value: one conversion, two additions in float64,
// minimum, maximum, test for finiteness. Expected: the read bandwidth if float64 runs at half or a quarter of the speed of
// float32 (data-centre GPUs). At 1/64 of it the additions limit float32 fields, and no shorter sum would be exact.
//
// With labels, a warp holds LABELLED * WARP consecutive values and their labels in registers. It goes through the parts that
// it has: most have one or two. Traffic: sizeof(Real) and a label per value. With THERMOMETERS it also adds temperatures and
// liquid parts, from the same tables as the host (heatsim/physics/matter/enthalpy.py).
//
// With WEIGHTED, each value counts in sums with a weight: the volume of its cell. It is the product of two numbers, one for the
// place in a plane and one for the plane, and is read from the cache: a float64 for each value.
//
// Macros: REAL, THREADS, ROUNDS, COMPARED, ALIGNED: whether sections start at multiples of 16 bytes (if not, values are loaded one
// by one, in the same order), LABELLED: 0 without labels, LABEL: their type, WINDOW: parts that a block looks for, THERMOMETERS,
// WEIGHTED.

typedef REAL Real;
typedef LABEL Label;

#define WARP 32
#define WARPS (THREADS / WARP)
#define ALL_LANES 0xFFFFFFFFu
#define LOADS 4
#define VECTOR (16 / (int)sizeof(Real))
#define ROUND (THREADS * VECTOR * LOADS)

// RESIDENT blocks of a multiprocessor leave enough registers; left alone, the compiler spills some.
#if LABELLED
#define CHUNK (THREADS * LABELLED)
#define RESIDENT (WEIGHTED ? 1 : 2)
#else
#define CHUNK (ROUND * ROUNDS)
#define RESIDENT (WEIGHTED ? 3 : 4)
#endif

#if THERMOMETERS
#define TABLE_PARAMETERS \
    const Part *__restrict__ thermometers, const double *__restrict__ temperatures, const double *__restrict__ rises,
#define TABLES thermometers, temperatures, rises,
#else
#define TABLE_PARAMETERS
#define TABLES
#endif

struct __align__(16) Vector {
    Real at[VECTOR];
};

struct Section {
    const Real* values;
    const Real* before;   // with COMPARED
    const Label* labels;  // with LABELLED
    unsigned long long count;
#if WEIGHTED
    const double* across;      // weights of the values of a plane
    const double* along;       // weights of planes, from the section's first one on
    unsigned long long plane;  // number of values of a plane
    unsigned long long place;  // of the section's first value in its plane
#endif
};

// Gives the weights of consecutive values of a section, from index i on; 1 without WEIGHTED.
struct Weights {
#if WEIGHTED
    const Section& section;
    unsigned long long place, plane;

    __device__ __forceinline__ Weights(const Section& section, const unsigned long long i)
        : section(section), place(section.place + i), plane(0)
    {
        // 32 bits divide several times faster than 64.
        plane = (place | section.plane) >> 32 ? place / section.plane : (unsigned int)place / (unsigned int)section.plane;
        place -= plane * section.plane;
    }

    __device__ __forceinline__ double next()
    {
        if (place == section.plane) {
            place = 0;
            ++plane;
        }
        return section.along[plane] * section.across[place++];
    }
#else
    __device__ __forceinline__ Weights(const Section&, unsigned long long) {}
    __device__ __forceinline__ double next() { return 1.0; }
#endif
};

// The thermometer of a part, as in heatsim/physics/matter/enthalpy.py; `melting` is liquidus - solidus, 0 without latent heat.
struct Part {
    double per_kelvin, first, last, base, solidus, melting;
};

struct Statistics {
    double total, magnitude, lowest, highest, change, not_finite, degrees, liquid;
};

// The statistics of no values.
__device__ __forceinline__ Statistics nothing()
{
    const double infinity = __int_as_float(0x7F800000);
    return {0.0, 0.0, infinity, -infinity, 0.0, 0.0, 0.0, 0.0};
}

__device__ __forceinline__ Statistics joined(const Statistics& a, const Statistics& b)
{
    return {a.total + b.total,         a.magnitude + b.magnitude,     min(a.lowest, b.lowest),     max(a.highest, b.highest),
            max(a.change, b.change),   a.not_finite + b.not_finite,   a.degrees + b.degrees,       a.liquid + b.liquid};
}

// The statistics of lane + delta. The last lanes get unused values.
__device__ __forceinline__ Statistics from_lane_above(const Statistics& mine, unsigned int delta)
{
    return {__shfl_down_sync(ALL_LANES, mine.total, delta),   __shfl_down_sync(ALL_LANES, mine.magnitude, delta),
            __shfl_down_sync(ALL_LANES, mine.lowest, delta),  __shfl_down_sync(ALL_LANES, mine.highest, delta),
#if COMPARED
            __shfl_down_sync(ALL_LANES, mine.change, delta),
#else
            0.0,
#endif
            __shfl_down_sync(ALL_LANES, mine.not_finite, delta),
#if THERMOMETERS
            __shfl_down_sync(ALL_LANES, mine.degrees, delta), __shfl_down_sync(ALL_LANES, mine.liquid, delta)};
#else
            0.0, 0.0};
#endif
}

// Combines the statistics of a warp; lane 0 has the result.
__device__ __forceinline__ Statistics joined_in_warp(Statistics mine)
{
#pragma unroll
    for (unsigned int delta = WARP / 2; delta > 0; delta /= 2) mine = joined(mine, from_lane_above(mine, delta));
    return mine;
}

#if !LABELLED

// A thread's accumulators for one load of a round.
struct Sums {
    double total[LOADS], magnitude[LOADS];
    Real lowest, highest, change;
    unsigned int not_finite;
};

__device__ __forceinline__ void add(Sums& sums, int load, Real value, Real before, double weight)
{
    const double exact = value;
    sums.total[load] += weight * exact;
    sums.magnitude[load] += weight * fabs(exact);
    sums.lowest = min(sums.lowest, value);  // of a number and NaN the number
    sums.highest = max(sums.highest, value);
    sums.not_finite += !(value - value == 0);
#if COMPARED
    sums.change = max(sums.change, fabs(value - before));
#endif
}

__device__ __forceinline__ Vector load(const Real* values)
{
#if ALIGNED
    return *reinterpret_cast<const Vector*>(values);
#else
    Vector vector;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) vector.at[i] = values[i];
    return vector;
#endif
}

// Adds some vectors, `THREADS` vectors apart; the thread's first one begins at index i.
template <int loads>
__device__ __forceinline__ void add_vectors(Sums& sums, const Section& section, const unsigned long long i)
{
    Vector vector[loads], other[loads];
#pragma unroll
    for (int k = 0; k < loads; ++k) {
        vector[k] = load(section.values + i + k * (THREADS * VECTOR));
#if COMPARED
        other[k] = load(section.before + i + k * (THREADS * VECTOR));
#else
        other[k] = vector[k];
#endif
    }
#pragma unroll
    for (int k = 0; k < loads; ++k) {
        Weights weights(section, i + k * (THREADS * VECTOR));
#pragma unroll
        for (int n = 0; n < VECTOR; ++n) add(sums, k, vector[k].at[n], other[k].at[n], weights.next());
    }
}

// The statistics of the chunk that begins at index `chunk` of a section.
__device__ __forceinline__ void look_at(const Section& section, const unsigned long long chunk, unsigned int, unsigned int,
                                        Statistics* __restrict__ partial)
{
    // 1. The thread's share of the chunk: whole rounds.
    const Real infinity = __int_as_float(0x7F800000);
    Sums sums = {{}, {}, infinity, -infinity, 0, 0};
    const unsigned long long end = chunk + CHUNK < section.count ? chunk + CHUNK : section.count;
    unsigned long long i = chunk + threadIdx.x * VECTOR;
    for (unsigned long long start = chunk; start + ROUND <= end; start += ROUND, i += ROUND)
        add_vectors<LOADS>(sums, section, i);

    // 2. The remainder at the end of the section: whole vectors, and less than one.
#pragma unroll 1
    for (; i + VECTOR <= end; i += THREADS * VECTOR) add_vectors<1>(sums, section, i);
    Weights weights(section, i);
    for (; i < end; ++i) add(sums, 0, section.values[i], COMPARED ? section.before[i] : section.values[i], weights.next());

    // 3. Combine the threads of the block.
    Statistics mine = nothing();
#pragma unroll
    for (int k = 0; k < LOADS; ++k) {
        mine.total += sums.total[k];
        mine.magnitude += sums.magnitude[k];
    }
    mine.lowest = sums.lowest;
    mine.highest = sums.highest;
    mine.change = sums.change;
    mine.not_finite = sums.not_finite;
    mine = joined_in_warp(mine);
    __shared__ Statistics of_warp[WARPS];
    const unsigned int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    if (lane == 0) of_warp[warp] = mine;
    __syncthreads();
    if (warp > 0) return;
    mine = joined_in_warp(lane < WARPS ? of_warp[lane] : nothing());
    if (lane == 0) *partial = mine;
}

#else  // LABELLED

// Values of a part are added to this. `value` is a content where the part has a thermometer.
#if THERMOMETERS
__device__ __forceinline__ void add_degrees(Statistics& sums, const Part& part, const double* __restrict__ temperatures,
                                            const double* __restrict__ rises, double content, double weight)
{
    const double steps = content * part.per_kelvin;
    const double node = steps - steps == 0 ? min(max(floor(steps), part.first), part.last) : part.first;
    const int entry = (int)(part.base + node);
    const double T = temperatures[entry] + rises[entry] * (steps - node);
    sums.degrees += weight * T;
    if (part.melting > 0) sums.liquid += weight * min(max((T - part.solidus) / part.melting, 0.0), 1.0);
}
#endif

// The statistics of each part of the window in the chunk that begins at index `chunk` of a section.
__device__ __forceinline__ void look_at(const Section& section, const unsigned long long chunk, const unsigned int parts,
                                        const unsigned int mask, TABLE_PARAMETERS Statistics* __restrict__ partial)
{
    __shared__ Statistics of_warp[WARPS][WINDOW];
    const unsigned int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int window = blockIdx.y * WINDOW;
    for (unsigned int part = lane; part < WINDOW; part += WARP) of_warp[warp][part] = nothing();
    __syncwarp();

    // 1. The values of the warp, and which parts they have.
    const unsigned long long first = chunk + warp * (WARP * LABELLED) + lane;
    Real value[LABELLED];
    int label[LABELLED];  // counted from the first part of the window
    unsigned long long present = 0;
#pragma unroll
    for (int k = 0; k < LABELLED; ++k) {
        const unsigned long long i = first + k * WARP;
        const bool inside = i < section.count;
        value[k] = inside ? section.values[i] : Real(0);
        label[k] = inside ? (section.labels ? (int)(section.labels[i] & mask) : 0) - window : -1;
        if (label[k] >= 0 && label[k] < WINDOW) present |= 1ull << label[k];
    }
#pragma unroll
    for (unsigned int delta = WARP / 2; delta > 0; delta /= 2) present |= __shfl_xor_sync(ALL_LANES, present, delta);

    // 2. Part by part.
    for (int part = 0; present >> part; ++part) {
        if (!(present >> part & 1)) continue;
#if THERMOMETERS
        const Part thermometer = thermometers[window + part];
#endif
        Statistics mine = nothing();
#pragma unroll
        for (int k = 0; k < LABELLED; ++k) {
            if (label[k] != part) continue;
            const double exact = value[k], weight = Weights(section, first + k * WARP).next();
            mine.total += weight * exact;
            mine.magnitude += weight * fabs(exact);
            mine.lowest = min(mine.lowest, exact);  // of a number and NaN the number
            mine.highest = max(mine.highest, exact);
            mine.not_finite += !(exact - exact == 0);
#if THERMOMETERS
            add_degrees(mine, thermometer, temperatures, rises, exact, weight);
#endif
        }
        mine = joined_in_warp(mine);
        if (lane == 0) of_warp[warp][part] = mine;
        if (part == WINDOW - 1) break;  // a shift by all bits is not defined
    }

    // 3. Combine the warps, one after the other.
    __syncthreads();
    for (unsigned int part = threadIdx.x; part < WINDOW && window + part < parts; part += THREADS) {
        Statistics all = of_warp[0][part];
        for (int other = 1; other < WARPS; ++other) all = joined(all, of_warp[other][part]);
        partial[window + part] = all;
    }
}

#endif

// `chunks` blocks for each section, where `chunks` is that of the longest; blocks along y for windows of parts.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
look(const Section* __restrict__ sections, const unsigned int chunks, const unsigned int parts, const unsigned int mask,
     TABLE_PARAMETERS Statistics* __restrict__ partial)
{
    const Section section = sections[blockIdx.x / chunks];
    const unsigned long long chunk = (unsigned long long)(blockIdx.x % chunks) * CHUNK;
    if (chunk > 0 && chunk >= section.count) return;
    look_at(section, chunk, parts, mask, TABLES partial + (size_t)blockIdx.x * parts);
}

// Combines the chunks of a section; one warp for each part.
extern "C" __global__ void __launch_bounds__(WARP, 1)
fold(const Section* __restrict__ sections, const unsigned int chunks, const Statistics* __restrict__ partial,
     Statistics* __restrict__ results)
{
    const unsigned int section = blockIdx.x, part = blockIdx.y, parts = gridDim.y;
    const unsigned long long used = (sections[section].count + CHUNK - 1) / CHUNK, count = used ? used : 1;
    Statistics mine = nothing();
#pragma unroll 4
    for (unsigned long long chunk = threadIdx.x; chunk < count; chunk += WARP)
        mine = joined(mine, partial[(section * (unsigned long long)chunks + chunk) * parts + part]);
    mine = joined_in_warp(mine);
    if (threadIdx.x == 0) results[(unsigned long long)section * parts + part] = mine;
}
