// The heat that cells exchange through a surface, and minus its derivative with respect to the cell's temperature, for implicit
// steps and steady states. One thread per cell. Operations and their order are those of physics/operator/surface_exchange.py; only
// the third power of a radiating surface may be rounded differently than by NumPy. composite.cuh explains the balance.

// A number for each cell, or one for all.
struct Numbers {
    const double* each;  // null if `all` holds for all cells
    double all;

    __device__ __forceinline__ double operator[](int n) const { return each ? each[n] : all; }
};

typedef double Real;

// NaN if one of them is.
__device__ __forceinline__ double larger(double a, double b) { return a > b || a != a ? a : b; }
__device__ __forceinline__ double smaller(double a, double b) { return a < b || a != a ? a : b; }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return a * b + c; }

#include "composite/surface_balance.cuh"

struct Surface {
    Numbers area, half, weight, beam;                     // as in BalanceSurface
    Numbers condition[sizeof(Condition) / sizeof(Real)];  // the members of struct Condition
    Numbers conducting, below_held;                       // the arguments of BalanceSurface.exchange
    const double* nodes;                                  // of a law; null for other conditions
    const double* fluxes;
    const long long* first;                               // of each cell in `fluxes`; null if `first_of_all` holds
    long long first_of_all, segments;
    double reference;                                     // K, of all temperatures
};

extern "C" __global__ void exchange(const Surface surface, const double* __restrict__ temperatures, const unsigned int count,
                                    double* __restrict__ heats, double* __restrict__ slopes)
{
    const unsigned int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= count) return;
    const double area = surface.area[n], weight = surface.weight[n], half = surface.half[n] * surface.conducting[n];
    const double T = temperatures[n];
    Condition at;
    for (int i = 0; i < (int)(sizeof(Condition) / sizeof(Real)); ++i) reinterpret_cast<Real*>(&at)[i] = surface.condition[i][n];
    if (surface.nodes) {
        const double* const fluxes = surface.fluxes + (surface.first ? surface.first[n] : surface.first_of_all);
        const double distance = T - at.ambient;
        double rising;
        const double rise = law_rise(surface.nodes, fluxes, (int)surface.segments, distance, half * weight, surface.beam[n], rising);
        heats[n] = area * half * rise;
        slopes[n] = area * half * -rising / (half * weight - rising);
        return;
    }
    const double rise = surface_rise(at, half * weight, surface.reference, T, surface.beam[n]);
    const bool held = at.free == 0.0 && surface.below_held.each;
    const double film = film_at(at, larger(T + rise + surface.reference, 0.0));
    heats[n] = area * (held ? surface.half[n] * surface.below_held[n] : half * rise);
    slopes[n] = area * half * film / (at.free * half * weight + film);
}
