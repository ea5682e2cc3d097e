// CUDA C for the host: g++ -include cuda_host.h compiles a kernel as it stands, C++17, and runs it on the CPU.
//
// This file defines the words of the language; grid_of_blocks.cpp executes blocks. CUDA_HOST_EXPORT(kernel), after the
// kernel, makes the launcher that machine.py calls. Three errors end the launch with a message: an index beyond an array
// of known size, an address that is misaligned on the hardware, and a signed overflow
// (-fsanitize=bounds,alignment,signed-integer-overflow).
#pragma once

#include "grid_of_blocks.h"

#include <math.h>
#include <string.h>

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __constant__ __attribute__((visibility("default")))  // the host writes it by its name
#define __launch_bounds__(...)
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_assume(condition) ((void)0)
// All threads of a launch are one thread of the system, so they share its thread-local storage, which lies in one
// piece and can be poisoned before each block. (A section of its own would do for statics, but g++ does not put those
// of templates there.) "used": the compiler must not take memory that no line of the kernel writes for a zero.
// alignas has to stand before __shared__; __align__ may stand behind it.
#define __shared__ thread_local __attribute__((used))

// The caller's place in the source, by which threads at different barriers are told apart.
#define CUDA_HOST_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

// ---- Barriers and fences ----

inline void __syncthreads(CUDA_HOST_PLACE) {
    cuda_host::wait_for_block({"__syncthreads", file, line});
}
inline void __syncwarp(unsigned mask = ~0u, CUDA_HOST_PLACE) {
    cuda_host::exchange(mask, 0, {"__syncwarp", file, line});
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
[[noreturn]] inline void __trap() { cuda_host::fail("__trap"); }

// ---- Warps ----

namespace cuda_host {

// The value that lane `source` gave; poison where that lane took no part.
template <class T>
T shuffle(unsigned mask, T value, unsigned source, Place place) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    if (exchange(mask, bits, place) >> source & 1)
        bits = value_of(source);
    else
        memset(&bits, poison, sizeof bits);
    memcpy(&value, &bits, sizeof value);
    return value;
}

inline unsigned ballot(unsigned mask, bool predicate, Place place) {
    const unsigned participants = exchange(mask, predicate, place);
    unsigned votes = 0;
    for (unsigned i = 0; i < warpSize; ++i)
        if (participants >> i & 1) votes |= unsigned(value_of(i)) << i;
    return votes;
}

inline unsigned segment(int width) { return lane() & ~unsigned(width - 1); }

}  // namespace cuda_host

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize, CUDA_HOST_PLACE) {
    const unsigned from = cuda_host::segment(width) + (source & (width - 1));
    return cuda_host::shuffle(mask, value, from, {"__shfl_sync", file, line});
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize, CUDA_HOST_PLACE) {
    const unsigned lane = cuda_host::lane();
    const unsigned from = lane < cuda_host::segment(width) + delta ? lane : lane - delta;
    return cuda_host::shuffle(mask, value, from, {"__shfl_up_sync", file, line});
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize, CUDA_HOST_PLACE) {
    const unsigned lane = cuda_host::lane();
    const unsigned from = lane + delta < cuda_host::segment(width) + width ? lane + delta : lane;
    return cuda_host::shuffle(mask, value, from, {"__shfl_down_sync", file, line});
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize, CUDA_HOST_PLACE) {
    const unsigned lane = cuda_host::lane(), partner = lane ^ lane_mask;
    const unsigned from = partner < cuda_host::segment(width) + width ? partner : lane;
    return cuda_host::shuffle(mask, value, from, {"__shfl_xor_sync", file, line});
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_HOST_PLACE) {
    return cuda_host::ballot(mask, predicate, {"__ballot_sync", file, line});
}
inline int __any_sync(unsigned mask, int predicate, CUDA_HOST_PLACE) {
    return cuda_host::ballot(mask, predicate, {"__any_sync", file, line}) != 0;
}
inline int __all_sync(unsigned mask, int predicate, CUDA_HOST_PLACE) {
    return cuda_host::ballot(mask, !predicate, {"__all_sync", file, line}) == 0;
}

// ---- Memory: the hints about caches change nothing ----

#define CUDA_HOST_LOAD(name) \
    template <class T>       \
    T name(const T* address) { return *address; }
#define CUDA_HOST_STORE(name)                                        \
    template <class T>                                               \
    void name(T* address, std::common_type_t<T> value) { *address = value; }
CUDA_HOST_LOAD(__ldg)
CUDA_HOST_LOAD(__ldca)
CUDA_HOST_LOAD(__ldcg)
CUDA_HOST_LOAD(__ldcs)
CUDA_HOST_LOAD(__ldlu)
CUDA_HOST_LOAD(__ldcv)
CUDA_HOST_STORE(__stwb)
CUDA_HOST_STORE(__stcg)
CUDA_HOST_STORE(__stcs)
CUDA_HOST_STORE(__stwt)

// Threads run in turn, so a plain read and write is atomic.
#define CUDA_HOST_ATOMIC(name, result)                                  \
    template <class T>                                                  \
    T name(T* address, std::common_type_t<T> value) {                   \
        const T old = *address;                                         \
        *address = result;                                              \
        return old;                                                     \
    }
CUDA_HOST_ATOMIC(atomicAdd, old + value)
CUDA_HOST_ATOMIC(atomicMin, value < old ? value : old)
CUDA_HOST_ATOMIC(atomicMax, value > old ? value : old)
CUDA_HOST_ATOMIC(atomicOr, old | value)
CUDA_HOST_ATOMIC(atomicExch, value)

// ---- Arithmetic; -ffp-contract=off leaves each operation its own rounding ----

inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __drcp_rn(double a) { return 1.0 / a; }
namespace cuda_host {
// The sum rounded down: what rounding to nearest has added is known exactly.
template <class T>
T sum_down(T a, T b) {
    const T sum = a + b, of_b = sum - a, rest = (a - (sum - of_b)) + (b - of_b);
    return rest < 0 ? std::nextafter(sum, -std::numeric_limits<T>::infinity()) : sum;
}
}  // namespace cuda_host
inline float __fadd_rd(float a, float b) { return cuda_host::sum_down(a, b); }
inline double __dadd_rd(double a, double b) { return cuda_host::sum_down(a, b); }
inline double __dsqrt_rn(double a) { return __builtin_sqrt(a); }

template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
    using T = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<T>) return fmin(T(a), T(b));
    else return T(b) < T(a) ? T(b) : T(a);
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
    using T = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<T>) return fmax(T(a), T(b));
    else return T(a) < T(b) ? T(b) : T(a);
}

inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned(uint64_t(a) * b >> 32); }
inline int __mulhi(int a, int b) { return int(int64_t(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline int __popc(unsigned a) { return __builtin_popcount(a); }
inline int __ffs(int a) { return __builtin_ffs(a); }
inline int __clz(int a) { return a ? __builtin_clz(unsigned(a)) : 32; }

// ---- Conversions ----

#define CUDA_HOST_CONVERSION(name, From, To) \
    inline To name(From value) { return To(value); }
CUDA_HOST_CONVERSION(__int2float_rn, int, float)
CUDA_HOST_CONVERSION(__uint2float_rn, unsigned, float)
CUDA_HOST_CONVERSION(__ll2float_rn, long long, float)
CUDA_HOST_CONVERSION(__ull2float_rn, unsigned long long, float)
CUDA_HOST_CONVERSION(__int2double_rn, int, double)
CUDA_HOST_CONVERSION(__uint2double_rn, unsigned, double)
CUDA_HOST_CONVERSION(__ll2double_rn, long long, double)
CUDA_HOST_CONVERSION(__ull2double_rn, unsigned long long, double)
CUDA_HOST_CONVERSION(__double2float_rn, double, float)

#define CUDA_HOST_SAME_BITS(name, From, To) \
    inline To name(From value) {            \
        To bits;                            \
        memcpy(&bits, &value, sizeof bits); \
        return bits;                        \
    }
CUDA_HOST_SAME_BITS(__float_as_int, float, int)
CUDA_HOST_SAME_BITS(__int_as_float, int, float)
CUDA_HOST_SAME_BITS(__float_as_uint, float, unsigned)
CUDA_HOST_SAME_BITS(__uint_as_float, unsigned, float)
CUDA_HOST_SAME_BITS(__double_as_longlong, double, long long)
CUDA_HOST_SAME_BITS(__longlong_as_double, long long, double)

// ---- Vectors: aligned as on the device ----

#define CUDA_HOST_VECTORS(T)                                                               \
    struct alignas(2 * sizeof(T)) T##2 { T x, y; };                                        \
    struct T##3 { T x, y, z; };                                                            \
    struct alignas(16) T##4 { T x, y, z, w; };                                             \
    inline T##2 make_##T##2(T x, T y) { return {x, y}; }                                   \
    inline T##3 make_##T##3(T x, T y, T z) { return {x, y, z}; }                           \
    inline T##4 make_##T##4(T x, T y, T z, T w) { return {x, y, z, w}; }
CUDA_HOST_VECTORS(int)
CUDA_HOST_VECTORS(float)
CUDA_HOST_VECTORS(double)
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// ---- The launcher ----

namespace cuda_host {

// What the caller has to give for one argument of a kernel.
struct Parameter {
    int is_pointer;
    unsigned size;  // of what is passed, or pointed to; 0 for void
};

template <class T>
constexpr unsigned size_of() {
    if constexpr (std::is_void_v<T>) return 0;
    else return sizeof(T);
}

template <class... Arguments>
struct Kernel {
    using Function = void (*)(Arguments...);

    // Arguments come as cuLaunchKernel takes them: a pointer to each.
    template <size_t... I>
    static const char* launch(Function function, const unsigned* grid, const unsigned* block, size_t shared_bytes,
                              int reverse, void* const* arguments, std::index_sequence<I...>) {
        struct Call {
            Function function;
            void* const* arguments;
        } call{function, arguments};
        const auto run = [](void* data) {
            const Call& it = *static_cast<Call*>(data);
            it.function(*static_cast<std::remove_cv_t<Arguments>*>(it.arguments[I])...);
        };
        return run_grid({grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shared_bytes, reverse, run, &call);
    }

    static int parameters(Parameter* list) {
        const Parameter all[] = {{std::is_pointer_v<Arguments>, size_of<std::remove_pointer_t<Arguments>>()}...};
        if (list) memcpy(list, all, sizeof all);
        return sizeof...(Arguments);
    }
};

template <class... Arguments>
Kernel<Arguments...> kernel_of(void (*)(Arguments...));

template <class... Arguments>
const char* launch(void (*function)(Arguments...), const unsigned* grid, const unsigned* block, size_t shared_bytes,
                   int reverse, void* const* arguments) {
    return Kernel<Arguments...>::launch(function, grid, block, shared_bytes, reverse, arguments,
                                        std::index_sequence_for<Arguments...>{});
}

}  // namespace cuda_host

#define CUDA_HOST_EXPORT(kernel)                                                                        \
    extern "C" __attribute__((visibility("default"))) const char* cuda_host_launch_##kernel(                     \
        const unsigned* grid, const unsigned* block, size_t shared_bytes, int reverse, void* const* arguments) { \
        return cuda_host::launch(::kernel, grid, block, shared_bytes, reverse, arguments);                \
    }                                                                                                   \
    extern "C" __attribute__((visibility("default"))) int cuda_host_parameters_##kernel(cuda_host::Parameter* list) { \
        return decltype(cuda_host::kernel_of(::kernel))::parameters(list);                                \
    }
