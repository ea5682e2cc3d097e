// heatsim exercise 3: a step of heat conduction in three dimensions. The block is the input tile, as in 02.
#define X 10  // threads of a block along each axis
#define Y 6
#define Z 5

// The new value of a cell from its own and those of its neighbours.
__device__ float step(float T, float west, float east, float south, float north, float below, float above)
{
    return T + 0.1f * (west + east + south + north + below + above - 6.0f * T);
}

// The nearest of the positions 0 to n - 1. Outside the grid a cell has the value of the nearest cell inside: no heat passes.
__device__ int nearest(int i, int n) { return min(max(i, 0), n - 1); }

extern "C" __global__ void advance(const float* T, float* T_new, int nx, int ny, int nz)
{
    __shared__ float tile[Z][Y][X];
    const int i = threadIdx.x, j = threadIdx.y, k = threadIdx.z;
    // GAP 1: const int x, y, z: the cell of this thread. Only inner threads write, so tiles of blocks overlap by two cells
    const int x = blockIdx.x * (X - 2) + i - 1;  // block 0 begins one cell outside the grid
    const int y = blockIdx.y * (Y - 2) + j - 1;
    const int z = blockIdx.z * (Z - 2) + k - 1;
    // END

    tile[k][j][i] = T[(nearest(z, nz) * ny + nearest(y, ny)) * nx + nearest(x, nx)];
    __syncthreads();

    // GAP 2: const bool writes: all neighbours of the thread are in the tile, and its cell is in the grid
    const bool inner = i > 0 && i < X - 1 && j > 0 && j < Y - 1 && k > 0 && k < Z - 1;
    const bool writes = inner && x < nx && y < ny && z < nz;  // inner cells are never before the grid
    // END
    if (writes)
        T_new[(z * ny + y) * nx + x] = step(
            tile[k][j][i], tile[k][j][i - 1], tile[k][j][i + 1], tile[k][j - 1][i], tile[k][j + 1][i], tile[k - 1][j][i],
            tile[k + 1][j][i]);
}
