// A fiber: a stack of its own and the registers with which to go on there.
//
// Switching saves what the x86-64 calling convention lets a function rely on, six registers and the stack pointer,
// and stays out of the system. Other processors, and CUDA_HOST_UCONTEXT, use the C library's ucontext, which asks the
// system for the signal mask at every switch and is 20 times slower.
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

#if !defined(__x86_64__) && !defined(CUDA_HOST_UCONTEXT)
#define CUDA_HOST_UCONTEXT
#endif

#ifdef CUDA_HOST_UCONTEXT
#include <ucontext.h>
#else
// It ends with a jump: the processor predicts that a ret goes back to the caller, who is on the other stack.
extern "C" void cuda_host_switch(void** saved, void* next) __attribute__((visibility("hidden")));
asm(R"(
    .text
    .hidden cuda_host_switch
    .globl  cuda_host_switch
    .type   cuda_host_switch, @function
cuda_host_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq  %rsp, (%rdi)
    movq  %rsi, %rsp
    popq  %r15
    popq  %r14
    popq  %r13
    popq  %r12
    popq  %rbx
    popq  %rbp
    popq  %rcx
    jmp   *%rcx
    .size cuda_host_switch, .-cuda_host_switch
)");
#endif

namespace cuda_host {

constexpr unsigned full_block = 1024;
constexpr unsigned most_threads = 8 * full_block;  // of blocks that run at the same time

// The stacks of threads, committed by the system as they are touched. The page below each stack is closed, so
// that an overflow stops the process instead of damaging another thread's stack.
class Stacks {
public:
    static char* bottom(unsigned number) { return memory() + number * stride + page; }

    // Tops at the same offset in their pages would all fall into the same cache sets.
    static char* top(unsigned number) { return bottom(number) + size - 128 * (number % 32); }

private:
    static constexpr size_t page = 4096;
    static constexpr size_t size = 16 * page;
    static constexpr size_t stride = size + page;

    // Made at the first launch and kept: a visible function's static variable is one for all libraries of the process.
    __attribute__((visibility("default"))) static char* memory() {
        static char* const all = make();
        return all;
    }

    static char* make() {
        void* all = mmap(nullptr, most_threads * stride, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (all == MAP_FAILED) abort();
        for (unsigned i = 0; i < most_threads; ++i) mprotect(static_cast<char*>(all) + i * stride, page, PROT_NONE);
        return static_cast<char*>(all);
    }
};

#ifdef CUDA_HOST_UCONTEXT

struct Fiber {
    ucontext_t context;

    void start(unsigned number, void (*entry)()) {
        getcontext(&context);
        context.uc_stack.ss_sp = Stacks::bottom(number);
        context.uc_stack.ss_size = Stacks::top(number) - Stacks::bottom(number);
        context.uc_link = nullptr;
        makecontext(&context, entry, 0);
    }
    void switch_to(Fiber& next) { swapcontext(&context, &next.context); }
};

#else

struct Fiber {
    void* stack_pointer;

    // `entry` never returns; the stack it finds is aligned as after a call.
    void start(unsigned number, void (*entry)()) {
        void** top = reinterpret_cast<void**>(Stacks::top(number));
        *--top = nullptr;
        *--top = reinterpret_cast<void*>(entry);
        for (int saved_register = 0; saved_register < 6; ++saved_register) *--top = nullptr;
        stack_pointer = top;
    }
    void switch_to(Fiber& next) { cuda_host_switch(&stack_pointer, next.stack_pointer); }
};

#endif

}  // namespace cuda_host
