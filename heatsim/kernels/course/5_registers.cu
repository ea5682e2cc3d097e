// heatsim exercise 5: the march with one plane in shared memory, as in 05. A thread keeps its cells below and above itself.
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
    __shared__ float plane[Y][X];
    const int i = threadIdx.x, j = threadIdx.y;
    const int x = blockIdx.x * (X - 2) + i - 1, y = blockIdx.y * (Y - 2) + j - 1;
    const bool writes = i > 0 && i < X - 1 && j > 0 && j < Y - 1 && x < nx && y < ny;
    const float* column = T + nearest(y, ny) * nx + nearest(x, nx);

    float below = column[0], middle = column[0];
    for (int z = 0; z < nz; ++z) {
        const float above = column[nearest(z + 1, nz) * ny * nx];
        // GAP 1: let neighbours see `middle`. Where are barriers needed, and why two in each turn?
        plane[j][i] = middle;
        __syncthreads();  // all have written
        // END
        if (writes)
            T_new[(z * ny + y) * nx + x] = step(
                middle, plane[j][i - 1], plane[j][i + 1], plane[j - 1][i], plane[j + 1][i], below, above);
        // GAP 2: one plane up, in registers; and what has to happen before `plane` is overwritten
        below = middle;
        middle = above;
        __syncthreads();  // all have read
        // END
    }
}
