// The heat that cells exchange through a surface, and minus its derivative with respect to the cell's temperature, for implicit
// steps and steady states. One thread per cell. Operations and their order are those of physics/operator/surface_exchange.py; only
// the third power of a radiating surface may be rounded differently than by NumPy. composite.cuh explains the balance.

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

typedef double Real;

// NaN if one of them is.
__device__ __forceinline__ double larger(double a, double b) { return a > b || a != a ? a : b; }
__device__ __forceinline__ double smaller(double a, double b) { return a < b || a != a ? a : b; }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return a * b + c; }

#include "composite/surface_balance.cuh"

struct Condition {
    double film, ambient, flux, emission, surroundings, free;
};

extern "C" __global__ void exchange(const Surface surface, const double* __restrict__ temperatures, const unsigned int count,
                                    double* __restrict__ heats, double* __restrict__ slopes)
{
    const unsigned int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= count) return;
    const double area = surface.area[n], weight = surface.weight[n], half = surface.half[n] * surface.conducting[n];
    const double T = temperatures[n];
    if (surface.nodes) {
        const double* const fluxes = surface.fluxes + (surface.first ? surface.first[n] : surface.first_of_all);
        const double distance = T - surface.ambient[n];
        double rising;
        const double rise = law_rise(surface.nodes, fluxes, (int)surface.segments, distance, half * weight, surface.beam[n], rising);
        heats[n] = area * half * rise;
        slopes[n] = area * half * -rising / (half * weight - rising);
        return;
    }
    const Condition at = {surface.film[n], surface.ambient[n], surface.flux[n], surface.emission[n], surface.surroundings[n],
                          surface.free};
    const double rise = surface_rise(at, half * weight, surface.reference, T, surface.beam[n]);
    const bool held = surface.free == 0.0 && surface.below_held.each;
    const double absolute = larger(T + rise + surface.reference, 0.0);
    const double film = at.emission > 0.0 ? at.film + 4.0 * at.emission * pow(absolute, 3.0) : at.film;
    heats[n] = area * (held ? surface.half[n] * surface.below_held[n] : half * rise);
    slopes[n] = area * half * film / (surface.free * half * weight + film);
}
