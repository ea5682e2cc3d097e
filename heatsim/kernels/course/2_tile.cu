// heatsim exercise 2: the sum of the 7 values around each value of a line, from a tile in shared memory.
#define THREADS 64
#define RADIUS 3

extern "C" __global__ void advance(const float* values, float* sums, int count)
{
    __shared__ float tile[THREADS + 2 * RADIUS];
    const int thread = threadIdx.x, last = count - 1;
    const int i = blockIdx.x * THREADS + thread;

    tile[RADIUS + thread] = values[min(i, last)];
    // GAP 1: the first RADIUS threads also load the halos on both sides; beyond the ends the first or last value is repeated
    if (thread < RADIUS) {
        tile[thread] = values[max(i - RADIUS, 0)];
        tile[RADIUS + THREADS + thread] = values[min(i + THREADS, last)];
    }
    // END
    // GAP 2: what must happen before a thread reads values that others have written?
    __syncthreads();
    // END

    if (i > last) return;
    float sum = 0;
    for (int offset = 0; offset <= 2 * RADIUS; ++offset) sum += tile[thread + offset];
    sums[i] = sum;
}
