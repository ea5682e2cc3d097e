// heatsim exercise 4: a block marches along z with three planes in shared memory, as in 04.
#define X 10  // threads of a block
#define Y 6

// The new value of a cell from its own and those of its neighbours.
__device__ float step(float T, float west, float east, float south, float north, float below, float above)
{
    return T + 0.1f * (west + east + south + north + below + above - 6.0f * T);
}

// The nearest of the positions 0 to n - 1. Outside the grid a cell has the value of the nearest cell inside: no heat passes.
__device__ int nearest(int i, int n) { return min(max(i, 0), n - 1); }

extern "C" __global__ void advance(const float* T, float* T_new, int nx, int ny, int nz)
{
    __shared__ float plane[3][Y][X];
    const int i = threadIdx.x, j = threadIdx.y;
    const int x = blockIdx.x * (X - 2) + i - 1, y = blockIdx.y * (Y - 2) + j - 1;
    const bool writes = i > 0 && i < X - 1 && j > 0 && j < Y - 1 && x < nx && y < ny;
    const float* column = T + nearest(y, ny) * nx + nearest(x, nx);

    int below = 0, middle = 1, above = 2;  // which plane of shared memory is which
    plane[below][j][i] = column[0];  // no heat passes the face
    plane[middle][j][i] = column[0];

    for (int z = 0; z < nz; ++z) {
        plane[above][j][i] = column[nearest(z + 1, nz) * ny * nx];
        // GAP 1: the barrier. One in each turn is enough: say which reads and writes it keeps apart
        // It makes `middle` visible, which was written a turn ago. And it keeps the reads of a plane before it from the
        // write that replaces this plane two turns later: with three planes no thread is further ahead than that.
        __syncthreads();
        // END
        if (writes)
            T_new[(z * ny + y) * nx + x] = step(
                plane[middle][j][i], plane[middle][j][i - 1], plane[middle][j][i + 1], plane[middle][j - 1][i],
                plane[middle][j + 1][i], plane[below][j][i], plane[above][j][i]);
        // GAP 2: one plane up, without a copy in shared memory
        const int free = below;
        below = middle;
        middle = above;
        above = free;
        // END
    }
}
