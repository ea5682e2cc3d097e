// The heat that cells exchange through a surface, and minus its derivative with respect to the cell's temperature, for implicit
// steps and steady states. One thread per cell. Operations and their order are those of physics/operator/surface_exchange.py,
// physics/conditions/surface_balance.py and physics/conditions/surface_laws.py; only the third power of a radiating surface may be rounded differently
// than by NumPy. composite.cuh explains the balance.
//
// Macros: STEPS: the most steps of Newton's method; TOLERANCE: its relative tolerance.

// A number for each cell, or one for all.
struct Numbers {
    const double* each;  // null if `all` holds for all cells
    double all;

    __device__ __forceinline__ double operator[](int n) const { return each ? each[n] : all; }
};

struct Surface {
    Numbers area, half, weight, beam;                          // as in BalanceSurface
    Numbers film, ambient, flux, emission, surroundings;       // its condition
    Numbers conducting, below_held;                            // the arguments of BalanceSurface.exchange
    const double* nodes;                                       // of a law; null for other conditions
    const double* fluxes;
    const long long* first;                                    // of each cell in `fluxes`; null if `first_of_all` holds
    long long first_of_all, segments;
    double free;       // 0 where the temperature is held, else 1
    double reference;  // K, of all temperatures
};

struct SurfaceState {
    double rise;  // T_s - T in K
    double film;  // minus the derivative of the heat flux from outside with respect to T_s, W/(m2 K)
};

// NaN if one of them is.
__device__ __forceinline__ double larger(double a, double b) { return a > b || a != a ? a : b; }
__device__ __forceinline__ double smaller(double a, double b) { return a < b || a != a ? a : b; }

// The segment between low and high that contains a distance from the ambient temperature.
__device__ __forceinline__ long long segment_at(const double* nodes, double distance, long long low, long long high)
{
    while (low < high) {
        const long long middle = (low + high + 1) / 2;
        if (nodes[middle] <= distance) low = middle;
        else high = middle - 1;
    }
    return low;
}

__device__ __forceinline__ SurfaceState by_law(const Surface& surface, int n, double conductance, double T)
{
    const double* const fluxes = surface.fluxes + (surface.first ? surface.first[n] : surface.first_of_all);
    const double distance = T - surface.ambient[n], beam = surface.beam[n];
    long long low = 0, high = surface.segments - 1, segment = segment_at(surface.nodes, distance, low, high);
    for (;;) {
        const double start = surface.nodes[segment], end = surface.nodes[segment + 1], flux = fluxes[segment];
        const double slope = (fluxes[segment + 1] - flux) / (end - start);
        const double rise = (flux + slope * (distance - start) + beam) / (conductance - slope), there = distance + rise;
        if (there > end && segment < high) low = segment + 1;
        else if (there < start && segment > low) high = segment - 1;
        else return {rise, -slope};
        segment = segment_at(surface.nodes, there, low, high);
    }
}

__device__ __forceinline__ SurfaceState by_condition(const Surface& surface, int n, double conductance, double T)
{
    const double film = surface.film[n], ambient = surface.ambient[n], emission = surface.emission[n];
    const double reference = surface.reference, free = surface.free;
    const double to_ambient = ambient - T, flux = free * (surface.flux[n] + surface.beam[n]);
    const double linear = film * to_ambient + flux, losses = free * conductance + film;
    if (!(emission > 0.0)) return {linear / losses, film};

    const double to_surroundings = surface.surroundings[n] - T, b = surface.surroundings[n] + reference;
    double a = T + reference, exchange = emission * ((a + b) * (a * a + b * b));
    const double driving = exchange * to_surroundings + linear, slope = 4.0 * emission * (a * a * a) + losses;
    const double step = driving / slope;
    const double second = emission * step * (step * (4.0 * a + step) + 6.0 * a * a) / slope;
    double rise;
    if (fabs(second) <= TOLERANCE && smaller(a, a + step) > 0.0) rise = step - step * second;
    else {
        const double hottest = sqrt(sqrt((b * b) * (b * b) + larger(flux, 0.0) / emission)) - reference;
        const double most = larger(larger(to_ambient, 0.0), hottest - T);
        rise = smaller(driving / (losses + exchange), most);
        for (int i = 0; i < STEPS; ++i) {
            a = larger(T + rise + reference, 0.0);
            exchange = emission * ((a + b) * (a * a + b * b));
            const double excess = exchange * (to_surroundings - rise) + (linear - losses * rise);
            const double change = excess / (4.0 * emission * (a * a * a) + losses);
            rise = smaller(rise + change, most);
            if (fabs(change) <= TOLERANCE * fabs(rise)) break;
        }
    }
    return {rise, film + 4.0 * emission * pow(larger(T + rise + reference, 0.0), 3.0)};
}

extern "C" __global__ void exchange(const Surface surface, const double* __restrict__ temperatures, const unsigned int count,
                                    double* __restrict__ heats, double* __restrict__ slopes)
{
    const unsigned int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= count) return;
    const double area = surface.area[n], weight = surface.weight[n], half = surface.half[n] * surface.conducting[n];
    const double T = temperatures[n];
    if (surface.nodes) {
        const SurfaceState found = by_law(surface, n, half * weight, T);
        heats[n] = area * half * found.rise;
        slopes[n] = area * half * found.film / (half * weight + found.film);
        return;
    }
    const SurfaceState found = by_condition(surface, n, half * weight, T);
    const bool held = surface.free == 0.0 && surface.below_held.each;
    heats[n] = area * (held ? surface.half[n] * surface.below_held[n] : half * found.rise);
    slopes[n] = area * half * found.film / (surface.free * half * weight + found.film);
}
