// lines: lines of cells that are solved at once; see lines.py for the formulas. Included by multigrid.cu.
//
// A thread goes along a line, first to its end and then back. Lines along y and z lie side by side, so neighbouring threads read
// neighbouring cells; along x each thread reads its own row, of which the caches keep the next cells.

// Products that are added are named. Otherwise the compiler may contract a sum in one copy of a loop and not in another, so
// that lines which begin on another rank would have other bits.
__device__ __forceinline__ float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return fma(a, b, c); }

// struct Span of lines.py.
#define LINE_PARAMETERS                                                                                                \
    const Link *__restrict__ link, Link *__restrict__ pivot, const unsigned int groups, const unsigned int stride,      \
        const unsigned int step, const unsigned int width, const unsigned int begin, const unsigned int end,           \
        const unsigned int before, const unsigned int after
// Sets `first` to the first cell of this thread's line.
#define BEGIN_LINE                                                                                                     \
    if (thread_number() >= groups * width) return;                                                                     \
    const unsigned int first = thread_number() / width * stride + thread_number() % width;

extern "C" __global__ void __launch_bounds__(THREADS)
join(LINE_PARAMETERS)
{
    BEGIN_LINE
    Link* const rest = pivot;
    for (unsigned int place = begin + 1 - before; place < end; ++place) {
        const unsigned int i = first + place * step;
        const Link rest_before = rest[i - step], total = link[i] + rest_before;
        if (total > 0) rest[i] = multiply_add(rest_before, link[i] / total, rest[i]);
    }
}

// `b` may be `out`. Elimination goes forth, substitution back.
extern "C" __global__ void __launch_bounds__(THREADS)
solve_lines(LINE_PARAMETERS, const float* b, float* out, const float tau, const unsigned int forth, const unsigned int back)
{
    BEGIN_LINE
    for (unsigned int place = begin; forth && place < end; ++place) {
        const unsigned int i = first + place * step;
        Link heat = tau * b[i];
        if (place > begin || before) heat = multiply_add(link[i], Link(out[i - step]), heat);
        out[i] = (float)(heat * pivot[i]);
    }
    for (unsigned int place = end - 1 + after; back && place > begin; --place) {
        const unsigned int i = first + place * step;
        out[i - step] = (float)multiply_add(link[i] * pivot[i - step], Link(out[i]), Link(out[i - step]));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
add(float* __restrict__ T, const float* __restrict__ change, const unsigned int count)
{
    const unsigned int i = thread_number();
    if (i < count) T[i] += change[i];
}
