// The functions of grid_of_blocks.cpp, the machine that executes a kernel, that the kernel calls.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

constexpr int warpSize = 32;

// Each library has a machine for its kernel. (-fvisibility=hidden does not apply to declarations.)
#pragma GCC visibility push(hidden)

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace cuda_host {

constexpr int poison = 0xFF;  // as float or double: a NaN

extern char* dynamic_shared;

struct Place {
    const char* what;
    const char* file;
    int line;
};

// Ends the launch with a message; the fiber that calls it is never resumed.
[[noreturn]] void fail(const char* format, ...);

// Waits until all threads of the block that have not exited are at this place.
void wait_for_block(Place place);

// The number of the thread that runs in its warp.
unsigned lane();

// Waits until all lanes in `mask` that have not exited are here and have given a value; returns those lanes.
unsigned exchange(unsigned mask, uint64_t value, Place place);

// The value that a lane gave in the exchange completed last.
uint64_t value_of(unsigned lane);

// A number in memory that other blocks write. Their writes before it are seen, because only one block runs at a time.
unsigned load_acquire(const unsigned* number, Place place = {"load_acquire", __builtin_FILE(), __builtin_LINE()});
inline void store_release(unsigned* number, unsigned value) { *number = value; }

// Runs a grid; returns null, or what went wrong.
const char* run_grid(dim3 grid, dim3 block, size_t shared_bytes, bool in_reverse, void (*call)(void*), void* arguments);

}  // namespace cuda_host

#pragma GCC visibility pop
