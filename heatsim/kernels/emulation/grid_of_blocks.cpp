// Executes a grid of blocks of CUDA threads on one processor core. Compiled once and linked to every kernel.
//
// Blocks run one after another; the threads of a block are fibers that run in turn, each until it has to wait. Warps
// of 32 threads go on until all their lanes have exited or wait at a barrier of the block. Where a thread waits for
// another block, by calling load_acquire() in a loop, its block is suspended and the next one runs. The caller chooses the
// order of blocks and threads. If two threads access the same memory without a barrier between them, their order differs
// between "forward" and "reverse". So results that differ show a race.
#include "grid_of_blocks.h"

#include "fiber.h"

#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cuda_host {

static bool operator==(const Place& a, const Place& b) {
    const auto same = [](const char* a, const char* b) { return a == b || !strcmp(a, b); };
    return a.line == b.line && same(a.what, b.what) && same(a.file, b.file);
}

enum class State { ready, at_barrier, at_warp_operation, at_acquire, exited };

struct Thread {
    Fiber fiber;
    State state;
    uint3 index;
    Place place;            // where it waits
    unsigned mask;          // lanes that its warp operation names
    unsigned participants;  // of those, the ones that took part
    uint64_t given;         // its value for the warp operation it waits at
    uint64_t published;     // its value in the warp operation completed last
};

constexpr unsigned most_rounds = 100000;  // over all blocks; each round advances some block, unless all wait for ever

static Thread all_threads[most_threads];
static Thread* threads;  // of the block that runs
static unsigned thread_count;
static unsigned current;  // number of the thread that runs
static Fiber scheduler;
static void (*kernel_call)(void*);
static void* kernel_arguments;
static bool reverse;
static char error[1024];
char* dynamic_shared;
static thread_local char first_shared;  // makes sure that there is some

struct Bytes {
    char* begin;
    size_t size;
};

// The static shared memory of the kernel: the thread-local storage of the library that holds this function.
static Bytes static_shared() {
    Bytes found{&first_shared, sizeof first_shared};
    dl_iterate_phdr(
        [](dl_phdr_info* library, size_t, void* data) {
            Bytes& bytes = *static_cast<Bytes*>(data);
            for (int i = 0; i < library->dlpi_phnum; ++i) {
                const auto& segment = library->dlpi_phdr[i];
                char* begin = static_cast<char*>(library->dlpi_tls_data);
                if (segment.p_type != PT_TLS || bytes.begin < begin || bytes.begin >= begin + segment.p_memsz) continue;
                bytes = {begin, segment.p_memsz};
                return 1;
            }
            return 0;
        },
        &found);
    return found;
}

// Bytes that a kernel reads and writes, if it is compiled with -fsanitize=thread: machine.py has the same struct.
struct Counted {
    Bytes watched;    // an array in global memory
    Bytes shared[2];  // static and dynamic
    uint64_t read, written, in_shared;
};
extern "C" __attribute__((visibility("default"))) Counted counted;
Counted counted;

static bool within(const Bytes& bytes, const void* address) {
    return size_t(static_cast<const char*>(address) - bytes.begin) < bytes.size;
}

static void count(const void* address, unsigned size, uint64_t& bytes) {
    if (within(counted.watched, address)) bytes += size;
    if (within(counted.shared[0], address) || within(counted.shared[1], address)) counted.in_shared += size;
}

void fail(const char* format, ...) {
    const uint3 t = threadIdx, b = blockIdx;
    int used = snprintf(error, sizeof error, "block (%u, %u, %u), thread (%u, %u, %u): ", b.x, b.y, b.z, t.x, t.y, t.z);
    va_list values;
    va_start(values, format);
    vsnprintf(error + used, sizeof error - used, format, values);
    va_end(values);
    threads[current].fiber.switch_to(scheduler);
    abort();
}

static void run_thread() {
    kernel_call(kernel_arguments);
    threads[current].state = State::exited;
    threads[current].fiber.switch_to(scheduler);
}

static void wait(State state, Place place) {
    Thread& thread = threads[current];
    thread.state = state;
    thread.place = place;
    thread.fiber.switch_to(scheduler);
}

void wait_for_block(Place place) { wait(State::at_barrier, place); }

unsigned lane() { return current % warpSize; }

unsigned exchange(unsigned mask, uint64_t value, Place place) {
    Thread& thread = threads[current];
    if (!(mask >> lane() & 1))
        fail("%s in %s:%d: mask 0x%08x does not name lane %u itself", place.what, place.file, place.line, mask, lane());
    thread.mask = mask;
    thread.given = value;
    wait(State::at_warp_operation, place);
    return thread.participants;
}

uint64_t value_of(unsigned lane) { return threads[current - current % warpSize + lane].published; }

// Releases every complete group of lanes; false if there is none.
static bool complete_warp_operations(unsigned first, unsigned lanes) {
    bool any = false;
    for (unsigned i = 0; i < lanes; ++i) {
        const Thread& thread = threads[first + i];
        if (thread.state != State::at_warp_operation) continue;
        bool complete = true;
        unsigned participants = 0;
        for (unsigned j = 0; j < lanes; ++j) {
            const Thread& other = threads[first + j];
            if (!(thread.mask >> j & 1) || other.state == State::exited) continue;
            participants |= 1u << j;
            complete = complete && other.state == State::at_warp_operation && other.mask == thread.mask &&
                       other.place == thread.place;
        }
        if (!complete) continue;
        any = true;
        for (unsigned j = 0; j < lanes; ++j) {
            if (!(participants >> j & 1)) continue;
            Thread& other = threads[first + j];
            other.published = other.given;
            other.participants = participants;
            other.state = State::ready;
        }
    }
    return any;
}

// Runs the threads of a warp until each has exited or waits; false after an error.
static bool run_warp(unsigned first, unsigned lanes) {
    do {
        for (unsigned i = 0; i < lanes; ++i) {
            current = first + (reverse ? lanes - 1 - i : i);
            if (threads[current].state != State::ready) continue;
            threadIdx = threads[current].index;
            scheduler.switch_to(threads[current].fiber);
            if (error[0]) return false;
        }
    } while (complete_warp_operations(first, lanes));
    return true;
}

// Reports which threads wait where; called when no thread can continue.
static void describe_deadlock() {
    int used = snprintf(error, sizeof error, "block (%u, %u, %u): threads wait for each other for ever:",
                        blockIdx.x, blockIdx.y, blockIdx.z);
    bool told[full_block] = {};
    for (unsigned i = 0; i < thread_count && used < int(sizeof error); ++i) {
        const Thread& thread = threads[i];
        if (thread.state == State::exited || told[i]) continue;
        unsigned count = 0;
        for (unsigned j = i; j < thread_count; ++j) {
            if (threads[j].state == State::exited || !(threads[j].place == thread.place)) continue;
            told[j] = true;
            ++count;
        }
        used += snprintf(error + used, sizeof error - used, " %u at %s in %s:%d (the first is thread (%u, %u, %u));",
                         count, thread.place.what, thread.place.file, thread.place.line, thread.index.x,
                         thread.index.y, thread.index.z);
    }
}

unsigned load_acquire(const unsigned* number, Place place) {
    wait(State::at_acquire, place);
    return *number;
}

// Starts a block. Blocks that run at the same time have different places among `all_threads`.
static void start_block(Bytes shared, size_t dynamic_bytes, unsigned first_thread) {
    memset(shared.begin, poison, shared.size);
    memset(dynamic_shared, poison, dynamic_bytes);
    threads = all_threads + first_thread;
    for (unsigned i = 0; i < thread_count; ++i) {
        threads[i].state = State::ready;
        threads[i].index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
        threads[i].fiber.start(first_thread + i, run_thread);
    }
}

// Makes the threads in a state ready; false if there are none.
static bool lets_go_on(State state, unsigned first, unsigned count) {
    bool any = false;
    for (unsigned i = first; i < first + count; ++i) {
        if (threads[i].state != state) continue;
        threads[i].state = State::ready;
        any = true;
    }
    return any;
}

enum class Turn { ended, stands_aside, failed };

// Runs a block until its last thread has exited or a warp waits for another block. Then the block is suspended before its
// next warp runs, so another block sees a count that was raised too early.
static Turn run_block(unsigned& next_warp) {
    const unsigned warps = (thread_count + warpSize - 1) / warpSize;
    for (;;) {
        for (unsigned i = next_warp; i < warps; ++i) {
            const unsigned first = warpSize * (reverse ? warps - 1 - i : i);
            const unsigned lanes = thread_count - first < warpSize ? thread_count - first : warpSize;
            if (!run_warp(first, lanes)) return Turn::failed;
            if (lets_go_on(State::at_acquire, first, lanes)) {
                next_warp = i + 1;
                return Turn::stands_aside;
            }
        }
        next_warp = 0;
        bool ready = false;
        for (unsigned i = 0; i < thread_count; ++i) ready = ready || threads[i].state == State::ready;
        if (ready) continue;
        // A thread that has exited counts as arrived, as on the hardware since Volta.
        const Thread* waiting = nullptr;
        for (unsigned i = 0; i < thread_count; ++i) {
            const Thread& thread = threads[i];
            if (thread.state == State::exited) continue;
            if (!waiting) waiting = &thread;
            if (thread.state != State::at_barrier || !(thread.place == waiting->place)) {
                describe_deadlock();
                return Turn::failed;
            }
        }
        if (!waiting) return Turn::ended;
        lets_go_on(State::at_barrier, 0, thread_count);
    }
}

// A block that has started, and its shared memory while it is suspended.
struct Block {
    bool started, ended;
    unsigned next_warp;
    char* shared;
};

// Runs all blocks in turn, each until it ends or is suspended, until all have ended.
static void run_blocks(uint64_t count, Bytes shared, size_t dynamic_bytes) {
    const bool together = count * thread_count <= most_threads;
    Block* const blocks = static_cast<Block*>(calloc(count, sizeof(Block)));
    uint64_t left = count;
    for (unsigned round = 0; left && !error[0]; ++round) {
        if (round == most_rounds) snprintf(error, sizeof error, "blocks wait for each other for ever");
        for (uint64_t i = 0; i < count && !error[0]; ++i) {
            const uint64_t number = reverse ? count - 1 - i : i;
            Block& block = blocks[number];
            if (block.ended) continue;
            blockIdx = {unsigned(number % gridDim.x), unsigned(number / gridDim.x % gridDim.y),
                        unsigned(number / gridDim.x / gridDim.y)};
            if (!block.started) {
                start_block(shared, dynamic_bytes, together ? unsigned(number) * thread_count : 0);
                block.started = true;
            } else {
                threads = all_threads + number * thread_count;
                memcpy(shared.begin, block.shared, shared.size);
                memcpy(dynamic_shared, block.shared + shared.size, dynamic_bytes);
            }
            const Turn turn = run_block(block.next_warp);
            if (turn == Turn::stands_aside && !together) {
                snprintf(error, sizeof error, "blocks that wait for each other may have %u threads in all", most_threads);
            } else if (turn == Turn::stands_aside) {
                if (!block.shared) block.shared = static_cast<char*>(malloc(shared.size + dynamic_bytes));
                memcpy(block.shared, shared.begin, shared.size);
                memcpy(block.shared + shared.size, dynamic_shared, dynamic_bytes);
            } else if (turn == Turn::ended) {
                block.ended = true;
                --left;
            }
        }
    }
    for (uint64_t i = 0; i < count; ++i) free(blocks[i].shared);
    free(blocks);
}

const char* run_grid(dim3 grid, dim3 block, size_t shared_bytes, bool in_reverse, void (*call)(void*),
                            void* arguments) {
    error[0] = 0;
    const uint64_t size = uint64_t(block.x) * block.y * block.z;
    const uint64_t blocks = uint64_t(grid.x) * grid.y * grid.z;
    if (!size || size > full_block || block.z > 64 || !blocks || grid.y > 65535 || grid.z > 65535) {
        snprintf(error, sizeof error, "no such launch: grid (%u, %u, %u), block (%u, %u, %u)", grid.x, grid.y, grid.z,
                 block.x, block.y, block.z);
        return error;
    }
    gridDim = grid;
    blockDim = block;
    thread_count = unsigned(size);
    reverse = in_reverse;
    kernel_call = call;
    kernel_arguments = arguments;
    // The hardware aligns to 128 bytes. The rest is a poisoned area behind the end.
    const size_t padded = (shared_bytes + 127) / 128 * 128;
    dynamic_shared = static_cast<char*>(aligned_alloc(128, padded + 128));
    memset(dynamic_shared, poison, padded + 128);
    const Bytes shared = static_shared();
    counted.shared[0] = {shared.begin, shared.size};
    counted.shared[1] = {dynamic_shared, shared_bytes};
    run_blocks(blocks, shared, shared_bytes);
    for (size_t i = shared_bytes; i < padded + 128 && !error[0]; ++i)
        if (dynamic_shared[i] != char(poison))
            snprintf(error, sizeof error, "written behind the %zu bytes of dynamic shared memory", shared_bytes);
    free(dynamic_shared);
    return error[0] ? error : nullptr;
}

}  // namespace cuda_host

// ---- What the compiler calls at each access to memory, with -fsanitize=thread ----

#define COUNTED(size)                                                                                              \
    extern "C" void __tsan_read##size(void* address) { cuda_host::count(address, size, cuda_host::counted.read); } \
    extern "C" void __tsan_write##size(void* address) { cuda_host::count(address, size, cuda_host::counted.written); }
COUNTED(1)
COUNTED(2)
COUNTED(4)
COUNTED(8)
COUNTED(16)
extern "C" void __tsan_read_range(void* address, size_t size) { cuda_host::count(address, size, cuda_host::counted.read); }
extern "C" void __tsan_write_range(void* address, size_t size) {
    cuda_host::count(address, size, cuda_host::counted.written);
}
extern "C" void __tsan_init() {}

// ---- Checks that the compiler inserts: their data begin with the place in the source ----

[[noreturn]] static void fail_at(const void* data, const char* what) {
    struct Location { const char* file; uint32_t line, column; };
    const Location* location = static_cast<const Location*>(data);
    cuda_host::fail("%s at %s:%u:%u", what, location->file, location->line, location->column);
}

#define CHECK(name, what) \
    extern "C" [[noreturn]] void __ubsan_handle_##name##_abort(void* data, void*, void*) { fail_at(data, what); }
CHECK(out_of_bounds, "index out of bounds")
CHECK(type_mismatch_v1, "misaligned address")
CHECK(add_overflow, "signed overflow")
CHECK(sub_overflow, "signed overflow")
CHECK(divrem_overflow, "division by zero or signed overflow")
CHECK(mul_overflow, "signed overflow")
CHECK(negate_overflow, "signed overflow")
