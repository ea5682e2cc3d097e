// The balance of heat at a surface: its temperature T_s minus that of its cell, T, for explicit steps (composite.cuh) and for
// equations (surface_heat.cu). Operations and their order are those of physics/conditions/surface_balance.py and surface_laws.py.
//
// The file that includes this one defines Real, multiply_add(a, b, c), and larger and smaller of two numbers. If multiply_add
// is a * b + c with two roundings, results have the bits of NumPy.

// A boundary condition during one step; temperatures are deviations.
struct Condition {
    Real film;          // W/(m2 K); 1 where the temperature is held
    Real ambient;       // K
    Real flux;          // W/m2 into the body
    Real emission;      // emissivity times Stefan-Boltzmann's constant, W/(m2 K4)
    Real surroundings;  // K
    Real free;          // 0 where the temperature is held, else 1; 2 for a law, whose numbers rise_at() reads
};

#define NEWTON_STEPS 16  // upper bound; more than two occur only if surface and surroundings differ by a factor

__device__ __forceinline__ float root(float a) { return sqrtf(a); }
__device__ __forceinline__ double root(double a) { return sqrt(a); }
__device__ __forceinline__ bool settled(float change, float value) { return fabsf(change) <= 1e-4f * fabsf(value); }
__device__ __forceinline__ bool settled(double change, double value) { return fabs(change) <= 1e-8 * fabs(value); }

// T_s - T for a condition whose heat flux q is a table in T_s; `slope` becomes dq/dT_s. q + beam - K (T_s - T) falls with T_s, so
// its sign at a node tells on which side the solution lies: bisection finds the segment, on which the balance is linear.
__device__ __forceinline__ Real law_rise(const Real* nodes, const Real* fluxes, int segments, Real distance, Real conductance,
                                         Real beam, Real& slope)
{
    int segment = 0, end = segments;
    while (end - segment > 1) {
        const int middle = (segment + end) / 2;
        if (multiply_add(conductance, distance - nodes[middle], fluxes[middle]) + beam >= Real(0)) segment = middle;
        else end = middle;
    }
    const Real start = nodes[segment], flux = fluxes[segment];
    slope = (fluxes[segment + 1] - flux) / (nodes[segment + 1] - start);
    return (multiply_add(slope, distance - start, flux) + beam) / (conductance - slope);
}

// Solves film (T_amb - T_s) + flux + emission (T_sur^4 - T_s^4) = K (T_s - T) for T_s - T (absolute temperatures in the
// fourth powers). Numbers: struct Condition.
// 1. No radiation: linear, one division.
// 2. Weak radiation: one Newton step from T_s = T, and a second with the same slope. `second` is the size of the second relative
//    to the first; the remaining error is at most 4 second^2, relative to the step. Below absolute zero nothing radiates.
// 3. Otherwise: at most NEWTON_STEPS steps. The first guess takes radiation as linear between cell and surroundings; each step
//    squares the error. Every guess is capped at the hottest possible surface: cell, ambient, or the temperature at which
//    radiation alone balances flux and surroundings. Above it Newton's method on T^4 would come back by a quarter per step only.
__device__ __forceinline__ Real surface_rise(const Condition& at, Real conductance, Real reference, Real T, Real beam)
{
    const Real to_ambient = at.ambient - T, flux = at.free * (at.flux + beam);
    const Real linear = multiply_add(at.film, to_ambient, flux);
    const Real losses = multiply_add(at.free, conductance, at.film);
    if (at.emission == Real(0)) return linear / losses;

    const Real to_surroundings = at.surroundings - T, b = at.surroundings + reference;
    Real a = T + reference;
    Real exchange = at.emission * ((a + b) * multiply_add(a, a, b * b));
    const Real driving = multiply_add(exchange, to_surroundings, linear);
    const Real inverse = Real(1) / multiply_add(Real(4) * at.emission, a * a * a, losses), step = driving * inverse;
    const Real second = at.emission * step * multiply_add(step, multiply_add(Real(4), a, step), Real(6) * a * a) * inverse;
    if (settled(second, Real(1)) && a > Real(0) && a + step > Real(0)) return multiply_add(-step, second, step);

    Real rise = driving / (losses + exchange);
    const Real hottest = root(root(multiply_add(b * b, b * b, larger(flux, Real(0)) / at.emission))) - reference;
    const Real most = larger(larger(to_ambient, Real(0)), hottest - T);
    rise = smaller(rise, most);
#pragma unroll 1
    for (int i = 0; i < NEWTON_STEPS; ++i) {
        a = larger(T + rise + reference, Real(0));
        exchange = at.emission * ((a + b) * multiply_add(a, a, b * b));
        const Real excess = multiply_add(exchange, to_surroundings - rise, multiply_add(-losses, rise, linear));
        const Real slope = multiply_add(Real(4) * at.emission, a * a * a, losses);
        const Real change = excess / slope;
        rise = smaller(rise + change, most);
        if (settled(change, rise)) break;
    }
    return rise;
}

// film, plus what radiation adds at the surface temperature `absolute` in K: minus the derivative of the heat flux.
__device__ __forceinline__ Real film_at(const Condition& at, Real absolute)
{
    return at.emission > Real(0) ? at.film + Real(4) * at.emission * pow(absolute, Real(3)) : at.film;
}
