// heatsim exercise 6: two steps for one read and one write of global memory, on a line: the idea of 07.
#define THREADS 64
#define HALO 2  // cells on either side that a block reads and does not write: one for each step

__device__ float step(float T, float west, float east) { return T + 0.25f * (west + east - 2.0f * T); }

extern "C" __global__ void advance(const float* T, float* T_new, int count)
{
    __shared__ float before[THREADS], between[THREADS];
    const int thread = threadIdx.x;
    const int x = blockIdx.x * (THREADS - 2 * HALO) + thread - HALO;
    before[thread] = T[min(max(x, 0), count - 1)];

    // The neighbours in the tile. At an end of the line a cell is its own neighbour: no heat passes.
    const int west = x > 0 ? thread - 1 : thread, east = x < count - 1 ? thread + 1 : thread;

    // GAP 1: the first step, into `between`. Which threads can do it? Where are barriers needed?
    __syncthreads();
    if (thread > 0 && thread < THREADS - 1)  // each step costs one cell at either end of the tile
        between[thread] = step(before[thread], before[west], before[east]);
    __syncthreads();
    // END

    // GAP 2: the second step, into T_new
    if (thread >= HALO && thread < THREADS - HALO && x < count)
        T_new[x] = step(between[thread], between[west], between[east]);
    // END
}
